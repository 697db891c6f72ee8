//! `codex app-server`: JSON-RPC, one message a line.
//!
//! What the protocol shows of a steer: `queued` when `turn/steer` or `turn/start` is answered,
//! `inserted` when a user message with our name is among the items, `sent` when the model begins
//! something after it, `answered` when what it began so is said to its end or the turn completes. A
//! message that was taken and then interrupted leaves no trace at all; it is `dropped` when its turn
//! ends without it.
//!
//! Threads that the model spawns are subagents. Their turns are steered and interrupted like the
//! agent's own.

mod asks;
mod items;
mod launch;
mod rpc;
#[cfg(test)]
mod tests;
mod thread;
mod tree;
mod turns;

use std::collections::BTreeMap;

use handover_protocol::{ErrorCode, Refusal, SteerId, SteerWhen, Tokens};
use serde_json::{Value, json};

use self::asks::Asks;
use self::rpc::{Failure, Incoming};
use self::thread::{Input, Kind, Outcome, Thread};
use self::turns::{Refused, outcome};
use super::json::text;
use super::receipts::Receipts;
use super::{Capabilities, Driver, Effect, Framing, Program, Steer, Task, usage};

const INTERRUPTED: &str = "the agent was interrupted before it was given the message";
const NOT_DRIVEN: &str = "codex cannot be driven any more";
const NO_CHILD: &str = "codex runs no such subagent";

/// The driver `codex`.
///
/// # Errors
/// `bad_params` without a prompt.
pub fn create(task: Task) -> Result<(Program, Box<dyn Driver>), Refusal> {
    if task.prompt.is_empty() {
        return Err(
            Refusal::new(ErrorCode::BadParams, "the driver `codex` needs a prompt")
                .with("parameter", "prompt"),
        );
    }
    let program = Program {
        argv: launch::argv(task.tools.as_ref(), task.args),
        env: BTreeMap::new(),
        framing: Framing::Lines,
    };
    let mut early = Thread::default();
    early.keep(Input::new(None, task.prompt), false);
    let driver = Codex {
        cwd: task.cwd.to_string_lossy().into_owned(),
        phase: Phase::Working,
        main: None,
        early: Some(early),
        threads: BTreeMap::new(),
        requests: BTreeMap::new(),
        last_request: 0,
        reported: false,
        receipts: Receipts::default(),
        asks: Asks::default(),
    };
    Ok((program, Box::new(driver)))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Working,
    Interrupting,
    /// It cannot be driven, or has ended.
    Over,
}

/// What we asked the program, by what the answer is for.
#[derive(Debug, PartialEq, Eq)]
enum Request {
    Initialize,
    StartThread,
    /// A message for a thread.
    Say {
        thread: String,
        /// `None` for the task.
        steer: Option<SteerId>,
    },
    Interrupt {
        thread: String,
        turn: String,
    },
    CleanTerminals,
    ReadThread(String),
}

#[derive(Debug)]
struct Codex {
    cwd: String,
    phase: Phase,
    main: Option<String>,
    /// The agent's own thread while the program has no name for it.
    early: Option<Thread>,
    threads: BTreeMap<String, Thread>,
    requests: BTreeMap<u64, Request>,
    last_request: u64,
    /// Whether the end of the present turn was told.
    reported: bool,
    receipts: Receipts,
    asks: Asks,
}

