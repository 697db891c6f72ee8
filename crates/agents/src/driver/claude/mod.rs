//! Claude Code: `claude -p` with JSON on both sides, one object a line.
//!
//! What the protocol shows of a steer, by the UUID that it is written with: `queued` and `inserted`
//! by its `command_lifecycle` (and `inserted` by the replay of the message), `sent` by the list of
//! messages that a model request is made with, once something has come back for that request,
//! `answered` by the list of those that a turn which completed had taken in. The end of all work is the `idle` of its session state: between the result
//! of a turn and that, subagents may work and wake it.

mod asks;
mod talk;
mod tasks;
#[cfg(test)]
mod tests;
mod uuid;
mod version;
mod wire;

use std::collections::VecDeque;

use handover_protocol::{ErrorCode, Refusal, SteerState, SteerWhen, Tokens};
use serde_json::{Value, json};

use self::asks::Asks;
use self::talk::Talk;
use self::tasks::Tasks;
use self::uuid::{Message, Names};
use self::wire::texts;
use super::json::text;
use super::receipts::Receipts;
use super::{Capabilities, Driver, Effect, Framing, Program, Steer, Task, usage};

/// The most messages in one turn: the program lists no more than 64 of them, and what it does not list
/// cannot be told to have been sent or answered.
const MAX_IN_TURN: usize = 60;

const INTERRUPTED: &str = "the agent was interrupted before it was given the message";
const CANCELLED: &str = "the program took the message off its queue";
const NOT_DRIVEN: &str = "Claude Code cannot be driven any more";

/// The driver `claude`.
///
/// # Errors
/// `bad_params` without a prompt; `internal` if the system gives no random numbers.
pub fn create(task: Task) -> Result<(Program, Box<dyn Driver>), Refusal> {
    if task.prompt.is_empty() {
        return Err(
            Refusal::new(ErrorCode::BadParams, "the driver `claude` needs a prompt")
                .with("parameter", "prompt"),
        );
    }
    let mut salt = [0; 8];
    getrandom::fill(&mut salt).map_err(|error| {
        Refusal::new(
            ErrorCode::Internal,
            format!("the system gives no random numbers: {error}"),
        )
    })?;
    let program = Program {
        argv: wire::argv(task.tools.as_ref(), task.args),
        env: wire::env(),
        framing: Framing::Lines,
    };
    let driver = Claude {
        phase: Phase::Starting {
            prompt: Some(task.prompt),
        },
        interrupting: Interrupting::No,
        kept: VecDeque::new(),
        in_turn: 0,
        names: Names::new(u64::from_ne_bytes(salt)),
        receipts: Receipts::default(),
        asks: Asks::default(),
        tasks: Tasks::default(),
        talk: Talk::default(),
        requested: Vec::new(),
        working: false,
        open: false,
        idle: None,
        result: None,
    };
    Ok((program, Box::new(driver)))
}

#[derive(Debug, PartialEq, Eq)]
enum Phase {
    /// The program has not begun its session. The prompt, until it is written.
    Starting { prompt: Option<String> },
    /// It can be steered.
    Ready,
    /// It cannot be driven, or has ended.
    Over,
}

#[derive(Debug, PartialEq, Eq)]
enum Interrupting {
    No,
    /// The request is written.
    Asked,
    /// The program has answered; what it stopped may not have ended.
    Answered,
}

/// How a turn ended.
#[derive(Debug)]
struct TurnResult {
    text: String,
    error: Option<String>,
}

#[derive(Debug)]
struct Claude {
    phase: Phase,
    interrupting: Interrupting,
    /// Steers for when the program is ready, or has room for them.
    kept: VecDeque<Steer>,
    /// The messages that the present turn has or may yet take in.
    in_turn: usize,
    names: Names,
    receipts: Receipts,
    asks: Asks,
    tasks: Tasks,
    talk: Talk,
    /// The messages in the model request under way, while nothing has come back for it.
    requested: Vec<String>,
    /// From `TurnBegan` to `TurnEnded`.
    working: bool,
    /// A turn of the program's is under way; several may follow each other before it is idle.
    open: bool,
    /// Whether the program is idle, once it has told.
    idle: Option<bool>,
    /// How the last of its turns ended.
    result: Option<TurnResult>,
}

