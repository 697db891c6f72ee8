//! What the arbiter asks for, done.

use std::sync::Arc;
use std::time::Duration;

use handover_control::{
    AcquireFailure, Control, Effect, End, Epoch, FlushId, LeaseId, Limit, PauseReason, PermitId,
    TimeoutCause,
};
use handover_protocol::{
    ControlAcquireResult, ControlReturnResult, DesktopId, HandBack, Interrupt, LeaseEnded,
    LeaseWarning, Window,
};
use tokio::sync::mpsc;

use handover_store::{NewEvent, Put};

use super::actor::{Actor, AwaitedFlush};
use super::by::By;
use super::command::Report;
use super::links::{HandedBack, Links};
use super::record;
use super::refuse;
use super::running::Right;
use super::survey;
use super::takeover::{Asker, Holder, Survey, Takeovers, millis};
use super::terms;
use crate::attach::Notice;
use crate::display::X11Error;
use crate::display::x11::Locks;
use crate::system::clock;

/// How long a display that was sent keys is left to take them in.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

impl Actor {
    /// Does one thing that the arbiter asks for.
    pub(super) fn apply(&mut self, effect: Effect) {
        match effect {
            Effect::Interrupt(permit) => self.interrupt(permit),
            Effect::WithdrawPaste => self.clipboard.withdraw(),
            Effect::ReleaseAgent { flush } => {
                let released = match &mut self.input {
                    Some(input) => input.release_agent(),
                    None => Ok(()),
                };
                self.or_lost(released);
                self.await_flush(flush, false);
            }
            Effect::RecordStart { lease, epoch } => self.record_start(lease, epoch),
            Effect::Granted { lease, epoch } => self.granted(lease, epoch),
            Effect::AcquireFailed { lease, reason } => self.not_granted(lease, reason),
            Effect::ReleaseHuman { .. } => self.release_human(),
            Effect::Flush { flush, .. } => {
                self.acting.interrupt_person();
                self.copied = None;
                self.release_human();
                // The host owns the clipboard from here on, and it is empty.
                let send = self.clipboard.offer(String::new());
                let sent = self.send_clipboard(send);
                self.or_lost(sent);
                self.await_flush(flush, true);
            }
            Effect::RecordEnd {
                lease,
                end,
                cause,
                epoch,
                held,
            } => self.record_end(lease, end, cause, epoch, held),
            Effect::ControlReturned { epoch, after } => self.control_returned(epoch, after),
            Effect::RecordPaused { reason, epoch } => self.record_paused(reason, epoch),
            Effect::RecordResumed { epoch } => {
                let by = self.takeovers.changed_by.take();
                let event = record::resumed(&self.id, epoch, by.as_ref());
                let put = record::control(&self.id, epoch, Control::Agent, None, None);
                self.record_change(event, put);
            }
            Effect::Warn { lease, limit, left } => self.warn(lease, limit, left),
            Effect::RequestPending { holder, asker, .. } => self.tell_holder(holder, asker),
        }
    }

    fn interrupt(&mut self, permit: PermitId) {
        self.acting.interrupt(Right::Permit(permit));
        if let Some(outside) = self.outside.get_mut(&permit) {
            if let Some(relayed) = &mut outside.relayed {
                relayed.interrupted(clock::now());
            }
            let notice = Notice::Interrupt(Interrupt {
                permit: permit.to_string().into(),
            });
            self.links.outlets.notify(outside.by.outlet(), &notice);
        }
    }

    fn release_human(&mut self) {
        let released = match &mut self.input {
            Some(input) => input.release_human(),
            None => Ok(()),
        };
        self.or_lost(released);
    }

    /// Asks the display to show that everything before is through. `clears`: see [`AwaitedFlush`].
    fn await_flush(&mut self, flush: FlushId, clears: bool) {
        let Some(input) = &mut self.input else {
            return;
        };
        match input.fence() {
            Ok(fence) => self.flushes.push(AwaitedFlush {
                fence,
                flush,
                clears,
            }),
            Err(error) => self.lost(&error),
        }
    }

