//! Arbiters that break one rule, to show that the referee would see it.

use super::{
    exhaustive::{SMALL, inputs},
    referee::Rule,
    search::search,
    world::World,
};
use crate::{Arbiter, Effect, arbiter::State, ending::Returning, permits::Permits, timer::Timer};

/// A mistake that an arbiter could make.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fault {
    /// A lease is not ended when it is not renewed.
    LeaseOutlivesItsTtl,
    /// A permit that was interrupted is valid again.
    InterruptedPermitRevives,
    /// A lease that is ending can be renewed.
    EndingLeaseRevives,
    /// Control is granted although permits are out.
    PermitsAreNotAwaited,
    /// The end is stored although the fence has not answered.
    FenceIsNotAwaited,
    /// The end is stored under the epoch of the takeover.
    EndHasTheOldEpoch,
}

impl Fault {
    /// Makes the mistake if this is the place for it.
    pub(super) fn strike(self, arbiter: &mut Arbiter) {
        match (self, arbiter.state) {
            (Self::LeaseOutlivesItsTtl, State::Human { .. }) => arbiter.timers.stop(Timer::Ttl),
            (Self::InterruptedPermitRevives, _) => arbiter.permits.revive_all(),
            (Self::EndingLeaseRevives, State::Returning(Returning { lease, .. })) => {
                arbiter.state = State::Human {
                    lease,
                    parked: true,
                };
            }
            (Self::PermitsAreNotAwaited, State::Draining { flush: None, .. }) => {
                arbiter.permits = Permits::default();
                arbiter.start_if_drained();
            }
            (Self::FenceIsNotAwaited, State::Returning(returning)) if returning.flush.is_some() => {
                arbiter.record_end(returning);
            }
            (Self::EndHasTheOldEpoch, _) => {
                for effect in &mut arbiter.effects {
                    if let Effect::RecordEnd { epoch, .. } = effect {
                        *epoch = arbiter.epoch;
                    }
                }
            }
            _ => {}
        }
    }
}

/// The search over an arbiter with this fault ends at a break of this rule.
#[track_caller]
fn is_seen(fault: Fault, rule: Rule) {
    let mut world = World::new(SMALL);
    world.fault = Some(fault);
    let broken = search(world, &inputs(&SMALL)).broken;
    let broken = broken.unwrap_or_else(|| panic!("{fault:?} went unseen"));
    assert_eq!(broken.violation.rule, rule, "\n{}", broken.story());
}

#[test]
fn lease_beyond_its_ttl_is_seen() {
    is_seen(Fault::LeaseOutlivesItsTtl, Rule::C1);
}

#[test]
fn revived_permit_is_seen() {
    is_seen(Fault::InterruptedPermitRevives, Rule::C2);
}

#[test]
fn revived_lease_is_seen() {
    is_seen(Fault::EndingLeaseRevives, Rule::C3);
}

#[test]
fn missing_drain_is_seen() {
    is_seen(Fault::PermitsAreNotAwaited, Rule::C4);
}

#[test]
fn missing_flush_is_seen() {
    is_seen(Fault::FenceIsNotAwaited, Rule::C5);
}

#[test]
fn wrong_epoch_is_seen() {
    is_seen(Fault::EndHasTheOldEpoch, Rule::C6);
}
