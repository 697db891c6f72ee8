//! Names of users, for people to read.

use std::sync::OnceLock;

/// The name of a user, or `uid N` if the system's list has none.
pub fn name(uid: u32) -> String {
    find(uid).map_or_else(|| format!("uid {uid}"), str::to_owned)
}

/// The name of a user, if the system's list has it.
pub fn find(uid: u32) -> Option<&'static str> {
    static USERS: OnceLock<Vec<(u32, String)>> = OnceLock::new();
    let users = USERS.get_or_init(|| {
        let list = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
        list.lines().filter_map(entry).collect()
    });
    users
        .iter()
        .find(|(known, _)| *known == uid)
        .map(|(_, name)| name.as_str())
}

/// One line of `/etc/passwd`: name, password, uid, and more.
fn entry(line: &str) -> Option<(u32, String)> {
    let mut fields = line.split(':');
    let (name, _, uid) = (fields.next()?, fields.next()?, fields.next()?);
    Some((uid.parse().ok()?, name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read_and_others_passed_over() {
        assert_eq!(
            entry("ann:x:1000:1000::/home/ann:/bin/sh"),
            Some((1000, "ann".to_owned()))
        );
        assert_eq!(entry("# no entry"), None);
        assert_eq!(entry("ann:x:many:1"), None);
    }

    #[test]
    fn a_user_without_a_name_is_a_number() {
        assert_eq!(find(4_000_000_001), None);
        assert_eq!(name(4_000_000_001), "uid 4000000001");
    }
}
