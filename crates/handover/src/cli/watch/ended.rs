//! What is told when a person's control has ended, and the exit status of it.

use handover_protocol::{ControlReturnResult, End, ErrorCode, HandBack, Refusal};
use serde_json::{Value, json};

use super::super::failure::Failure;
use super::super::takeover::{end, render_hand_back};

/// Why the program stopped to hold control.
#[derive(Debug)]
pub enum Cause {
    /// The person is done.
    Done,
    /// A signal.
    Interrupted,
    /// Ctrl-Z.
    Suspended,
    /// No viewer came, or it failed.
    NoViewer(String),
    /// Somebody or something else ended it; what the heartbeat was told, if it was the first to
    /// learn of it.
    Ended(Option<Refusal>),
}

/// Which time of a lease was over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeOver {
    /// That without a renewal.
    NoRenewal,
    /// That without input.
    Idle,
    /// That in control.
    Maximum,
}

impl TimeOver {
    /// By the name that it has in the record.
    pub fn named(cause: &str) -> Option<Self> {
        match cause {
            "no_renewal" => Some(Self::NoRenewal),
            "idle" => Some(Self::Idle),
            "maximum" => Some(Self::Maximum),
            _ => None,
        }
    }

    /// Why control ended, for people.
    fn text(self) -> &'static str {
        match self {
            Self::NoRenewal => "your control ended because it was not renewed in time",
            Self::Idle => {
                "your control ended because you did nothing for as long as --idle or \
                 `control.idle` allows"
            }
            Self::Maximum => {
                "your control ended because its time was over, which --max or `control.max` sets"
            }
        }
    }
}

/// What came of a takeover.
#[derive(Debug)]
pub struct Outcome {
    /// Why the program stopped.
    pub cause: Cause,
    /// What the host answered if it was the program that ended it.
    pub returned: Option<ControlReturnResult>,
    /// What the agents receive.
    pub hand_back: Option<HandBack>,
    /// Which time was over, if that ended it and the record says so.
    pub time_over: Option<TimeOver>,
}

impl Outcome {
    /// How the takeover ended, as far as is known.
    fn end(&self) -> Option<End> {
        let handed = self.hand_back.as_ref().map(|hand_back| hand_back.end);
        handed.or(self.returned.as_ref().map(|returned| returned.reason))
    }

    /// For people.
    pub fn text(&self) -> String {
        match (&self.hand_back, &self.returned) {
            (Some(hand_back), _) => {
                format!(
                    "control has returned:\n{}",
                    render_hand_back(hand_back, "  ")
                )
            }
            (None, Some(returned)) => {
                format!(
                    "control has returned ({}), epoch {}\n",
                    end(returned.reason),
                    returned.epoch
                )
            }
            (None, None) => "control has ended\n".to_owned(),
        }
    }

    /// For programs: the hand-back, marked as the last of the lines.
    pub fn json(&self) -> Value {
        let known = match (&self.hand_back, &self.returned) {
            (Some(hand_back), _) => serde_json::to_value(hand_back),
            (None, Some(returned)) => serde_json::to_value(returned),
            (None, None) => Ok(json!({})),
        };
        let mut line = known.unwrap_or_default();
        line["event"] = "ended".into();
        line["end"] = json!(self.end());
        line
    }

    /// The exit status.
    pub fn result(self) -> Result<(), Failure> {
        let end = self.end();
        match (self.cause, end) {
            (Cause::Interrupted, _) => Err(Failure::interrupted()),
            (Cause::NoViewer(message), _) => Err(Failure::new(ErrorCode::Timeout, message)),
            (Cause::Done | Cause::Suspended, _) | (Cause::Ended(_), Some(End::Return)) => Ok(()),
            (Cause::Ended(_), Some(End::Timeout)) => Err(Failure::new(
                ErrorCode::Timeout,
                self.time_over.map_or(
                    "your control ended because it was not renewed in time or a limit was reached",
                    TimeOver::text,
                ),
            )),
            (Cause::Ended(_), Some(End::Revoked)) => Err(Failure::new(
                ErrorCode::LeaseStale,
                "your control was ended by somebody else",
            )),
            (Cause::Ended(Some(refusal)), None) => Err(refusal.into()),
            (Cause::Ended(_), _) => Err(Failure::new(
                ErrorCode::LeaseStale,
                "your control has ended",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(cause: Cause, end: Option<End>) -> Outcome {
        let returned = end.map(|reason| ControlReturnResult {
            reason,
            held_ms: 1000,
            screenshot: None,
            epoch: 3,
        });
        Outcome {
            cause,
            returned,
            hand_back: None,
            time_over: None,
        }
    }

    fn code(cause: Cause, end: Option<End>) -> Option<ErrorCode> {
        outcome(cause, end)
            .result()
            .err()
            .map(|failure| failure.code())
    }

    #[test]
    fn results() {
        assert_eq!(code(Cause::Done, Some(End::Return)), None);
        assert_eq!(code(Cause::Ended(None), Some(End::Return)), None);
        assert_eq!(
            code(Cause::Ended(None), Some(End::Timeout)),
            Some(ErrorCode::Timeout)
        );
        assert_eq!(
            code(Cause::Ended(None), Some(End::Revoked)),
            Some(ErrorCode::LeaseStale)
        );
        assert_eq!(code(Cause::Ended(None), None), Some(ErrorCode::LeaseStale));
        assert_eq!(
            code(Cause::NoViewer(String::new()), Some(End::Cancelled)),
            Some(ErrorCode::Timeout)
        );
    }

    #[test]
    fn a_time_that_is_over_is_named() {
        let message = |time_over| {
            let outcome = Outcome {
                time_over,
                ..outcome(Cause::Ended(None), Some(End::Timeout))
            };
            outcome.result().unwrap_err().message().to_owned()
        };
        assert!(message(TimeOver::named("idle")).contains("--idle"));
        assert!(message(TimeOver::named("maximum")).contains("--max"));
        assert!(message(TimeOver::named("no_renewal")).contains("renewed in time"));
        assert!(message(TimeOver::named("of a newer host")).contains("a limit was reached"));
    }

    #[test]
    fn the_last_line() {
        let line = outcome(Cause::Done, Some(End::Return)).json();
        assert_eq!(line["event"], "ended");
        assert_eq!(line["end"], "return");
        assert_eq!(line["epoch"], 3);
    }
}
