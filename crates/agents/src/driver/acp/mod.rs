//! Any agent that speaks the agent client protocol (ACP), version 1, over its standard streams.
//!
//! The protocol answers a prompt when its turn ends and shows nothing of it before. So a message is
//! `answered` when the agent says that its turn ended otherwise than cancelled, and until then nothing
//! is claimed; `session/update`s prove nothing, since agents speak for themselves in them too.

mod calls;
mod protocol;
mod questions;
mod quirks;
#[cfg(test)]
mod tests;
mod turns;

use std::collections::VecDeque;

use handover_protocol::{ErrorCode, Refusal, SteerWhen, Tokens};
use serde_json::{Value, json};

use self::calls::Calls;
use self::protocol::{Error, Said};
use self::questions::Questions;
use self::quirks::Steering;
use self::turns::Turns;
use super::{Capabilities, Driver, Effect, Framing, Program, Steer, Task, usage};

/// The driver `acp`.
///
/// # Errors
/// `bad_params` without a command or a prompt.
pub fn create(mut task: Task) -> Result<(Program, Box<dyn Driver>), Refusal> {
    let refuse = |parameter: &str, message: &str| {
        Err(Refusal::new(ErrorCode::BadParams, message).with("parameter", parameter))
    };
    if task.args.first().is_none_or(String::is_empty) {
        return refuse(
            "args",
            "the driver `acp` needs the command of an ACP agent in `args`: the program, then its arguments",
        );
    }
    if task.prompt.trim().is_empty() {
        return refuse("prompt", "the driver `acp` needs a prompt");
    }
    let program = Program {
        argv: std::mem::take(&mut task.args),
        env: Default::default(),
        framing: Framing::Lines,
    };
    let driver = Acp {
        task,
        stage: Stage::Initialize,
        ids: 0,
        steering: Steering::Waits,
        logins: Vec::new(),
        kept: VecDeque::new(),
        turns: Turns::default(),
        in_turn: false,
        cancelling: false,
        interrupted: false,
        questions: Questions::default(),
        calls: Calls::default(),
        error: None,
        tokens: Tokens::default(),
    };
    Ok((program, Box::new(driver)))
}

#[derive(Debug)]
struct Acp {
    task: Task,
    stage: Stage,
    ids: u64,
    steering: Steering,
    /// How one can log in, in words.
    logins: Vec<String>,
    /// What the agent cannot take yet.
    kept: VecDeque<Steer>,
    turns: Turns,
    /// A turn was said to have begun and not yet to have ended. It outlasts the agent's own while more
    /// is to be put to it.
    in_turn: bool,
    /// `session/cancel` was written, and the prompts are not all answered.
    cancelling: bool,
    interrupted: bool,
    questions: Questions,
    calls: Calls,
    /// Why the last prompt failed.
    error: Option<String>,
    /// What all turns took.
    tokens: Tokens,
}

#[derive(Debug)]
enum Stage {
    /// `initialize` is not answered.
    Initialize,
    /// `session/new` is not answered.
    NewSession,
    /// It takes prompts for this session.
    Session(String),
    /// It was given up.
    Over,
}

impl Driver for Acp {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            not_steerable: None,
            when: self.steering.when(),
        }
    }

    fn begin(&mut self, out: &mut Vec<Effect>) {
        self.request("initialize", &protocol::initialize(), out);
    }

    fn output(&mut self, data: &[u8], out: &mut Vec<Effect>) {
        match protocol::read(data) {
            Some(Said::Answer { id, result }) => self.answered(id, result, out),
            Some(Said::Request { id, method, params }) => match method.as_str() {
                "session/request_permission" if self.turns.is_busy() && !self.cancelling => {
                    self.questions.open(id, params, out);
                }
                "session/request_permission" => {
                    let outcome = json!({"outcome": {"outcome": "cancelled"}});
                    out.push(Effect::Write(protocol::answer(&id, &outcome)));
                }
                _ => out.push(Effect::Write(protocol::refuse(&id, &method))),
            },
            Some(Said::Notice { method, mut params }) if method == "session/update" => {
                if matches!(&self.stage, Stage::Session(id) if params["sessionId"] == *id) {
                    self.update(&params["update"].take(), out);
                }
            }
            Some(Said::Notice { .. }) | None => {}
        }
    }

    fn steer(&mut self, steer: Steer, out: &mut Vec<Effect>) {
        if !self.turns.keep(&steer.id) {
            return;
        }
        if self.interrupted {
            self.turns.drop(&steer.id, "aborted", out);
            return;
        }
        if steer.when == SteerWhen::Now {
            let is_later = |kept: &Steer| kept.when != SteerWhen::Now;
            let place = self.kept.iter().position(is_later);
            self.kept.insert(place.unwrap_or(self.kept.len()), steer);
            self.cancel(out);
        } else {
            self.kept.push_back(steer);
        }
        self.put_next(out);
    }

    fn interrupt(&mut self, out: &mut Vec<Effect>) {
        for steer in self.kept.drain(..) {
            let reason = "aborted before it was put to the agent";
            self.turns.drop(&steer.id, reason, out);
        }
        self.interrupted = true;
        self.in_turn = false;
        if self.turns.is_busy() {
            self.cancel(out);
        } else {
            self.questions.cancel(out);
            out.push(Effect::Settled);
        }
    }

    fn decide(&mut self, question: &str, allow: bool, out: &mut Vec<Effect>) {
        if let Some(call) = self.questions.decide(question, allow, out) {
            self.calls.news(&call, out);
        }
    }

    fn ended(&mut self, _success: bool, out: &mut Vec<Effect>) {
        self.kept.clear();
        self.turns.close(out);
    }
}