impl Driver for Claude {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            not_steerable: None,
            when: &[SteerWhen::NextStep, SteerWhen::Now, SteerWhen::TurnEnd],
        }
    }

    fn begin(&mut self, out: &mut Vec<Effect>) {
        self.request(INITIALIZE, json!({"subtype": "initialize"}), out);
    }

    fn output(&mut self, data: &[u8], out: &mut Vec<Effect>) {
        if self.phase == Phase::Over {
            return;
        }
        let Ok(message) = serde_json::from_slice::<Value>(data) else {
            tracing::debug!(
                bytes = data.len(),
                "claude said something that is no message"
            );
            return;
        };
        match text(&message, "/type").unwrap_or_default() {
            "system" => self.system(&message, out),
            "command_lifecycle" => self.lifecycle(&message, out),
            "stream_event" => {
                if talk::begins(&message) {
                    self.request_arrived(out);
                }
                self.talk.part(&message, out);
            }
            "assistant" => self.talk.assistant(&message, &mut self.tasks, out),
            "user" => self.user(&message, out),
            "result" => {
                tokens(&message, out);
                self.turn_ended(&message, out);
            }
            "control_request" => {
                if let (Some(id), Some(request)) =
                    (text(&message, "/request_id"), message.get("request"))
                {
                    self.asks.asked(id, request, out);
                }
            }
            "control_cancel_request" => {
                if let Some(id) = text(&message, "/request_id") {
                    self.asks.withdrawn(id, out);
                }
            }
            "control_response" => {
                if let Some(response) = message.get("response") {
                    self.answered(response, out);
                }
            }
            _ => {}
        }
        self.rest(out);
    }

    fn steer(&mut self, steer: Steer, out: &mut Vec<Effect>) {
        if !self.receipts.keep(&steer.id) {
            return;
        }
        let refused = if steer.child.is_some() {
            Some(tasks::NOT_STEERABLE)
        } else if self.phase == Phase::Over {
            Some(NOT_DRIVEN)
        } else if self.interrupting != Interrupting::No {
            Some(INTERRUPTED)
        } else {
            None
        };
        match refused {
            Some(reason) => self.receipts.drop(&steer.id, reason, out),
            None => {
                self.kept.push_back(steer);
                self.hand_kept(out);
            }
        }
    }

    fn interrupt(&mut self, out: &mut Vec<Effect>) {
        for steer in std::mem::take(&mut self.kept) {
            self.receipts.drop(&steer.id, INTERRUPTED, out);
        }
        if let Phase::Starting { prompt } = &mut self.phase {
            if prompt.take().is_some() {
                out.push(Effect::Settled);
                return;
            }
        } else if self.phase == Phase::Over {
            out.push(Effect::Settled);
            return;
        }
        if self.interrupting == Interrupting::No {
            self.interrupting = Interrupting::Asked;
            // Without `cancel_queued`, what is queued would run after the interrupt.
            let request = json!({"subtype": "interrupt", "cancel_queued": true});
            self.request(INTERRUPT, request, out);
        }
    }

    fn interrupt_child(&mut self, native: &str, out: &mut Vec<Effect>) -> bool {
        let runs = self.tasks.runs(native);
        if runs {
            let request = json!({"subtype": "stop_task", "task_id": native});
            self.request(STOP_TASK, request, out);
        }
        runs
    }

    fn decide(&mut self, question: &str, allow: bool, out: &mut Vec<Effect>) {
        self.asks.decide(question, allow, out);
    }

    fn ended(&mut self, _success: bool, out: &mut Vec<Effect>) {
        self.receipts.close(out);
        // It may go without saying that it is idle.
        if self.phase == Phase::Ready && self.working && !self.open {
            self.tell_end(out);
        }
        self.phase = Phase::Over;
    }
}

// Our requests by what they ask; no two of a kind are answered differently.
const INITIALIZE: &str = "initialize";
const INTERRUPT: &str = "interrupt";
const STOP_TASK: &str = "stop-task";
const CANCEL: &str = "cancel";

impl Claude {
    fn request(&self, id: &str, request: Value, out: &mut Vec<Effect>) {
        out.push(Effect::Write(wire::request(id, request)));
    }

