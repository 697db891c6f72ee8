//! Every way out of a person's control, through `returning`.

use std::time::Duration;

use crate::{
    arbiter::{Arbiter, State},
    control::{Base, End, GiveBack, PauseReason, TimeoutCause},
    effect::Effect,
    ids::{FlushId, LeaseId, TokenHash},
    lease::{AcquireRequest, Lease},
    refusal::{AcquireFailure, Refusal},
    takeover::Doom,
    time::Moment,
    timer::Timer,
};

/// How long the display may take to show that all input is through before the
/// desktop is shown as paused. Input stays closed either way.
pub const FLUSH_BUDGET: Duration = Duration::from_secs(2);

/// A takeover that is over and whose desktop nobody has yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Returning {
    pub(crate) lease: Lease,
    pub(crate) end: End,
    pub(crate) cause: Option<TimeoutCause>,
    pub(crate) held: Duration,
    /// The fence that is awaited; afterwards, the end is being stored.
    pub(crate) flush: Option<FlushId>,
    /// Whether the fence is late, so that the desktop is shown as paused.
    pub(crate) overdue: bool,
    /// Set if the lease was never granted although its start is on record.
    pub(crate) failure: Option<AcquireFailure>,
    pub(crate) then: Then,
}

/// What follows the end of a takeover.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Then {
    /// Who controls the desktop.
    pub(crate) base: Base,
    /// Whose takeover starts at once, without an agent's permit between.
    pub(crate) next: Option<AcquireRequest>,
}

impl Then {
    pub(crate) fn base(base: Base) -> Self {
        Self { base, next: None }
    }
}

impl Arbiter {
    /// The holder gives control back, or an asker withdraws. A person of this
    /// session may omit the lease; then it is whichever there is.
    ///
    /// A lease that is ending already is given back without effect, so that a
    /// return that crosses a timeout learns the outcome and not a refusal.
    ///
    /// # Errors
    /// [`Refusal::LeaseStale`] if there is no lease, or it is another one.
    pub fn give_back(
        &mut self,
        now: Moment,
        how: GiveBack,
        lease: Option<(LeaseId, TokenHash)>,
    ) -> Result<(), Refusal> {
        let now = self.advance(now);
        let named = |held: Lease| lease.is_none_or(|(id, token)| held.is(id, token));
        match self.state {
            State::Draining { lease, .. } | State::Starting { lease, .. } if named(lease) => {
                self.abort(AcquireFailure::Withdrawn);
            }
            State::Human { lease, .. } if named(lease) => {
                self.end(now, how.into(), None, Then::base(self.base));
            }
            State::Returning(Returning { lease, .. }) if named(lease) => {}
            _ => return Err(Refusal::LeaseStale),
        }
        Ok(())
    }

    /// Takes control away from whoever has it or asks for it. Nothing happens
    /// if nobody does.
    pub fn revoke(&mut self, now: Moment) {
        let now = self.advance(now);
        match self.state {
            State::Draining { .. } | State::Starting { .. } => {
                self.abort(AcquireFailure::Revoked);
            }
            State::Human { .. } => self.end(now, End::Revoked, None, Then::base(self.base)),
            State::Returning(_) => self.drop_requests(|_| true, AcquireFailure::Revoked),
            State::Steady => {}
        }
    }

    /// Which time was over, if that is why this lease is ending now.
    pub fn ends_by(&self, lease: LeaseId, token: TokenHash) -> Option<TimeoutCause> {
        match self.state {
            State::Returning(returning) if returning.lease.is(lease, token) => returning.cause,
            _ => None,
        }
    }

    /// Closes a live lease's input as of `at` and begins to flush it.
    pub(crate) fn end(&mut self, at: Moment, end: End, cause: Option<TimeoutCause>, then: Then) {
        let State::Human { lease, .. } = self.state else {
            return;
        };
        self.timers.stop_lease();
        self.drop_requests(|_| true, AcquireFailure::HolderLeft);
        let held = at.since(lease.since);
        self.close(Returning {
            lease,
            end,
            cause,
            held,
            flush: None,
            overdue: false,
            failure: None,
            then,
        });
    }

