//! pi, through its RPC mode: JSON commands to its standard input, one a line.
//!
//! Everything that is said to pi goes as `prompt` with a `streamingBehavior`, never as `steer` or
//! `follow_up`: those answer "success" while nothing is under way and keep the message for ever, and
//! only pi itself knows at what moment it stops. For the same reason one message waits until pi has
//! answered for the one before: of two prompts at once to an idle pi, the second is lost with a
//! "success".
//!
//! pi 1.x says `agent_settled` when it stops. Before 1.0, `agent_end` may be followed by another
//! attempt, and is too long for a line after much work; there `get_state` is asked, which is answered
//! after all that pi had to say.

mod dialog;
mod ledger;
mod program;
mod protocol;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use handover_protocol::{SteerWhen, Tokens};
use serde_json::{Value, json};

use self::dialog::Dialogs;
use self::ledger::Ledger;
use self::protocol::{Message, Outcome, Response, Said, Tool};
use super::json::line;
use super::shorten::{shorten, summary};
use super::{Capabilities, Driver, Effect, Steer, usage};

pub use self::program::create;

/// The longest result that is kept, in bytes.
pub const MAX_RESULT: usize = 1 << 20;

#[derive(Debug)]
struct Pi {
    /// Until pi answers for the first time.
    prompt: Option<String>,
    phase: Phase,
    /// A turn was said to have begun and not yet to have ended. It outlasts pi's own runs while more is
    /// to be put to it.
    in_turn: bool,
    interrupt: Interrupt,
    /// Its run is to be cut short, for a message at once.
    cut: Cut,
    /// It is known to say `agent_settled`, and to give back what it has queued.
    settles: bool,
    /// It waits to try again after an error.
    retrying: bool,
    /// It shortens its context.
    compacting: bool,
    /// It has said that it goes on by itself.
    goes_on: bool,
    /// What pi cannot take yet.
    kept: VecDeque<Steer>,
    /// What pi has not answered for yet.
    awaited: Option<Awaited>,
    /// The last `get_state`, which tells whether it has stopped.
    asked: Option<String>,
    ids: u64,
    ledger: Ledger,
    dialogs: Dialogs,
    /// What the model said last.
    text: String,
    /// Why the last request to the model failed.
    error: Option<String>,
    /// What all requests to the model took.
    tokens: Tokens,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// It has not answered yet.
    Starting,
    /// Nothing is under way.
    Idle,
    /// A prompt was written, and pi has not begun on it.
    Prompted,
    /// It works, or is about to go on.
    Working,
}

#[derive(Debug)]
struct Awaited {
    command: String,
    /// None for the first prompt.
    steer: Option<Steer>,
}

/// How far it is with cutting a run short. Over as soon as pi has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    No,
    /// As soon as pi works.
    Wanted,
    Written,
}

#[derive(Debug, PartialEq, Eq)]
enum Interrupt {
    No,
    /// As soon as pi has answered for a prompt: before that, an abort would find nothing to end.
    Wanted,
    /// Written under these names.
    Written {
        clear: String,
        abort: String,
        mark: String,
    },
    Done,
}

