//! Taking control from everybody, and giving it back to the agents.

use crate::{
    arbiter::{Arbiter, State},
    control::{Base, End, PauseReason},
    effect::Effect,
    ending::{Returning, Then},
    refusal::{AcquireFailure, Refusal},
    takeover::Doom,
    time::Moment,
};

impl Arbiter {
    /// From here on nobody may act. A person's control is revoked first, and
    /// the desktop is paused when it has ended.
    pub fn pause(&mut self, now: Moment, reason: PauseReason) {
        let now = self.advance(now);
        let failure = AcquireFailure::Paused(reason);
        match self.state {
            State::Steady => self.pause_steady(reason),
            State::Draining { lease, .. } => self.give_up(lease.id(), failure, Some(reason)),
            State::Starting { lease, doom } => {
                let doom = doom.unwrap_or(Doom {
                    end: End::Revoked,
                    failure,
                    pause: None,
                });
                let pause = Some(reason).max(doom.pause);
                self.state = State::Starting {
                    lease,
                    doom: Some(Doom { pause, ..doom }),
                };
            }
            State::Human { .. } => {
                self.end(
                    now,
                    End::Revoked,
                    None,
                    Then::base(self.base.paused(reason)),
                );
            }
            State::Returning(_) => {
                self.drop_requests(|_| true, failure);
                self.pause_after(reason);
            }
        }
        if reason == PauseReason::DesktopGone
            && let State::Returning(returning) = self.state
            && returning.flush.is_some()
        {
            // No fence will ever answer, and nothing is left to be flushed.
            self.record_end(returning);
        }
    }

    /// The display has ended, for good: no input of anyone's is left in it.
    pub fn desktop_gone(&mut self, now: Moment) {
        self.pause(now, PauseReason::DesktopGone);
    }

    /// A person ends a pause: the agents have control. Nothing happens if they
    /// have it already.
    ///
    /// It is for the shell to know, before it calls this, that a display that
    /// was unavailable is available and that a foreign connection is gone.
    ///
    /// # Errors
    /// [`Refusal::Held`] while a lease is pending, live or ending;
    /// [`Refusal::Paused`] if the display is gone, or has not shown that a
    /// person's input is through.
    pub fn resume(&mut self, now: Moment) -> Result<(), Refusal> {
        self.advance(now);
        if self.state != State::Steady {
            return Err(self.in_the_way(Refusal::Held));
        }
        match self.base {
            Base::Agent => {}
            Base::Paused(gone @ PauseReason::DesktopGone) => return Err(Refusal::Paused(gone)),
            Base::Paused(_) => {
                self.base = Base::Agent;
                self.epoch = self.epoch.next();
                self.effects
                    .push_back(Effect::RecordResumed { epoch: self.epoch });
                self.hand_back();
            }
        }
        Ok(())
    }

    /// Pauses a desktop that no person has.
    pub(crate) fn pause_steady(&mut self, reason: PauseReason) {
        let before = self.base;
        self.base = before.paused(reason);
        if before == Base::Agent {
            self.epoch = self.epoch.next();
            self.stop_agents();
        }
        if before != self.base {
            self.effects.push_back(Effect::RecordPaused {
                reason,
                epoch: self.epoch,
            });
        }
    }

    fn pause_after(&mut self, reason: PauseReason) {
        if let State::Returning(returning) = self.state {
            let then = Then::base(returning.then.base.paused(reason));
            self.state = State::Returning(Returning { then, ..returning });
        }
    }
}
