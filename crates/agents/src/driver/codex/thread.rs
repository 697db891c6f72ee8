//! One thread of codex: its turn, the messages for it, and how far each has come.

use std::collections::VecDeque;

use handover_protocol::{AgentStatus, SteerId, SteerState};

use crate::driver::receipts::Receipts;
use crate::driver::{Child, Effect};

/// How often one message is put to the program, as the turn that it was for may end under it.
const MAX_TRIES: u8 = 3;

/// A message for a thread: a steer, or the task itself.
#[derive(Debug)]
pub(super) struct Input {
    /// The steer; `None` for the task.
    pub(super) steer: Option<SteerId>,
    /// What is said.
    pub(super) text: String,
    tries: u8,
}

impl Input {
    /// A message that was not put to the program yet.
    pub(super) fn new(steer: Option<SteerId>, text: String) -> Self {
        Self {
            steer,
            text,
            tries: 0,
        }
    }
}

/// What a thread is to us.
#[derive(Debug, Default)]
pub(super) enum Kind {
    /// The agent itself.
    #[default]
    Main,
    /// Not known yet; the program was asked.
    Unknown,
    /// A subagent.
    Child(Box<Kin>),
    /// Something of the program's own that does not work for the agent.
    Foreign,
}

/// What is known about a subagent.
#[derive(Debug, Default)]
pub(super) struct Kin {
    /// Its parent's thread.
    pub(super) parent: String,
    /// What the program calls it, once known.
    pub(super) name: Option<String>,
    /// What it is to do.
    pub(super) task: String,
    /// How it was last told of.
    pub(super) told: Option<Child>,
}

/// How a turn ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// By itself.
    Completed,
    /// Somebody cut it short.
    Interrupted,
    /// With this error.
    Failed(String),
}

/// How far a message has come that was written. `at` counts the items of the thread.
#[derive(Debug, PartialEq, Eq)]
enum Stage {
    Written,
    Accepted { turn: String },
    Inserted { at: u64 },
    Sent { at: u64 },
}

/// A message was put to the program often enough.
pub(super) struct TriedEnough;

#[derive(Debug)]
struct Held {
    input: Input,
    stage: Stage,
}

/// One thread.
#[derive(Debug, Default)]
pub(super) struct Thread {
    /// What it is to us.
    pub(super) kind: Kind,
    /// The turn under way.
    pub(super) turn: Option<String>,
    /// The turn that ended last, and how.
    pub(super) ended: Option<(String, Outcome)>,
    /// True from our interrupt to the end of the turn.
    pub(super) stopping: bool,
    /// What the model said last.
    pub(super) said: String,
    /// The message whose parts were passed on.
    pub(super) streamed: Option<String>,
    queue: VecDeque<Input>,
    at_end: VecDeque<Input>,
    held: Vec<Held>,
    items: u64,
    message: Option<(String, u64)>,
}

impl Thread {
    /// A thread of this kind, of which nothing else is known.
    pub(super) fn of(kind: Kind) -> Self {
        Self {
            kind,
            ..Self::default()
        }
    }

    /// Takes on a message.
    pub(super) fn keep(&mut self, input: Input, at_end: bool) {
        if at_end {
            self.at_end.push_back(input);
        } else {
            self.queue.push_back(input);
        }
    }

    /// The next message to be written, if it is time. One at a time is under way, so that they reach
    /// the program in order whatever becomes of each.
    pub(super) fn next(&mut self) -> Option<Input> {
        if self.is_sending() {
            return None;
        }
        if self.turn.is_none() && self.queue.is_empty() {
            self.queue.append(&mut self.at_end);
        }
        let mut input = self.queue.pop_front()?;
        input.tries += 1;
        Some(input)
    }

    /// A message was written.
    pub(super) fn written(&mut self, input: Input) {
        self.held.push(Held {
            input,
            stage: Stage::Written,
        });
    }

    /// Whether a message waits for the program's answer.
    pub(super) fn is_sending(&self) -> bool {
        self.held.iter().any(|held| held.stage == Stage::Written)
    }

    /// Whether something is under way or due.
    pub(super) fn is_busy(&self) -> bool {
        self.turn.is_some() || self.has_due() || self.is_sending()
    }

    /// Whether messages wait to be written.
    pub(super) fn has_due(&self) -> bool {
        !self.queue.is_empty() || !self.at_end.is_empty()
    }

    /// A turn is under way. False if that was known, or the turn has ended already.
    pub(super) fn begin(&mut self, turn: &str) -> bool {
        let over = self.ended.as_ref().is_some_and(|(ended, _)| ended == turn);
        if over || self.turn.as_deref() == Some(turn) {
            return false;
        }
        self.turn = Some(turn.to_owned());
        self.said.clear();
        true
    }

    /// The program took the message for this turn.
    pub(super) fn accepted(
        &mut self,
        said: Option<&SteerId>,
        turn: &str,
        receipts: &mut Receipts,
        out: &mut Vec<Effect>,
    ) {
        // The task itself has no name of ours among the items, and needs none: no receipt is given for it.
        self.held
            .retain(|held| held.stage != Stage::Written || held.input.steer.is_some());
        for held in &mut self.held {
            if let (Stage::Written, Some(steer)) = (&held.stage, &held.input.steer)
                && said == Some(steer)
            {
                receipts.advance(steer, SteerState::Queued, out);
                held.stage = Stage::Accepted {
                    turn: turn.to_owned(),
                };
            }
        }
        if let Some((ended, outcome)) = self.ended.clone().filter(|(ended, _)| ended == turn) {
            self.left_over(&ended, &outcome, receipts, out);
        }
    }