    fn record_start(&mut self, lease: LeaseId, epoch: Epoch) {
        let Some(asker) = self.takeovers.askers.get(&lease) else {
            return;
        };
        let event = record::start(&self.id, epoch, lease, &asker.by, asker.note.as_deref());
        let holder = Some((lease, asker.by.name.as_str()));
        let put = record::control(&self.id, epoch, Control::Human, None, holder);
        let stored = self.links.store.append_with(event, vec![put]);
        let reports = self.reports.clone();
        tokio::spawn(async move {
            let stored = match stored.await {
                Ok(_) => true,
                Err(error) => {
                    tracing::error!(%error, "failed to store the start of a takeover");
                    false
                }
            };
            // The task may have ended.
            let _ = reports.send(Report::StartRecorded { lease, stored });
        });
    }

    fn granted(&mut self, lease: LeaseId, epoch: Epoch) {
        let Some(asker) = self.takeovers.askers.remove(&lease) else {
            return;
        };
        let Asker {
            by,
            note,
            ttl,
            token,
            reply,
            survey,
            ..
        } = asker;
        self.links.hooks.taken(&self.id, &by.name);
        self.takeovers.holder = Some(Holder {
            lease,
            by,
            ttl,
            note,
            windows: None,
            locks: Locks::default(),
            ended_by: None,
            token: terms::hash(&token),
        });
        // Before the answer, after which the person's input may come at once.
        self.publish();
        let reports = self.reports.clone();
        let granted = clock::now();
        tokio::spawn(async move {
            let Survey {
                foreign_clients,
                windows,
                locks,
            } = survey.await.unwrap_or_default();
            // Before the answer, after which the takeover may end at once.
            let _ = reports.send(Report::Seen {
                lease,
                windows,
                locks,
            });
            let left = ttl.saturating_sub(clock::now().since(granted));
            // Whoever asked may have gone; the end of its connection ends the
            // lease.
            let _ = reply.send(Ok(ControlAcquireResult {
                lease_id: lease.to_string().into(),
                token,
                epoch: epoch.0,
                ttl_ms: millis(ttl),
                heartbeat_ms: millis(Takeovers::heartbeat(ttl)),
                expires_in_ms: millis(left),
                foreign_clients,
            }));
        });
    }

    fn not_granted(&mut self, lease: LeaseId, reason: AcquireFailure) {
        let in_the_way = self.lease_view();
        if let Some(asker) = self.takeovers.askers.remove(&lease) {
            asker.survey.abort();
            if let Some(holder) = asker.asks {
                self.tell_request_ended(holder, &asker.by.name);
            }
            let refusal = refuse::not_granted(&self.id, reason, in_the_way);
            // Whoever asked may have gone.
            let _ = asker.reply.send(Err(refusal));
        }
        if reason == AcquireFailure::DrainTimeout {
            tracing::warn!(desktop = %self.id, %lease, "{reason}");
        }
    }

    fn record_end(
        &mut self,
        lease: LeaseId,
        end: End,
        cause: Option<TimeoutCause>,
        epoch: Epoch,
        held: Duration,
    ) {
        if let (Some(cause), Some(holder)) = (cause, &self.takeovers.holder)
            && holder.lease == lease
        {
            self.takeovers.timed_out = Some((lease, holder.token, cause));
        }
        // A takeover that was never granted has an asker in the holder's place.
        let (by, note, windows, locks, ended_by) = match &mut self.takeovers.holder {
            Some(holder) if holder.lease == lease => (
                Some(holder.by.clone()),
                holder.note.clone(),
                holder.windows.take(),
                Some(holder.locks),
                holder.ended_by.clone(),
            ),
            _ => {
                let asker = self.takeovers.askers.get(&lease);
                (asker.map(|asker| asker.by.clone()), None, None, None, None)
            }
        };
        let hand_back = HandBack {
            end: wire_end(end),
            holder: by
                .as_ref()
                .map_or_else(|| "a person".to_owned(), |by| by.name.clone()),
            held_ms: millis(held),
            note,
            epoch: epoch.0,
            screenshot: None,
            windows_opened: Vec::new(),
            windows_closed: Vec::new(),
        };
        let ended_by = match end {
            End::Return | End::Cancelled => ended_by.or(by),
            End::Revoked => ended_by,
            End::Timeout | End::Recovered => None,
        };
        let ending = Ending {
            links: self.links.clone(),
            desktop: self.id.clone(),
            lease,
            ended_by,
            cause: cause.map(|cause| cause.to_string()),
            display: self.input.is_some(),
            locks,
            reports: self.reports.clone(),
        };
        let reports = self.reports.clone();
        tokio::spawn(async move {
            let hand_back = ending.record(hand_back, windows).await;
            // The task may have ended.
            let _ = reports.send(Report::EndRecorded { lease, hand_back });
        });
    }

