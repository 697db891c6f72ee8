//! The gate between a client and a tool server, as a state machine without a clock, a socket or a process.
//!
//! Told what the client, the server and the host said, it answers with [`Effect`]s. What the client wrote
//! is passed on in its order: a record that waits for a permit holds up those behind it.
//!
//! A call ends when its response has passed back. A server that was asked to cancel is not to answer, and
//! then nobody knows whether it goes on; so a call that stays unanswered holds its permit, and when a
//! person has waited for control for a while the server is ended, by which nothing of it is left for sure,
//! and started again.

mod admit;
mod again;
mod due;
mod host;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use handover_protocol::Refusal;

use again::Away;

use super::allow::Allow;
use super::answers::{self, Interrupted};
use super::call::{Call, CallId, Permit, Stage};
use super::memory::Memory;
use super::queue::Queue;
use super::records::{self, Id, Message, Problem, Record};

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// Write a record, with its newline, to the server.
    ToServer(Vec<u8>),
    /// Write a record, with its newline, to the client.
    ToClient(Vec<u8>),
    /// Ask the host for a permit.
    AskPermit { call: CallId, tool: String },
    /// Ask the host whether the person in control, if there is one, lets others watch.
    AskWatched { call: CallId },
    /// Give a permit back.
    Complete(Permit),
    /// Let the host record that a call was not made, which it has not refused itself.
    Record { tool: String },
    /// Ask the host whether a person waits for control.
    AskDraining,
    /// End the server's process tree, and the relay with it.
    EndServer(String),
    /// End the server's process tree and start the server again.
    ReplaceServer(String),
}

/// See the module.
#[derive(Debug)]
pub(super) struct Gate {
    allow: Allow,
    queue: Queue,
    /// Requests of the client that have no response yet.
    open: HashMap<Id, Open>,
    calls: BTreeMap<CallId, Call>,
    last_call: CallId,
    /// Interrupted before they arrived here.
    early: HashSet<Permit>,
    asking_draining: bool,
    host_gone: Option<Duration>,
    /// Up to this connection to the host all have ended.
    gone: u64,
    ended: bool,
    /// While there is no server to speak to.
    away: Option<Away>,
    /// What a new one has to be told.
    memory: Memory,
    effects: Vec<Effect>,
}

#[derive(Debug)]
struct Open {
    /// As the client wrote it.
    raw_id: String,
    what: Asked,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    Call(CallId),
    Tools,
    Other,
    /// The relay itself asks.
    Ours,
}

impl Gate {
    /// A gate that lets calls of tools which only look pass in any case.
    pub(super) fn new(allow: Allow) -> Self {
        Self {
            allow,
            queue: Queue::default(),
            open: HashMap::new(),
            calls: BTreeMap::new(),
            last_call: 0,
            early: HashSet::new(),
            asking_draining: false,
            host_gone: None,
            gone: 0,
            ended: false,
            away: None,
            memory: Memory::default(),
            effects: Vec::new(),
        }
    }

    /// What is to be done now, in this order.
    pub(super) fn effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// The bytes of the client that wait for a permit.
    pub(super) fn held_bytes(&self) -> usize {
        self.queue.bytes()
    }

