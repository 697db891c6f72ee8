//! What becomes due because nothing else happens.

use std::time::Duration;

use handover_protocol::{ErrorCode, Refusal};

use super::super::answers;
use super::super::call::{Call, CallId, Stage};
use super::again::Away;
use super::{Asked, Effect, Gate, line};

/// How long calls may go on after the host is gone, by whose permits they were begun.
pub(super) const HOST_GONE: Duration = Duration::from_secs(2);

impl Gate {
    /// When [`Self::tick`] has something to do.
    pub(in super::super) fn deadline(&self) -> Option<Duration> {
        let host_gone = self.host_gone.map(|at| at + HOST_GONE);
        let calls = self
            .calls
            .values()
            .filter_map(|call| call.due(self.asking_draining));
        let away = self.away.and_then(Away::due);
        calls.chain(host_gone).chain(away).min()
    }

    /// Does what has become due.
    pub(in super::super) fn tick(&mut self, now: Duration) {
        if self.ended {
            return;
        }
        if self
            .away
            .is_some_and(|away| away.due().is_some_and(|due| due <= now))
        {
            let why = "it did not greet when it was started again";
            return self.effects.push(Effect::EndServer(why.to_owned()));
        }
        if self.host_gone.is_some_and(|at| at + HOST_GONE <= now) {
            self.host_gone = None;
            if self.calls.values().any(Call::has_lost_its_host) {
                return self.replace(
                    "it did not say that it had stopped when the session's host had ended",
                );
            }
        }
        let due = self
            .calls
            .iter()
            .filter(|(_, call)| call.due(self.asking_draining).is_some_and(|due| due <= now));
        let due: Vec<CallId> = due.map(|(&id, _)| id).collect();
        for id in due {
            self.overdue(id, now);
        }
    }

    fn overdue(&mut self, id: CallId, now: Duration) {
        let Some(call) = self.calls.get_mut(&id) else {
            return;
        };
        match (&call.stage, call.interrupted, call.cancelled) {
            (Stage::Asking(_), ..) => {
                let silent = "the session's host does not answer, so nothing may act";
                self.refuse(id, Refusal::new(ErrorCode::Timeout, silent));
            }
            (Stage::Sent(_), Some(_), None) => {
                call.cancel(now);
                let cancel = answers::cancel(&call.raw_id).into_bytes();
                self.effects.push(Effect::ToServer(line(cancel)));
            }
            (Stage::Sent(_), Some(_), Some(_)) => {
                call.asked = Some(now);
                if !self.asking_draining {
                    self.asking_draining = true;
                    self.effects.push(Effect::AskDraining);
                }
            }
            _ => {
                // The client does not wait for it, and a response under its id may still come.
                if let Some(call) = self.calls.remove(&id) {
                    if let Some(open) = self.open.get_mut(&call.id) {
                        open.what = Asked::Other;
                    }
                    self.complete(call);
                }
            }
        }
    }
}
