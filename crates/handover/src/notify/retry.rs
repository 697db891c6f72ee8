//! When a post is tried again, without a clock.

use std::time::Duration;

/// How often one is tried.
const TRIES: u32 = 8;
/// For how long.
const WITHIN: Duration = Duration::from_secs(10 * 60);
/// The first pause, which doubles each time, and the longest.
const PAUSE: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(120));

/// The tries of one post.
#[derive(Clone, Copy, Debug, Default)]
pub struct Retry {
    tries: u32,
}

impl Retry {
    /// How long to wait before the next try, after one has failed `since` the first began; `None` to give up.
    /// `asked` is the pause that the receiver asks for.
    pub fn after_failure(&mut self, since: Duration, asked: Option<Duration>) -> Option<Duration> {
        self.tries += 1;
        let own = (PAUSE.0 * 2u32.saturating_pow(self.tries - 1)).min(PAUSE.1);
        let pause = own.max(asked.unwrap_or_default());
        (self.tries < TRIES && since + pause <= WITHIN).then_some(pause)
    }

    /// How often it was tried and failed.
    pub fn tries(self) -> u32 {
        self.tries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_come_to_an_end() {
        let mut retry = Retry::default();
        let pauses: Vec<_> =
            std::iter::from_fn(|| retry.after_failure(Duration::ZERO, None)).collect();
        let expected = [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0].map(Duration::from_secs_f64);
        assert_eq!(pauses, expected);
        assert_eq!(retry.tries(), TRIES);
    }

    #[test]
    fn what_the_receiver_asks_for_is_heard_within_limits() {
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        let mut retry = Retry::default();
        assert_eq!(
            retry.after_failure(Duration::ZERO, seconds(60)),
            seconds(60)
        );
        assert_eq!(
            retry.after_failure(Duration::from_secs(599), None),
            seconds(1)
        );
        assert_eq!(retry.after_failure(Duration::from_secs(599), None), None);
        let mut retry = Retry::default();
        assert_eq!(retry.after_failure(Duration::ZERO, seconds(86_400)), None);
    }
}
