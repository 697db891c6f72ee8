//! What every driver's receipts keep to, whatever its program says; for tests.

use std::collections::BTreeMap;

use handover_protocol::{SteerId, SteerState};

use super::Effect;

/// Checks what came of `steers` from a driver's beginning to its `ended`: receipts only move forward,
/// none follows an end, and each steer comes to exactly one.
pub fn assert_honest(effects: &[Effect], steers: &[SteerId]) {
    let mut known: BTreeMap<&SteerId, SteerState> = steers
        .iter()
        .map(|steer| (steer, SteerState::Accepted))
        .collect();
    for effect in effects {
        match effect {
            Effect::Hand { steer, .. } => {
                let state = known.get_mut(steer).expect("a steer that was given");
                assert!(
                    *state < SteerState::Inserted,
                    "{steer} is written after {state:?}"
                );
                *state = SteerState::Handed.max(*state);
            }
            Effect::Receipt {
                steer,
                state,
                reason,
            } => {
                let before = known.get_mut(steer).expect("a steer that was given");
                assert!(!is_end(*before), "{steer}: {state:?} after {before:?}");
                assert!(*before < *state, "{steer}: {state:?} after {before:?}");
                let needs_reason = matches!(state, SteerState::Dropped | SteerState::Unknown);
                assert_eq!(reason.is_some(), needs_reason, "{steer}: {state:?}");
                *before = *state;
            }
            _ => {}
        }
    }
    for (steer, state) in known {
        assert!(is_end(state), "{steer} is left at {state:?}");
    }
}

fn is_end(state: SteerState) -> bool {
    matches!(
        state,
        SteerState::Answered | SteerState::Dropped | SteerState::Unknown
    )
}
