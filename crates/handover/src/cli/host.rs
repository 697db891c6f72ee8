//! `handover host`: the host of a session, in the foreground or for `up`.

use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use handover_host::{HostError, HostOptions};
use handover_protocol::Size;

use super::config;
use super::context::{Context, print_json, print_text};
use super::discover;
use super::duration;
use super::failure::Failure;
use super::text::plain;
use crate::notify;

/// Arguments of `handover host`, which `up` has too. With `--session` it brings that session back.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// A name for people [default: that of the directory]
    #[arg(long, value_parser = session_name)]
    pub name: Option<String>,
    /// Start another session although this directory has one
    #[arg(long, conflicts_with = "session")]
    pub new: bool,
    /// Make a desktop if there is none
    #[arg(long)]
    pub desktop: bool,
    /// The desktop's size in pixels [default: 1280x800]
    #[arg(long, value_name = "WxH", requires = "desktop")]
    pub size: Option<Size>,
    /// The most agents that run at once; others wait for their turn
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub max_agents: u16,
    /// How long desktops go on if the host dies
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = duration::parse)]
    pub orphan_timeout: Duration,
    /// Let agents aim at what they saw before a person was in control
    #[arg(long)]
    pub no_observe_guard: bool,
}

/// The longest name of a session, in characters; agents' names have the same bound.
const MAX_NAME: usize = 100;

fn session_name(text: &str) -> Result<String, String> {
    let one_line = !text.chars().any(char::is_control);
    if text.trim().is_empty() || text.chars().count() > MAX_NAME || !one_line {
        return Err(format!(
            "a name must be one line of at most {MAX_NAME} characters, and not empty"
        ));
    }
    Ok(text.to_owned())
}

/// Arguments of `handover host`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    options: Options,
    /// Leave the terminal, and say on standard output when ready
    #[arg(long, hide = true)]
    detached: bool,
}

/// Runs `handover host`, until it is told to stop.
pub fn run(args: Args, context: &Context) -> Result<(), Failure> {
    let project_dir = discover::working_directory();
    let session = match &context.explicit_session {
        Some(wanted) => Some(discover::stopped(wanted)?),
        None => None,
    };
    // Nobody reads this of a host that `up` has started: that has said it itself.
    config::or_default();
    let options = args.options;
    let options = HostOptions {
        session,
        project_dir,
        name: options.name,
        another: options.new,
        desktop: options.desktop.then(|| options.size.unwrap_or_default()),
        orphan_timeout: options.orphan_timeout,
        max_agents: options.max_agents.into(),
        observe_guard: !options.no_observe_guard,
        notifier: Some(notify::program()),
    };
    if args.detached {
        // Signals of the terminal are not for us any more, and its end is not ours.
        rustix::process::setsid().map_err(std::io::Error::from)?;
        std::env::set_current_dir("/")?;
    }
    let json = context.json;
    let ready = |ready: &handover_host::Ready| {
        // Who started us may be gone; that is no reason to stop.
        let _ = tell(ready, json);
        if args.detached {
            let log = PathBuf::from(&ready.state_dir)
                .join("logs")
                .join("host.log");
            // What cannot be redirected goes to a pipe that nobody reads, and is lost.
            let _ = leave_output(&log);
        }
    };
    Ok(handover_host::run(&options, ready)?)
}

fn tell(ready: &handover_host::Ready, json: bool) -> Result<(), Failure> {
    if json {
        return print_json(ready);
    }
    let (id, name) = (&ready.session_id, plain(&ready.name));
    print_text(&format!(
        "session {id} ({name}) is up; Ctrl-C ends it\n  socket  {}\n",
        ready.socket_path
    ))
}

/// Sends what is printed from now on to the log: a panic, above all.
fn leave_output(log: &Path) -> std::io::Result<()> {
    let log = std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(log)?;
    rustix::stdio::dup2_stdout(&log)?;
    rustix::stdio::dup2_stderr(&log)?;
    Ok(())
}

impl From<HostError> for Failure {
    fn from(error: HostError) -> Self {
        let failure = match &error {
            HostError::Desktop(refusal) => return refusal.clone().into(),
            error => Self::new(error.code(), error.to_string()),
        };
        match error {
            HostError::AlreadyRunning { id, .. } => failure.with("sessionId", id),
            _ => failure,
        }
    }
}