impl Driver for Pi {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            not_steerable: None,
            when: &[SteerWhen::NextStep, SteerWhen::TurnEnd, SteerWhen::Now],
        }
    }

    fn begin(&mut self, out: &mut Vec<Effect>) {
        self.ask_state(out);
    }

    fn output(&mut self, data: &[u8], out: &mut Vec<Effect>) {
        let Some(said) = protocol::read(data) else {
            return;
        };
        if self.phase == Phase::Starting && !matches!(said, Said::Dialog(_)) {
            self.ready(out);
        }
        match said {
            Said::Response(response) => self.response(&response, out),
            Said::AgentStart => self.begun(out),
            Said::AgentEnd(end) => {
                if let Some(message) = end.last() {
                    self.note_outcome(message);
                }
                self.may_have_stopped(out);
            }
            Said::AgentSettled => {
                self.settles = true;
                self.stopped(out);
            }
            Said::TurnEnd(end) if end.may_be_last() => self.may_have_stopped(out),
            Said::TurnEnd(_) => {}
            Said::MessageStart(message) if message.role == "assistant" => {
                self.ledger.answer_begins();
            }
            Said::MessageStart(_) => {}
            Said::MessageUpdate(update) => {
                if update.is_from_the_server() {
                    self.ledger.answer_comes(out);
                }
                if let Some(text) = update.into_text() {
                    out.push(Effect::Text { child: None, text });
                }
            }
            Said::MessageEnd(message) => self.message(&message, out),
            Said::ToolStart(tool) => tool_effect(tool, false, out),
            Said::ToolEnd(tool) => tool_effect(tool, true, out),
            Said::Queues(queues) => self.ledger.queues(&queues, out),
            Said::RetryStart => self.retrying = true,
            Said::RetryEnd { success } => {
                self.retrying = false;
                if !success {
                    self.may_have_stopped(out);
                }
            }
            Said::CompactionStart => self.compacting = true,
            Said::CompactionEnd { again } => {
                self.compacting = false;
                self.goes_on = again;
                self.may_have_stopped(out);
                self.put_next(out);
            }
            Said::Dialog(dialog) => self.dialogs.open(dialog, out),
        }
    }

    fn steer(&mut self, steer: Steer, out: &mut Vec<Effect>) {
        if !self.ledger.keep(&steer.id) {
            return;
        }
        if self.interrupt != Interrupt::No {
            self.ledger.drop(&steer.id, "aborted", out);
            return;
        }
        if steer.when == SteerWhen::Now {
            let is_later = |kept: &Steer| kept.when != SteerWhen::Now;
            let place = self.kept.iter().position(is_later);
            self.kept.insert(place.unwrap_or(self.kept.len()), steer);
            if self.phase != Phase::Idle && self.cut == Cut::No {
                self.cut = Cut::Wanted;
                self.write_cut(out);
            }
        } else {
            self.kept.push_back(steer);
        }
        self.put_next(out);
    }

    fn interrupt(&mut self, out: &mut Vec<Effect>) {
        for steer in self.kept.drain(..) {
            let reason = "aborted before it was put to pi";
            self.ledger.drop(&steer.id, reason, out);
        }
        self.dialogs.cancel(out);
        match (&self.interrupt, self.phase) {
            (Interrupt::Done, _) => out.push(Effect::Settled),
            (Interrupt::Wanted | Interrupt::Written { .. }, _) => {}
            (Interrupt::No, Phase::Starting | Phase::Idle) => self.settled(out),
            (Interrupt::No, Phase::Prompted | Phase::Working) => {
                self.interrupt = Interrupt::Wanted;
                self.write_abort(out);
            }
        }
    }

    fn decide(&mut self, question: &str, allow: bool, out: &mut Vec<Effect>) {
        self.dialogs.decide(question, allow, out);
    }

    fn ended(&mut self, _success: bool, out: &mut Vec<Effect>) {
        self.kept.clear();
        self.ledger.close(self.phase == Phase::Idle, out);
    }
}

impl Pi {
    fn new(prompt: String) -> Self {
        Self {
            prompt: Some(prompt),
            phase: Phase::Starting,
            in_turn: false,
            interrupt: Interrupt::No,
            cut: Cut::No,
            settles: false,
            retrying: false,
            compacting: false,
            goes_on: false,
            kept: VecDeque::new(),
            awaited: None,
            asked: None,
            ids: 0,
            ledger: Ledger::default(),
            dialogs: Dialogs::default(),
            text: String::new(),
            error: None,
            tokens: Tokens::default(),
        }
    }

    fn id(&mut self, what: &str) -> String {
        self.ids += 1;
        format!("{what}-{}", self.ids)
    }

    fn ask_state(&mut self, out: &mut Vec<Effect>) {
        let id = self.id("state");
        out.push(Effect::Write(line(&json!({"id": id, "type": "get_state"}))));
        self.asked = Some(id);
    }

    fn ready(&mut self, out: &mut Vec<Effect>) {
        self.phase = Phase::Idle;
        self.asked = None;
        out.push(Effect::Ready);
        let Some(prompt) = self.prompt.take() else {
            return;
        };
        if self.interrupt != Interrupt::No {
            return;
        }
        let command = self.id("prompt");
        self.ledger.prompt(&prompt);
        out.push(Effect::Write(line(
            &json!({"id": command, "type": "prompt", "message": prompt}),
        )));
        self.begin_turn(out);
        self.awaited = Some(Awaited {
            command,
            steer: None,
        });
    }

    /// Puts the next message to pi if it can take one.
    fn put_next(&mut self, out: &mut Vec<Effect>) {
        let takes = matches!(self.phase, Phase::Idle | Phase::Working)
            && self.awaited.is_none()
            && !self.compacting
            && !self.retrying
            && self.cut == Cut::No
            && self.interrupt == Interrupt::No;
        if !takes {
            return;
        }
        let Some(steer) = self.kept.pop_front() else {
            return;
        };
        let command = self.id("prompt");
        let behavior = match steer.when {
            SteerWhen::TurnEnd => "followUp",
            SteerWhen::NextStep | SteerWhen::Now => "steer",
        };
        let bytes = line(&json!({
            "id": command,
            "type": "prompt",
            "message": steer.text,
            "streamingBehavior": behavior,
        }));
        self.ledger.hand(&steer, bytes, out);
        if self.phase == Phase::Idle {
            self.begin_turn(out);
        }
        self.awaited = Some(Awaited {
            command,
            steer: Some(steer),
        });
    }

