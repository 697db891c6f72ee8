//! The arbiter's state, its clock, its permits and what it tells of itself.

use std::{collections::VecDeque, time::Duration};

use crate::{
    control::{Base, Control, End, PauseReason, Phase, Status, TimeoutCause},
    effect::{Effect, Limit},
    ending::{Returning, Then},
    ids::{Epoch, FlushId, LeaseId, OwnerId, PermitId},
    lease::{AcquireRequest, Lease, LeaseStage, LeaseView},
    permits::Permits,
    refusal::{AcquireFailure, Refusal},
    takeover::Doom,
    time::Moment,
    timer::{Timer, Timers},
};

/// The arbiter of one desktop. See the crate's description.
#[derive(Clone, Debug)]
pub struct Arbiter {
    /// The latest moment seen; time never runs backwards from here.
    pub(crate) clock: Moment,
    pub(crate) epoch: Epoch,
    pub(crate) state: State,
    /// Who controls the desktop when no person does, before the present lease.
    pub(crate) base: Base,
    pub(crate) permits: Permits,
    pub(crate) timers: Timers,
    /// What another person has asked the holder for; only while a lease is live.
    pub(crate) request: Option<AcquireRequest>,
    /// The last takeover that the agents have not been told of.
    pub(crate) untold: Option<LeaseId>,
    pub(crate) flushes: u64,
    pub(crate) effects: VecDeque<Effect>,
}

/// How far a takeover is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum State {
    /// There is none: `base` controls the desktop.
    Steady,
    /// Waiting for the permits, and for the fence after the agents' releases.
    Draining {
        lease: Lease,
        flush: Option<FlushId>,
    },
    /// Waiting for the start to be stored.
    Starting { lease: Lease, doom: Option<Doom> },
    /// The lease is live.
    Human { lease: Lease, parked: bool },
    /// The lease is over; waiting for the flush, then for the end to be stored.
    Returning(Returning),
}

impl Arbiter {
    /// An arbiter that begins in `epoch`, with the agents in control or, given
    /// a reason, with nobody.
    pub fn new(epoch: Epoch, paused: Option<PauseReason>) -> Self {
        Self {
            clock: Moment::default(),
            epoch,
            state: State::Steady,
            base: paused.map_or(Base::Agent, Base::Paused),
            permits: Permits::default(),
            timers: Timers::default(),
            request: None,
            untold: None,
            flushes: 0,
            effects: VecDeque::new(),
        }
    }

    /// Lets pass what is due.
    pub fn tick(&mut self, now: Moment) {
        self.advance(now);
    }

    /// When [`tick`](Self::tick) must be called at the latest.
    pub fn next_deadline(&self) -> Option<Moment> {
        self.timers.earliest()
    }

    /// The next thing to do. To be polled until `None` after every call.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// Gives an agent's process tree the right to one action.
    ///
    /// # Errors
    /// [`Refusal::HumanControlActive`], [`Refusal::Paused`] or
    /// [`Refusal::TooManyPermits`].
    pub fn permit(&mut self, now: Moment, owner: OwnerId) -> Result<PermitId, Refusal> {
        self.advance(now);
        if self.state != State::Steady {
            return Err(self.in_the_way(Refusal::HumanControlActive));
        }
        if let Base::Paused(reason) = self.base {
            return Err(Refusal::Paused(reason));
        }
        self.permits.give(owner).ok_or(Refusal::TooManyPermits)
    }

    /// The action of a permit is over, whether done, failed or interrupted.
    /// A permit that is not outstanding is passed over.
    pub fn complete(&mut self, now: Moment, permit: PermitId) {
        self.advance(now);
        self.permits.complete(permit);
        self.start_if_drained();
    }

    /// No process of this owner is left, so nothing of its permits is either.
    pub fn owner_gone(&mut self, now: Moment, owner: OwnerId) {
        self.advance(now);
        self.permits.complete_all_of(owner);
        self.start_if_drained();
    }

