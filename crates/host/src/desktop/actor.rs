//! The desktop's task: it alone owns the arbiter and the input connection.
//!
//! Whether input may go out is decided and the write is done in one step,
//! without an await or a channel between. Everything that takes time (storing,
//! pictures, windows) runs beside the task and comes back as a [`Report`].

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use handover_control::{Arbiter, Control, FlushId, Moment, OwnerId, PermitId, Phase, ViewerId};
use handover_protocol::{DesktopId, ErrorCode, Refusal};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::acting::Acting;
use super::by::By;
use super::clearing;
use super::clipboard::{DisplayClipboard, Happened, Send};
use super::command::{Command, Report};
use super::input::{FenceId, Incoming, InputConnection};
use super::links::Links;
use super::observation::Observations;
use super::overdue::Relayed;
use super::person::WaitingInput;
use super::takeover::Takeovers;
use super::view::{ControlView, Copied, ViewerEvent};
use crate::system::clock::{self, BootTimer};
use handover_rfb::clipboard::ClipboardMessage;

/// A permit that a client of the host holds for something it does by itself.
#[derive(Debug)]
pub(super) struct OutsidePermit {
    pub(super) by: By,
    pub(super) owner: OwnerId,
    pub(super) what: String,
    /// If it ends with the tree of a relayed server.
    pub(super) relayed: Option<Relayed>,
    /// Tells when the process that holds it has ended, or has had its time; dropped with the permit.
    pub(super) watching: JoinSet<()>,
}

/// A flush of the arbiter's that is shown by a fence.
#[derive(Clone, Copy, Debug)]
pub(super) struct AwaitedFlush {
    pub(super) fence: FenceId,
    pub(super) flush: FlushId,
    /// Whether it is through only when the clipboard on the X side is cleared too.
    pub(super) clears: bool,
}

/// The task's state. See the module's description.
pub(super) struct Actor {
    pub(super) id: DesktopId,
    pub(super) links: Arc<Links>,
    pub(super) arbiter: Arbiter,
    /// None once the display has ended.
    pub(super) input: Option<InputConnection>,
    pub(super) clipboard: DisplayClipboard,
    pub(super) observations: Observations,
    pub(super) acting: Acting,
    pub(super) outside: HashMap<PermitId, OutsidePermit>,
    /// Since when somebody waits for the agents' permits to end, if anybody does.
    pub(super) waiting_since: Option<Moment>,
    pub(super) takeovers: Takeovers,
    /// The fences that are to show that the arbiter's flushes are through.
    pub(super) flushes: Vec<AwaitedFlush>,
    /// Clears the clipboard after the last flush that ends a takeover; ends when it is dropped.
    pub(super) clearing: JoinSet<()>,
    /// The viewers there are, and whether a client is connected to each.
    pub(super) viewers: HashMap<ViewerId, bool>,
    pub(super) waiting: WaitingInput,
    pub(super) copied: Option<Copied>,
    pub(super) copies: u64,
    pub(super) reports: mpsc::UnboundedSender<Report>,
    pub(super) view: watch::Sender<ControlView>,
}

/// What the task listens to.
pub(super) struct Inbox {
    pub(super) commands: mpsc::Receiver<Command>,
    pub(super) viewers: mpsc::Receiver<ViewerEvent>,
    pub(super) reports: mpsc::UnboundedReceiver<Report>,
}

/// What woke the task.
#[expect(
    clippy::large_enum_variant,
    reason = "lives for one turn of the loop; a box would be one more allocation a command"
)]
enum Woken {
    Timer,
    Display(io::Result<()>),
    Report(Report),
    Command(Option<Command>),
    Viewer(ViewerEvent),
}

impl Actor {
    /// Runs until the desktop is destroyed, or every handle is gone.
    pub(super) async fn run(mut self, mut inbox: Inbox, mut timer: BootTimer) {
        loop {
            self.pump();
            if let Err(error) = timer.set(self.deadline()) {
                tracing::error!(desktop = %self.id, %error, "failed to set a timer");
            }
            let woken = tokio::select! {
                biased;
                _ = timer.expired() => Woken::Timer,
                changed = changed(self.input.as_ref()) => Woken::Display(changed),
                Some(report) = inbox.reports.recv() => Woken::Report(report),
                command = inbox.commands.recv() => Woken::Command(command),
                Some(event) = inbox.viewers.recv() => Woken::Viewer(event),
            };
            match woken {
                Woken::Timer => {}
                Woken::Display(changed) => {
                    let outcome = changed.and_then(|()| self.read_display());
                    self.or_lost(outcome);
                }
                Woken::Report(report) => self.report(report),
                Woken::Command(Some(Command::Close(reply))) => {
                    // Whoever asked may have gone; the task ends either way.
                    let _ = reply.send(());
                    return;
                }
                Woken::Command(Some(command)) => self.command(command),
                Woken::Command(None) => return,
                Woken::Viewer(event) => self.viewer_event(event),
            }
        }
    }

    /// Lets pass what is due and does what can be done now.
    fn pump(&mut self) {
        let now = clock::now();
        self.arbiter.tick(now);
        loop {
            if let Some(effect) = self.arbiter.poll_effect() {
                self.apply(effect);
                continue;
            }
            let outcome = self.act_on(clock::now());
            match outcome {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => self.lost(&error),
            }
        }
        self.deliver_waiting();
        self.end_overdue(now);
        self.settle();
        self.publish();
    }