    /// The program did not take the message, the task itself if `None`; it is handed back.
    pub(super) fn refused(&mut self, said: Option<&SteerId>) -> Option<Input> {
        let written =
            |held: &Held| held.stage == Stage::Written && held.input.steer.as_ref() == said;
        let at = self.held.iter().position(written)?;
        // What was to be interrupted was the turn that this message would have begun.
        self.stopping &= self.turn.is_some();
        Some(self.held.remove(at).input)
    }

    /// Puts a message back to be written next.
    pub(super) fn again(&mut self, input: Input) -> Result<(), TriedEnough> {
        if input.tries >= MAX_TRIES {
            return Err(TriedEnough);
        }
        self.queue.push_front(input);
        Ok(())
    }

    /// A message of ours is in the history.
    pub(super) fn inserted(
        &mut self,
        client: &str,
        receipts: &mut Receipts,
        out: &mut Vec<Effect>,
    ) {
        self.items += 1;
        let at = self.items;
        let ours = |held: &&mut Held| {
            let waits = matches!(held.stage, Stage::Written | Stage::Accepted { .. });
            waits
                && held
                    .input
                    .steer
                    .as_ref()
                    .is_some_and(|steer| steer.as_str() == client)
        };
        if let Some(held) = self.held.iter_mut().find(ours) {
            held.stage = Stage::Inserted { at };
            if let Some(steer) = &held.input.steer {
                receipts.advance(steer, SteerState::Inserted, out);
            }
        }
    }

    /// The model began something: what was in the history before is in its request.
    pub(super) fn model_began(
        &mut self,
        message: Option<&str>,
        receipts: &mut Receipts,
        out: &mut Vec<Effect>,
    ) {
        self.items += 1;
        if let Some(message) = message {
            self.message = Some((message.to_owned(), self.items));
        }
        for held in &mut self.held {
            if let (Stage::Inserted { at }, Some(steer)) = (&held.stage, &held.input.steer) {
                held.stage = Stage::Sent { at: *at };
                receipts.advance(steer, SteerState::Sent, out);
            }
        }
    }

    /// The model said this to its end.
    pub(super) fn model_said(
        &mut self,
        message: &str,
        text: &str,
        receipts: &mut Receipts,
        out: &mut Vec<Effect>,
    ) {
        self.said = text.to_owned();
        let began = match &self.message {
            Some((began, at)) if began == message => *at,
            _ => return,
        };
        // A message that was begun before the steer was inserted does not answer it.
        self.answered(began, receipts, out);
    }

    /// A turn has ended.
    pub(super) fn end(
        &mut self,
        turn: &str,
        outcome: Outcome,
        receipts: &mut Receipts,
        out: &mut Vec<Effect>,
    ) {
        if self.turn.as_deref().is_none_or(|known| known == turn) {
            self.no_turn();
        }
        self.ended = Some((turn.to_owned(), outcome.clone()));
        if outcome == Outcome::Completed {
            self.answered(u64::MAX, receipts, out);
        }
        self.left_over(turn, &outcome, receipts, out);
    }

    /// The program says that no turn is under way.
    pub(super) fn no_turn(&mut self) {
        self.turn = None;
        self.stopping = false;
    }

    /// Takes back what was not written. What was is not put to the program again.
    pub(super) fn retract(&mut self, reason: &str, receipts: &mut Receipts, out: &mut Vec<Effect>) {
        for input in self.queue.drain(..).chain(self.at_end.drain(..)) {
            if let Some(steer) = &input.steer {
                receipts.drop(steer, reason, out);
            }
        }
        for held in &mut self.held {
            held.input.tries = MAX_TRIES;
        }
    }

    /// How a subagent on this thread stands.
    pub(super) fn status(&self) -> AgentStatus {
        match &self.ended {
            _ if self.turn.is_some() || self.has_due() || self.is_sending() => AgentStatus::Running,
            None => AgentStatus::Running,
            Some((_, Outcome::Completed)) => AgentStatus::Done,
            Some((_, Outcome::Interrupted)) => AgentStatus::Aborted,
            Some((_, Outcome::Failed(_))) => AgentStatus::Failed,
        }
    }

    fn answered(&mut self, before: u64, receipts: &mut Receipts, out: &mut Vec<Effect>) {
        self.held
            .retain(|held| match (&held.stage, &held.input.steer) {
                (Stage::Sent { at }, Some(steer)) if *at < before => {
                    receipts.advance(steer, SteerState::Answered, out);
                    false
                }
                _ => true,
            });
    }

    /// What this turn had taken and not inserted when it ended: after a turn that ended by itself it
    /// is said again, after one that was cut short it is lost, which the program does not say.
    fn left_over(
        &mut self,
        turn: &str,
        outcome: &Outcome,
        receipts: &mut Receipts,
        out: &mut Vec<Effect>,
    ) {
        let (left, held) = std::mem::take(&mut self.held).into_iter().partition(
            |held| matches!(&held.stage, Stage::Accepted { turn: taken } if taken == turn),
        );
        self.held = held;
        let left: Vec<Held> = left;
        for Held { input, .. } in left.into_iter().rev() {
            let steer = input.steer.clone();
            let reason = match outcome {
                Outcome::Completed if self.again(input).is_ok() => continue,
                Outcome::Completed => "the turns ended before the message was taken in".to_owned(),
                Outcome::Interrupted => {
                    "the turn was interrupted before the message was taken in".to_owned()
                }
                Outcome::Failed(error) => {
                    format!("the turn failed before the message was taken in: {error}")
                }
            };
            if let Some(steer) = steer {
                receipts.drop(&steer, &reason, out);
            }
        }
    }
}