    fn answered(&mut self, response: &Value, out: &mut Vec<Effect>) {
        let failed = text(response, "/subtype") == Some("error");
        match text(response, "/request_id").unwrap_or_default() {
            INITIALIZE if failed => {
                let error = text(response, "/error").unwrap_or("it gave no reason");
                self.fail(format!("Claude Code does not start: {error}"), out);
            }
            INITIALIZE => self.initialized(response, out),
            INTERRUPT if self.interrupting == Interrupting::Asked => {
                self.interrupting = Interrupting::Answered;
                for uuid in texts(response, "/response/cancelled") {
                    self.withdrawn(uuid, out);
                }
                for uuid in texts(response, "/response/still_queued") {
                    let request = json!({"subtype": "cancel_async_message", "message_uuid": uuid});
                    self.request(CANCEL, request, out);
                }
            }
            _ => {}
        }
    }

    fn initialized(&mut self, response: &Value, out: &mut Vec<Effect>) {
        if let Some(reason) = response.get("response").and_then(version::too_old) {
            self.fail(reason, out);
        } else if let Phase::Starting { prompt } = &mut self.phase
            && let Some(prompt) = prompt.take()
        {
            let uuid = self.names.name(Message::Task);
            let bytes = wire::user(&uuid, &prompt, SteerWhen::NextStep);
            self.in_turn = 1;
            out.push(Effect::Write(bytes));
        }
    }

    fn fail(&mut self, reason: String, out: &mut Vec<Effect>) {
        self.phase = Phase::Over;
        out.push(Effect::Fail(reason));
    }

    /// Writes the steers that there is room for.
    fn hand_kept(&mut self, out: &mut Vec<Effect>) {
        while self.phase == Phase::Ready && self.in_turn < MAX_IN_TURN {
            let Some(steer) = self.kept.pop_front() else {
                return;
            };
            self.in_turn += 1;
            let uuid = self.names.name(Message::Steer(steer.id.clone()));
            let bytes = wire::user(&uuid, &steer.text, steer.when);
            self.receipts.hand(&steer.id, bytes, out);
        }
    }

    /// How many messages the program has or is being given that no turn has taken in.
    fn on_their_way(&self) -> usize {
        let waits = |state| matches!(state, SteerState::Handed | SteerState::Queued);
        self.receipts
            .open()
            .filter(|(_, state)| waits(*state))
            .count()
    }

    fn system(&mut self, message: &Value, out: &mut Vec<Effect>) {
        match text(message, "/subtype").unwrap_or_default() {
            "init" => self.session_began(message, out),
            "status" if text(message, "/status") == Some("requesting") => {
                self.turn_began(out);
                let messages = texts(message, "/user_message_uuids");
                self.requested = messages.map(str::to_owned).collect();
            }
            // With a status, somebody has answered.
            "api_retry" if message["error_status"].is_u64() => self.request_arrived(out),
            "session_state_changed" => {
                self.idle = Some(text(message, "/state") == Some("idle"));
            }
            _ => self.tasks.told(message, out),
        }
    }

    /// The program tells what it is at the beginning of each turn.
    fn session_began(&mut self, init: &Value, out: &mut Vec<Effect>) {
        if self.phase != Phase::Ready {
            if let Some(reason) = version::unfit(init) {
                return self.fail(reason, out);
            }
            self.phase = Phase::Ready;
            out.push(Effect::Ready);
        }
        self.turn_began(out);
        self.hand_kept(out);
    }

    /// Something has come back for the model request under way.
    fn request_arrived(&mut self, out: &mut Vec<Effect>) {
        for uuid in std::mem::take(&mut self.requested) {
            self.advance(&uuid, SteerState::Sent, out);
        }
    }

    fn turn_began(&mut self, out: &mut Vec<Effect>) {
        if self.phase != Phase::Ready {
            return;
        }
        self.open = true;
        if !self.working {
            self.working = true;
            out.push(Effect::TurnBegan);
        }
    }

