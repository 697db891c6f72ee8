//! How many agents there may be, and how fast they may come.

use std::time::{Duration, Instant};

/// Bounds of a session's agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Agents that work at once. One that has unfinished children of its own does not count, or they
    /// could wait for each other for ever.
    pub running: usize,
    /// Agents that wait for their turn.
    pub queued: usize,
    /// How deep the tree may be: the deepest agent has this depth.
    pub depth: u32,
    /// Unfinished children of one agent.
    pub children: usize,
}

impl Limits {
    /// Those of the contract, with so many agents at once.
    pub const fn new(running: usize) -> Self {
        Self {
            running,
            queued: 256,
            depth: 3,
            children: 16,
        }
    }
}

/// Steers of one agent whose receipt is open.
pub(crate) const OPEN_STEERS: usize = 1024;
/// What the texts of these steers may have together, in bytes: eight of the longest, and well below what
/// may wait for a program that reads nothing.
pub(crate) const OPEN_STEERS_BYTES: usize = 4 << 20;
/// Receipts of one agent that are kept in memory after they were closed; the record has all.
pub(crate) const CLOSED_STEERS: usize = 256;
/// The longest message, in bytes.
pub(crate) const MAX_TEXT: usize = 512 << 10;
/// The longest name of a steer, in bytes.
pub(crate) const MAX_STEER_ID: usize = 128;
/// Ended agents that a list shows, the newest; `result` finds the others too.
pub(crate) const LISTED_ENDED: usize = 1000;

/// A bucket of tokens: so many at once, then so many a second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    burst: f64,
    per_second: f64,
    tokens: f64,
    at: Option<Instant>,
}

impl Rate {
    pub const fn new(burst: u32, per_second: u32) -> Self {
        Self {
            burst: burst as f64,
            per_second: per_second as f64,
            tokens: burst as f64,
            at: None,
        }
    }

    /// For what people start.
    pub const fn of_people() -> Self {
        Self::new(512, 50)
    }

    /// For what all agents together start.
    pub const fn of_agents() -> Self {
        Self::new(32, 2)
    }

    /// Takes a token, or says how long until there is one.
    pub fn take(&mut self, now: Instant) -> Result<(), Duration> {
        if let Some(at) = self.at {
            let since = now.saturating_duration_since(at).as_secs_f64();
            self.tokens = (self.tokens + since * self.per_second).min(self.burst);
        }
        self.at = Some(now);
        if self.tokens >= 1.0 {
            self.tokens -= 1.0;
            Ok(())
        } else {
            Err(Duration::from_secs_f64(
                (1.0 - self.tokens) / self.per_second,
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_then_the_rate() {
        let mut rate = Rate::new(2, 10);
        let start = Instant::now();
        assert_eq!((rate.take(start), rate.take(start)), (Ok(()), Ok(())));
        let wait = rate.take(start).unwrap_err();
        assert!(wait <= Duration::from_millis(100), "{wait:?}");
        assert_eq!(rate.take(start + Duration::from_millis(101)), Ok(()));
        // Never more than the burst, however long nothing was taken.
        let later = start + Duration::from_secs(60);
        assert_eq!((rate.take(later), rate.take(later)), (Ok(()), Ok(())));
        rate.take(later).unwrap_err();
    }
}
