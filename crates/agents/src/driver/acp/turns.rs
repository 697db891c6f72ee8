//! Which prompts and messages an agent has and has not answered, and what it says meanwhile.

use handover_protocol::{SteerId, SteerState};

use crate::driver::receipts::Receipts;
use crate::driver::{Effect, Steer};

/// The longest result that is kept, in bytes.
pub const MAX_RESULT: usize = 1 << 20;

const CUT: &str = "\n[more is in the output file]";

/// What is under way.
#[derive(Debug, Default)]
pub struct Turns {
    receipts: Receipts,
    prompts: Vec<Prompt>,
    /// The message that the agent is asked to take into its turn.
    injecting: Option<(u64, Steer)>,
    /// The messages that it has taken.
    injected: Vec<SteerId>,
    /// Its last message, or the one before while it has said nothing since.
    text: String,
    message: Option<String>,
    /// The next word begins another message.
    anew: bool,
}

#[derive(Debug)]
struct Prompt {
    id: u64,
    /// None for the first prompt.
    steer: Option<SteerId>,
    /// The agent may answer it by itself.
    is_command: bool,
}

impl Turns {
    /// A steer was taken on. False if it is under way already.
    pub fn keep(&mut self, steer: &SteerId) -> bool {
        self.receipts.keep(steer)
    }

    /// A steer will not arrive.
    pub fn drop(&mut self, steer: &SteerId, reason: &str, out: &mut Vec<Effect>) {
        self.receipts.drop(steer, reason, out);
    }

    /// Writes a prompt; one without a steer is the first.
    pub fn prompt(&mut self, id: u64, steer: Option<Steer>, bytes: Vec<u8>, out: &mut Vec<Effect>) {
        match &steer {
            Some(steer) => self.receipts.hand(&steer.id, bytes, out),
            None => out.push(Effect::Write(bytes)),
        }
        self.anew = true;
        self.prompts.push(Prompt {
            id,
            is_command: steer.as_ref().is_some_and(|it| it.text.starts_with('/')),
            steer: steer.map(|steer| steer.id),
        });
    }

    /// Whether a prompt is not answered.
    pub fn is_busy(&self) -> bool {
        !self.prompts.is_empty()
    }

    /// Whether this is a prompt that is not answered.
    pub fn is_prompt(&self, id: u64) -> bool {
        self.prompts.iter().any(|prompt| prompt.id == id)
    }

    /// A prompt is answered.
    pub fn prompt_ended(&mut self, id: u64, stop: &str, out: &mut Vec<Effect>) {
        let Some(place) = self.prompts.iter().position(|prompt| prompt.id == id) else {
            return;
        };
        let prompt = self.prompts.remove(place);
        let Some(steer) = prompt.steer else {
            return;
        };
        let unknown = match stop {
            "cancelled" => Some("cancelled before an answer; the model may have got it"),
            "error" => Some("the agent failed at it; the model may have got it"),
            "" => Some("the agent did not say how its turn ended"),
            _ if prompt.is_command => Some("the agent may have done it as a command of its own"),
            _ => None,
        };
        match unknown {
            Some(reason) => self.receipts.lose(&steer, reason, out),
            None => self.receipts.advance(&steer, SteerState::Answered, out),
        }
    }

    /// Asks the agent to take a message into its turn.
    pub fn inject(&mut self, id: u64, steer: Steer, bytes: Vec<u8>, out: &mut Vec<Effect>) {
        self.receipts.hand(&steer.id, bytes, out);
        self.injecting = Some((id, steer));
    }

    /// Whether it has not answered for one.
    pub fn is_injecting(&self) -> bool {
        self.injecting.is_some()
    }

    /// Whether this is what it has not answered for.
    pub fn is_injection(&self, id: u64) -> bool {
        self.injecting.as_ref().is_some_and(|(own, _)| *own == id)
    }

    /// It has: gives the message out.
    pub fn injection_answered(&mut self, id: u64) -> Option<Steer> {
        self.injecting
            .take_if(|(own, _)| *own == id)
            .map(|(_, steer)| steer)
    }

    /// The agent says that it took the message.
    pub fn injected(&mut self, steer: Steer, out: &mut Vec<Effect>) {
        self.receipts.advance(&steer.id, SteerState::Queued, out);
        self.injected.push(steer.id);
    }

    /// The turn that messages were taken into is over.
    pub fn close_injected(&mut self, cancelled: bool, out: &mut Vec<Effect>) {
        let reason = if cancelled {
            "cancelled after the agent took it; the model may have got it"
        } else {
            "the agent took it into its turn and does not show what became of it"
        };
        for steer in self.injected.drain(..) {
            self.receipts.lose(&steer, reason, out);
        }
    }

    /// The agent has ended.
    pub fn close(&mut self, out: &mut Vec<Effect>) {
        self.prompts.clear();
        self.injecting = None;
        self.injected.clear();
        self.receipts.close(out);
    }

    /// The agent says this, as part of the message of this name.
    pub fn says(&mut self, message: Option<&str>, text: &str) {
        if self.anew || message != self.message.as_deref() {
            self.anew = false;
            self.message = message.map(str::to_owned);
            self.text.clear();
        }
        let room = MAX_RESULT.saturating_sub(self.text.len());
        if text.len() <= room {
            self.text.push_str(text);
        } else if !self.text.ends_with(CUT) {
            self.text.push_str(&text[..text.floor_char_boundary(room)]);
            self.text.push_str(CUT);
        }
    }

    /// The agent does something else: what it says next is another message.
    pub fn pauses(&mut self) {
        self.anew = true;
    }

    /// What it said last.
    pub fn text(&self) -> &str {
        &self.text
    }
}