    fn turn_ended(&mut self, message: &Value, out: &mut Vec<Effect>) {
        self.open = false;
        if message["api_error_status"].is_u64() {
            self.request_arrived(out);
        }
        self.requested.clear();
        let aborted =
            text(message, "/terminal_reason").is_some_and(|why| why.starts_with("aborted"));
        let failed = message.get("is_error").and_then(Value::as_bool) == Some(true);
        if !aborted && !failed {
            for uuid in texts(message, "/user_message_uuids") {
                self.advance(uuid, SteerState::Answered, out);
            }
        }
        self.in_turn = self.on_their_way();
        let said = text(message, "/result").unwrap_or(self.talk.said());
        let errors: Vec<&str> = texts(message, "/errors").collect();
        let why = match errors.is_empty() {
            true => said.to_owned(),
            false => errors.join("; "),
        };
        let error = match (aborted, self.talk.is_logged_out()) {
            (true, _) => "the turn was interrupted".to_owned(),
            (_, true) => format!("Claude Code is not logged in (`claude auth login`): {why}"),
            _ => why,
        };
        self.result = Some(TurnResult {
            text: said.to_owned(),
            error: failed.then_some(error),
        });
    }

    fn user(&mut self, message: &Value, out: &mut Vec<Effect>) {
        if message.get("isReplay").and_then(Value::as_bool) == Some(true) {
            if let Some(uuid) = text(message, "/uuid") {
                self.advance(uuid, SteerState::Inserted, out);
            }
        } else {
            self.talk.results(message, &self.tasks, out);
        }
    }

    fn lifecycle(&mut self, message: &Value, out: &mut Vec<Effect>) {
        let Some(uuid) = text(message, "/command_uuid") else {
            return;
        };
        match text(message, "/state").unwrap_or_default() {
            "queued" => self.advance(uuid, SteerState::Queued, out),
            "started" => {
                self.open = true;
                // Its `init` may take a while, and what has begun must not be taken for idle.
                self.turn_began(out);
                self.advance(uuid, SteerState::Inserted, out);
            }
            "cancelled" | "discarded" | "refused" => self.withdrawn(uuid, out),
            _ => {}
        }
    }

    fn advance(&mut self, uuid: &str, state: SteerState, out: &mut Vec<Effect>) {
        if let Some(steer) = self.names.steer(uuid) {
            self.receipts.advance(&steer, state, out);
        }
    }

    /// A message was taken off the queue. The same is said of one whose turn was cut short; that one
    /// is in the history and may yet be read.
    fn withdrawn(&mut self, uuid: &str, out: &mut Vec<Effect>) {
        if let Some(steer) = self.names.steer(uuid)
            && self.receipts.state(&steer) < Some(SteerState::Inserted)
        {
            let interrupted = self.interrupting != Interrupting::No;
            let reason = if interrupted { INTERRUPTED } else { CANCELLED };
            self.receipts.drop(&steer, reason, out);
        }
    }

    /// Says so when nothing is under way.
    fn rest(&mut self, out: &mut Vec<Effect>) {
        let over = !self.open && !self.tasks.any_runs();
        if self.interrupting == Interrupting::Answered && (over || self.idle == Some(true)) {
            self.interrupting = Interrupting::No;
            self.working = false;
            self.result = None;
            self.in_turn = self.on_their_way();
            out.push(Effect::Settled);
        }
        self.hand_kept(out);
        let idle = self.idle.unwrap_or(over) && !self.open;
        let awaited = self.on_their_way() > 0;
        if self.working && idle && !awaited && self.interrupting == Interrupting::No {
            self.tell_end(out);
        }
    }

    fn tell_end(&mut self, out: &mut Vec<Effect>) {
        if let Some(TurnResult { text, error }) = self.result.take() {
            self.working = false;
            out.push(Effect::TurnEnded { text, error });
        }
    }
}

/// What the program's models took since it began, its subagents' requests among them: by model, in
/// the end of each turn. A turn's own `usage` leaves out what was cut short.
fn tokens(result: &Value, out: &mut Vec<Effect>) {
    let inputs = [
        "inputTokens",
        "cacheReadInputTokens",
        "cacheCreationInputTokens",
    ];
    let models = result.get("modelUsage").and_then(Value::as_object);
    let counts = models.into_iter().flat_map(|models| models.values());
    let counts = counts.filter_map(|usage| {
        let input = usage::sum(usage, &inputs)?;
        let output = usage::sum(usage, &["outputTokens"])?;
        Some(Tokens { input, output })
    });
    let total = counts.reduce(|mut total, more| {
        usage::add(&mut total, more);
        total
    });
    if let Some(tokens) = total {
        out.push(Effect::Tokens {
            child: None,
            tokens,
        });
    }
}
