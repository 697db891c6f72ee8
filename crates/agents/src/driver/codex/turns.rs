//! The turns of codex's threads, and the messages that go into them.

use handover_protocol::SteerId;
use serde_json::{Value, json};

use super::items::{self, Item};
use super::rpc::{self, Failure};
use super::thread::{Input, Kind, Outcome, Thread};
use super::{Codex, INTERRUPTED, Phase, Request};
use crate::driver::Effect;
use crate::driver::json::text;

impl Codex {
    pub(super) fn turn_began(&mut self, name: &str, turn: &str, out: &mut Vec<Effect>) {
        let interrupting = self.phase == Phase::Interrupting;
        let Some(thread) = self.followed(name) else {
            return;
        };
        if turn.is_empty() || !thread.begin(turn) {
            return;
        }
        // An interrupt that was for another turn, or came before the turn had a name, is for this one.
        let stop = std::mem::take(&mut thread.stopping) || interrupting;
        if matches!(thread.kind, Kind::Main) {
            self.reported = false;
            out.push(Effect::TurnBegan);
        }
        self.announce(name, out);
        if stop {
            self.stop(name, out);
        }
    }

    pub(super) fn turn_ended(
        &mut self,
        name: &str,
        turn: &str,
        outcome: Outcome,
        out: &mut Vec<Effect>,
    ) {
        let receipts = &mut self.receipts;
        let Some(thread) = self.threads.get_mut(name) else {
            return;
        };
        if matches!(thread.kind, Kind::Foreign) {
            return;
        }
        let stopped = thread.stopping;
        thread.end(turn, outcome, receipts, out);
        self.asks.withdraw(name, out);
        if stopped {
            // The processes that the turn had started outlive it otherwise.
            let params = json!({"threadId": name});
            let method = "thread/backgroundTerminals/clean";
            self.ask(Request::CleanTerminals, method, params, out);
        }
        self.announce(name, out);
    }

    pub(super) fn item(&mut self, name: &str, item: &Value, ended: bool, out: &mut Vec<Effect>) {
        let child = self.child(name);
        let receipts = &mut self.receipts;
        let Some(thread) = self.threads.get_mut(name) else {
            return;
        };
        if matches!(thread.kind, Kind::Foreign) {
            return;
        }
        match items::read(item) {
            Item::User { client } => {
                if let Some(client) = client {
                    thread.inserted(client, receipts, out);
                }
            }
            Item::Message { id, .. } if !ended => thread.model_began(Some(id), receipts, out),
            Item::Message { id, text } => {
                if thread.streamed.as_deref() != Some(id) && !text.is_empty() {
                    let text = text.to_owned();
                    out.push(Effect::Text { child, text });
                }
                thread.model_said(id, text, receipts, out);
            }
            Item::Thought if !ended => thread.model_began(None, receipts, out),
            Item::Tool { id, tool, summary } => {
                if !ended {
                    thread.model_began(None, receipts, out);
                }
                out.push(Effect::Tool {
                    child,
                    call: Some(id.to_owned()),
                    tool,
                    ended,
                    summary,
                });
            }
            Item::Thought | Item::Other => {}
        }
        if let Some((child, parent, task)) = items::spawned(item) {
            self.adopt_as(child, parent, None, task, out);
        }
    }

    pub(super) fn accepted(
        &mut self,
        name: &str,
        said: Option<&SteerId>,
        turn: &str,
        out: &mut Vec<Effect>,
    ) {
        if let Some(thread) = self.threads.get_mut(name) {
            thread.accepted(said, turn, &mut self.receipts, out);
        }
        self.turn_began(name, turn, out);
        self.announce_idle(name, out);
    }

    pub(super) fn refused(
        &mut self,
        name: &str,
        said: Option<&SteerId>,
        failure: &Failure,
        out: &mut Vec<Effect>,
    ) {
        let thread = self.threads.get_mut(name);
        let Some(input) = thread.and_then(|thread| thread.refused(said)) else {
            return;
        };
        let Some(steer) = input.steer.clone() else {
            self.fail(&format!("codex began no turn: {}", failure.message), out);
            return;
        };
        match Refused::read(&failure.message) {
            Refused::NoTurn => {
                if let Some(thread) = self.threads.get_mut(name) {
                    thread.no_turn();
                }
            }
            Refused::OtherTurn(found) => self.turn_began(name, found, out),
            Refused::Otherwise => {
                self.receipts.drop(&steer, &failure.message, out);
                return self.announce_idle(name, out);
            }
        }
        let again = self
            .threads
            .get_mut(name)
            .is_some_and(|thread| thread.again(input).is_ok());
        if !again {
            self.receipts.drop(&steer, &failure.message, out);
            self.announce_idle(name, out);
        }
    }

    /// Tells that a subagent has ended which was kept by a message on its way.
    fn announce_idle(&mut self, name: &str, out: &mut Vec<Effect>) {
        if self
            .threads
            .get(name)
            .is_some_and(|thread| !thread.is_busy())
        {
            self.announce(name, out);
        }
    }

