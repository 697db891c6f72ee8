//! Which versions of Claude Code can be driven.

use serde_json::Value;

use super::wire::texts;
use crate::driver::json::text;

/// The oldest version that shows what becomes of a message.
const OLDEST: [u64; 3] = [2, 1, 332];

/// What it must be capable of, by its own words.
const NEEDED: [&str; 4] = [
    "interrupt_receipt_v1",
    "interrupt_cancel_queued_v1",
    "msg_lifecycle_v1",
    "request_marker_lists_v1",
];

/// Why the program that answered `initialize` so is too old, if it is. One that does not tell its
/// version there tells it with its first turn.
pub(super) fn too_old(initialized: &Value) -> Option<String> {
    let found = text(initialized, "/claude_code_version")?;
    (parse(found)? < OLDEST).then(|| needs(found))
}

/// Why the program that began a session so cannot be driven, if it cannot.
pub(super) fn unfit(init: &Value) -> Option<String> {
    let found = text(init, "/claude_code_version").unwrap_or("unknown");
    if parse(found).is_none_or(|version| version < OLDEST) {
        return Some(needs(found));
    }
    let capabilities: Vec<&str> = texts(init, "/capabilities").collect();
    let missing = NEEDED
        .into_iter()
        .find(|needed| !capabilities.contains(needed))?;
    Some(format!("{}, and has no {missing}", needs(found)))
}

fn needs(found: &str) -> String {
    let [major, minor, patch] = OLDEST;
    format!("Claude Code {major}.{minor}.{patch} or later is needed; this is {found}")
}

/// Major, minor and patch; what follows them is passed over.
fn parse(version: &str) -> Option<[u64; 3]> {
    let mut parts = version
        .split(['.', '-', '+', ' '])
        .map(|part| part.parse().ok());
    Some([parts.next()??, parts.next()??, parts.next()??])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_older_version_is_told_what_is_needed() {
        for found in ["2.1.197", "1.9.999", "2.0.400"] {
            let reply = json!({"claude_code_version": found});
            let expected = format!("Claude Code 2.1.332 or later is needed; this is {found}");
            assert_eq!(too_old(&reply), Some(expected.clone()));
            assert_eq!(unfit(&reply), Some(expected));
        }
        assert_eq!(too_old(&json!({})), None);
        assert!(unfit(&json!({})).is_some());
    }

    #[test]
    fn a_later_version_needs_its_capabilities() {
        let able = json!({"claude_code_version": "2.2.0-beta", "capabilities": NEEDED});
        assert_eq!(too_old(&able), None);
        assert_eq!(unfit(&able), None);
        let less = json!({"claude_code_version": "2.1.332", "capabilities": &NEEDED[1..]});
        let reason = unfit(&less).expect("a reason");
        assert!(reason.ends_with("has no interrupt_receipt_v1"), "{reason}");
    }
}
