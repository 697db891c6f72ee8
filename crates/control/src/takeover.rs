//! From the request for control to the grant, and the life of a lease.

use crate::{
    arbiter::{Arbiter, State},
    control::{Base, End, PauseReason},
    effect::Effect,
    ending::Then,
    ids::{ControllerId, LeaseId, TokenHash, ViewerId},
    lease::{AcquireRequest, Lease, OnDisconnect, Renewed, warning_ahead},
    refusal::{AcquireFailure, Refusal},
    time::Moment,
    timer::Timer,
};

/// Why a takeover will end as soon as its start is known to be stored or not.
///
/// The start may be on record already, so the takeover cannot just be
/// forgotten: if it is stored, an end must follow it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Doom {
    pub(crate) end: End,
    pub(crate) failure: AcquireFailure,
    /// Whether the desktop is to be paused then.
    pub(crate) pause: Option<PauseReason>,
}

impl Arbiter {
    /// A person asks for control. The outcome is an effect, once the agents'
    /// actions are drained and the start is stored.
    ///
    /// # Errors
    /// [`Refusal::Held`] if a lease is pending, live or ending;
    /// [`Refusal::Paused`] if control cannot be had by anyone: the display is
    /// gone, in distress, or has a foreign connection.
    pub fn acquire(&mut self, now: Moment, request: AcquireRequest) -> Result<(), Refusal> {
        let now = self.advance(now);
        if self.state != State::Steady {
            return Err(self.in_the_way(Refusal::Held));
        }
        self.begin(now, request)
    }

    /// Begins a takeover of a desktop that no person has.
    pub(crate) fn begin(&mut self, now: Moment, terms: AcquireRequest) -> Result<(), Refusal> {
        match self.base {
            Base::Agent | Base::Paused(PauseReason::Requested) => {}
            Base::Paused(reason) => return Err(Refusal::Paused(reason)),
        }
        let flush = Some(self.stop_agents());
        let lease = Lease { terms, since: now };
        self.state = State::Draining { lease, flush };
        self.timers.set(Timer::Drain, now + terms.drain);
        Ok(())
    }

    /// Asks for the start to be stored if nothing of the agents is left.
    pub(crate) fn start_if_drained(&mut self) {
        if let State::Draining { lease, flush: None } = self.state
            && self.permits.is_empty()
        {
            self.timers.stop(Timer::Drain);
            self.start(lease);
        }
    }

    pub(crate) fn start(&mut self, lease: Lease) {
        self.state = State::Starting { lease, doom: None };
        let epoch = self.epoch.next();
        self.effects.push_back(Effect::RecordStart {
            lease: lease.id(),
            epoch,
        });
    }

    /// The shell tells whether the start of `lease` is stored.
    pub fn start_recorded(&mut self, now: Moment, lease: LeaseId, stored: bool) {
        let now = self.advance(now);
        let State::Starting {
            lease: starting,
            doom,
        } = self.state
        else {
            return;
        };
        if starting.id() != lease {
            return;
        }
        if !stored {
            let reason = doom.map_or(AcquireFailure::StorageFailed, |doom| doom.failure);
            return self.give_up(lease, reason, doom.and_then(|doom| doom.pause));
        }
        self.epoch = self.epoch.next();
        let granted = Lease {
            since: now,
            ..starting
        };
        match doom {
            None => self.grant(now, granted),
            Some(doom) => self.return_ungranted(granted, doom),
        }
    }

    fn grant(&mut self, now: Moment, lease: Lease) {
        self.state = State::Human {
            lease,
            parked: false,
        };
        let terms = &lease.terms;
        self.timers.set(Timer::Ttl, now + terms.ttl);
        self.set_idle(terms, now);
        if let Some(max) = terms.max {
            self.timers.set(Timer::Maximum, now + max);
            self.timers
                .set(Timer::MaximumWarning, now + (max - warning_ahead(max)));
        }
        self.effects.push_back(Effect::Granted {
            lease: lease.id(),
            epoch: self.epoch,
        });
    }

    /// The person has just been active.
    pub(crate) fn set_idle(&mut self, terms: &AcquireRequest, now: Moment) {
        if let Some(idle) = terms.idle {
            self.timers.set(Timer::Idle, now + idle);
            self.timers
                .set(Timer::IdleWarning, now + (idle - warning_ahead(idle)));
        }
    }

    /// Breaks off a takeover that has not been granted. To be called only
    /// while one is draining or starting.
    pub(crate) fn abort(&mut self, failure: AcquireFailure) {
        match self.state {
            State::Draining { lease, .. } => self.give_up(lease.id(), failure, None),
            State::Starting { lease, doom } => {
                let end = match failure {
                    AcquireFailure::ControllerGone => End::Recovered,
                    AcquireFailure::ViewerGone => End::Return,
                    AcquireFailure::Withdrawn => End::Cancelled,
                    _ => End::Revoked,
                };
                // The first reason stands: it is what the asker is told.
                let doom = doom.or(Some(Doom {
                    end,
                    failure,
                    pause: None,
                }));
                self.state = State::Starting { lease, doom };
            }
            State::Steady | State::Human { .. } | State::Returning(_) => {}
        }
    }