    /// Whether nothing of the client waits, for a permit or for a response.
    pub(super) fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.open.is_empty()
    }

    /// Whether everything that the client wrote was passed on or answered.
    pub(super) fn has_passed_all(&self) -> bool {
        self.queue.is_empty()
    }

    /// The client wrote a record, here without its newline.
    pub(super) fn client_wrote(&mut self, record: Vec<u8>, now: Duration) {
        let admitted = match records::from_client(&record) {
            Err(problem) => Err(problem),
            Ok(Record::Blank) => Ok((false, Vec::new())),
            Ok(Record::One(message)) => {
                let messages = [message];
                self.admit(&messages, now).map(|calls| (false, calls))
            }
            Ok(Record::Batch(messages)) => self.admit(&messages, now).map(|calls| (true, calls)),
        };
        match admitted {
            Err(problem) => self.tell_client(answers::problem(&problem)),
            Ok((batch, calls)) => {
                self.queue.push(record, batch, calls);
                self.advance();
            }
        }
    }

    /// The client wrote a record over the limit.
    pub(super) fn client_wrote_too_much(&mut self) {
        self.tell_client(answers::problem(&Problem::too_long()));
    }

    /// The server wrote a record, here without its newline.
    pub(super) fn server_wrote(&mut self, record: Vec<u8>) {
        if self.ended || self.away == Some(Away::Starting) {
            return;
        }
        let messages = match records::read(&record) {
            Err(problem) => {
                let why = format!(
                    "the server wrote something else than MCP: {}",
                    problem.message
                );
                return self.effects.push(Effect::EndServer(why));
            }
            Ok(Record::Blank) => Vec::new(),
            Ok(Record::One(message)) => {
                if self.answers_us(&message) {
                    return;
                }
                vec![message]
            }
            Ok(Record::Batch(messages)) => messages,
        };
        let mut replaced = None;
        let mut over = Vec::new();
        for message in &messages {
            if let Message::Request { id, .. } | Message::Call { id, .. } = message {
                self.memory.server_asks(id);
            }
            let Some(call) = self.response(message) else {
                continue;
            };
            // In a batch it stays as it is: what else is in there is not ours.
            if let (
                Message::Response {
                    error: Some(error), ..
                },
                true,
                1,
            ) = (message, call.by_us, messages.len())
            {
                let how = Interrupted::Said(error);
                replaced = Some(answers::interrupted(&call.raw_id, &call.tool, &how));
            }
            over.push(call);
        }
        let record = replaced.map_or(record, String::into_bytes);
        self.effects.push(Effect::ToClient(line(record)));
        // Only now: the response has passed.
        for call in over {
            self.complete(call);
        }
    }

    /// The server wrote a record over the limit.
    pub(super) fn server_wrote_too_much(&mut self) {
        let why = format!(
            "the server wrote more than {} bytes at once",
            records::MAX_RECORD
        );
        self.effects.push(Effect::EndServer(why));
    }

    /// The server has ended, or is about to. Every request that has no response gets one.
    pub(super) fn end(&mut self, why: &str) {
        self.ended = true;
        self.answer_all(why, &Interrupted::Ended);
    }

    /// Answers everything that is open. What the client wrote and is not passed on never is.
    fn answer_all(&mut self, why: &str, how: &Interrupted<'_>) {
        self.queue.clear();
        let mut open: Vec<Open> = self.open.drain().map(|(_, open)| open).collect();
        open.sort_by(|a, b| a.raw_id.cmp(&b.raw_id));
        for Open { raw_id, what } in open {
            let call = match what {
                Asked::Ours => continue,
                Asked::Call(id) => self
                    .calls
                    .get(&id)
                    .filter(|call| call.interrupted.is_some()),
                Asked::Tools | Asked::Other => None,
            };
            let answer = match call {
                Some(call) => answers::interrupted(&raw_id, &call.tool, how),
                None => answers::ended(&raw_id, why),
            };
            self.tell_client(answer);
        }
        // Their permits end with the server's process tree, and not before.
        self.calls.clear();
    }

    /// Whether it is the response to a call of the client's, which it ends.
    fn response(&mut self, message: &Message<'_>) -> Option<Call> {
        let Message::Response {
            id: Some(id),
            result,
            ..
        } = message
        else {
            return None;
        };
        // A server cannot answer what it has not been sent.
        match self.open.get(id)?.what {
            Asked::Call(call) if self.calls.get(&call).is_some_and(Call::is_sent) => {
                self.open.remove(id);
                self.calls.remove(&call)
            }
            Asked::Call(_) => None,
            Asked::Tools => {
                self.open.remove(id);
                if let Some(result) = result {
                    self.allow.learn(result);
                }
                None
            }
            // The relay's own are seen to before.
            Asked::Other | Asked::Ours => {
                self.open.remove(id);
                None
            }
        }
    }

    fn complete(&mut self, call: Call) {
        if let Stage::Granted(Some(permit)) | Stage::Sent(Some(permit)) = call.stage {
            self.effects.push(Effect::Complete(permit));
        }
    }

    fn decided(&mut self, id: CallId) {
        self.queue.permitted(id);
        self.advance();
    }

    /// A call that the server does not have is not passed on.
    fn refuse(&mut self, id: CallId, refusal: Refusal) {
        let Some(call) = self.calls.remove(&id) else {
            return;
        };
        let answer = answers::refused(&call.raw_id, &call.tool, refusal);
        let permitted = !call.is_asking();
        self.queue.refused(id, permitted, call.id, answer);
        self.advance();
    }

    /// Passes on what has its turn.
    fn advance(&mut self) {
        while let Some(released) = self.queue.next() {
            for id in released.passed() {
                if let Some(call) = self.calls.get_mut(&id)
                    && let Stage::Granted(permit) = &mut call.stage
                {
                    call.stage = Stage::Sent(permit.take());
                }
            }
            for id in released.refused() {
                self.open.remove(id);
            }
            let answer = released.answer();
            if let Some(record) = released.into_record() {
                self.effects.push(Effect::ToServer(line(record)));
            }
            if let Some(answer) = answer {
                self.tell_client(answer);
            }
        }
    }

    fn tell_client(&mut self, answer: String) {
        let answer = line(answer.into_bytes());
        self.effects.push(Effect::ToClient(answer));
    }
}

fn line(mut record: Vec<u8>) -> Vec<u8> {
    record.push(b'\n');
    record
}