    /// The state as of the latest moment seen.
    pub fn status(&self) -> Status {
        let (control, phase) = match self.state {
            State::Steady => (self.base.control(), Phase::Steady),
            State::Draining { .. } | State::Starting { .. } => {
                (self.base.control(), Phase::Draining)
            }
            State::Human { .. } => (Control::Human, Phase::Steady),
            State::Returning(Returning { overdue: true, .. }) => {
                (Control::Paused, Phase::Returning)
            }
            State::Returning(_) => (Control::Human, Phase::Returning),
        };
        let pause = match self.state {
            State::Returning(Returning { overdue: true, .. }) => {
                Some(PauseReason::DisplayUnavailable)
            }
            _ if control == Control::Paused => self.base.reason(),
            _ => None,
        };
        Status {
            control,
            phase,
            epoch: self.epoch,
            lease: self.lease_view(),
            pause,
            outstanding: self.permits.len(),
            request: self.request.map(|request| request.lease),
        }
    }

    /// Moves the clock to `now`, or leaves it where it is if `now` is earlier,
    /// and lets pass what is due. Returns the time it is.
    pub(crate) fn advance(&mut self, now: Moment) -> Moment {
        self.clock = self.clock.max(now);
        while let Some((timer, at)) = self.timers.take_due(self.clock) {
            self.fire(timer, at);
        }
        self.clock
    }

    fn fire(&mut self, timer: Timer, at: Moment) {
        match timer {
            Timer::Drain => self.abort(AcquireFailure::DrainTimeout),
            Timer::Ttl => self.time_out(at, TimeoutCause::NoRenewal),
            Timer::Idle => self.time_out(at, TimeoutCause::Idle),
            Timer::Maximum => self.time_out(at, TimeoutCause::Maximum),
            Timer::Linger => self.time_out(at, TimeoutCause::LingerOver),
            Timer::Flush => self.flush_overdue(),
            Timer::IdleWarning => self.warn(Limit::Idle, Timer::Idle),
            Timer::MaximumWarning => self.warn(Limit::Maximum, Timer::Maximum),
        }
    }

    /// The lease ended at its deadline, however late that is noticed.
    fn time_out(&mut self, at: Moment, cause: TimeoutCause) {
        self.end(at, End::Timeout, Some(cause), Then::base(self.base));
    }

    fn warn(&mut self, limit: Limit, deadline: Timer) {
        let State::Human { lease, .. } = self.state else {
            return;
        };
        let left = self
            .timers
            .get(deadline)
            .map_or(Duration::ZERO, |at| at.since(self.clock));
        // A jump of the clock may have passed the limit too.
        if !left.is_zero() {
            self.effects.push_back(Effect::Warn {
                lease: lease.id(),
                limit,
                left,
            });
        }
    }

    /// A number for a fence that no fence had before.
    pub(crate) fn new_flush(&mut self) -> FlushId {
        self.flushes += 1;
        FlushId(self.flushes)
    }

    /// Ends the agents' part for now: no input of theirs from here on, nothing
    /// of it left pressed or pasted. Returns the fence that shows it.
    pub(crate) fn stop_agents(&mut self) -> FlushId {
        for permit in self.permits.void_all() {
            self.effects.push_back(Effect::Interrupt(permit));
        }
        self.effects.push_back(Effect::WithdrawPaste);
        let flush = self.new_flush();
        self.effects.push_back(Effect::ReleaseAgent { flush });
        flush
    }

    /// The refusal that names the lease in the way, or says that a display in
    /// distress is.
    pub(crate) fn in_the_way(&self, held: fn(LeaseView) -> Refusal) -> Refusal {
        if let State::Returning(Returning { overdue: true, .. }) = self.state {
            return Refusal::Paused(PauseReason::DisplayUnavailable);
        }
        self.lease_view().map_or(Refusal::LeaseStale, held)
    }

    /// What may be told of the lease that is pending, live or ending.
    pub(crate) fn lease_view(&self) -> Option<LeaseView> {
        let (lease, stage, deadline) = match self.state {
            State::Steady => return None,
            State::Draining { lease, .. } => {
                (lease, LeaseStage::Pending, self.timers.get(Timer::Drain))
            }
            State::Starting { lease, .. } => (lease, LeaseStage::Pending, None),
            State::Human { lease, parked } => {
                let stage = if parked {
                    LeaseStage::Parked
                } else {
                    LeaseStage::Live
                };
                (lease, stage, self.timers.lease_end())
            }
            State::Returning(Returning { lease, .. }) => (lease, LeaseStage::Ending, None),
        };
        Some(LeaseView {
            lease: lease.id(),
            controller: lease.terms.controller,
            viewer: lease.terms.viewer,
            since: lease.since,
            expires_in: deadline.map_or(Duration::ZERO, |at| at.since(self.clock)),
            stage,
            private: lease.terms.private,
        })
    }
}
