//! How far each steer has come: the one place where a driver's receipts are made, so that none steps
//! back, none is repeated, and every steer comes to one end.

use std::collections::BTreeMap;

use handover_protocol::{SteerId, SteerState};

use super::Effect;

/// Why a steer is `dropped` that the program never got.
const NEVER_HANDED: &str = "the program ended before it was given the message";
/// Why a steer is `unknown` when its program has ended.
const LOST_SIGHT: &str = "the program ended before it showed what became of the message";

/// The steers of one program that have not come to an end.
#[derive(Debug, Default)]
pub(super) struct Receipts {
    open: BTreeMap<SteerId, SteerState>,
}

impl Receipts {
    /// A steer was taken on. False if it is under way already.
    pub(super) fn keep(&mut self, steer: &SteerId) -> bool {
        if self.open.contains_key(steer) {
            return false;
        }
        self.open.insert(steer.clone(), SteerState::Accepted);
        true
    }

    /// A steer is written to the program. Its receipt is given by whoever does that.
    pub(super) fn hand(&mut self, steer: &SteerId, bytes: Vec<u8>, out: &mut Vec<Effect>) {
        if let Some(state) = self.open.get_mut(steer) {
            *state = SteerState::Handed.max(*state);
        }
        out.push(Effect::Hand {
            steer: steer.clone(),
            bytes,
        });
    }

    /// A steer has come so far: `queued`, `inserted`, `sent` or `answered`.
    pub(super) fn advance(&mut self, steer: &SteerId, state: SteerState, out: &mut Vec<Effect>) {
        let Some(known) = self.open.get_mut(steer).filter(|known| **known < state) else {
            return;
        };
        *known = state;
        if state == SteerState::Answered {
            self.open.remove(steer);
        }
        out.push(Effect::Receipt {
            steer: steer.clone(),
            state,
            reason: None,
        });
    }

    /// A steer will not arrive.
    pub(super) fn drop(&mut self, steer: &SteerId, reason: &str, out: &mut Vec<Effect>) {
        if self.open.remove(steer).is_some() {
            out.push(Effect::Receipt {
                steer: steer.clone(),
                state: SteerState::Dropped,
                reason: Some(reason.to_owned()),
            });
        }
    }

    /// How far a steer has come that has not come to an end.
    pub(super) fn state(&self, steer: &SteerId) -> Option<SteerState> {
        self.open.get(steer).copied()
    }

    /// The steers that have not come to an end.
    pub(super) fn open(&self) -> impl Iterator<Item = (&SteerId, SteerState)> {
        self.open.iter().map(|(steer, state)| (steer, *state))
    }

    /// Nobody will know what became of a steer.
    pub(super) fn lose(&mut self, steer: &SteerId, reason: &str, out: &mut Vec<Effect>) {
        if self.open.remove(steer).is_some() {
            out.push(Effect::Receipt {
                steer: steer.clone(),
                state: SteerState::Unknown,
                reason: Some(reason.to_owned()),
            });
        }
    }

    /// The program has ended: every steer comes to its end.
    pub(super) fn close(&mut self, out: &mut Vec<Effect>) {
        while let Some((steer, state)) = self.open.pop_first() {
            let (state, reason) = if state < SteerState::Handed {
                (SteerState::Dropped, NEVER_HANDED)
            } else {
                (SteerState::Unknown, LOST_SIGHT)
            };
            out.push(Effect::Receipt {
                steer,
                state,
                reason: Some(reason.to_owned()),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn states(out: &[Effect]) -> Vec<SteerState> {
        out.iter()
            .filter_map(|effect| match effect {
                Effect::Receipt { state, .. } => Some(*state),
                _ => None,
            })
            .collect()
    }

    #[test]
    fn a_receipt_never_steps_back_and_ends_once() {
        let mut receipts = Receipts::default();
        let mut out = Vec::new();
        let steer = SteerId::from("s");
        assert!(receipts.keep(&steer));
        assert!(!receipts.keep(&steer));
        receipts.hand(&steer, b"x".to_vec(), &mut out);
        receipts.advance(&steer, SteerState::Inserted, &mut out);
        receipts.advance(&steer, SteerState::Queued, &mut out);
        receipts.advance(&steer, SteerState::Answered, &mut out);
        receipts.drop(&steer, "late", &mut out);
        receipts.close(&mut out);
        assert_eq!(
            states(&out),
            vec![SteerState::Inserted, SteerState::Answered]
        );
    }

    #[test]
    fn at_the_end_what_was_kept_is_dropped_and_what_was_handed_is_unknown() {
        let mut receipts = Receipts::default();
        let mut out = Vec::new();
        for name in ["a", "b", "c"] {
            receipts.keep(&SteerId::from(name));
        }
        receipts.hand(&SteerId::from("b"), Vec::new(), &mut out);
        receipts.hand(&SteerId::from("c"), Vec::new(), &mut out);
        receipts.advance(&SteerId::from("c"), SteerState::Sent, &mut out);
        receipts.close(&mut out);
        assert_eq!(
            states(&out),
            vec![
                SteerState::Sent,
                SteerState::Dropped,
                SteerState::Unknown,
                SteerState::Unknown
            ]
        );
        assert!(receipts.open.is_empty());
    }
}
