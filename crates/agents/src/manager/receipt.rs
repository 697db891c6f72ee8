//! Receipts: what is known about one steer, which only moves forward.

use handover_protocol::{SteerId, SteerResult, SteerState};
use tokio::sync::watch;

/// What is known about a steer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    /// Whether its acceptance is in the record; `None` until the record has answered.
    pub stored: Option<bool>,
    /// How far it has come.
    pub state: SteerState,
    /// Why it was dropped, or why nothing is known.
    pub reason: Option<String>,
}

/// One steer's receipt, watched by whoever waits for it.
#[derive(Debug)]
pub(crate) struct Receipt {
    known: watch::Sender<Known>,
}

/// Whether a receipt in this state is closed.
pub(crate) const fn is_final(state: SteerState) -> bool {
    matches!(
        state,
        SteerState::Answered | SteerState::Dropped | SteerState::Unknown
    )
}

/// How far an open receipt has come; the ends are all beyond it.
const fn step(state: SteerState) -> u8 {
    match state {
        SteerState::Accepted => 0,
        SteerState::Handed => 1,
        SteerState::Queued => 2,
        SteerState::Inserted => 3,
        SteerState::Sent => 4,
        SteerState::Answered | SteerState::Dropped | SteerState::Unknown => 5,
    }
}

impl Receipt {
    /// A steer whose acceptance is being stored.
    pub fn new() -> Self {
        Self::at(SteerState::Accepted, None, None)
    }

    /// A receipt as it was stored.
    pub fn at(state: SteerState, reason: Option<String>, stored: Option<bool>) -> Self {
        Self {
            known: watch::Sender::new(Known {
                stored,
                state,
                reason,
            }),
        }
    }

    /// What is known now.
    pub fn known(&self) -> Known {
        self.known.borrow().clone()
    }

    /// Changes of it.
    pub fn watch(&self) -> watch::Receiver<Known> {
        self.known.subscribe()
    }

    /// Notes whether the acceptance is in the record.
    pub fn stored(&self, stored: bool) {
        self.known.send_modify(|known| known.stored = Some(stored));
    }

    /// Moves forward; false if that would be a step back, or no step at all.
    pub fn advance(&self, state: SteerState, reason: Option<&str>) -> bool {
        self.known.send_if_modified(|known| {
            let forward = !is_final(known.state) && step(state) > step(known.state);
            if forward {
                known.state = state;
                known.reason = reason.map(str::to_owned);
            }
            forward
        })
    }
}

impl Known {
    /// Whether the wait for `state` is over.
    pub fn is_past(&self, state: SteerState) -> bool {
        self.stored.is_some() && (is_final(self.state) || step(self.state) >= step(state))
    }

    /// As it is told.
    pub fn result(&self, steer_id: SteerId) -> SteerResult {
        SteerResult {
            steer_id,
            state: self.state,
            reason: self.reason.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ALL: [SteerState; 8] = [
        SteerState::Accepted,
        SteerState::Handed,
        SteerState::Queued,
        SteerState::Inserted,
        SteerState::Sent,
        SteerState::Answered,
        SteerState::Dropped,
        SteerState::Unknown,
    ];

    proptest! {
        #[test]
        fn only_forward_and_to_one_end(steps in prop::collection::vec(0usize..8, 0..40)) {
            let receipt = Receipt::new();
            let mut before = receipt.known().state;
            for step_index in steps {
                let moved = receipt.advance(ALL[step_index], None);
                let now = receipt.known().state;
                prop_assert_eq!(moved, now != before);
                prop_assert!(step(now) >= step(before));
                prop_assert!(!is_final(before) || now == before);
                before = now;
            }
        }
    }

    #[test]
    fn a_wait_is_over_at_the_state_or_at_any_end_but_not_before_it_is_stored() {
        let receipt = Receipt::new();
        assert!(!receipt.known().is_past(SteerState::Accepted));
        receipt.stored(true);
        assert!(receipt.known().is_past(SteerState::Accepted));
        assert!(!receipt.known().is_past(SteerState::Sent));
        receipt.advance(SteerState::Dropped, Some("aborted"));
        assert!(receipt.known().is_past(SteerState::Sent));
        assert_eq!(receipt.known().reason.as_deref(), Some("aborted"));
    }
}
