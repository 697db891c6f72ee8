//! `handover setup PROGRAM`: an agent program's own configuration, made to start our MCP servers, or to know of
//! the command line where it knows no MCP.

mod edit;
mod file;
mod program;
mod shown;

use std::io;
use std::path::{Path, PathBuf};

use handover_protocol::ErrorCode;
use serde::Serialize;

use self::edit::{Change, NAME, SERVERS, whole};
use self::file::Original;
use self::program::{Means, Places, Program, Scope};
use self::shown::Ours;
use super::context::Context;
use super::failure::Failure;
use super::text::{plain, plain_lines};

/// Arguments of `handover setup`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The agent program
    program: Program,
    /// Which of its configurations
    #[arg(long, default_value = "user")]
    scope: Scope,
    /// Make the change; without this it is only shown
    #[arg(long, conflicts_with = "dry_run")]
    write: bool,
    /// Take out what was put in, and nothing else; does so without --write
    #[arg(long)]
    remove: bool,
    /// Only show the change, also with --remove
    #[arg(long)]
    dry_run: bool,
    /// Also replace or remove what has our name and is not ours
    #[arg(long)]
    force: bool,
}

/// What is done to a file, or would be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Action {
    /// Nothing: it is as it should be.
    None,
    /// It is made.
    Create,
    /// It is changed.
    Change,
    /// It is removed, since all of it was ours.
    Delete,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Setup {
    program: Program,
    scope: Scope,
    path: PathBuf,
    action: Action,
    /// Whether it was done.
    written: bool,
    /// Where the earlier text is kept.
    backup: Option<PathBuf>,
    /// The servers that it starts; none when they are taken out, and where it knows none.
    servers: Vec<Server>,
    diff: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

#[derive(Debug, Serialize)]
struct Server {
    name: &'static str,
    command: String,
    args: &'static [&'static str],
}

impl Server {
    fn of(server: edit::Server, command: &str) -> Self {
        Self {
            name: server.name,
            command: command.to_owned(),
            args: server.args,
        }
    }
}

/// Runs `handover setup`.
pub fn run(args: &Args, context: &Context) -> Result<(), Failure> {
    let directory = std::env::current_dir()?;
    let set = |name: &str| {
        let value = std::env::var_os(name).filter(|value| !value.is_empty());
        value.map(PathBuf::from)
    };
    let places = Places {
        variable: &set,
        directory: &directory,
    };
    let path = args.program.file(args.scope, &places)?;
    let original = Original::read(&path).map_err(|error| unusable(&path, &error))?;
    let text = original.text();
    let command = own_command(set("PATH"))?;
    let (means, force) = (args.program.means(), args.force);
    let change = match (means, args.remove) {
        (Means::Servers(format), false) => format.add_all(text, &command, force),
        (Means::Servers(format), true) => format.remove_all(text, force),
        (Means::File(ours), false) => whole::put(text, ours, force),
        (Means::File(ours), true) => whole::take_away(text, ours, force),
    };
    let change = change.map_err(|problem| {
        let message = format!("{}: {problem}", plain(&path.to_string_lossy()));
        Failure::new(ErrorCode::BadParams, message).with("path", &path)
    })?;
    let (action, after) = match &change {
        Change::Nothing => (Action::None, original.text()),
        Change::Write(after) if original.text().is_none() => (Action::Create, Some(&**after)),
        Change::Write(after) => (Action::Change, Some(&**after)),
        Change::Delete => (Action::Delete, None),
    };
    let ours = match means {
        Means::Servers(_) => Ours::Entries { command: &command },
        Means::File(text) => Ours::File(text),
    };
    let note = match means {
        Means::Servers(format) if args.remove => left(&format.left(after)),
        _ => args
            .program
            .note(args.scope)
            .filter(|_| !args.remove)
            .map(str::to_owned),
    };
    let diff = shown::diff(&path, original.text(), after, ours);
    let servers = match means {
        Means::Servers(_) if !args.remove => {
            SERVERS.map(|server| Server::of(server, &command)).into()
        }
        _ => Vec::new(),
    };
    let wanted = args.write || (args.remove && !args.dry_run);
    let written = wanted && action != Action::None;
    let backup = match &change {
        Change::Write(after) if written => original.replace(after),
        Change::Delete if written => original.delete(args.force),
        _ => Ok(None),
    };
    let backup = backup.map_err(|error| {
        let path = plain(&path.to_string_lossy());
        let message = format!("{path} cannot be written: {error}");
        Failure::new(ErrorCode::StorageFailed, message)
    })?;
    let setup = Setup {
        program: args.program,
        scope: args.scope,
        path,
        action,
        written,
        backup,
        servers,
        diff,
        note,
    };
    context.print(&setup, |setup| render(setup, args.remove))
}

/// That what its owner has written stays.
fn left(servers: &[(edit::Server, edit::Place)]) -> Option<String> {
    let one = |(server, at): &(edit::Server, edit::Place)| {
        format!("`{}` (line {})", server.name, at.line)
    };
    let servers: Vec<String> = servers.iter().map(one).collect();
    (!servers.is_empty()).then(|| {
        let servers = servers.join(" and ");
        format!("{servers} stays: it is written as dotted keys, which this never writes. Take it out by hand.")
    })
}

/// What starts this program: its name if that is found on `PATH`, since it then outlives an update, else
/// where it is.
fn own_command(path: Option<PathBuf>) -> Result<String, Failure> {
    let own = std::env::current_exe()?.canonicalize()?;
    let found = path.and_then(|path| {
        let mut all = std::env::split_paths(&path).map(|directory| directory.join(NAME));
        all.find(|program| program.is_file())
    });
    if found.is_some_and(|found| found.canonicalize().is_ok_and(|found| found == own)) {
        return Ok(NAME.to_owned());
    }
    match own.into_os_string().into_string() {
        Ok(own) => Ok(own),
        Err(_) => Err(Failure::new(
            ErrorCode::BadParams,
            "the path of this program is not UTF-8; put it on PATH by its name",
        )),
    }
}

fn unusable(path: &Path, error: &io::Error) -> Failure {
    let shown = plain(&path.to_string_lossy());
    let message = format!("{shown} cannot be used: {error}");
    Failure::new(ErrorCode::BadParams, message).with("path", path)
}

fn render(setup: &Setup, remove: bool) -> String {
    let path = plain(&setup.path.to_string_lossy());
    if setup.action == Action::None {
        let state = if remove { "has nothing" } else { "has all" };
        // What is put there is known to whoever has it.
        let note = setup.note.iter().filter(|_| remove);
        let note = note.fold(String::new(), |text, note| text + note + "\n");
        return format!("Nothing to do: {path} {state} that this puts there.\n{note}");
    }
    let mut text = plain_lines(&setup.diff);
    text.push_str(&match (setup.written, setup.action) {
        (false, _) => "Nothing was written yet".to_owned(),
        (true, Action::Delete) => format!("{path} was removed"),
        (true, _) => format!("{path} was written"),
    });
    if let Some(backup) = &setup.backup {
        let backup = plain(&backup.to_string_lossy());
        text.push_str(&format!("; what it was is in {backup}"));
    }
    if !setup.written {
        let way = if remove {
            "leave out --dry-run"
        } else {
            "add --write"
        };
        text.push_str(&format!("; {way} to make this change"));
    }
    text.push_str(".\n");
    if let Some(note) = &setup.note {
        text.push_str(&format!("{note}\n"));
    }
    text
}
