//! What the client may pass on, and what is noted of it.

use std::collections::HashSet;
use std::time::Duration;

use super::super::call::{Call, CallId};
use super::super::records::{Id, Message, Problem};
use super::{Asked, Effect, Gate, Open};

/// Most requests of the client that have no response yet.
const MAX_OPEN: usize = 10_000;

impl Gate {
    /// Takes note of the messages of one record. Answers the calls among them with their places.
    pub(super) fn admit(
        &mut self,
        messages: &[Message<'_>],
        now: Duration,
    ) -> Result<Vec<(usize, CallId)>, Problem> {
        if self.ended || self.away.is_some() {
            return Err(Problem::invalid("there is no server to pass it on to"));
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
                    id,
                    raw_id,
                    method,
                    params,
                } => {
                    self.memory.client_asks(method, *params);
                    let lists = method == "tools/list" && self.allow.learns();
                    let what = if lists { Asked::Tools } else { Asked::Other };
                    self.opened(id, raw_id, what);
                }
                Message::Notification { method, cancels } => {
                    self.memory.client_notifies(method);
                    if let Some(id) = cancels {
                        self.client_cancels(id, now);
                    }
                }
                Message::Response { id, .. } => self.memory.client_answers(id.as_ref()),
            }
        }
        Ok(calls)
    }

    fn opened(&mut self, id: &Id, raw_id: &str, what: Asked) {
        let raw_id = raw_id.to_owned();
        self.open.insert(id.clone(), Open { raw_id, what });
    }

    fn ask(&mut self, id: &Id, raw_id: &str, tool: &str, now: Duration) -> CallId {
        self.last_call += 1;
        let call = self.last_call;
        self.opened(id, raw_id, Asked::Call(call));
        let waiting = Call::new(id.clone(), raw_id, tool, now);
        self.calls.insert(call, waiting);
        self.effects.push(if self.allow.allows(tool) {
            Effect::AskWatched { call }
        } else {
            let tool = tool.to_owned();
            Effect::AskPermit { call, tool }
        });
        call
    }

    fn client_cancels(&mut self, id: &Id, now: Duration) {
        if let Some(Asked::Call(call)) = self.open.get(id).map(|open| open.what)
            && let Some(call) = self.calls.get_mut(&call)
        {
            call.cancelled.get_or_insert(now);
        }
    }
}