    /// When the task must look again at the latest.
    fn deadline(&self) -> Option<Moment> {
        let ours = [
            self.arbiter.next_deadline(),
            self.acting.deadline(),
            self.overdue_at(),
        ];
        ours.into_iter().flatten().min()
    }

    fn read_display(&mut self) -> io::Result<()> {
        let Some(input) = &mut self.input else {
            return Ok(());
        };
        input.push()?;
        for incoming in input.read()? {
            match incoming {
                Incoming::Answered(fence) => self.fence_answered(fence),
                Incoming::Clipboard(message) => self.clipboard_message(message)?,
            }
        }
        Ok(())
    }

    fn fence_answered(&mut self, fence: FenceId) {
        self.acting.fence_answered(fence);
        let answered: Vec<_> = self
            .flushes
            .extract_if(.., |awaited| awaited.fence <= fence)
            .collect();
        for awaited in answered {
            self.through(awaited);
        }
    }

    /// All input before a flush is through.
    fn through(&mut self, awaited: AwaitedFlush) {
        let flush = awaited.flush;
        match &self.links.x11 {
            // Only now, since what the person did last may have put something in.
            Some(x11) if awaited.clears => {
                let (x11, reports) = (x11.clone(), self.reports.clone());
                self.clearing = JoinSet::new();
                self.clearing.spawn(async move {
                    clearing::clear(&x11).await;
                    // The task may have ended.
                    let _ = reports.send(Report::Cleared(flush));
                });
            }
            _ => self.arbiter.flushed(clock::now(), flush),
        }
    }

    fn clipboard_message(&mut self, message: ClipboardMessage) -> io::Result<()> {
        let happened = match message {
            ClipboardMessage::Notify { text } => self.clipboard.notified(text),
            ClipboardMessage::Request { text: true } => {
                let (send, happened) = self.clipboard.requested();
                self.send_clipboard(send)?;
                happened
            }
            ClipboardMessage::Provide(text) => self.clipboard.provided(text.unwrap_or_default()),
            ClipboardMessage::Peek => {
                self.send_clipboard(Send::Announce)?;
                None
            }
            ClipboardMessage::Caps(_) | ClipboardMessage::Request { text: false } => None,
        };
        match happened {
            Some(Happened::Taken) => self.acting.taken(),
            Some(Happened::Text(text)) => self.clipboard_text(text)?,
            // Only a person in control gets what is copied, and only then.
            Some(Happened::Copied) if self.holder_viewer().is_some() => {
                if let Some(send) = self.clipboard.ask() {
                    self.send_clipboard(send)?;
                }
            }
            Some(Happened::Copied) | None => {}
        }
        Ok(())
    }

    fn clipboard_text(&mut self, text: String) -> io::Result<()> {
        if let Some(pasting) = self.acting.saved(&text) {
            self.offer_paste(pasting)?;
        } else if self.holder_viewer().is_some() {
            self.copies += 1;
            self.copied = Some(Copied {
                serial: self.copies,
                text: text.into(),
            });
        }
        Ok(())
    }

    pub(super) fn send_clipboard(&mut self, send: Send) -> io::Result<()> {
        let Some(input) = &mut self.input else {
            return Ok(());
        };
        input.send_clipboard(&match send {
            Send::Announce => ClipboardMessage::Notify { text: true },
            Send::Provide(text) => ClipboardMessage::Provide(Some(text)),
            Send::Request => ClipboardMessage::Request { text: true },
        })
    }

    pub(super) fn or_lost(&mut self, outcome: io::Result<()>) {
        if let Err(error) = outcome {
            self.lost(&error);
        }
    }

    /// The connection to the display is gone, and with it all input.
    pub(super) fn lost(&mut self, error: &io::Error) {
        if self.input.take().is_none() {
            return;
        }
        tracing::warn!(desktop = %self.id, %error, "the display is gone");
        self.flushes.clear();
        self.clearing.abort_all();
        self.arbiter.desktop_gone(clock::now());
        self.acting.gone();
        self.links.hooks.gone(&self.id);
    }

    /// Publishes who has control, if that changed.
    pub(super) fn publish(&mut self) {
        let status = self.arbiter.status();
        if status.control != Control::Human || status.phase != Phase::Steady {
            self.copied = None;
        }
        let view = ControlView {
            control: status.control,
            phase: status.phase,
            pause: status.pause,
            epoch: status.epoch,
            holder: self.holder_viewer(),
            title: self.title(),
            clipboard: self.copied.clone(),
        };
        let changed = self.view.send_if_modified(|now| {
            let control = (now.control, now.phase, now.epoch);
            if *now == view {
                return false;
            }
            let moved = control != (view.control, view.phase, view.epoch);
            *now = view;
            if moved {
                self.links.hooks.changed(&self.id);
            }
            true
        });
        if changed {
            tracing::debug!(desktop = %self.id, control = %status.control, phase = %status.phase, epoch = %status.epoch, "control");
        }
    }

    /// The refusal for a desktop that has ended.
    pub(super) fn gone_refusal(&self) -> Refusal {
        Refusal::new(
            ErrorCode::DesktopGone,
            format!(
                "the display of desktop {} has ended; make a new one with `handover desktop new`",
                self.id
            ),
        )
    }
}

async fn changed(input: Option<&InputConnection>) -> io::Result<()> {
    match input {
        Some(input) => input.changed().await,
        None => std::future::pending().await,
    }
}
