//! What became of each message that was handed to pi, told from what pi shows.
//!
//! pi gives a message no name, so messages are known by their text, the oldest first: pi's own queues
//! do the same. The first prompt is kept too, without receipts, so that a steer with the same words is
//! not taken for it.
//!
//! That a message stands in pi's history does not prove that the model got it: aborted at that moment,
//! pi writes the message down, then an empty answer, and sends nothing. Only what the model's server
//! itself has sent proves it.

use handover_protocol::{SteerId, SteerState};

use super::protocol::{Message, Outcome, Queues};
use crate::driver::receipts::Receipts;
use crate::driver::{Effect, Steer};

const ABORTED: &str = "aborted before the model got it";
const CUT_SHORT: &str = "the model got it, and its answer was cut short";

/// The messages whose end is not known yet, in the order in which they were handed over.
#[derive(Debug, Default)]
pub struct Ledger {
    entries: Vec<Entry>,
    receipts: Receipts,
    /// pi has taken an abort: what comes into its history from now on is sent to nobody.
    abort_taken: bool,
}

#[derive(Debug)]
struct Entry {
    /// None for the prompt.
    steer: Option<SteerId>,
    /// The text as pi shows it. A command of pi's own is shown as what it stands for.
    text: String,
    at: At,
    /// It came into the history after an abort.
    unsent: bool,
}

/// How far a message has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// Written to pi.
    Handed,
    /// In one of pi's queues.
    Queued,
    /// In the history.
    Inserted,
    /// In the history when an answer of the model began.
    Asked,
    /// The model's server has begun to answer a request that held it.
    Sent,
}

impl Ledger {
    /// A steer was taken on. False if it is under way already.
    pub fn keep(&mut self, steer: &SteerId) -> bool {
        self.receipts.keep(steer)
    }

    /// The first prompt is about to be written to pi.
    pub fn prompt(&mut self, text: &str) {
        self.entries.push(Entry {
            steer: None,
            text: text.to_owned(),
            at: At::Handed,
            unsent: false,
        });
    }

    /// Writes a steer to pi.
    pub fn hand(&mut self, steer: &Steer, bytes: Vec<u8>, out: &mut Vec<Effect>) {
        self.entries.push(Entry {
            steer: Some(steer.id.clone()),
            text: steer.text.clone(),
            at: At::Handed,
            unsent: false,
        });
        self.receipts.hand(&steer.id, bytes, out);
    }

    /// pi shows what waits in its queues.
    pub fn queues(&mut self, queues: &Queues, out: &mut Vec<Effect>) {
        let mut waiting: Vec<&String> = queues.steering.iter().chain(&queues.follow_up).collect();
        for entry in self.entries.iter().filter(|entry| entry.at == At::Queued) {
            if let Some(place) = waiting.iter().position(|&text| *text == entry.text) {
                waiting.remove(place);
            }
        }
        for entry in self.entries.iter_mut().filter(|e| e.at == At::Handed) {
            let place = waiting.iter().position(|&text| *text == entry.text);
            // Nothing else is written to pi before it has answered for a message, so a text that nobody
            // knows is what pi has made of the one command that is on its way.
            let place = place.or((entry.is_command() && waiting.len() == 1).then_some(0));
            if let Some(place) = place {
                entry.text = waiting.remove(place).clone();
                entry.comes(At::Queued, &mut self.receipts, out);
            }
        }
    }

    /// pi has answered that it keeps this message for later.
    pub fn queued(&mut self, steer: &SteerId, out: &mut Vec<Effect>) {
        let entry = self
            .entries
            .iter_mut()
            .find(|entry| entry.at == At::Handed && entry.steer.as_ref() == Some(steer));
        if let Some(entry) = entry {
            entry.comes(At::Queued, &mut self.receipts, out);
        }
    }

    /// A message of the user has come into the history.
    pub fn inserted(&mut self, text: &str, out: &mut Vec<Effect>) {
        let open = |entry: &Entry| matches!(entry.at, At::Handed | At::Queued);
        let place = self
            .entries
            .iter()
            .position(|entry| open(entry) && entry.text == text)
            .or_else(|| self.entries.iter().position(Entry::is_command));
        if let Some(entry) = place.map(|place| &mut self.entries[place]) {
            entry.unsent = self.abort_taken;
            entry.comes(At::Inserted, &mut self.receipts, out);
        }
    }

    /// A message of the model begins.
    pub fn answer_begins(&mut self) {
        for entry in &mut self.entries {
            if entry.at == At::Inserted {
                entry.at = At::Asked;
            }
        }
    }

