//! One action under way: which step is next and what it waits for.

use std::collections::VecDeque;
use std::time::Duration;

use handover_control::{LeaseId, Moment, PermitId};
use tokio::sync::oneshot;

use handover_protocol::Refusal;

use super::action::Action;
use super::by::By;
use super::input::FenceId;
use super::script::Step;

/// By what right an action's input is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Right {
    /// An agent's permit.
    Permit(PermitId),
    /// A person's lease, for what the host types on the person's behalf.
    Lease(LeaseId),
}

/// What an action waits for before its next step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waiting {
    /// Nothing: the next step can be taken.
    Nothing,
    /// The display's answer to this fence.
    Fence(FenceId),
    /// This moment.
    Until(Moment),
    /// The text that an application had copied, or this moment.
    Saved(Moment),
    /// An application that takes the offered text, or this moment.
    Taker(Moment),
}

/// How an action ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Every step was taken and the display has processed it.
    Done,
    /// Control moved before it was finished.
    Interrupted,
    /// No application took the text that was pasted.
    NotTaken,
    /// The display takes no text by the clipboard.
    NoClipboard,
    /// The display has ended.
    Gone,
}

/// How long an application may take until it asks for a pasted text.
const TAKE_WITHIN: Duration = Duration::from_secs(5);

/// How long an application may take to hand over the text it had copied.
const SAVE_WITHIN: Duration = Duration::from_millis(500);

/// Where the answer to an action goes: the epoch it was done under.
pub type Reply = oneshot::Sender<Result<u64, Refusal>>;

/// An action under way.
#[derive(Debug)]
pub struct Running {
    /// By what right.
    pub right: Right,
    /// Who asked for it.
    pub by: By,
    /// What it is, for the record.
    pub action: Action,
    /// Where the answer goes; taken once given.
    pub reply: Option<Reply>,
    steps: VecDeque<Step>,
    waiting: Waiting,
    /// When the present wait for a fence began.
    pub fenced_at: Option<Moment>,
    /// Characters that are on their way to the display.
    pub typed: usize,
    outcome: Outcome,
    /// The text an application had copied, to be offered again after a paste.
    pub saved: Option<String>,
    /// The text to be pasted once the clipboard is saved.
    pasting: Option<String>,
    taken: bool,
}

impl Running {
    /// An action that has taken no step yet.
    pub fn new(right: Right, by: By, mut action: Action, reply: Reply) -> Self {
        Self {
            right,
            by,
            steps: std::mem::take(&mut action.steps).into(),
            action,
            reply: Some(reply),
            waiting: Waiting::Nothing,
            fenced_at: None,
            typed: 0,
            outcome: Outcome::Done,
            saved: None,
            pasting: None,
            taken: false,
        }
    }

    /// Ends the action before its next step. Letting go of what it holds is up
    /// to whoever ends it.
    pub fn stop(&mut self, outcome: Outcome) {
        self.steps.clear();
        self.pasting = None;
        self.outcome = outcome;
        self.waiting = Waiting::Nothing;
    }

    /// The next step, if nothing is waited for.
    pub fn next_step(&mut self) -> Option<Step> {
        match self.waiting {
            Waiting::Nothing => self.steps.pop_front(),
            _ => None,
        }
    }

    /// Counts the characters that the step before has sent: at once, since an
    /// action that is stopped tells exactly how far it got.
    pub fn count_typed(&mut self) {
        while let Some(&Step::Typed(chars)) = self.steps.front() {
            self.typed = chars;
            self.steps.pop_front();
        }
    }

    /// Puts steps before those that are left.
    pub fn insert(&mut self, steps: Vec<Step>) {
        for step in steps.into_iter().rev() {
            self.steps.push_front(step);
        }
    }

    /// True when no step is left and nothing is waited for.
    pub fn is_over(&self) -> bool {
        self.steps.is_empty() && self.waiting == Waiting::Nothing
    }

    /// How it ended; meaningful once it is over.
    pub fn outcome(&self) -> Outcome {
        self.outcome
    }

    /// Waits until this moment.
    pub fn wait_until(&mut self, at: Moment) {
        self.waiting = Waiting::Until(at);
    }

    /// Waits for the display's answer.
    pub fn wait_for_fence(&mut self, fence: FenceId, now: Moment) {
        self.waiting = Waiting::Fence(fence);
        self.fenced_at = Some(now);
    }

    /// Waits for the text that an application had copied, to paste `text` then.
    pub fn wait_for_saved(&mut self, text: String, now: Moment) {
        self.pasting = Some(text);
        self.waiting = Waiting::Saved(now + SAVE_WITHIN);
    }

    /// Waits for an application to take the offered text, unless one has.
    pub fn wait_for_taker(&mut self, now: Moment) {
        if !self.taken {
            self.waiting = Waiting::Taker(now + TAKE_WITHIN);
        }
    }

    /// The display answered a fence.
    pub fn fence_answered(&mut self, fence: FenceId) {
        if matches!(self.waiting, Waiting::Fence(id) if id <= fence) {
            self.waiting = Waiting::Nothing;
            self.fenced_at = None;
        }
    }

    /// An application took what was offered.
    pub fn taken(&mut self) {
        self.taken = true;
        if matches!(self.waiting, Waiting::Taker(_)) {
            self.waiting = Waiting::Nothing;
        }
    }

    /// The application's text is here. Returns the text to be pasted now.
    pub fn saved(&mut self, text: String) -> Option<String> {
        let pasting = self.pasting.take()?;
        self.saved = Some(text);
        self.waiting = Waiting::Nothing;
        Some(pasting)
    }

    /// Lets pass what is due. Returns a text to be pasted now, if the wait for
    /// the application's own was in vain.
    pub fn tick(&mut self, now: Moment) -> Option<String> {
        match self.waiting {
            Waiting::Until(at) if at <= now => self.waiting = Waiting::Nothing,
            Waiting::Taker(at) if at <= now => self.stop(Outcome::NotTaken),
            Waiting::Saved(at) if at <= now => {
                self.waiting = Waiting::Nothing;
                return self.pasting.take();
            }
            _ => {}
        }
        None
    }

    /// When [`tick`](Self::tick) has something to do.
    pub fn deadline(&self) -> Option<Moment> {
        match self.waiting {
            Waiting::Until(at) | Waiting::Saved(at) | Waiting::Taker(at) => Some(at),
            Waiting::Nothing | Waiting::Fence(_) => None,
        }
    }
}
