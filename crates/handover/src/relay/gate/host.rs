//! What the host says of calls: permits, interruptions, and that it has gone.

use std::time::Duration;

use handover_protocol::{ErrorCode, Refusal};

use super::super::answers;
use super::super::call::{Call, CallId, Permit, Stage};
use super::{Effect, Gate, line};

/// Most interruptions kept for permits that have not arrived yet.
const MAX_EARLY: usize = 1024;

impl Gate {
    /// The host's answer to [`Effect::AskPermit`].
    pub(in super::super) fn permitted(&mut self, id: CallId, answer: Result<Permit, Refusal>) {
        let early = answer
            .as_ref()
            .is_ok_and(|permit| self.early.remove(permit));
        let waiting = self.calls.get_mut(&id);
        let waiting = waiting.filter(|call| call.is_asking());
        let gone = self.gone;
        match (waiting, answer) {
            // What it was worth has ended with its connection.
            (Some(_), Ok(permit)) if permit.link <= gone => self.refuse(id, host_has_ended()),
            (Some(call), Ok(permit)) if !early => {
                call.stage = Stage::Granted(Some(permit));
                self.decided(id);
            }
            (Some(_), Ok(permit)) => self.too_late(id, permit),
            (Some(_), Err(refusal)) => self.refuse(id, refusal),
            // It came too late.
            (None, Ok(permit)) => self.effects.push(Effect::Complete(permit)),
            (None, Err(_)) => {}
        }
        if !self.early.is_empty() && !self.calls.values().any(Call::is_asking) {
            // They were for permits that are given back.
            self.early.clear();
        }
    }

    /// The host's answer to [`Effect::AskWatched`]: whether the desktop may be looked at.
    pub(in super::super) fn watched(&mut self, id: CallId, answer: Result<(), Refusal>) {
        let waiting = self.calls.get_mut(&id);
        let Some(call) = waiting.filter(|call| call.is_asking()) else {
            return;
        };
        match answer {
            Ok(()) => {
                call.stage = Stage::Granted(None);
                self.decided(id);
            }
            Err(refusal) => {
                if refusal.code == ErrorCode::Private {
                    let tool = call.tool.clone();
                    self.effects.push(Effect::Record { tool });
                }
                self.refuse(id, refusal);
            }
        }
    }

    /// The host's answer to [`Effect::AskDraining`]: whether a person still waits.
    pub(in super::super) fn draining(&mut self, waits: bool) {
        if !std::mem::take(&mut self.asking_draining) || !waits {
            return;
        }
        // What was asked about may have ended meanwhile.
        if self.calls.values().any(|call| call.asked.is_some()) {
            self.replace("it did not say that it had stopped when a person took control");
        }
    }

    /// A person asks for control, so what this permit is for has to end.
    pub(in super::super) fn interrupt(&mut self, permit: &Permit, now: Duration) {
        let mut calls = self.calls.iter_mut();
        let found = calls.find(|(_, call)| call.permit() == Some(permit));
        match found {
            Some((_, call)) if call.is_sent() => {
                call.interrupted = Some(now);
            }
            Some((&id, _)) => self.too_late(id, permit.clone()),
            None if permit.link > self.gone && self.early.len() < MAX_EARLY => {
                self.early.insert(permit.clone());
            }
            None => {}
        }
    }

    /// A person took control before a call was passed on.
    fn too_late(&mut self, id: CallId, permit: Permit) {
        let tool = self.calls.get(&id).map(|call| call.tool.clone());
        self.refuse(id, answers::too_late());
        self.effects.push(Effect::Complete(permit));
        self.effects
            .extend(tool.map(|tool| Effect::Record { tool }));
    }

    /// This connection to the host has ended, and with it what its permits were worth.
    pub(in super::super) fn host_gone(&mut self, link: u64, now: Duration) {
        self.gone = self.gone.max(link);
        self.early.retain(|permit| permit.link > link);
        let mut refused = Vec::new();
        for (&id, call) in &mut self.calls {
            match &mut call.stage {
                Stage::Sent(permit)
                    if permit.as_ref().is_some_and(|permit| permit.link <= link) =>
                {
                    *permit = None;
                    self.host_gone = Some(now);
                    if call.cancelled.is_none() {
                        call.cancel(now);
                        let cancel = answers::cancel(&call.raw_id).into_bytes();
                        self.effects.push(Effect::ToServer(line(cancel)));
                    }
                    // Whoever has cancelled it: it is seen to that it ends.
                    call.by_us = true;
                    call.interrupted = None;
                }
                Stage::Granted(Some(permit)) if permit.link <= link => refused.push(id),
                Stage::Asking(_) | Stage::Granted(_) | Stage::Sent(_) => {}
            }
        }
        for id in refused {
            self.refuse(id, host_has_ended());
        }
    }
}

fn host_has_ended() -> Refusal {
    let gone = "the session's host has ended, so nothing may act";
    Refusal::new(ErrorCode::SessionUnknown, gone)
}