    /// A prompt is written to an idle pi.
    fn begin_turn(&mut self, out: &mut Vec<Effect>) {
        self.phase = Phase::Prompted;
        self.turn_began(out);
    }

    /// Said as early as can be, for an agent with nothing under way and nothing to wait for is over.
    fn turn_began(&mut self, out: &mut Vec<Effect>) {
        if !self.in_turn && self.interrupt == Interrupt::No {
            self.in_turn = true;
            out.push(Effect::TurnBegan);
        }
    }

    /// pi works, on a prompt or because an extension has told it to.
    fn begun(&mut self, out: &mut Vec<Effect>) {
        self.phase = Phase::Working;
        self.goes_on = false;
        self.retrying = false;
        self.asked = None;
        self.error = None;
        self.turn_began(out);
        self.write_abort(out);
        self.write_cut(out);
        self.put_next(out);
    }

    fn message(&mut self, message: &Message, out: &mut Vec<Effect>) {
        match message.role.as_str() {
            "user" => self.ledger.inserted(&message.text(), out),
            "assistant" => {
                self.note_outcome(message);
                self.ledger.answer_ends(message, out);
                if let Some(tokens) = message.tokens() {
                    usage::add(&mut self.tokens, tokens);
                    let (child, tokens) = (None, self.tokens);
                    out.push(Effect::Tokens { child, tokens });
                }
            }
            _ => {}
        }
    }

    fn note_outcome(&mut self, message: &Message) {
        let text = message.text();
        if !text.trim().is_empty() {
            self.text = shorten(&text, MAX_RESULT);
        }
        self.error = match message.outcome() {
            Outcome::Complete => None,
            Outcome::Aborted | Outcome::Error => Some(message.error()),
        };
    }

    fn response(&mut self, response: &Response, out: &mut Vec<Effect>) {
        let Some(id) = response.id.as_ref() else {
            return;
        };
        if self.awaited.as_ref().is_some_and(|it| it.command == *id) {
            let awaited = self.awaited.take();
            self.prompt_answered(awaited.and_then(|it| it.steer), response, out);
        } else if self.asked.as_ref() == Some(id) {
            self.asked = None;
            self.state(&response.data, out);
        } else if let Interrupt::Written { clear, abort, mark } = &self.interrupt {
            if id == mark {
                self.ledger.abort_taken();
            } else if id == clear {
                for queue in ["steering", "followUp"] {
                    let texts = response.data[queue].as_array().into_iter().flatten();
                    let texts: Vec<String> = texts
                        .filter_map(|text| text.as_str().map(str::to_owned))
                        .collect();
                    self.ledger.given_back(&texts, out);
                }
            } else if id == abort {
                self.settled(out);
            }
        }
    }

    /// pi has answered for a message: it works on it, keeps it, has done something else with it, or
    /// refuses it.
    fn prompt_answered(
        &mut self,
        steer: Option<Steer>,
        response: &Response,
        out: &mut Vec<Effect>,
    ) {
        let disposition = response.data["disposition"].as_str();
        self.settles |= disposition.is_some();
        let refused = (!response.success).then(|| {
            response
                .error
                .clone()
                .unwrap_or_else(|| "pi refused it without a reason".to_owned())
        });
        let handled = disposition == Some("handled");
        if refused.is_some() || handled {
            match steer {
                // It takes nothing while it shortens its context, which crossed with this.
                Some(steer)
                    if self.compacting
                        && !handled
                        && self.interrupt == Interrupt::No
                        && self.ledger.take(&steer.id) =>
                {
                    self.kept.push_front(steer);
                }
                Some(steer) => {
                    let reason = refused.as_deref().map_or(
                        "an extension of pi took it for itself".to_owned(),
                        |error| format!("pi refused it: {error}"),
                    );
                    self.ledger.drop(&steer.id, &reason, out);
                }
                None => {
                    // Nothing came of the first prompt, which is the whole turn.
                    self.error = refused;
                }
            }
            if self.phase == Phase::Prompted {
                self.stopped(out);
                return;
            }
        } else if disposition == Some("queued") {
            if let Some(steer) = &steer {
                self.ledger.queued(&steer.id, out);
            }
            if self.phase == Phase::Prompted {
                self.phase = Phase::Working;
            }
        } else if disposition.is_none() && self.phase == Phase::Prompted {
            // An old pi says the same when an extension took it, and then nothing begins.
            self.ask_state(out);
        }
        self.write_abort(out);
        self.write_cut(out);
        self.put_next(out);
    }

