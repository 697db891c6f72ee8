//! Agents' actions on a desktop, one after the other in order of arrival.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use handover_control::{Control, InputSource, Moment, OwnerId, Phase};
use handover_protocol::{ErrorCode, Refusal};
use tokio::sync::oneshot;

use super::action::Action;
use super::actor::Actor;
use super::by::By;
use super::clipboard::Send;
use super::input::FenceId;
use super::record;
use super::refuse;
use super::running::{Outcome, Reply, Right, Running};
use super::script::{self, Step};
use crate::system::clock;

/// Actions that may wait on one desktop.
pub const MAX_QUEUED: usize = 64;

/// How long the display may take to answer before the caller is told that it
/// does not. The action goes on waiting; its permit is not given up.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// Time between a click and keys: a program that gets the focus by it drops
/// what comes too early (seen with Chromium).
const FOCUS_TAKES: Duration = Duration::from_millis(150);

/// The owner of the permits under which the host itself acts for callers. The
/// host ends each of them by itself.
pub const HOST: OwnerId = OwnerId(0);

/// An action that waits for its turn.
#[derive(Debug)]
pub struct Queued {
    /// Who asked.
    pub by: By,
    /// What for.
    pub action: Action,
    /// Where the answer goes.
    pub reply: oneshot::Sender<Result<u64, Refusal>>,
}

/// The actions of one desktop.
#[derive(Debug, Default)]
pub struct Acting {
    queue: VecDeque<Queued>,
    running: Option<Running>,
    /// The last click, for the focus it may have moved.
    clicked: Option<Moment>,
}

impl Acting {
    /// True unless the host itself is typing for the person in control.
    pub fn takes_viewers(&self) -> bool {
        !matches!(
            self.running,
            Some(Running {
                right: Right::Lease(_),
                ..
            })
        )
    }

    /// Stops what runs by this right.
    pub fn interrupt(&mut self, right: Right) {
        if let Some(running) = &mut self.running
            && running.right == right
        {
            running.stop(Outcome::Interrupted);
        }
    }

    /// Stops what the host types for a person whose control has ended.
    pub fn interrupt_person(&mut self) {
        if !self.takes_viewers()
            && let Some(running) = &mut self.running
        {
            running.stop(Outcome::Interrupted);
        }
    }

    /// The display has ended.
    pub fn gone(&mut self) {
        if let Some(running) = &mut self.running {
            running.stop(Outcome::Gone);
        }
    }

    /// The display answered a fence.
    pub fn fence_answered(&mut self, fence: FenceId) {
        if let Some(running) = &mut self.running {
            running.fence_answered(fence);
        }
    }

    /// An application took what was offered.
    pub fn taken(&mut self) {
        if let Some(running) = &mut self.running {
            running.taken();
        }
    }

    /// The text that an application had copied. Returns the text to paste.
    pub fn saved(&mut self, text: &str) -> Option<String> {
        self.running.as_mut()?.saved(text.to_owned())
    }

    /// When something has to be looked at again.
    pub fn deadline(&self) -> Option<Moment> {
        let running = self.running.as_ref()?;
        let late = running
            .fenced_at
            .filter(|_| running.reply.is_some())
            .map(|at| at + ANSWER_WITHIN);
        running.deadline().into_iter().chain(late).min()
    }

    /// The display owes an answer for so long that callers were told.
    fn is_stuck(&self) -> bool {
        self.running
            .as_ref()
            .is_some_and(|running| running.reply.is_none())
    }
}

impl Actor {
    /// Takes an action into the queue.
    pub(super) fn enqueue(&mut self, queued: Queued) {
        let refusal = if self.acting.is_stuck() {
            refuse::unanswering(&self.id)
        } else if self.acting.queue.len() >= MAX_QUEUED {
            Refusal::new(
                ErrorCode::QueueFull,
                format!(
                    "{MAX_QUEUED} actions are waiting on desktop {}; wait for some to end",
                    self.id
                ),
            )
        } else {
            return self.acting.queue.push_back(queued);
        };
        self.refuse(queued, refusal);
    }