    fn end_recorded(&mut self, lease: LeaseId, hand_back: HandBack) {
        self.arbiter.end_recorded(clock::now(), lease);
        let epoch = self.arbiter.status().epoch;
        let hand_back = HandBack {
            epoch: epoch.0,
            ..hand_back
        };
        self.observations.handed_back(hand_back.clone(), epoch);
        // Control may go to another person at once, who deals with the requests.
        let told = match self.arbiter.status().lease {
            None => self.links.hooks.handed_back(&self.id, &hand_back),
            Some(_) => HandedBack::default(),
        };
        if let Some(holder) = self
            .takeovers
            .holder
            .take_if(|holder| holder.lease == lease)
        {
            let notice = Notice::LeaseEnded(LeaseEnded {
                lease_id: lease.to_string().into(),
                desktop: self.id.clone(),
                end: hand_back.end,
                agents: told.agents,
                requests: told.requests,
            });
            self.links.outlets.notify(holder.by.outlet(), &notice);
        }
        for returner in std::mem::take(&mut self.takeovers.returners) {
            // Whoever asked may have gone.
            let _ = returner.send(Ok(ControlReturnResult {
                reason: hand_back.end,
                held_ms: hand_back.held_ms,
                screenshot: hand_back.screenshot.clone(),
                epoch: epoch.0,
            }));
        }
    }

    fn control_returned(&mut self, epoch: Epoch, after: Option<LeaseId>) {
        tracing::info!(desktop = %self.id, %epoch, after = ?after, "control is with the agents");
    }

    /// Records a pause or its end. Both have happened; whoever asked is answered
    /// once they are on record.
    fn record_change(&mut self, event: NewEvent, put: Put) {
        let recorded = self.links.store.append_spooled_with(event, vec![put]);
        self.takeovers.recording += 1;
        let reports = self.reports.clone();
        tokio::spawn(async move {
            recorded.await;
            // The task may have ended.
            let _ = reports.send(Report::ChangeRecorded);
        });
    }

    fn record_paused(&mut self, reason: PauseReason, epoch: Epoch) {
        let by = match reason {
            PauseReason::Requested => self.takeovers.changed_by.take(),
            _ => None,
        };
        let event = record::paused(&self.id, epoch, reason, by.as_ref());
        let put = record::control(&self.id, epoch, Control::Paused, Some(reason), None);
        self.record_change(event, put);
        if reason == PauseReason::DisplayUnavailable {
            // The end is not through yet and may never be.
            for returner in std::mem::take(&mut self.takeovers.returners) {
                let _ = returner.send(Err(refuse::unanswering(&self.id)));
            }
        }
    }

    fn warn(&mut self, lease: LeaseId, limit: Limit, left: Duration) {
        if let Some(holder) = &self.takeovers.holder {
            let warning = LeaseWarning {
                lease_id: lease.to_string().into(),
                limit: match limit {
                    Limit::Idle => handover_protocol::Limit::Idle,
                    Limit::Maximum => handover_protocol::Limit::Maximum,
                },
                left_ms: millis(left),
            };
            self.links.hooks.ending(&self.id, &holder.by.name, &warning);
            let notice = Notice::LeaseWarning(warning);
            self.links.outlets.notify(holder.by.outlet(), &notice);
        }
    }

