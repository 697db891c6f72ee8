//! Time as the arbiter sees it: a number that the shell passes in.

use std::{fmt, ops::Add, time::Duration};

/// An instant, in nanoseconds on a clock that counts through suspend
/// (`CLOCK_BOOTTIME`) and is never set.
///
/// The arbiter reads no clock; the shell passes a `Moment` to every entry
/// point. A `Moment` that lies before one already seen is taken as the latest
/// one seen, so a step backwards never revives a deadline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(u64);

impl Moment {
    /// The instant that lies `nanos` nanoseconds after the clock's zero.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the clock's zero.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The time from `earlier` to `self`, zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Moment {
    type Output = Self;

    /// Saturates at the end of time (584 years), so no duration that a caller
    /// asks for can wrap a deadline round into the past.
    fn add(self, duration: Duration) -> Self {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(nanos))
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", Duration::from_nanos(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adding_saturates() {
        let late = Moment::from_nanos(u64::MAX - 1);
        assert_eq!(late + Duration::from_secs(1), Moment::from_nanos(u64::MAX));
        assert_eq!(
            Moment::default() + Duration::MAX,
            Moment::from_nanos(u64::MAX)
        );
    }

    #[test]
    fn since_never_underflows() {
        let (early, late) = (Moment::from_nanos(3), Moment::from_nanos(10));
        assert_eq!(late.since(early), Duration::from_nanos(7));
        assert_eq!(early.since(late), Duration::ZERO);
    }
}