    /// The answer to `get_state`: pi has said everything that came before.
    fn state(&mut self, data: &Value, out: &mut Vec<Effect>) {
        let is = |name: &str| data[name].as_bool() == Some(true);
        let busy = is("isStreaming") || is("isCompacting");
        if busy || self.retrying || self.compacting || self.goes_on {
            if self.phase == Phase::Prompted {
                self.phase = Phase::Working;
                self.write_cut(out);
                self.put_next(out);
            }
            return;
        }
        self.stopped(out);
    }

    /// pi before 1.0 has come to a point where it may have stopped.
    fn may_have_stopped(&mut self, out: &mut Vec<Effect>) {
        let waits = self.retrying || self.compacting || self.goes_on;
        if !self.settles && !waits && self.phase == Phase::Working {
            self.ask_state(out);
        }
    }

    /// pi has nothing under way.
    fn stopped(&mut self, out: &mut Vec<Effect>) {
        self.retrying = false;
        self.compacting = false;
        self.goes_on = false;
        if self.awaited.is_some() {
            // A message crossed with this: pi begins again, or refuses it.
            self.phase = Phase::Prompted;
            return;
        }
        self.phase = Phase::Idle;
        self.cut = Cut::No;
        self.dialogs.withdraw(out);
        match self.interrupt {
            Interrupt::Wanted => {
                self.settled(out);
                return;
            }
            Interrupt::Written { .. } | Interrupt::Done => return,
            Interrupt::No => {}
        }
        if !self.kept.is_empty() {
            self.put_next(out);
            return;
        }
        let left = "pi stopped without taking it up";
        let queued = if self.settles {
            if self.ledger.has_queued() {
                out.push(Effect::Write(line(&json!({"type": "clear_queue"}))));
            }
            Ok(left)
        } else {
            Err("pi stopped without taking it up; it may do so with the next message")
        };
        self.ledger
            .settle(queued, "pi stopped without an answer of the model", out);
        if std::mem::take(&mut self.in_turn) {
            out.push(Effect::TurnEnded {
                text: self.text.clone(),
                error: self.error.take(),
            });
        }
    }

    /// Cuts pi's run short, once. What it had taken in stays in its history, and the next request to the
    /// model holds it.
    fn write_cut(&mut self, out: &mut Vec<Effect>) {
        let works = self.phase == Phase::Working && self.awaited.is_none();
        if self.cut != Cut::Wanted || !works || self.interrupt != Interrupt::No {
            return;
        }
        let id = self.id("cut");
        out.push(Effect::Write(line(&json!({"id": id, "type": "abort"}))));
        self.cut = Cut::Written;
    }

    /// Writes the abort that is wanted, as soon as pi would not miss it.
    fn write_abort(&mut self, out: &mut Vec<Effect>) {
        if self.interrupt != Interrupt::Wanted || self.awaited.is_some() {
            return;
        }
        let (clear, abort, mark) = (self.id("clear"), self.id("abort"), self.id("mark"));
        let mut bytes = line(&json!({"id": clear, "type": "clear_queue"}));
        bytes.extend(line(&json!({"id": abort, "type": "abort"})));
        // Answered at once, where the abort is answered when all is quiet: what pi says after it, it
        // says as one that was aborted.
        bytes.extend(line(&json!({"id": mark, "type": "get_state"})));
        out.push(Effect::Write(bytes));
        self.interrupt = Interrupt::Written { clear, abort, mark };
    }

    /// The interrupt is over.
    fn settled(&mut self, out: &mut Vec<Effect>) {
        self.phase = Phase::Idle;
        self.in_turn = false;
        self.interrupt = Interrupt::Done;
        self.ledger.settle(
            Ok("aborted before pi took it up"),
            "aborted before an answer; the model may have got it",
            out,
        );
        out.push(Effect::Settled);
    }
}

fn tool_effect(tool: Tool, ended: bool, out: &mut Vec<Effect>) {
    out.push(Effect::Tool {
        child: None,
        call: tool.tool_call_id,
        tool: tool.tool_name,
        ended,
        summary: if ended { None } else { summary(&tool.args) },
    });
}