impl Acp {
    fn request(&mut self, method: &str, params: &Value, out: &mut Vec<Effect>) {
        self.ids += 1;
        out.push(Effect::Write(protocol::request(self.ids, method, params)));
    }

    fn fail(&mut self, reason: String, out: &mut Vec<Effect>) {
        self.stage = Stage::Over;
        out.push(Effect::Fail(reason));
    }

    /// Says what is to be done about an agent that wants a login.
    fn wants_login(&mut self, error: &Error, out: &mut Vec<Effect>) {
        let ways = match self.logins.as_slice() {
            [] => String::new(),
            logins => format!(" (it offers: {})", logins.join(", ")),
        };
        let reason = format!(
            "the agent wants a login first: {}; log in with the program itself, or give it its key{ways}",
            error.text(),
        );
        self.fail(reason, out);
    }

    fn answered(&mut self, id: u64, result: Result<Value, Error>, out: &mut Vec<Effect>) {
        match (&self.stage, result) {
            (Stage::Session(_), result) => {
                if self.turns.is_injection(id) {
                    self.injected(id, &result, out);
                } else if self.turns.is_prompt(id) {
                    self.prompt_ended(id, result, out);
                }
            }
            (Stage::Initialize | Stage::NewSession, _) if id != self.ids => {}
            (Stage::Initialize, Ok(result)) => self.initialized(&result, out),
            (Stage::NewSession, Ok(result)) => self.opened(&result, out),
            (Stage::Initialize | Stage::NewSession, Err(error)) if error.wants_login() => {
                self.wants_login(&error, out);
            }
            (Stage::Initialize | Stage::NewSession, Err(error)) => {
                let reason = format!("the agent opens no session: {}", error.text());
                self.fail(reason, out);
            }
            (Stage::Over, _) => {}
        }
    }

    fn initialized(&mut self, result: &Value, out: &mut Vec<Effect>) {
        let version = &result["protocolVersion"];
        if version.as_u64() != Some(protocol::VERSION) {
            let reason = format!(
                "the agent speaks version {version} of the agent client protocol, and Handover speaks {}",
                protocol::VERSION
            );
            self.fail(reason, out);
            return;
        }
        let name = result["agentInfo"]["name"].as_str().unwrap_or_default();
        let steers = result["_meta"]["steering"]["supported"].as_bool();
        self.steering = Steering::of(name, steers == Some(true));
        self.logins = result["authMethods"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|method| method["name"].as_str().map(str::to_owned))
            .take(8)
            .collect();
        self.stage = Stage::NewSession;
        self.request("session/new", &protocol::new_session(&self.task), out);
    }

    fn opened(&mut self, result: &Value, out: &mut Vec<Effect>) {
        let Some(session) = result["sessionId"].as_str() else {
            self.fail("the agent gave its session no name".to_owned(), out);
            return;
        };
        self.stage = Stage::Session(session.to_owned());
        out.push(Effect::Ready);
        if !self.interrupted {
            let prompt = std::mem::take(&mut self.task.prompt);
            self.prompt(&prompt, None, out);
            self.put_next(out);
        }
    }

    fn prompt(&mut self, text: &str, steer: Option<Steer>, out: &mut Vec<Effect>) {
        let Stage::Session(session) = &self.stage else {
            return;
        };
        self.ids += 1;
        let bytes = protocol::request(self.ids, "session/prompt", &protocol::prompt(session, text));
        if !self.in_turn {
            self.in_turn = true;
            out.push(Effect::TurnBegan);
        }
        self.turns.prompt(self.ids, steer, bytes, out);
    }

    /// Puts the next messages to the agent as far as it takes them.
    fn put_next(&mut self, out: &mut Vec<Effect>) {
        let Stage::Session(session) = &self.stage else {
            return;
        };
        if self.interrupted || self.cancelling || self.turns.is_injecting() {
            return;
        }
        if !self.turns.is_busy() {
            if let Some(steer) = self.kept.pop_front() {
                self.prompt(&steer.text.clone(), Some(steer), out);
                self.put_next(out);
            }
            return;
        }
        let next = self
            .kept
            .iter()
            .position(|steer| steer.when == SteerWhen::NextStep);
        let Some(place) = next.filter(|_| self.steering != Steering::Waits) else {
            return;
        };
        let Some(steer) = self.kept.remove(place) else {
            return;
        };
        if self.steering == Steering::Joins {
            self.prompt(&steer.text.clone(), Some(steer), out);
            self.put_next(out);
            return;
        }
        let mut params = protocol::prompt(session, &steer.text);
        // Else it would begin a turn whose end nobody is told.
        params["_meta"] = json!({"steering": {"idleBehavior": "promptRequired"}});
        self.ids += 1;
        let bytes = protocol::request(self.ids, "_session/steering", &params);
        self.turns.inject(self.ids, steer, bytes, out);
    }

