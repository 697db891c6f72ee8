//! One person asks another for control.

use crate::{
    arbiter::{Arbiter, State},
    control::End,
    effect::Effect,
    ending::{Returning, Then},
    ids::{LeaseId, TokenHash},
    lease::AcquireRequest,
    refusal::{AcquireFailure, Refusal},
    time::Moment,
};

impl Arbiter {
    /// A person asks whoever has control to give it. If nobody has it, this is
    /// an acquire. The outcome is an effect.
    ///
    /// The request lasts until it is answered, its asker goes, or the holder's
    /// lease ends otherwise.
    ///
    /// # Errors
    /// [`Refusal::RequestPending`] if another person is waiting for the answer;
    /// [`Refusal::Held`] while control is moving; [`Refusal::Paused`] as for
    /// [`acquire`](Self::acquire).
    pub fn request(&mut self, now: Moment, request: AcquireRequest) -> Result<(), Refusal> {
        let now = self.advance(now);
        match self.state {
            State::Steady => self.begin(now, request),
            State::Human { .. } if self.request.is_some() => Err(Refusal::RequestPending),
            State::Human { lease, .. } => {
                self.request = Some(request);
                self.effects.push_back(Effect::RequestPending {
                    holder: lease.id(),
                    asker: request.lease,
                    controller: request.controller,
                });
                Ok(())
            }
            _ => Err(self.in_the_way(Refusal::Held)),
        }
    }

    /// The holder gives control to the person who asks: the lease ends as
    /// returned, and the asker's starts without an agent's permit between.
    ///
    /// # Errors
    /// [`Refusal::LeaseStale`] if the lease is not live;
    /// [`Refusal::NoRequest`] if nobody is asking.
    pub fn give(&mut self, now: Moment, lease: LeaseId, token: TokenHash) -> Result<(), Refusal> {
        let now = self.advance(now);
        let next = Some(self.take_request(lease, token)?);
        self.end(
            now,
            End::Return,
            None,
            Then {
                base: self.base,
                next,
            },
        );
        Ok(())
    }

    /// The holder keeps control, and the asker is told so.
    ///
    /// # Errors
    /// [`Refusal::LeaseStale`] if the lease is not live;
    /// [`Refusal::NoRequest`] if nobody is asking.
    pub fn refuse(&mut self, now: Moment, lease: LeaseId, token: TokenHash) -> Result<(), Refusal> {
        self.advance(now);
        let asker = self.take_request(lease, token)?.lease;
        let reason = AcquireFailure::Refused;
        self.effects.push_back(Effect::AcquireFailed {
            lease: asker,
            reason,
        });
        Ok(())
    }

    /// Takes the pending request for the holder to answer.
    fn take_request(
        &mut self,
        lease: LeaseId,
        token: TokenHash,
    ) -> Result<AcquireRequest, Refusal> {
        match self.state {
            State::Human { lease: live, .. } if live.is(lease, token) => {
                self.request.take().ok_or(Refusal::NoRequest)
            }
            _ => Err(Refusal::LeaseStale),
        }
    }

    /// Fails such requests as wait for the holder's answer or for the end of
    /// the holder's lease.
    pub(crate) fn drop_requests(
        &mut self,
        such: impl Fn(&AcquireRequest) -> bool,
        reason: AcquireFailure,
    ) {
        let mut dropped = self.request.take_if(|request| such(request));
        if let State::Returning(Returning { then, .. }) = &mut self.state {
            dropped = dropped.or_else(|| then.next.take_if(|next| such(next)));
        }
        if let Some(AcquireRequest { lease, .. }) = dropped {
            self.effects
                .push_back(Effect::AcquireFailed { lease, reason });
        }
    }
}