    /// The model's server has sent a part of its message.
    pub fn answer_comes(&mut self, out: &mut Vec<Effect>) {
        for entry in &mut self.entries {
            if entry.at == At::Asked {
                entry.comes(At::Sent, &mut self.receipts, out);
            }
        }
    }

    /// The model's message is complete.
    pub fn answer_ends(&mut self, message: &Message, out: &mut Vec<Effect>) {
        let outcome = message.outcome();
        if outcome == Outcome::Complete || message.is_from_the_server() {
            self.answer_comes(out);
        }
        let receipts = &mut self.receipts;
        self.entries.retain(|entry| match (outcome, entry.at) {
            (Outcome::Complete, At::Sent) => {
                if let Some(steer) = &entry.steer {
                    receipts.advance(steer, SteerState::Answered, out);
                }
                false
            }
            (Outcome::Aborted, At::Asked) if entry.unsent => {
                if let Some(steer) = &entry.steer {
                    receipts.drop(steer, ABORTED, out);
                }
                false
            }
            _ => true,
        });
    }

    /// pi has taken an abort.
    pub fn abort_taken(&mut self) {
        self.abort_taken = true;
    }

    /// A steer will not arrive: it was not written, or pi refused it or gave it away.
    pub fn drop(&mut self, steer: &SteerId, reason: &str, out: &mut Vec<Effect>) {
        self.entries
            .retain(|entry| entry.steer.as_ref() != Some(steer));
        self.receipts.drop(steer, reason, out);
    }

    /// pi has given back what waited in its queues.
    pub fn given_back(&mut self, texts: &[String], out: &mut Vec<Effect>) {
        for text in texts {
            let place = self
                .entries
                .iter()
                .position(|entry| entry.at == At::Queued && entry.text == *text);
            if let Some(steer) = place.and_then(|place| self.entries.remove(place).steer) {
                self.receipts.drop(&steer, "taken back", out);
            }
        }
    }

    /// Whether something still waits in pi's queues.
    pub fn has_queued(&self) -> bool {
        self.entries.iter().any(|entry| entry.at == At::Queued)
    }

    /// pi has refused a message that may be put to it again later. False if it has shown it already.
    pub fn take(&mut self, steer: &SteerId) -> bool {
        let place = self
            .entries
            .iter()
            .position(|entry| entry.at == At::Handed && entry.steer.as_ref() == Some(steer));
        place.map(|place| self.entries.remove(place)).is_some()
    }

    /// Nothing more will become of the messages. Those that wait in pi's queues never leave them if
    /// `queued` says so, with the reason; of the others nobody knows.
    pub fn settle(&mut self, queued: Result<&str, &str>, asked: &str, out: &mut Vec<Effect>) {
        self.abort_taken = false;
        for entry in self.entries.drain(..) {
            let Some(steer) = &entry.steer else {
                continue;
            };
            let receipts = &mut self.receipts;
            match (entry.at, queued) {
                (At::Queued, Ok(reason)) => receipts.drop(steer, reason, out),
                (At::Queued, Err(reason)) => receipts.lose(steer, reason, out),
                (At::Inserted, _) if entry.unsent => receipts.drop(steer, ABORTED, out),
                (At::Handed | At::Inserted | At::Asked, _) => receipts.lose(steer, asked, out),
                (At::Sent, _) => receipts.lose(steer, CUT_SHORT, out),
            }
        }
    }

    /// pi has ended. What waited in its queues ended with it if it was idle: else it may have come to
    /// take it up, and not to say so.
    pub fn close(&mut self, idle: bool, out: &mut Vec<Effect>) {
        if idle {
            let reason = "pi ended before it took it up";
            self.settle(
                Ok(reason),
                "pi ended before it showed what became of it",
                out,
            );
        }
        self.receipts.close(out);
    }
}

impl Entry {
    /// It has come so far.
    fn comes(&mut self, at: At, receipts: &mut Receipts, out: &mut Vec<Effect>) {
        self.at = at;
        let state = match at {
            At::Handed | At::Asked => return,
            At::Queued => SteerState::Queued,
            At::Inserted => SteerState::Inserted,
            At::Sent => SteerState::Sent,
        };
        if let Some(steer) = &self.steer {
            receipts.advance(steer, state, out);
        }
    }

    /// Whether pi may show something else than what it was given.
    fn is_command(&self) -> bool {
        self.at == At::Handed && self.text.starts_with('/')
    }
}
