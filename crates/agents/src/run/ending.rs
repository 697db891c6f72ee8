//! How a run ends: why, what is left to be read, and the proof that nothing runs any more.

use handover_protocol::{AgentId, AgentStatus};
use tokio::io::AsyncReadExt;
use tokio::time::{Instant, timeout};

use super::{DRAIN_WITHIN, GRACE, LEAVE_WITHIN, PART, Run, SETTLE, Wires};
use crate::environment::Exit;
use crate::manager::{Finish, Manager, Outcome};

/// An end that is under way.
#[derive(Debug)]
pub(super) struct Close {
    why: Why,
    /// When the processes are ended at the latest.
    pub by: Instant,
    /// Nothing has to be waited for.
    at_once: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum Why {
    /// Its turn has ended, and there is nothing more to do.
    Turn,
    /// Somebody ends it.
    Abort,
    /// It cannot be driven.
    Failed(String),
}

impl Close {
    pub fn after_turn() -> Self {
        Self {
            why: Why::Turn,
            by: Instant::now() + LEAVE_WITHIN,
            at_once: false,
        }
    }

    pub fn abort() -> Self {
        Self {
            why: Why::Abort,
            by: Instant::now() + SETTLE,
            at_once: false,
        }
    }

    pub fn failed(reason: String) -> Self {
        Self {
            why: Why::Failed(reason),
            by: Instant::now(),
            at_once: true,
        }
    }

    /// The program says that nothing is under way.
    pub fn settled(&mut self) {
        self.at_once |= self.why == Why::Abort;
    }

    pub fn is_over(&self) -> bool {
        self.at_once
    }
}

/// What an agent came to.
#[derive(Debug)]
pub(super) struct Verdict {
    status: AgentStatus,
    /// None if what it said last is stored already.
    text: Option<String>,
    error: Option<String>,
}

impl Verdict {
    pub fn not_started(error: String) -> Self {
        Self {
            status: AgentStatus::Failed,
            text: Some(String::new()),
            error: Some(error),
        }
    }

    fn of(
        close: Option<Close>,
        exit: Option<&Exit>,
        last: Option<(String, Option<String>)>,
        errors: &str,
    ) -> Self {
        let turn_ended = last.is_some();
        let (text, turn_error) = last.map_or((None, None), |(text, error)| (Some(text), error));
        let how = |exit: &Exit| {
            let mut error = format!("its program ended with {}", exit.how);
            if !errors.trim().is_empty() {
                error.push_str(": ");
                error.push_str(errors.trim());
            }
            error
        };
        let (status, error) = match (close.map(|close| close.why), exit) {
            (Some(Why::Abort), _) => (AgentStatus::Aborted, None),
            (Some(Why::Failed(reason)), _) => {
                let mut reason = reason;
                if !errors.trim().is_empty() {
                    reason.push_str("; it wrote: ");
                    reason.push_str(errors.trim());
                }
                (AgentStatus::Failed, Some(reason))
            }
            // Whatever it returns once it was told to leave.
            (Some(Why::Turn), _) => match turn_error {
                Some(error) => (AgentStatus::Failed, Some(error)),
                None => (AgentStatus::Done, None),
            },
            (None, Some(exit)) if exit.success && turn_ended => match turn_error {
                Some(error) => (AgentStatus::Failed, Some(error)),
                None => (AgentStatus::Done, None),
            },
            (None, Some(exit)) => (AgentStatus::Failed, Some(how(exit))),
            (None, None) => (AgentStatus::Failed, turn_error),
        };
        Self {
            status,
            text,
            error,
        }
    }
}

impl Run {
    /// Reads what is left, ends the processes, closes the receipts and stores the end.
    pub(super) async fn wind_up(mut self, mut wires: Wires, exit: Option<Exit>, reading: bool) {
        wires.inbox.close();
        self.ask_no_more();
        let mut effects = Vec::new();
        let mut exit = exit;
        let mut reading = reading;
        if exit.is_some() && reading {
            // What it wrote last; what it left running may hold its output open for ever.
            reading = !self.drain(&mut wires, &mut effects).await;
        }
        self.input = None;
        let survivors = wires.tree.end(GRACE).await;
        if exit.is_none() {
            exit = timeout(DRAIN_WITHIN, &mut wires.exited).await.ok();
        }
        if reading {
            self.drain(&mut wires, &mut effects).await;
        }
        let driver = &mut self.driver;
        self.frames
            .finish(|frame| driver.output(frame, &mut effects));
        let success = exit.as_ref().is_some_and(|exit| exit.success);
        self.driver.ended(success, &mut effects);
        self.apply(&mut effects).await;
        // Also what it asked with its last words.
        self.ask_no_more();
        self.activity.flush(&self.manager);
        self.file.finish().await;
        let errors = timeout(DRAIN_WITHIN, wires.errors).await;
        let errors = errors.ok().and_then(Result::ok).unwrap_or_default();
        let last = self.last.take();
        let verdict = Verdict::of(self.close.take(), exit.as_ref(), last, &errors);
        finish(&self.manager, &self.id, verdict, survivors).await;
    }

    fn ask_no_more(&mut self) {
        for (_, asking) in self.questions.drain() {
            asking.abort();
        }
    }

    /// Reads to the end; false if that did not come in time.
    async fn drain(&mut self, wires: &mut Wires, effects: &mut Vec<crate::driver::Effect>) -> bool {
        let mut part = Vec::with_capacity(PART);
        let drained = timeout(DRAIN_WITHIN, async {
            while let Ok(1..) = wires.stdout.read_buf(&mut part).await {
                self.read(&part, effects).await;
                part.clear();
                self.apply(effects).await;
            }
        });
        drained.await.is_ok()
    }
}

/// Stores the end of an agent.
pub(super) async fn finish(manager: &Manager, id: &AgentId, verdict: Verdict, survivors: Vec<u32>) {
    if !survivors.is_empty() {
        tracing::error!(agent = %id, ?survivors, "processes of an agent cannot be ended");
    }
    tracing::info!(agent = %id, status = ?verdict.status, "ended");
    let outcome = match (verdict.text, verdict.error) {
        // A turn was cut off: the one before has the last word.
        (None, None) => None,
        (text, error) => Some(Outcome {
            text: text.unwrap_or_default(),
            error,
        }),
    };
    let finish = Finish {
        status: verdict.status,
        outcome,
        survivors,
    };
    manager.end(id, finish, None).await;
}