impl Driver for Codex {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            not_steerable: None,
            when: &[SteerWhen::NextStep, SteerWhen::TurnEnd],
        }
    }

    fn begin(&mut self, out: &mut Vec<Effect>) {
        let client = json!({
            "name": "handover", "title": "Handover", "version": env!("CARGO_PKG_VERSION"),
        });
        // Without `experimentalApi` the background terminals of a turn cannot be ended.
        let params = json!({"clientInfo": client, "capabilities": {"experimentalApi": true}});
        self.ask(Request::Initialize, "initialize", params, out);
    }

    fn output(&mut self, data: &[u8], out: &mut Vec<Effect>) {
        if self.phase == Phase::Over {
            return;
        }
        match rpc::parse(data) {
            Some(Incoming::Reply { id, result }) => {
                if let Some(request) = self.requests.remove(&id) {
                    self.replied(request, result, out);
                }
            }
            Some(Incoming::Request { id, method, params }) => {
                self.asks.asked(id, &method, &params, out);
            }
            Some(Incoming::Notice { method, params }) => self.noticed(&method, &params, out),
            None => tracing::debug!(
                bytes = data.len(),
                "codex said something that is no message"
            ),
        }
        self.advance(out);
    }

    fn steer(&mut self, steer: Steer, out: &mut Vec<Effect>) {
        if !self.receipts.keep(&steer.id) {
            return;
        }
        let thread = match (&steer.child, &self.main) {
            (Some(child), _) => self
                .threads
                .get_mut(child)
                .filter(|thread| matches!(thread.kind, Kind::Child(_))),
            (None, Some(main)) => self.threads.get_mut(main),
            (None, None) => self.early.as_mut(),
        };
        match thread {
            _ if self.phase == Phase::Over => self.receipts.drop(&steer.id, NOT_DRIVEN, out),
            None => self.receipts.drop(&steer.id, NO_CHILD, out),
            Some(thread) if thread.stopping || self.phase == Phase::Interrupting => {
                self.receipts.drop(&steer.id, INTERRUPTED, out);
            }
            Some(thread) => {
                let at_end = steer.when == SteerWhen::TurnEnd;
                thread.keep(Input::new(Some(steer.id), steer.text), at_end);
                self.advance(out);
            }
        }
    }

    fn interrupt(&mut self, out: &mut Vec<Effect>) {
        if self.phase == Phase::Over {
            out.push(Effect::Settled);
            return;
        }
        if let Some(early) = &mut self.early {
            early.retract(INTERRUPTED, &mut self.receipts, out);
        }
        self.phase = Phase::Interrupting;
        let threads: Vec<String> = self.threads.keys().cloned().collect();
        for thread in &threads {
            self.stop(thread, out);
        }
        self.advance(out);
    }

    fn interrupt_child(&mut self, native: &str, out: &mut Vec<Effect>) -> bool {
        let is_child = |thread: &Thread| matches!(thread.kind, Kind::Child(_));
        if !self.threads.get(native).is_some_and(is_child) {
            return false;
        }
        // Parents are as the program tells them, so that a circle of them must do no harm.
        let mut below = vec![native.to_owned()];
        let mut next = 0;
        while let Some(parent) = below.get(next).cloned() {
            next += 1;
            self.stop(&parent, out);
            for (name, thread) in &self.threads {
                let child = matches!(&thread.kind, Kind::Child(kin) if kin.parent == parent);
                if child && !below.contains(name) {
                    below.push(name.clone());
                }
            }
        }
        self.advance(out);
        true
    }

    fn decide(&mut self, question: &str, allow: bool, out: &mut Vec<Effect>) {
        self.asks.decide(question, allow, out);
    }

    fn ended(&mut self, _success: bool, out: &mut Vec<Effect>) {
        self.phase = Phase::Over;
        self.receipts.close(out);
    }
}

impl Codex {
    fn ask(&mut self, request: Request, method: &str, params: Value, out: &mut Vec<Effect>) {
        let id = self.number(request);
        out.push(Effect::Write(rpc::request(id, method, params)));
    }

    fn number(&mut self, request: Request) -> u64 {
        self.last_request += 1;
        self.requests.insert(self.last_request, request);
        self.last_request
    }

