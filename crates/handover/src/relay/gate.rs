//! The gate between a client and a tool server, as a state machine without a clock, a socket or a process.
//!
//! Told what the client, the server and the host said, it answers with [`Effect`]s. What the client wrote
//! is passed on in its order: a record that waits for a permit holds up those behind it.
//!
//! A call ends when its response has passed back. A server that was asked to cancel need not answer, and
//! then nobody knows whether it goes on; so a call that stays unanswered holds its permit, and when a
//! person has asked for control in vain for long enough the server is ended, by which nothing of it is
//! left for sure.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use handover_protocol::{ErrorCode, Refusal};
use serde_json::value::RawValue;

use super::allow::Allow;
use super::answers;
use super::call::{Call, CallId, Permit, Stage};
use super::queue::Queue;
use super::records::{self, Id, Message, Problem, Record};

/// How long calls may go on after the host is gone, by whose permits they were begun.
pub(super) const HOST_GONE: Duration = Duration::from_secs(2);

/// Most requests of the client that have no response yet.
const MAX_OPEN: usize = 10_000;
/// Most interruptions kept for permits that have not arrived yet.
const MAX_EARLY: usize = 1024;

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
    /// Ask the host whether a person waits for control.
    AskDraining,
    /// End the server's process tree.
    EndServer(String),
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
    ended: bool,
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
            ended: false,
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
            Ok(Record::Batch(items)) => {
                let messages: Vec<_> = items.into_iter().map(|(_, message)| message).collect();
                self.admit(&messages, now).map(|calls| (true, calls))
            }
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
        if self.ended {
            return;
        }
        let mut replaced = None;
        let mut over = Vec::new();
        match records::read(&record) {
            Err(problem) => {
                let why = format!(
                    "the server wrote something else than MCP: {}",
                    problem.message
                );
                return self.effects.push(Effect::EndServer(why));
            }
            Ok(Record::Blank) => {}
            Ok(Record::One(message)) => {
                if let Some(call) = self.response(&message) {
                    let error = match message {
                        Message::Response { error, .. } => error,
                        _ => None,
                    };
                    replaced = error.filter(|_| call.by_us).map(|error| {
                        answers::interrupted(&call.raw_id, &call.tool, Some(error.get()))
                    });
                    over.push(call);
                }
            }
            Ok(Record::Batch(items)) => {
                over.extend(
                    items
                        .iter()
                        .filter_map(|(_, message)| self.response(message)),
                );
            }
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

    /// The host's answer to [`Effect::AskPermit`].
    pub(super) fn permitted(&mut self, id: CallId, answer: Result<Permit, Refusal>) {
        let early = answer
            .as_ref()
            .is_ok_and(|permit| self.early.remove(permit));
        let waiting = self.calls.get_mut(&id);
        let waiting = waiting.filter(|call| call.is_asking());
        match (waiting, answer) {
            (Some(call), Ok(permit)) if !early => {
                call.stage = Stage::Granted(Some(permit));
                self.decided(id);
            }
            (Some(_), Ok(permit)) => {
                self.refuse(id, answers::too_late());
                self.effects.push(Effect::Complete(permit));
            }
            (Some(_), Err(refusal)) => self.refuse(id, refusal),
            // It came too late.
            (None, Ok(permit)) => self.effects.push(Effect::Complete(permit)),
            (None, Err(_)) => {}
        }
    }

    /// The host's answer to [`Effect::AskWatched`]: whether the desktop may be looked at.
    pub(super) fn watched(&mut self, id: CallId, answer: Result<(), Refusal>) {
        let waiting = self.calls.get_mut(&id);
        let Some(call) = waiting.filter(|call| call.is_asking()) else {
            return;
        };
        match answer {
            Ok(()) => {
                call.stage = Stage::Granted(None);
                self.decided(id);
            }
            Err(refusal) => self.refuse(id, refusal),
        }
    }

    /// The host's answer to [`Effect::AskDraining`]: whether a person still waits.
    pub(super) fn draining(&mut self, waits: bool) {
        self.asking_draining = false;
        if waits {
            let why = "it went on with what was cancelled while a person waited for control";
            return self.effects.push(Effect::EndServer(why.to_owned()));
        }
        for call in self.calls.values_mut() {
            if call.cancelled.is_some() {
                call.interrupted = None;
            }
        }
    }

    /// A person asks for control, so what this permit is for has to end.
    pub(super) fn interrupt(&mut self, permit: &Permit, now: Duration) {
        let mut calls = self.calls.iter_mut();
        let found = calls.find(|(_, call)| call.permit() == Some(permit));
        match found {
            Some((_, call)) if call.is_sent() => {
                call.interrupted = Some(now);
            }
            Some((&id, _)) => {
                self.refuse(id, answers::too_late());
                self.effects.push(Effect::Complete(permit.clone()));
            }
            None if self.early.len() < MAX_EARLY => {
                self.early.insert(permit.clone());
            }
            None => {}
        }
    }

    /// The connection to the host has ended, and with it what its permits were worth.
    pub(super) fn host_gone(&mut self, now: Duration) {
        self.early.clear();
        let mut refused = Vec::new();
        for (&id, call) in &mut self.calls {
            match &mut call.stage {
                Stage::Sent(permit @ Some(_)) => {
                    *permit = None;
                    self.host_gone = Some(now);
                    if call.cancelled.is_none() {
                        call.cancel(now);
                        let cancel = answers::cancel(&call.raw_id).into_bytes();
                        self.effects.push(Effect::ToServer(line(cancel)));
                    }
                    call.interrupted = None;
                }
                Stage::Granted(Some(_)) => refused.push(id),
                Stage::Asking(_) | Stage::Granted(None) | Stage::Sent(None) => {}
            }
        }
        for id in refused {
            let gone = "the session's host has ended, so nothing may act";
            self.refuse(id, Refusal::new(ErrorCode::SessionUnknown, gone));
        }
    }

    /// The server has ended, or is about to. Every request that has no response gets one.
    pub(super) fn end(&mut self, why: &str) {
        self.ended = true;
        self.queue.clear();
        let mut open: Vec<Open> = self.open.drain().map(|(_, open)| open).collect();
        open.sort_by(|a, b| a.raw_id.cmp(&b.raw_id));
        for Open { raw_id, what } in open {
            let call = match what {
                Asked::Call(id) => self
                    .calls
                    .get(&id)
                    .filter(|call| call.interrupted.is_some()),
                Asked::Tools | Asked::Other => None,
            };
            let answer = match call {
                Some(call) => answers::interrupted(&raw_id, &call.tool, None),
                None => answers::ended(&raw_id, why),
            };
            self.tell_client(answer);
        }
        // Their permits end with the server's process tree, and not before.
        self.calls.clear();
    }

    /// When [`Self::tick`] has something to do.
    pub(super) fn deadline(&self) -> Option<Duration> {
        let host_gone = self.host_gone.map(|at| at + HOST_GONE);
        let calls = self
            .calls
            .values()
            .filter_map(|call| call.due(self.asking_draining));
        calls.chain(host_gone).min()
    }

    /// Does what has become due.
    pub(super) fn tick(&mut self, now: Duration) {
        if self.ended {
            return;
        }
        if self.host_gone.is_some_and(|at| at + HOST_GONE <= now) {
            self.host_gone = None;
            let goes_on = |call: &Call| matches!(call.stage, Stage::Sent(None)) && call.by_us;
            if self.calls.values().any(goes_on) {
                let why = "it went on with what was cancelled when the session's host had ended";
                self.effects.push(Effect::EndServer(why.to_owned()));
            }
        }
        let due = self
            .calls
            .iter()
            .filter(|(_, call)| call.due(self.asking_draining).is_some_and(|due| due <= now));
        let due: Vec<CallId> = due.map(|(&id, _)| id).collect();
        for id in due {
            self.overdue(id, now);
        }
    }

    fn overdue(&mut self, id: CallId, now: Duration) {
        let Some(call) = self.calls.get_mut(&id) else {
            return;
        };
        match (&call.stage, call.interrupted, call.cancelled) {
            (Stage::Asking(_), ..) => {
                let silent = "the session's host does not answer, so nothing may act";
                self.refuse(id, Refusal::new(ErrorCode::Timeout, silent));
            }
            (Stage::Sent(_), Some(_), None) => {
                call.cancel(now);
                let cancel = answers::cancel(&call.raw_id).into_bytes();
                self.effects.push(Effect::ToServer(line(cancel)));
            }
            (Stage::Sent(_), Some(_), Some(_)) => {
                if !self.asking_draining {
                    self.asking_draining = true;
                    self.effects.push(Effect::AskDraining);
                }
            }
            _ => {
                // The client does not wait for it, and a response under its id may still come.
                if let Some(call) = self.calls.remove(&id) {
                    if let Some(open) = self.open.get_mut(&call.id) {
                        open.what = Asked::Other;
                    }
                    self.complete(call);
                }
            }
        }
    }

    /// Takes note of the messages of one record. Answers the calls among them with their places.
    fn admit(
        &mut self,
        messages: &[Message<'_>],
        now: Duration,
    ) -> Result<Vec<(usize, CallId)>, Problem> {
        if self.ended {
            return Err(Problem::invalid("the server has ended"));
        }
        let mut ids = HashSet::new();
        for message in messages {
            let (Message::Call { id, raw_id, .. } | Message::Request { id, raw_id, .. }) = message
            else {
                continue;
            };
            if self.open.contains_key(id) || !ids.insert(id) {
                // Under the id itself it would be taken for the answer to the first request.
                let message = format!(
                    "a request under the id {raw_id} has no response yet; ids cannot be used twice"
                );
                return Err(Problem::invalid(message));
            }
        }
        if self.open.len() + ids.len() > MAX_OPEN {
            let message = format!("{MAX_OPEN} requests have no response yet; wait for some");
            return Err(Problem::invalid(message));
        }
        let mut calls = Vec::new();
        for (place, message) in messages.iter().enumerate() {
            match message {
                Message::Call { id, raw_id, tool } => {
                    let call = self.ask(id, raw_id, tool, now);
                    calls.push((place, call));
                }
                Message::Request {
                    id, raw_id, method, ..
                } => {
                    let lists = method == "tools/list" && self.allow.learns();
                    let what = if lists { Asked::Tools } else { Asked::Other };
                    self.opened(id, raw_id, what);
                }
                Message::Notification { method, params } => {
                    if method == "notifications/cancelled" {
                        self.client_cancels(*params, now);
                    }
                }
                Message::Response { .. } => {}
            }
        }
        Ok(calls)
    }

    fn opened(&mut self, id: &Id, raw_id: &RawValue, what: Asked) {
        let raw_id = raw_id.get().to_owned();
        self.open.insert(id.clone(), Open { raw_id, what });
    }

    fn ask(&mut self, id: &Id, raw_id: &RawValue, tool: &str, now: Duration) -> CallId {
        self.last_call += 1;
        let call = self.last_call;
        self.opened(id, raw_id, Asked::Call(call));
        let waiting = Call::new(id.clone(), raw_id.get(), tool, now);
        self.calls.insert(call, waiting);
        self.effects.push(if self.allow.allows(tool) {
            Effect::AskWatched { call }
        } else {
            let tool = tool.to_owned();
            Effect::AskPermit { call, tool }
        });
        call
    }

    fn client_cancels(&mut self, params: Option<&RawValue>, now: Duration) {
        let open = records::cancelled(params).and_then(|id| self.open.get(&id));
        if let Some(Asked::Call(call)) = open.map(|open| open.what)
            && let Some(call) = self.calls.get_mut(&call)
        {
            call.cancelled.get_or_insert(now);
        }
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
            Asked::Other => {
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
