//! `handover top`: all sessions on one screen.

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use handover_protocol::{ErrorCode, Manifest, SessionId};

use super::context::{Context, block_on, print_text};
use super::failure::Failure;
use super::{discover, list};
use crate::config::Config;
use crate::overview::{Feed, Overview, clean, watch};
use crate::top::run::{self, End, Start};
use crate::top::{Now, once};

/// How long hosts may take to answer before a frame is printed without them.
const ANSWERED_WITHIN: Duration = Duration::from_secs(5);

/// How wide a frame is where nothing says it.
const COLUMNS: usize = 100;

/// Arguments of `handover top`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Print one frame and end; with --json, what it shows as one object
    #[arg(long)]
    once: bool,
    /// The viewer that taking control opens: auto, none or a program
    #[arg(long, value_name = "PROGRAM", default_value = "auto")]
    viewer: OsString,
}

/// Runs `handover top`.
pub fn run(args: Args, context: &Context) -> Result<(), Failure> {
    if !args.once {
        can_be_shown(context)?;
    }
    block_on(async {
        let only = chosen(context)?;
        let limit = only.clone();
        let feed = watch(move || live(limit.as_ref()), context.timeout);
        if args.once {
            return print_once(feed, only.as_ref(), context).await;
        }
        let (config, trouble) = Config::load_or_default();
        let start = Start {
            feed,
            viewer: args.viewer,
            bell: config.notify.bell,
            trouble: trouble.map(|trouble| clean(&trouble.to_string())),
        };
        match run::run(start).await? {
            End::Quit => Ok(()),
            End::Interrupted => Err(Failure::interrupted()),
        }
    })
}

/// The screen needs a terminal.
fn can_be_shown(context: &Context) -> Result<(), Failure> {
    if context.json {
        return Err(Failure::usage("--json needs --once: a screen is not JSON"));
    }
    let terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
    if terminal {
        return Ok(());
    }
    let message = "there is no terminal to show the sessions on; give --once to print them";
    Err(Failure::usage(message))
}

/// The session to which the options limit what is shown.
fn chosen(context: &Context) -> Result<Option<SessionId>, Failure> {
    if let Some(path) = &context.socket {
        let live = discover::live();
        let found = live
            .into_iter()
            .find(|host| path.as_os_str() == host.socket_path.as_str());
        let found = found.ok_or_else(|| {
            let message = format!(
                "no host serves {}; `handover sessions` lists them",
                path.display()
            );
            Failure::new(ErrorCode::SessionUnknown, message)
        })?;
        return Ok(Some(found.session_id));
    }
    match context.explicit_session {
        Some(_) => Ok(Some(discover::manifest(context)?.session_id)),
        None => Ok(None),
    }
}

fn live(only: Option<&SessionId>) -> Vec<Manifest> {
    let mut live = discover::live();
    live.retain(|host| only.is_none_or(|only| host.session_id == *only));
    live
}

async fn print_once(
    mut feed: Feed,
    only: Option<&SessionId>,
    context: &Context,
) -> Result<(), Failure> {
    let began = Instant::now();
    let expected = live(only).len();
    let limit = context.explicit_timeout.unwrap_or(ANSWERED_WITHIN);
    let mut overview = Overview::default();
    once::gather(&mut feed, &mut overview, expected, limit).await;
    let silent = once::unanswered(&mut overview, limit);
    let model = once::Model::of(&overview);
    if context.json {
        return match not_whole(&silent) {
            None => context.print(&model, |_| String::new()),
            Some(failure) => Err(failure.beside(serde_json::to_value(&model).unwrap_or_default())),
        };
    }
    let now = Now {
        ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
        wall: list::now(),
    };
    print_text(&once::text(&overview, now, columns()))?;
    not_whole(&silent).map_or(Ok(()), Err)
}

/// What is missing from a frame without these hosts, if there are any.
fn not_whole(silent: &[Manifest]) -> Option<Failure> {
    let one = |host: &Manifest| {
        let (id, name, pid) = (&host.session_id, clean(&host.name), host.pid);
        format!(
            "the host of {name} ({id}), process {pid}, does not answer; {}",
            discover::way_on(pid)
        )
    };
    let hosts: Vec<String> = silent.iter().map(one).collect();
    (!hosts.is_empty()).then(|| {
        let message = format!("not all is shown: {}", hosts.join("; "));
        Failure::new(ErrorCode::Timeout, message)
    })
}

/// How wide a frame is to be: what `COLUMNS` says, else the terminal.
fn columns() -> usize {
    let said = std::env::var("COLUMNS")
        .ok()
        .and_then(|text| text.parse().ok());
    let terminal = || {
        let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
        Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
    };
    said.or_else(terminal).unwrap_or(COLUMNS)
}
