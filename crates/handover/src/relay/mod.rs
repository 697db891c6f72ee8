//! `handover relay`: any MCP server on standard input and output, with the gate before its tools.
//!
//! Newline-delimited JSON-RPC goes both ways as it is. A call of a tool waits for a permit of the host,
//! which it holds until its response has passed back; while a person has control it is answered here and
//! never reaches the server. [`gate`] decides, and is told by [`shell`] what happens. The server runs below
//! a keeper: it ends with the relay, and its permits end only when nothing of it is left.

mod allow;
mod answers;
mod call;
mod complaints;
#[cfg(test)]
mod fuzzed;
mod gate;
mod link;
mod memory;
#[cfg(test)]
mod properties;
mod queue;
mod records;
pub(crate) mod redact;
mod scan;
mod shell;
mod splitter;
mod stdio;
mod to_server;
mod upstream;

use std::sync::Arc;

use handover_host::system::prctl;
use handover_protocol::{DesktopId, ErrorCode, Refusal};

use allow::Allow;
use gate::Gate;
use link::{Link, Locate};
use redact::Redactor;
use shell::Shell;
use stdio::Output;
use upstream::{Program, Upstream};

use crate::streams;

/// What is relayed, and how.
pub struct Options {
    /// The server and its arguments.
    pub command: Vec<String>,
    /// The desktop that its tools act on; that of the session if it has one.
    pub desktop: Option<DesktopId>,
    /// The tools that only look, by name; `*` stands for any text.
    pub allow: Vec<String>,
    /// Whether the server is believed which of its tools only look.
    pub allow_readonly: bool,
}

/// Who ended a relay, if not its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// The client has left, or told the relay to end.
    Client,
    /// Somebody interrupted it, as by Ctrl-C.
    Interrupted,
}

/// Relays until the client or the server ends.
///
/// `locate` finds the attach socket: that of the session it is given, else of the one that the command
/// line means. It is asked when a tool is called, so the session may start later or come back.
///
/// # Errors
/// If the server cannot be started, or ended first.
pub async fn run(options: Options, locate: Arc<Locate>) -> Result<Left, Refusal> {
    streams::log_to_stderr("handover=info,handover_host=info");
    let failed = |error: std::io::Error| Refusal::new(ErrorCode::Internal, error.to_string());
    // If the keeper is killed, what was below it comes to us, and is killed too.
    prctl::become_subreaper().map_err(failed)?;
    let variables = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let program = Program {
        command: options.command,
        redactor: Redactor::new(variables),
    };
    let server = Upstream::start(program.clone()).await?;
    let link = Link::new(locate, options.desktop, server.0.keeper());
    let output = Output::start().map_err(failed)?;
    let input = stdio::input().map_err(failed)?;
    let gate = Gate::new(Allow::new(options.allow, options.allow_readonly));
    Shell::new(gate, link, output, program)
        .run(input, server)
        .await
}