    /// Begins the end of a takeover whose start is stored but which nobody
    /// wants any more.
    pub(crate) fn return_ungranted(&mut self, lease: Lease, doom: Doom) {
        let base = doom
            .pause
            .map_or(self.base, |reason| self.base.paused(reason));
        self.close(Returning {
            lease,
            end: doom.end,
            cause: None,
            held: Duration::ZERO,
            flush: None,
            overdue: false,
            failure: Some(doom.failure),
            then: Then::base(base),
        });
    }

    fn close(&mut self, returning: Returning) {
        let lease = returning.lease.id();
        let flush = self.new_flush();
        self.effects.push_back(Effect::Flush { lease, flush });
        if returning.then.base == Base::Paused(PauseReason::DesktopGone) {
            // No fence will ever answer, and nothing is left to be flushed.
            return self.record_end(returning);
        }
        self.state = State::Returning(Returning {
            flush: Some(flush),
            ..returning
        });
        self.timers.set(Timer::Flush, self.clock + FLUSH_BUDGET);
    }

    /// The fence after the releases of `flush` has answered: all input before
    /// it is through. A late answer to a fence that is no longer awaited is
    /// passed over.
    pub fn flushed(&mut self, now: Moment, flush: FlushId) {
        self.advance(now);
        match self.state {
            State::Draining {
                lease,
                flush: Some(awaited),
            } if awaited == flush => {
                self.state = State::Draining { lease, flush: None };
                self.start_if_drained();
            }
            State::Returning(returning) if returning.flush == Some(flush) => {
                self.record_end(returning);
            }
            _ => {}
        }
    }

    /// Asks for the end to be stored, since no input is left.
    pub(crate) fn record_end(&mut self, returning: Returning) {
        self.timers.stop(Timer::Flush);
        let Returning {
            lease,
            end,
            cause,
            held,
            ..
        } = returning;
        self.state = State::Returning(Returning {
            flush: None,
            ..returning
        });
        let (lease, epoch) = (lease.id(), self.epoch.next());
        self.effects.push_back(Effect::RecordEnd {
            lease,
            end,
            cause,
            epoch,
            held,
        });
    }

    /// The fence is late. Whoever looks sees a paused desktop; what waits for
    /// the fence goes on waiting.
    pub(crate) fn flush_overdue(&mut self) {
        let State::Returning(returning) = self.state else {
            return;
        };
        self.state = State::Returning(Returning {
            overdue: true,
            ..returning
        });
        self.epoch = self.epoch.next();
        let reason = PauseReason::DisplayUnavailable;
        self.effects.push_back(Effect::RecordPaused {
            reason,
            epoch: self.epoch,
        });
    }

    /// The end of `lease` is stored, or spooled: control moves.
    pub fn end_recorded(&mut self, now: Moment, lease: LeaseId) {
        let now = self.advance(now);
        let State::Returning(returning) = self.state else {
            return;
        };
        if returning.lease.id() != lease || returning.flush.is_some() {
            return;
        }
        let Returning { failure, then, .. } = returning;
        self.state = State::Steady;
        self.epoch = self.epoch.next();
        self.base = then.base;
        match failure {
            None => self.untold = Some(lease),
            Some(reason) => self
                .effects
                .push_back(Effect::AcquireFailed { lease, reason }),
        }
        match then {
            Then {
                next: Some(terms), ..
            } => self.start(Lease { terms, since: now }),
            Then {
                base: Base::Agent, ..
            } => self.hand_back(),
            Then {
                base: Base::Paused(reason),
                ..
            } => {
                self.effects.push_back(Effect::RecordPaused {
                    reason,
                    epoch: self.epoch,
                });
            }
        }
    }

    /// Tells the agents that control is with them under a new epoch.
    pub(crate) fn hand_back(&mut self) {
        let after = self.untold.take();
        self.effects.push_back(Effect::ControlReturned {
            epoch: self.epoch,
            after,
        });
    }
}