    fn replied(&mut self, request: Request, result: Result<Value, Failure>, out: &mut Vec<Effect>) {
        match (request, result) {
            (Request::Initialize, Ok(_)) => {
                out.push(Effect::Write(rpc::notice("initialized")));
                let params = json!({"cwd": self.cwd});
                self.ask(Request::StartThread, "thread/start", params, out);
            }
            (Request::StartThread, Ok(result)) => match text(&result, "/thread/id") {
                Some(thread) => self.started(thread, out),
                None => self.fail("codex named no thread", out),
            },
            (Request::Initialize | Request::StartThread, Err(failure)) => {
                self.fail(&format!("codex does not start: {}", failure.message), out);
            }
            (Request::Say { thread, steer }, Ok(result)) => {
                let turn = text(&result, "/turnId").or_else(|| text(&result, "/turn/id"));
                self.accepted(&thread, steer.as_ref(), turn.unwrap_or_default(), out);
            }
            (Request::Say { thread, steer }, Err(failure)) => {
                self.refused(&thread, steer.as_ref(), &failure, out);
            }
            (Request::Interrupt { thread, turn }, Err(failure)) => {
                let under_way = self
                    .followed(&thread)
                    .and_then(|thread| thread.turn.clone());
                match Refused::read(&failure.message) {
                    // It has ended, and the notice of that has not come.
                    Refused::NoTurn if under_way.as_ref() == Some(&turn) => {
                        self.turn_ended(&thread, &turn, Outcome::Interrupted, out);
                    }
                    Refused::OtherTurn(found) => self.turn_began(&thread, found, out),
                    Refused::NoTurn | Refused::Otherwise => {}
                }
            }
            (Request::ReadThread(thread), result) => {
                let result = result.unwrap_or_default();
                self.was_read(&thread, result.get("thread"), out);
            }
            (Request::Interrupt { .. } | Request::CleanTerminals, _) => {}
        }
    }

    fn noticed(&mut self, method: &str, params: &Value, out: &mut Vec<Effect>) {
        let thread = text(params, "/threadId").unwrap_or_default();
        match method {
            "thread/started" => {
                if let Some(thread) = params.get("thread") {
                    self.adopt(thread, out);
                }
            }
            "turn/started" => {
                self.meet(thread, out);
                if let Some(turn) = text(params, "/turn/id") {
                    self.turn_began(thread, turn, out);
                }
            }
            "turn/completed" => {
                if let Some(turn) = text(params, "/turn/id") {
                    let outcome = outcome(params);
                    self.turn_ended(thread, turn, outcome, out);
                }
            }
            "thread/closed" => {
                let turn = self.followed(thread).and_then(|thread| thread.turn.clone());
                if let Some(turn) = turn {
                    self.turn_ended(thread, &turn, Outcome::Interrupted, out);
                }
            }
            "item/started" | "item/completed" => {
                if let Some(item) = params.get("item") {
                    let ended = method == "item/completed";
                    self.item(thread, item, ended, out);
                }
            }
            "item/agentMessage/delta" => {
                let child = self.child(thread);
                let followed = self.followed(thread);
                if let (Some(followed), Some(text_part)) = (followed, text(params, "/delta")) {
                    followed.streamed = text(params, "/itemId").map(str::to_owned);
                    let text = text_part.to_owned();
                    out.push(Effect::Text { child, text });
                }
            }
            "thread/tokenUsage/updated" => self.counted(thread, params, out),
            "serverRequest/resolved" => {
                if let Some(id) = params.get("requestId") {
                    self.asks.resolved(id, out);
                }
            }
            _ => {}
        }
    }

    /// What a thread took so far.
    fn counted(&mut self, thread: &str, params: &Value, out: &mut Vec<Effect>) {
        let Some(total) = params.pointer("/tokenUsage/total") else {
            return;
        };
        let counts = ["inputTokens", "outputTokens"].map(|name| usage::sum(total, &[name]));
        if let ([Some(input), Some(output)], true) = (counts, self.followed(thread).is_some()) {
            let child = self.child(thread);
            let tokens = Tokens { input, output };
            out.push(Effect::Tokens { child, tokens });
        }
    }

    /// The agent's own thread is there.
    fn started(&mut self, name: &str, out: &mut Vec<Effect>) {
        let Some(early) = self.early.take() else {
            return;
        };
        self.main = Some(name.to_owned());
        self.threads.insert(name.to_owned(), early);
        out.push(Effect::Ready);
    }

    fn fail(&mut self, reason: &str, out: &mut Vec<Effect>) {
        self.phase = Phase::Over;
        out.push(Effect::Fail(reason.to_owned()));
    }
}