    /// The agent has answered for a message that was put into its turn.
    fn injected(&mut self, id: u64, result: &Result<Value, Error>, out: &mut Vec<Effect>) {
        let Some(mut steer) = self.turns.injection_answered(id) else {
            return;
        };
        let failed = |reason: &Value| match reason.as_str() {
            Some(reason) => format!("the agent did not take it: {reason}"),
            None => "the agent did not take it".to_owned(),
        };
        match result {
            Ok(result) => match result["outcome"].as_str() {
                Some("injected" | "startedNewTurn") => self.turns.injected(steer, out),
                Some("promptRequired") => {
                    steer.when = SteerWhen::TurnEnd;
                    self.kept.push_front(steer);
                }
                _ => self.turns.drop(&steer.id, &failed(&result["reason"]), out),
            },
            Err(error) if error.is_unknown_method() => {
                self.steering = Steering::Waits;
                self.kept.push_front(steer);
            }
            Err(error) => self
                .turns
                .drop(&steer.id, &failed(&json!(error.text())), out),
        }
        if self.interrupted {
            for steer in self.kept.drain(..) {
                let reason = "aborted before the agent took it";
                self.turns.drop(&steer.id, reason, out);
            }
        }
        self.after_answer(out);
    }

    /// The turn of a prompt has ended.
    fn prompt_ended(&mut self, id: u64, result: Result<Value, Error>, out: &mut Vec<Effect>) {
        let stop = match &result {
            Ok(result) => result["stopReason"].as_str().unwrap_or_default(),
            Err(_) => "error",
        };
        self.turns.prompt_ended(id, stop, out);
        if let Some(tokens) = result.as_ref().ok().and_then(counted) {
            usage::add(&mut self.tokens, tokens);
            let (child, tokens) = (None, self.tokens);
            out.push(Effect::Tokens { child, tokens });
        }
        self.error = match (&result, stop) {
            (Err(error), _) if error.wants_login() => {
                self.wants_login(error, out);
                return;
            }
            (Err(error), _) => Some(error.text()),
            (Ok(_), "cancelled") if self.cancelling => None,
            (Ok(_), "cancelled" | "refusal" | "max_tokens" | "max_turn_requests") => {
                Some(format!("the agent stopped: {stop}"))
            }
            (Ok(_), _) => None,
        };
        self.after_answer(out);
    }

    /// Goes on with what waits, or says that all is quiet.
    fn after_answer(&mut self, out: &mut Vec<Effect>) {
        if self.turns.is_busy() || self.turns.is_injecting() {
            self.put_next(out);
            return;
        }
        let cancelled = std::mem::take(&mut self.cancelling);
        self.calls.end(out);
        self.questions.cancel(out);
        self.turns.close_injected(cancelled, out);
        if self.interrupted {
            out.push(Effect::Settled);
            return;
        }
        self.put_next(out);
        if !self.turns.is_busy() && std::mem::take(&mut self.in_turn) {
            out.push(Effect::TurnEnded {
                text: self.turns.text().to_owned(),
                error: self.error.take(),
            });
        }
    }

    /// Ends what is under way, once.
    fn cancel(&mut self, out: &mut Vec<Effect>) {
        let Stage::Session(session) = &self.stage else {
            return;
        };
        if !self.turns.is_busy() || self.cancelling {
            return;
        }
        self.cancelling = true;
        let params = json!({"sessionId": session});
        out.push(Effect::Write(protocol::notice("session/cancel", &params)));
        self.questions.cancel(out);
    }

    fn update(&mut self, update: &Value, out: &mut Vec<Effect>) {
        match update["sessionUpdate"].as_str() {
            Some("agent_message_chunk") => {
                let text = update["content"]["text"].as_str().unwrap_or_default();
                if !text.is_empty() {
                    if !quirks::is_notice(update) {
                        self.turns.says(update["messageId"].as_str(), text);
                    }
                    out.push(Effect::Text {
                        child: None,
                        text: text.to_owned(),
                    });
                }
            }
            Some("tool_call" | "tool_call_update") => {
                self.turns.pauses();
                self.calls.news(update, out);
            }
            _ => {}
        }
    }
}

/// What a turn took, if the agent says so in the answer to its prompt. (`usage_update` is another thing: how full
/// the context is.) Whether `inputTokens` has what came from a cache differs; the total has all.
fn counted(answer: &Value) -> Option<Tokens> {
    let usage = &answer["usage"];
    let output = usage::sum(usage, &["outputTokens"])?;
    let total = usage::sum(usage, &["totalTokens"])?;
    Some(Tokens {
        input: total.saturating_sub(output),
        output,
    })
}