    /// Types for the person in control, by their lease.
    pub(super) fn type_for_person(&mut self, running: Running) {
        if self.acting.running.is_some() {
            let refusal = Refusal::new(
                ErrorCode::QueueFull,
                "the host is typing already; try again when it is done",
            );
            if let Some(reply) = running.reply {
                // Whoever asked may have gone.
                let _ = reply.send(Err(refusal));
            }
            return;
        }
        self.acting.running = Some(running);
    }

    fn refuse(&mut self, queued: Queued, refusal: Refusal) {
        self.links.store.append_soon(record::refused(
            &self.id,
            self.arbiter.status().epoch,
            &queued.by,
            &queued.action,
            &refusal,
        ));
        // Whoever asked may have gone.
        let _ = queued.reply.send(Err(refusal));
    }

    /// Does what can be done now for the actions. True if something changed
    /// that the arbiter may have something to say about.
    pub(super) fn act_on(&mut self, now: Moment) -> io::Result<bool> {
        let status = self.arbiter.status();
        let agents = status.control == Control::Agent && status.phase == Phase::Steady;
        if self.acting.running.is_none() || !agents {
            // What waits cannot be done in human time, so it is refused at once
            // and not when its turn comes.
            if let Some(queued) = self.acting.queue.pop_front() {
                self.start(queued, now);
                return Ok(true);
            }
        }
        self.step(now)
    }

    fn start(&mut self, queued: Queued, now: Moment) {
        if self.input.is_none() {
            let refusal = self.gone_refusal();
            return self.refuse(queued, refusal);
        }
        let permit = match self.permit(&queued.by, HOST, now) {
            Ok(permit) => permit,
            Err(refusal) => return self.refuse(queued, refusal),
        };
        if queued.action.aims && self.observations.is_stale(&queued.by.observer) {
            self.arbiter.complete(now, permit);
            let refusal = refuse::stale(&self.id, &self.arbiter.status());
            return self.refuse(queued, refusal);
        }
        let types = queued.action.types;
        let mut running = Running::new(
            Right::Permit(permit),
            queued.by,
            queued.action,
            queued.reply,
        );
        if let Some(clicked) = self.acting.clicked
            && types
            && now < clicked + FOCUS_TAKES
        {
            running.wait_until(clicked + FOCUS_TAKES);
        }
        self.acting.running = Some(running);
    }

    /// Takes the steps of the running action that can be taken now.
    fn step(&mut self, now: Moment) -> io::Result<bool> {
        let Some(running) = &mut self.acting.running else {
            return Ok(false);
        };
        if let Some(text) = running.tick(now) {
            self.offer_paste(text)?;
        }
        loop {
            let (Some(running), input) = (&mut self.acting.running, self.input.as_mut()) else {
                return Ok(false);
            };
            if running.is_over() {
                self.finish(now);
                return Ok(true);
            }
            let Some(input) = input else {
                running.stop(Outcome::Gone);
                continue;
            };
            if !input.is_ready() {
                break;
            }
            let Some(step) = running.next_step() else {
                break;
            };
            match step {
                Step::Input(message) => {
                    // Decided and written in one step.
                    let denied = match running.right {
                        Right::Permit(permit) => match self.arbiter.agent_input(now, permit) {
                            Ok(pass) => input.send_agent(pass, message).map(|()| None)?,
                            Err(denied) => Some(denied),
                        },
                        Right::Lease(lease) => {
                            match self.arbiter.human_input(now, InputSource::Lease(lease)) {
                                Ok(pass) => input.send_human(pass, message).map(|()| None)?,
                                Err(denied) => Some(denied),
                            }
                        }
                    };
                    if denied.is_some() {
                        running.stop(Outcome::Interrupted);
                    } else {
                        running.count_typed();
                    }
                }
                Step::Fence => {
                    let fence = input.fence()?;
                    running.wait_for_fence(fence, now);
                }
                Step::Wait(time) => running.wait_until(now + time),
                Step::Typed(chars) => running.typed = chars,
                Step::AwaitTaker => running.wait_for_taker(now),
                Step::Paste(_) if !input.has_clipboard() => running.stop(Outcome::NoClipboard),
                Step::Paste(text) => match self.clipboard.ask() {
                    Some(send) => {
                        running.wait_for_saved(text, now);
                        self.send_clipboard(send)?;
                    }
                    None => self.offer_paste(text)?,
                },
                Step::RestoreClipboard => {
                    let saved = running.saved.take().unwrap_or_default();
                    let send = self.clipboard.offer(saved);
                    self.send_clipboard(send)?;
                }
            }
        }
        self.tell_of_delay(now);
        Ok(false)
    }

