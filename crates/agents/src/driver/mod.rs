//! Drivers: one agent program's protocol each, without any I/O.
//!
//! A driver is told what the program wrote and what people want, and answers with [`Effect`]s. It has
//! no clock, no socket and no process, so what a real program once said can be replayed to it word for
//! word. The [`run`](crate::run) task does what the effects say.
//!
//! The one rule of receipts: a driver reports a [`SteerState`] only when its program's protocol shows
//! it. Where the protocol shows nothing, nothing is reported, and the manager says `unknown` in the
//! end.

pub mod acp;
pub mod claude;
pub mod codex;
pub mod command;
#[cfg(test)]
mod honest;
mod json;
pub mod pi;
mod receipts;
#[cfg(test)]
mod replay;
mod shorten;
mod usage;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use handover_protocol::{AgentStatus, ErrorCode, Refusal, SteerId, SteerState, SteerWhen, Tokens};

/// What an agent is to be, as far as its program is concerned.
#[derive(Clone, Debug)]
pub struct Task {
    /// The task in words; may be empty where the driver allows.
    pub prompt: String,
    /// Further arguments of the program; for `command` and `acp`, program and arguments.
    pub args: Vec<String>,
    /// Where it works, absolute.
    pub cwd: PathBuf,
    /// How the program reaches Handover's own tools.
    pub tools: Option<ToolServer>,
}

/// The MCP server that an agent is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolServer {
    /// Program and arguments.
    pub command: Vec<String>,
    /// Environment variables that it needs beyond those of the agent.
    pub env: BTreeMap<String, String>,
}

/// A program to be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Program and arguments; a program without a slash is looked up in `PATH`.
    pub argv: Vec<String>,
    /// Environment variables of the driver's own.
    pub env: BTreeMap<String, String>,
    /// How its output is told apart.
    pub framing: Framing,
}

/// How a program's standard output is handed to [`Driver::output`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// One line at a time without its newline, at most [`MAX_LINE`] bytes; a longer one is left out
    /// and logged.
    Lines,
    /// As it comes.
    Bytes,
}

/// The longest line of a program that reaches its driver, in bytes.
pub const MAX_LINE: usize = 16 << 20;

/// What a driver can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Why nothing can be steered into the program, if nothing can.
    pub not_steerable: Option<&'static str>,
    /// When a steer can be put to the program. Without a wish the first of these is done.
    pub when: &'static [SteerWhen],
}

/// A message for the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Steer {
    /// Its name.
    pub id: SteerId,
    /// The message.
    pub text: String,
    /// When it is put to the program; one of [`Capabilities::when`].
    pub when: SteerWhen,
    /// The program's own subagent that it is for, as [`Effect::Child`] named it.
    pub child: Option<String>,
}

/// What a driver wants done, in this order.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Writes to the program's standard input. The newline is part of the bytes.
    Write(Vec<u8>),
    /// The same for bytes that carry a steer: its `handed` is stored before they are written.
    Hand {
        /// The steer.
        steer: SteerId,
        /// What is written.
        bytes: Vec<u8>,
    },
    /// Closes the program's standard input.
    CloseInput,
    /// The program can take work: what was `starting` is `running`.
    Ready,
    /// The program has begun a turn; said also for the first.
    TurnBegan,
    /// The program has nothing under way and nothing queued.
    TurnEnded {
        /// What it said last.
        text: String,
        /// Why the turn failed, if it did.
        error: Option<String>,
    },
    /// After [`Driver::interrupt`]: the program says that nothing is under way.
    Settled,
    /// A steer has come so far. Steps back and repeats are passed over by the manager.
    Receipt {
        /// The steer.
        steer: SteerId,
        /// How far.
        state: SteerState,
        /// Why it was dropped, or why nothing is known.
        reason: Option<String>,
    },
    /// The program says something. Parts of one message follow each other.
    Text {
        /// Its own subagent that says it.
        child: Option<String>,
        /// A part of the message.
        text: String,
    },
    /// The program uses a tool.
    Tool {
        /// Its own subagent that uses it.
        child: Option<String>,
        /// The program's name for the call.
        call: Option<String>,
        /// The tool.
        tool: String,
        /// False when it begins, true when it has ended.
        ended: bool,
        /// The command or the arguments in short, at most [`MAX_SUMMARY`] bytes.
        summary: Option<String>,
    },
    /// What the model took in and gave out so far, all in all.
    Tokens {
        /// The program's own subagent whose they are.
        child: Option<String>,
        /// How many.
        tokens: Tokens,
    },
    /// The program asks for permission, and goes on only after [`Driver::decide`].
    Ask {
        /// The program's name for the question.
        question: String,
        /// What it wants to do, for people.
        what: String,
    },
    /// The program no longer asks.
    AskWithdrawn {
        /// The program's name for the question.
        question: String,
    },
    /// News of a subagent of the program's own.
    Child(Child),
    /// The program cannot be driven; the agent ends as `failed` with this reason.
    Fail(String),
}

