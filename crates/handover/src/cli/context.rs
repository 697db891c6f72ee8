//! What every command is given: the options that all have in common, and the way to print.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use handover_protocol::client::ANSWER_TIMEOUT;
use serde::Serialize;

use super::duration;
use super::failure::Failure;

/// Options of every command.
#[derive(Debug, Default, clap::Args)]
pub struct GlobalArgs {
    /// Print JSON: one object, or one a line for what goes on
    #[arg(long, global = true, help_heading = "Common options")]
    pub json: bool,
    /// The session, by id or name [default: HANDOVER_SESSION, else that of this directory]
    #[arg(
        long,
        global = true,
        value_name = "SESSION",
        visible_alias = "swarm-root",
        help_heading = "Common options"
    )]
    pub session: Option<String>,
    /// The attach socket of the session, whatever else is said
    #[arg(
        long,
        global = true,
        value_name = "PATH",
        help_heading = "Common options"
    )]
    pub socket: Option<PathBuf>,
    /// How long an answer may take, such as 500ms, 10s or 2m
    #[arg(
        long,
        global = true,
        value_name = "DURATION",
        value_parser = duration::parse,
        help_heading = "Common options"
    )]
    pub timeout: Option<Duration>,
}

/// What a command is given.
#[derive(Clone, Debug)]
pub struct Context {
    /// Print JSON.
    pub json: bool,
    /// The session that was asked for, by the option or the environment.
    pub session: Option<String>,
    /// The same, by the option alone.
    pub explicit_session: Option<String>,
    /// The socket that was asked for.
    pub socket: Option<PathBuf>,
    /// How long an answer may take.
    pub timeout: Duration,
    /// The same if it was said: a limit for what otherwise waits as long as it takes.
    pub explicit_timeout: Option<Duration>,
    /// How long may take what has a time limit of its own, or starts and ends processes.
    pub patience: Duration,
}

/// [`Context::patience`] if not said otherwise: this only has to end what would never end.
const PATIENCE: Duration = Duration::from_secs(60);

impl Context {
    /// From the command line, and `HANDOVER_SESSION` where that says nothing.
    pub fn new(args: GlobalArgs) -> Self {
        let explicit_session = args.session;
        let session = explicit_session
            .clone()
            .or_else(|| std::env::var("HANDOVER_SESSION").ok());
        Self {
            json: args.json,
            session: session.filter(|name| !name.is_empty()),
            explicit_session,
            socket: args.socket,
            timeout: args.timeout.unwrap_or(ANSWER_TIMEOUT),
            explicit_timeout: args.timeout,
            patience: args.timeout.unwrap_or(PATIENCE),
        }
    }

    /// Prints `value` as one line of JSON, or else what `human` makes of it.
    pub fn print<T: Serialize>(
        &self,
        value: &T,
        human: impl FnOnce(&T) -> String,
    ) -> Result<(), Failure> {
        if self.json {
            print_json(value)
        } else {
            print_text(&human(value))
        }
    }
}

/// Prints one line of JSON.
pub fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let mut line = serde_json::to_vec(value).map_err(io::Error::other)?;
    line.push(b'\n');
    write(&line)
}

/// Prints text, with a newline at its end. What comes from outside must have been made harmless.
pub fn print_text(text: &str) -> Result<(), Failure> {
    let newline = if text.is_empty() || text.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    write(format!("{text}{newline}").as_bytes())
}

/// Writes to standard output.
pub fn write(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    Ok(out.flush()?)
}

/// Runs `future` on this thread: a command does one thing, and starting threads would cost more
/// than it does.
pub fn block_on<T>(future: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(future)
}
