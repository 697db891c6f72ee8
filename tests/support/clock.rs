//! Waiting for conditions, and the clock that the record uses.

use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Bound for what a healthy program does at once, generous enough for a loaded machine.
pub const SHORT: Duration = Duration::from_secs(20);
/// Bound for what includes starting programs or running out a limit.
pub const LONG: Duration = Duration::from_secs(60);

/// Waits until `condition` gives something and returns it.
///
/// # Panics
/// When it does not within `bound`; the message names `what`.
pub fn eventually<T>(what: &str, bound: Duration, mut condition: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = condition() {
            return found;
        }
        assert!(started.elapsed() < bound, "not within {bound:?}: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Checks that `condition` stays true for `time`: the way to show that something does not happen.
///
/// # Panics
/// As soon as it is false.
pub fn holds_for(what: &str, time: Duration, mut condition: impl FnMut() -> bool) {
    let started = Instant::now();
    while started.elapsed() < time {
        assert!(
            condition(),
            "stopped being true after {:?}: {what}",
            started.elapsed()
        );
        thread::sleep(Duration::from_millis(5));
    }
}

/// Milliseconds since 1970, as in the record's `at`.
pub fn wall_ms() -> f64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("a clock after 1970");
    since.as_secs_f64() * 1000.0
}
