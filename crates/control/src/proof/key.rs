//! When two worlds are the same for everything that can follow.
//!
//! Instants count relative to now and names relative to their owner, so that
//! a world which comes round to where it was is recognised. Left out is what
//! no decision hangs on: the clock itself (timers are kept relative to the
//! same now), the numbers of epochs, and how long a takeover that is over had
//! lasted; the random interleavings check those.

use super::{
    referee::{Live, Stage},
    world::World,
};
use crate::{
    AcquireRequest, LeaseId, Moment,
    arbiter::State,
    control::Base,
    ending::{Returning, Then},
    ids::FlushId,
    permits::Permits,
    timer::{Timer, Timers},
};

/// The world in bytes, equal for equal worlds.
pub(super) type Key = Box<[u8]>;

pub(super) fn key(world: &World) -> Key {
    let mut key = Writer {
        world,
        bytes: Vec::with_capacity(160),
    };
    key.arbiter();
    key.people();
    key.referee();
    key.bytes.into_boxed_slice()
}

struct Writer<'a> {
    world: &'a World,
    bytes: Vec<u8>,
}

impl Writer<'_> {
    fn byte(&mut self, byte: u8) {
        self.bytes.push(byte);
    }

    /// A fieldless enum, a flag or another thing with few values.
    fn small(&mut self, value: impl std::hash::Hash) {
        struct Collect<'a>(&'a mut Vec<u8>);
        impl std::hash::Hasher for Collect<'_> {
            fn write(&mut self, bytes: &[u8]) {
                self.0.extend_from_slice(bytes);
            }
            // Discriminants come this way; they are small.
            fn write_isize(&mut self, discriminant: isize) {
                self.0.push(discriminant as u8);
            }
            fn finish(&self) -> u64 {
                unreachable!("only what is written counts")
            }
        }
        value.hash(&mut Collect(&mut self.bytes));
    }

    fn moment(&mut self, moment: Moment) {
        let now = self.world.now;
        let millis = moment.since(now).as_millis() as i64 - now.since(moment).as_millis() as i64;
        // Far past and far future differ only in their order, and deadlines of
        // the small durations used here do not reach so far.
        let millis = millis.clamp(i32::MIN.into(), i32::MAX.into()) as i32;
        self.bytes.extend_from_slice(&millis.to_le_bytes());
    }

    fn optional_moment(&mut self, moment: Option<Moment>) {
        match moment {
            None => self.byte(0),
            Some(moment) => {
                self.byte(1);
                self.moment(moment);
            }
        }
    }

    /// Whose lease it is and whether it is the present one.
    fn lease(&mut self, lease: LeaseId) {
        let code = self
            .world
            .people
            .iter()
            .enumerate()
            .find_map(|(no, person)| {
                let no = no as u8;
                if person.lease == Some(lease) {
                    Some(no)
                } else {
                    (person.old == Some(lease)).then_some(2 + no)
                }
            });
        self.byte(code.unwrap_or(9));
    }

    fn optional_lease(&mut self, lease: Option<LeaseId>) {
        match lease {
            None => self.byte(8),
            Some(lease) => self.lease(lease),
        }
    }

    /// A request is its person's terms, its lease, and who is connected to it.
    fn terms(&mut self, terms: &AcquireRequest) {
        self.lease(terms.lease);
        let people = &self.world.people;
        let controller = Some(terms.controller);
        let controllers = people.iter().map(|p| (p.controller, p.old_controller));
        let code = controllers.enumerate().find_map(|(no, (present, old))| {
            if present == controller {
                Some(no as u8)
            } else {
                (old == controller).then_some(2 + no as u8)
            }
        });
        let viewer = match terms.viewer {
            None => 8,
            Some(_) => people
                .iter()
                .position(|p| p.viewer == terms.viewer)
                .unwrap_or(9) as u8,
        };
        self.byte(code.unwrap_or(9));
        self.byte(viewer);
    }

    fn optional_terms(&mut self, terms: Option<&AcquireRequest>) {
        match terms {
            None => self.byte(0),
            Some(terms) => {
                self.byte(1);
                self.terms(terms);
            }
        }
    }

    /// Which of the fences that the shell still knows it is.
    fn fence(&mut self, fence: Option<FlushId>) {
        let shell = &self.world.shell;
        self.byte(match fence {
            None => 0,
            fence if fence == shell.fence => 1,
            fence if fence == shell.old_fence => 2,
            Some(_) => 3,
        });
    }

    fn arbiter(&mut self) {
        let arbiter = &self.world.arbiter;
        self.small(arbiter.base);
        self.state(&arbiter.state);
        self.timers(&arbiter.timers);
        self.permits(&arbiter.permits);
        self.optional_terms(arbiter.request.as_ref());
        self.optional_lease(arbiter.untold);
    }

    fn state(&mut self, state: &State) {
        match state {
            State::Steady => self.byte(0),
            State::Draining { lease, flush } => {
                self.byte(1);
                self.terms(&lease.terms);
                self.fence(*flush);
            }
            State::Starting { lease, doom } => {
                self.byte(2);
                self.terms(&lease.terms);
                self.small(doom.map(|doom| (doom.end, doom.failure, doom.pause)));
            }
            State::Human { lease, parked } => {
                self.byte(3);
                self.terms(&lease.terms);
                self.small(*parked);
            }
            State::Returning(returning) => {
                self.byte(4);
                let Returning {
                    lease,
                    end,
                    cause,
                    flush,
                    overdue,
                    failure,
                    then,
                    held: _,
                } = returning;
                self.lease(lease.id());
                self.small((end, cause, overdue, failure));
                self.fence(*flush);
                let Then { base, next } = then;
                self.small(base);
                self.optional_terms(next.as_ref());
            }
        }
    }

    fn timers(&mut self, timers: &Timers) {
        for timer in Timer::ALL {
            self.optional_moment(timers.get(timer));
        }
    }

    fn permits(&mut self, permits: &Permits) {
        for agent in &self.world.agents {
            self.byte(agent.len() as u8);
            for permit in agent {
                self.small(permits.is_valid(*permit));
            }
        }
    }

    fn people(&mut self) {
        let world = self.world;
        for person in &world.people {
            let bits = [
                person.lease.is_some(),
                person.old.is_some(),
                person.controller.is_some(),
                person.old_controller.is_some(),
                person.viewer.is_some(),
            ];
            self.byte(bits.iter().fold(0, |byte, bit| byte << 1 | u8::from(*bit)));
        }
        let shell = &world.shell;
        self.small((shell.fence.is_some(), shell.old_fence.is_some()));
        self.optional_lease(shell.start);
        self.optional_lease(shell.end);
    }

    /// The referee's own account, lest a faulty arbiter hide behind equal keys.
    fn referee(&mut self) {
        let referee = &self.world.referee;
        self.small((referee.control, referee.pause));
        self.fence(referee.agent_fence);
        self.optional_lease(referee.ungranted);
        self.optional_terms(referee.asker.as_ref());
        self.optional_terms(referee.next.as_ref());
        for valid in referee.permits.values() {
            self.small(*valid);
        }
        match &referee.stage {
            Stage::Nobody => self.byte(0),
            Stage::Draining { terms, since } => {
                self.byte(1);
                self.lease(terms.lease);
                self.moment(*since + terms.drain);
            }
            Stage::Starting { terms, stored } => {
                self.byte(2);
                self.lease(terms.lease);
                self.small(*stored);
            }
            Stage::Live(live) => {
                self.byte(3);
                self.live(live);
            }
            Stage::Closed(closed) => {
                self.byte(4);
                self.lease(closed.lease);
                self.fence(closed.fence);
                self.small(closed.overdue);
                if closed.fence.is_some() && !closed.overdue {
                    self.moment(closed.since);
                }
            }
            Stage::Ended(lease) => {
                self.byte(5);
                self.lease(*lease);
            }
        }
    }

    fn live(&mut self, live: &Live) {
        self.lease(live.terms.lease);
        self.small(live.parked.is_some());
        for (at, _) in live.deadlines() {
            self.moment(at);
        }
    }
}

#[test]
fn small_values_are_told_apart() {
    use crate::{PauseReason, control::End};
    let world = World::new(super::exhaustive::SMALL);
    let bytes = |write: &dyn Fn(&mut Writer<'_>)| {
        let mut writer = Writer {
            world: &world,
            bytes: Vec::new(),
        };
        write(&mut writer);
        writer.bytes
    };
    let agent = bytes(&|w| w.small(Base::Agent));
    let paused = bytes(&|w| w.small(Base::Paused(PauseReason::Requested)));
    let gone = bytes(&|w| w.small(Base::Paused(PauseReason::DesktopGone)));
    assert!(agent != paused && paused != gone);
    assert_ne!(
        bytes(&|w| w.small(End::Return)),
        bytes(&|w| w.small(End::Revoked))
    );
    assert_ne!(bytes(&|w| w.small(true)), bytes(&|w| w.small(false)));
}