    /// Takes back what was not written for a thread and interrupts its turn.
    pub(super) fn stop(&mut self, name: &str, out: &mut Vec<Effect>) {
        let receipts = &mut self.receipts;
        let Some(thread) = self.threads.get_mut(name) else {
            return;
        };
        thread.retract(INTERRUPTED, receipts, out);
        if thread.stopping || !thread.is_busy() {
            return;
        }
        thread.stopping = true;
        let Some(turn) = thread.turn.clone() else {
            return;
        };
        let params = json!({"threadId": name, "turnId": turn});
        let thread = name.to_owned();
        self.ask(
            Request::Interrupt { thread, turn },
            "turn/interrupt",
            params,
            out,
        );
    }

    /// Writes what can be written now, and says so when nothing is under way.
    pub(super) fn advance(&mut self, out: &mut Vec<Effect>) {
        if self.phase == Phase::Over {
            return;
        }
        let mut next = Vec::new();
        for (name, thread) in &mut self.threads {
            if let Some(input) = thread.next() {
                next.push((name.clone(), input));
            }
        }
        for (name, input) in next {
            self.say(&name, input, out);
        }
        let followed = |thread: &&Thread| !matches!(thread.kind, Kind::Foreign);
        if self.threads.values().filter(followed).any(Thread::is_busy) {
            return;
        }
        if self.phase == Phase::Interrupting {
            let cleaned = !self
                .requests
                .values()
                .any(|left| *left == Request::CleanTerminals);
            if cleaned {
                self.phase = Phase::Working;
                self.reported = true;
                out.push(Effect::Settled);
            }
            return;
        }
        let Some(main) = self.main.as_ref().and_then(|main| self.threads.get(main)) else {
            return;
        };
        if let Some((_, outcome)) = main.ended.as_ref().filter(|_| !self.reported) {
            out.push(Effect::TurnEnded {
                text: main.said.clone(),
                error: match outcome {
                    Outcome::Completed => None,
                    Outcome::Interrupted => Some("the turn was interrupted".to_owned()),
                    Outcome::Failed(error) => Some(error.clone()),
                },
            });
            self.reported = true;
        }
    }

    pub(super) fn say(&mut self, name: &str, input: Input, out: &mut Vec<Effect>) {
        let id = self.number(Request::Say {
            thread: name.to_owned(),
            steer: input.steer.clone(),
        });
        let Some(thread) = self.threads.get_mut(name) else {
            return;
        };
        let mut params = json!({
            "threadId": name,
            "input": [{"type": "text", "text": input.text, "text_elements": []}],
        });
        if let Some(steer) = &input.steer {
            params["clientUserMessageId"] = json!(steer);
        }
        let method = match &thread.turn {
            Some(turn) => {
                params["expectedTurnId"] = json!(turn);
                "turn/steer"
            }
            None => "turn/start",
        };
        let bytes = rpc::request(id, method, params);
        match &input.steer {
            Some(steer) => self.receipts.hand(steer, bytes, out),
            None => out.push(Effect::Write(bytes)),
        }
        thread.written(input);
    }
}

/// Why a turn could not be steered or interrupted. The program tells only in words.
pub(super) enum Refused<'a> {
    /// No turn is under way.
    NoTurn,
    /// Another turn is under way: this one.
    OtherTurn(&'a str),
    /// Something else.
    Otherwise,
}

impl<'a> Refused<'a> {
    pub(super) fn read(message: &'a str) -> Self {
        if message.starts_with("no active turn") {
            return Self::NoTurn;
        }
        let found = message
            .starts_with("expected active turn id")
            .then(|| message.rsplit("but found ").next())
            .flatten()
            .map(|found| found.trim_matches('`'));
        match found {
            Some(turn) if !turn.is_empty() && !turn.contains(' ') => Self::OtherTurn(turn),
            _ => Self::Otherwise,
        }
    }
}

/// How the turn of a `turn/completed` ended.
pub(super) fn outcome(params: &Value) -> Outcome {
    match text(params, "/turn/status") {
        Some("interrupted") => Outcome::Interrupted,
        Some("failed") => {
            let error = text(params, "/turn/error/message").unwrap_or("codex gave no reason");
            let refused = params
                .pointer("/turn/error/codexErrorInfo")
                .is_some_and(is_unauthorized);
            Outcome::Failed(if refused {
                format!("codex is not logged in (`codex login`): {error}")
            } else {
                error.to_owned()
            })
        }
        _ => Outcome::Completed,
    }
}

/// Whether the model's provider did not accept who codex said it is.
fn is_unauthorized(info: &Value) -> bool {
    match info {
        Value::String(info) => info == "unauthorized",
        Value::Object(kinds) => kinds.values().any(|kind| kind["httpStatusCode"] == 401),
        _ => false,
    }
}