    /// Offers a text and goes on with the paste.
    pub(super) fn offer_paste(&mut self, text: String) -> io::Result<()> {
        let chars = text.chars().count();
        let send: Send = self.clipboard.offer(text);
        self.send_clipboard(send)?;
        if let Some(running) = &mut self.acting.running {
            running.insert(script::paste_offered(chars));
        }
        Ok(())
    }

    /// Tells the callers that the display does not answer, once that is known.
    fn tell_of_delay(&mut self, now: Moment) {
        let Some(running) = &mut self.acting.running else {
            return;
        };
        let late = running
            .fenced_at
            .is_some_and(|at| at + ANSWER_WITHIN <= now);
        if late && let Some(reply) = running.reply.take() {
            // Whoever asked may have gone.
            let _ = reply.send(Err(refuse::unanswering(&self.id)));
            for queued in std::mem::take(&mut self.acting.queue) {
                self.refuse(queued, refuse::unanswering(&self.id));
            }
        }
    }

    /// The running action is over: records it, gives its permit back, answers.
    fn finish(&mut self, now: Moment) {
        let Some(running) = self.acting.running.take() else {
            return;
        };
        let epoch = self.arbiter.status().epoch;
        if let Right::Permit(permit) = running.right {
            self.arbiter.complete(now, permit);
        }
        if running.outcome() != Outcome::Done {
            // An offer that nobody took must not be pasted later.
            self.clipboard.withdraw();
        }
        if running.outcome() == Outcome::NotTaken
            && let Some(input) = &mut self.input
        {
            let released = input.release_agent();
            self.or_lost(released);
        }
        if running.action.clicks() {
            self.acting.clicked = Some(clock::now());
        }
        let outcome = match running.outcome() {
            Outcome::Done => Ok(epoch.0),
            Outcome::Interrupted if matches!(running.right, Right::Lease(_)) => Err(Refusal::new(
                ErrorCode::LeaseStale,
                "control ended before the text was typed to its end",
            )),
            Outcome::Interrupted => Err(self.interrupted(&running)),
            Outcome::NotTaken => Err(Refusal::new(
                ErrorCode::TextUntypable,
                "no application took the text as a paste; click into a text field first, or pass `method` \"keys\" for text that the keyboard has",
            )),
            Outcome::NoClipboard => Err(Refusal::new(
                ErrorCode::TextUntypable,
                "this display takes no pasted text, so only what its keyboard has can be typed, up to 100 characters or with `method` \"keys\"",
            )),
            Outcome::Gone => Err(self.gone_refusal()),
        };
        if let Right::Permit(_) = running.right {
            self.links
                .store
                .append_soon(record::done(&self.id, epoch, &running, &outcome));
        }
        answer(running.reply, outcome);
    }

    fn interrupted(&self, running: &Running) -> Refusal {
        let refusal = refuse::interrupted(&self.id, &self.arbiter.status(), running);
        match self.takeovers.lease_view(&self.arbiter.status()) {
            Some(lease) => refusal.with("lease", lease),
            None => refusal,
        }
    }
}

fn answer(reply: Option<Reply>, outcome: Result<u64, Refusal>) {
    if let Some(reply) = reply {
        // Whoever asked may have gone.
        let _ = reply.send(outcome);
    }
}
