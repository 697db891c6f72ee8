//! Reading the record, and holding it against what the display received.

use handover_protocol::Timestamp;
use serde_json::Value;

use super::recorder::{Seen, What};

/// A takeover as it stands in the record.
#[derive(Debug)]
pub struct Takeover {
    /// When it was granted, in wall milliseconds.
    pub start: f64,
    /// When it had ended; infinite when it has not.
    pub end: f64,
    /// How it ended: `return`, `timeout` and so on.
    pub how: String,
    /// Its lease.
    pub lease: String,
    /// The epoch with which it began.
    pub epoch: u64,
}

/// The time of an event in wall milliseconds.
pub fn at(event: &Value) -> f64 {
    let time: Timestamp = event["at"]
        .as_str()
        .and_then(|text| text.parse().ok())
        .expect("a time");
    // Exact: milliseconds since 1970 need 41 bits.
    time.unix_ms() as f64
}

/// The takeovers on record.
///
/// # Panics
/// When two overlap, or an end has no beginning.
pub fn takeovers(journal: &[Value]) -> Vec<Takeover> {
    let mut found: Vec<Takeover> = Vec::new();
    for event in journal {
        let Some(act) = event["kind"]
            .as_str()
            .expect("a kind")
            .strip_prefix("takeover_")
        else {
            continue;
        };
        let lease = event["leaseId"].as_str().expect("a lease").to_owned();
        if act == "start" {
            assert!(
                found.last().is_none_or(|last| last.end.is_finite()),
                "a takeover within a takeover"
            );
            let epoch = event["epoch"].as_u64().expect("an epoch");
            let grows = found.last().is_none_or(|last| last.epoch < epoch);
            assert!(grows, "an epoch that does not grow");
            found.push(Takeover {
                start: at(event),
                end: f64::INFINITY,
                how: String::new(),
                lease,
                epoch,
            });
        } else {
            let last = found
                .last_mut()
                .filter(|last| last.end.is_infinite())
                .expect("a start before the end");
            assert_eq!(last.lease, lease, "the end of another lease");
            (last.end, last.how) = (at(event), act.to_owned());
        }
    }
    found
}

/// Checks that the keys of `agent` went down outside of all takeovers and those of `person` inside of one.
/// The record counts whole milliseconds, hence the slack of one.
///
/// # Panics
/// With the first event that is out of place.
pub fn check_exclusion(seen: &[Seen], takeovers: &[Takeover], agent: u32, person: u32) {
    for event in seen {
        let What::Key { keysym, .. } = event.what else {
            continue;
        };
        if keysym == agent {
            let inside = takeovers
                .iter()
                .find(|t| event.after > t.start + 1.0 && event.before < t.end);
            assert!(
                inside.is_none(),
                "an agent's key in human time: {event:?} in {inside:?}"
            );
        } else if keysym == person {
            let inside = takeovers
                .iter()
                .any(|t| event.before >= t.start && event.after <= t.end + 1.0);
            assert!(
                inside,
                "a person's key outside of every takeover: {event:?}, {takeovers:?}"
            );
        }
    }
}