/// The longest summary of a tool call, in bytes.
pub const MAX_SUMMARY: usize = 500;

/// A subagent that the program itself has started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Child {
    /// The program's name for it.
    pub native: String,
    /// The program's name for its parent, if that is a subagent too.
    pub parent: Option<String>,
    /// A name for people.
    pub name: String,
    /// What it is to do.
    pub task: String,
    /// How it stands: `running` or an end.
    pub status: AgentStatus,
    /// Why nothing can be steered into it, if nothing can.
    pub not_steerable: Option<String>,
    /// What it said last.
    pub text: Option<String>,
}

/// One agent program's protocol. Effects are added to `out` in the order in which they are to happen.
pub trait Driver: fmt::Debug + Send {
    /// What it can do with the program as far as known; may change when the program is ready.
    fn capabilities(&self) -> Capabilities;

    /// The program runs: begins the conversation and, as soon as the program can, the first turn.
    fn begin(&mut self, out: &mut Vec<Effect>);

    /// The program wrote this to its standard output.
    fn output(&mut self, data: &[u8], out: &mut Vec<Effect>);

    /// Puts a message to the program: into its turn, or as a turn of its own when none is under way.
    /// What the program cannot take yet is kept. Steers are put to the program in this order.
    fn steer(&mut self, steer: Steer, out: &mut Vec<Effect>);

    /// Takes back what the program has not begun to work on, then ends its turn. [`Effect::Settled`]
    /// follows, at once if nothing is under way. Every steer that did not arrive gets its receipt.
    fn interrupt(&mut self, out: &mut Vec<Effect>);

    /// Ends the work of one of the program's own subagents, named as in [`Effect::Child`]. False if
    /// the protocol has no way to.
    fn interrupt_child(&mut self, native: &str, out: &mut Vec<Effect>) -> bool {
        let _ = (native, out);
        false
    }

    /// A person has decided on a question that the program asked.
    fn decide(&mut self, question: &str, allow: bool, out: &mut Vec<Effect>) {
        let _ = (question, allow, out);
    }

    /// The program has ended and everything it wrote was handed over. Steers that the driver kept are
    /// `dropped`, what the program may have taken in is `unknown`: a receipt for each that had none.
    /// `TurnEnded` if its output amounts to a result.
    fn ended(&mut self, success: bool, out: &mut Vec<Effect>);
}

/// Makes a driver by its name: [`create`], or another where a harness has drivers of its own.
pub type Create = fn(&str, Task) -> Result<(Program, Box<dyn Driver>), Refusal>;

/// The drivers by name.
pub const NAMES: &[&str] = &["pi", "codex", "claude", "acp", "command"];

/// A driver and the program that it drives.
///
/// # Errors
/// `bad_params` for a name that is not in [`NAMES`], or a task that the driver cannot take.
pub fn create(name: &str, task: Task) -> Result<(Program, Box<dyn Driver>), Refusal> {
    match name {
        "pi" => pi::create(task),
        "codex" => codex::create(task),
        "acp" => acp::create(task),
        "claude" => claude::create(task),
        "command" => command::create(task),
        _ => Err(Refusal::new(
            ErrorCode::BadParams,
            format!(
                "there is no driver {name:?}; there are {}",
                NAMES.join(", ")
            ),
        )
        .with("drivers", NAMES)),
    }
}