    /// Takes what comes back from beside the task.
    pub(super) fn report(&mut self, report: Report) {
        match report {
            Report::StartRecorded { lease, stored } => {
                self.arbiter.start_recorded(clock::now(), lease, stored);
            }
            Report::ChangeRecorded => self.takeovers.recording -= 1,
            Report::EndRecorded { lease, hand_back } => self.end_recorded(lease, hand_back),
            Report::Seen {
                lease,
                windows,
                locks,
            } => {
                if let Some(holder) = &mut self.takeovers.holder
                    && holder.lease == lease
                {
                    holder.windows = windows;
                    holder.locks = locks;
                }
            }
            Report::Cleared(flush) => self.arbiter.flushed(clock::now(), flush),
            Report::CallOver(permit) => {
                if self.outside.remove(&permit).is_some() {
                    self.arbiter.complete(clock::now(), permit);
                }
            }
            Report::Restore(locks) => {
                let pressed = match &mut self.input {
                    Some(input) => input.press_locks(&locks),
                    None => Ok(()),
                };
                self.or_lost(pressed);
            }
        }
    }
}

fn wire_end(end: End) -> handover_protocol::End {
    use handover_protocol::End as Wire;
    match end {
        End::Return => Wire::Return,
        End::Cancelled => Wire::Cancelled,
        End::Timeout => Wire::Timeout,
        End::Revoked => Wire::Revoked,
        End::Recovered => Wire::Recovered,
    }
}

/// The end of a takeover on its way into the record. Input is closed and
/// flushed already, and the clipboard cleared.
struct Ending {
    links: Arc<Links>,
    desktop: DesktopId,
    lease: LeaseId,
    ended_by: Option<By>,
    cause: Option<String>,
    display: bool,
    /// The lock keys before the takeover, if it was granted.
    locks: Option<Locks>,
    reports: mpsc::UnboundedSender<Report>,
}

impl Ending {
    /// Takes the picture, compares the windows, and stores the end.
    async fn record(self, mut hand_back: HandBack, before: Option<Vec<Window>>) -> HandBack {
        if self.display {
            let (screenshot, after, ()) = tokio::join!(
                self.picture(),
                survey::windows(&self.links),
                self.restore_locks(),
            );
            hand_back.screenshot = screenshot;
            if let (Some(before), Some(after)) = (before, after) {
                let absent = |from: &[Window], window: &Window| {
                    from.iter().all(|other| other.id != window.id)
                };
                hand_back.windows_opened = after
                    .iter()
                    .filter(|window| absent(&before, window))
                    .cloned()
                    .collect();
                hand_back.windows_closed = before
                    .into_iter()
                    .filter(|window| absent(&after, window))
                    .collect();
            }
        }
        let event = record::end(
            &self.desktop,
            self.lease,
            self.ended_by.as_ref(),
            &hand_back,
            self.cause.as_deref(),
        );
        let epoch = Epoch(hand_back.epoch);
        let put = record::control(&self.desktop, epoch, Control::Agent, None, None);
        self.links.store.append_spooled_with(event, vec![put]).await;
        hand_back
    }

    /// Has the lock keys pressed that the person, or the display in fitting in
    /// with the person's keyboard, has left otherwise than before. Agents' input
    /// takes the same way and so comes after.
    async fn restore_locks(&self) {
        let (Some(x11), Some(before)) = (&self.links.x11, self.locks) else {
            return;
        };
        survey::within(survey::LAST_LOOK_WITHIN, async {
            let differing = x11.locks().await?.differing(before);
            if !differing.is_empty() {
                // The task may have ended.
                let _ = self.reports.send(Report::Restore(differing));
                while x11.locks().await? != before {
                    tokio::time::sleep(LOOK_AGAIN).await;
                }
            }
            Ok::<_, X11Error>(())
        })
        .await;
    }

    /// The picture that agents get, kept as evidence.
    async fn picture(&self) -> Option<String> {
        let picture = async {
            let screenshot = self
                .links
                .screen
                .capture()
                .await
                .map_err(|error| error.to_string())?;
            let evidence = self
                .links
                .store
                .put_evidence(screenshot.png.to_vec(), "png")
                .await
                .map_err(|error| error.to_string())?;
            Ok::<_, String>(evidence.path.display().to_string())
        };
        match tokio::time::timeout(survey::LAST_LOOK_WITHIN, picture).await {
            Ok(Ok(path)) => Some(path),
            Ok(Err(error)) => {
                tracing::warn!(desktop = %self.desktop, error, "no picture of the end");
                None
            }
            Err(_) => None,
        }
    }
}
