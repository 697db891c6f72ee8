//! `handover setup PROGRAM`: an agent program's own configuration, made to start `handover mcp`.

mod edit;
mod file;
mod program;

use std::io;
use std::path::{Path, PathBuf};

use handover_protocol::ErrorCode;
use serde::Serialize;
use similar::TextDiff;

use self::edit::{ARGS, Change, NAME};
use self::file::Original;
use self::program::{Places, Program, Scope};
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
    /// Take out what was put in, and nothing else; needs no --write
    #[arg(long)]
    remove: bool,
    /// Only show the change, also with --remove
    #[arg(long)]
    dry_run: bool,
    /// Also replace or remove a server of our name that runs something else
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
    /// It is removed, since nothing else is in it.
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
    /// The server; absent when it is removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<Server>,
    diff: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'static str>,
}

#[derive(Debug, Serialize)]
struct Server {
    name: &'static str,
    command: String,
    args: [&'static str; 1],
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
    let format = args.program.format();
    let command = own_command(set("PATH"))?;
    let change = if args.remove {
        format.remove(original.text(), args.force)
    } else {
        format.add(original.text(), &command, args.force)
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
    let diff = diff(&path, original.text(), after);
    let wanted = args.write || (args.remove && !args.dry_run);
    let written = wanted && action != Action::None;
    let backup = match &change {
        Change::Write(after) if written => original.replace(after),
        Change::Delete if written => original.delete().map(|()| None),
        _ => Ok(None),
    };
    let backup = backup.map_err(|error| {
        let path = plain(&path.to_string_lossy());
        let message = format!("{path} cannot be written: {error}");
        Failure::new(ErrorCode::StorageFailed, message)
    })?;
    let server = (!args.remove).then_some(Server {
        name: NAME,
        command,
        args: ARGS,
    });
    let setup = Setup {
        program: args.program,
        scope: args.scope,
        path,
        action,
        written,
        backup,
        note: args.program.note(args.scope).filter(|_| server.is_some()),
        server,
        diff,
    };
    context.print(&setup, render)
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

/// The change as a unified diff; empty if there is none.
fn diff(path: &Path, before: Option<&str>, after: Option<&str>) -> String {
    let path = path.to_string_lossy();
    let name = |text: Option<&str>| text.map_or("/dev/null", |_| &*path).to_owned();
    TextDiff::from_lines(before.unwrap_or_default(), after.unwrap_or_default())
        .unified_diff()
        .header(&name(before), &name(after))
        .to_string()
}

fn unusable(path: &Path, error: &io::Error) -> Failure {
    let shown = plain(&path.to_string_lossy());
    let message = format!("{shown} cannot be used: {error}");
    Failure::new(ErrorCode::BadParams, message).with("path", path)
}

fn render(setup: &Setup) -> String {
    let path = plain(&setup.path.to_string_lossy());
    let name = setup.program.name();
    if setup.action == Action::None {
        return match setup.server {
            Some(_) => format!("Nothing to do: {name} starts `{NAME} mcp` by {path}.\n"),
            None => format!("Nothing to do: {path} has no server of ours.\n"),
        };
    }
    let mut text = plain_lines(&setup.diff);
    text.push_str(&match (setup.written, setup.action) {
        (false, _) => "Nothing was written yet".to_owned(),
        (true, Action::Delete) => format!("{path} was removed: nothing else was in it"),
        (true, _) => format!("{path} was written"),
    });
    if let Some(backup) = &setup.backup {
        let backup = plain(&backup.to_string_lossy());
        text.push_str(&format!("; what it was is in {backup}"));
    }
    if !setup.written {
        let way = match setup.server {
            Some(_) => "add --write",
            None => "leave out --dry-run",
        };
        text.push_str(&format!("; {way} to make this change"));
    }
    text.push_str(".\n");
    if let Some(note) = setup.note {
        text.push_str(&format!("{note}\n"));
    }
    text
}