    /// Forgets a takeover of which nothing is on record, and pauses the desktop
    /// if there is a reason to.
    pub(crate) fn give_up(
        &mut self,
        lease: LeaseId,
        reason: AcquireFailure,
        pause: Option<PauseReason>,
    ) {
        self.timers.stop(Timer::Drain);
        self.state = State::Steady;
        self.effects
            .push_back(Effect::AcquireFailed { lease, reason });
        if let Some(reason) = pause {
            self.pause_steady(reason);
        } else if self.base == Base::Agent && self.untold.is_some() {
            // The person who gave control to this asker had ended a takeover
            // that the agents do not know of yet.
            self.hand_back();
        }
    }

    /// The holder shows that it is alive.
    ///
    /// While the lease is parked this answers but prolongs nothing: only a
    /// reclaim does.
    ///
    /// # Errors
    /// [`Refusal::LeaseStale`] if the lease is not live, now and for ever.
    pub fn renew(
        &mut self,
        now: Moment,
        lease: LeaseId,
        token: TokenHash,
    ) -> Result<Renewed, Refusal> {
        let now = self.advance(now);
        match self.state {
            State::Human {
                lease: live,
                parked,
            } if live.is(lease, token) => {
                if !parked {
                    self.timers.set(Timer::Ttl, now + live.terms.ttl);
                }
                Ok(self.renewed())
            }
            _ => Err(Refusal::LeaseStale),
        }
    }

    /// Whoever has the token takes the live or parked lease over to this
    /// connection and, if given, this viewer.
    ///
    /// # Errors
    /// [`Refusal::LeaseStale`] if the lease is not live, now and for ever.
    pub fn reclaim(
        &mut self,
        now: Moment,
        lease: LeaseId,
        token: TokenHash,
        controller: ControllerId,
        viewer: Option<ViewerId>,
    ) -> Result<Renewed, Refusal> {
        let now = self.advance(now);
        let State::Human {
            lease: mut live,
            parked,
        } = self.state
        else {
            return Err(Refusal::LeaseStale);
        };
        if !live.is(lease, token) {
            return Err(Refusal::LeaseStale);
        }
        let terms = &mut live.terms;
        terms.controller = controller;
        if viewer.is_some() && viewer != terms.viewer {
            terms.viewer = viewer;
            // What the other viewer holds, this one can never release. A parked
            // lease holds nothing.
            if !parked {
                self.effects.push_back(Effect::ReleaseHuman { lease });
            }
        }
        self.timers.stop(Timer::Linger);
        self.timers.set(Timer::Ttl, now + live.terms.ttl);
        self.state = State::Human {
            lease: live,
            parked: false,
        };
        Ok(self.renewed())
    }

    fn renewed(&self) -> Renewed {
        let end = self.timers.lease_end().unwrap_or(self.clock);
        Renewed {
            expires_in: end.since(self.clock),
            epoch: self.epoch,
        }
    }

    /// A viewer's connection is closed. Changes nothing unless a lease is bound
    /// to it.
    pub fn viewer_gone(&mut self, now: Moment, viewer: ViewerId) {
        let now = self.advance(now);
        let bound = |terms: &AcquireRequest| terms.viewer == Some(viewer);
        self.drop_requests(bound, AcquireFailure::ViewerGone);
        if let Some(mut lease) = self.lease_where(bound) {
            lease.terms.viewer = None;
            self.disconnected(now, lease, End::Return, AcquireFailure::ViewerGone);
        }
    }

    /// A controller's connection is closed. Changes nothing unless a lease is
    /// held or asked for by it.
    pub fn controller_gone(&mut self, now: Moment, controller: ControllerId) {
        let now = self.advance(now);
        let by = |terms: &AcquireRequest| terms.controller == controller;
        self.drop_requests(by, AcquireFailure::ControllerGone);
        if let Some(lease) = self.lease_where(by) {
            self.disconnected(now, lease, End::Recovered, AcquireFailure::ControllerGone);
        }
    }

    /// The lease that is pending or live, if it is such a one.
    fn lease_where(&self, such: impl Fn(&AcquireRequest) -> bool) -> Option<Lease> {
        match self.state {
            State::Draining { lease, .. }
            | State::Starting { lease, .. }
            | State::Human { lease, .. } => Some(lease).filter(|lease| such(&lease.terms)),
            State::Steady | State::Returning(_) => None,
        }
    }

    fn disconnected(&mut self, now: Moment, lease: Lease, end: End, failure: AcquireFailure) {
        let State::Human { parked, .. } = self.state else {
            return self.abort(failure);
        };
        let OnDisconnect::Linger(linger) = lease.terms.on_disconnect else {
            return self.end(now, end, None, Then::base(self.base));
        };
        self.state = State::Human {
            lease,
            parked: true,
        };
        // What goes second does not prolong the time that the first one began.
        if !parked {
            self.timers.stop(Timer::Ttl);
            self.timers.set(Timer::Linger, now + linger);
            self.effects
                .push_back(Effect::ReleaseHuman { lease: lease.id() });
        }
    }
}
