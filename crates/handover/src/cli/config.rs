//! `handover config`: what a person has set, and whether it is understood.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use clap::Subcommand;
use handover_protocol::ErrorCode;
use serde::Serialize;
use serde_json::Value;

use super::context::Context;
use super::failure::Failure;
use super::text::plain;
use crate::config::{Config, KEYS, Loaded, Trouble};
use crate::notify::token;

/// The commands below `handover config`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Check that the configuration is understood
    Check(Args),
    /// Print every setting and where it comes from
    Show(Args),
}

/// Arguments of the commands below `handover config`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The file [default: handover/config.toml in XDG_CONFIG_HOME or ~/.config]
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

#[derive(Debug, Serialize)]
struct Checked {
    ok: bool,
    path: Option<PathBuf>,
    exists: bool,
}

#[derive(Debug, Serialize)]
struct Shown {
    path: Option<PathBuf>,
    exists: bool,
    settings: BTreeMap<&'static str, Setting>,
}

#[derive(Debug, Serialize)]
struct Setting {
    value: Value,
    source: Source,
    /// The line in the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Source {
    Default,
    File,
}

/// Runs one of them.
pub fn run(command: Command, context: &Context) -> Result<(), Failure> {
    match command {
        Command::Check(args) => {
            let loaded = load(args)?;
            check_token(&loaded)?;
            let checked = Checked {
                ok: true,
                path: loaded.path,
                exists: loaded.exists,
            };
            context.print(&checked, render_checked)
        }
        Command::Show(args) => context.print(&shown(load(args)?), render_shown),
    }
}

fn load(args: Args) -> Result<Loaded, Failure> {
    let Some(path) = args.file else {
        return Ok(Config::load()?);
    };
    let path = std::path::absolute(path)?;
    let loaded = Config::load_from(&path)?;
    if loaded.exists {
        return Ok(loaded);
    }
    let message = format!("there is no file {}", plain(&path.to_string_lossy()));
    Err(Failure::new(ErrorCode::BadParams, message).with("path", path))
}

/// The file of the token is read only when something is posted; whoever checks wants to know before.
fn check_token(loaded: &Loaded) -> Result<(), Trouble> {
    let Some(path) = &loaded.config.notify.token_file else {
        return Ok(());
    };
    let Err(error) = token::read(path) else {
        return Ok(());
    };
    let path = plain(&path.to_string_lossy());
    let (message, remedy) = match error.kind() {
        io::ErrorKind::NotFound => (
            format!("there is no file {path}"),
            "put the token into it, with mode 600".to_owned(),
        ),
        _ => (format!("{path} cannot be used"), plain(&error.to_string())),
    };
    match loaded.about("notify.token_file", &message, remedy) {
        Some(trouble) => Err(trouble),
        None => Ok(()),
    }
}

fn shown(loaded: Loaded) -> Shown {
    let settings = KEYS.iter().map(|key| {
        let line = loaded.lines.get(key.name).copied();
        let source = line.map_or(Source::Default, |_| Source::File);
        let value = (key.value)(&loaded.config);
        (
            key.name,
            Setting {
                value,
                source,
                line,
            },
        )
    });
    Shown {
        settings: settings.collect(),
        path: loaded.path,
        exists: loaded.exists,
    }
}

fn render_checked(checked: &Checked) -> String {
    match &checked.path {
        Some(path) if checked.exists => format!("{} is understood", plain(&path.to_string_lossy())),
        Some(path) => format!(
            "there is no {}: every setting has its default",
            plain(&path.to_string_lossy())
        ),
        None => "HOME is not set: every setting has its default".to_owned(),
    }
}

/// As it could stand in the file, with where each value comes from.
fn render_shown(shown: &Shown) -> String {
    let mut text = match &shown.path {
        Some(path) if shown.exists => format!("# {}\n", plain(&path.to_string_lossy())),
        Some(path) => format!("# {} (not there)\n", plain(&path.to_string_lossy())),
        None => String::new(),
    };
    let mut section = "";
    for key in &KEYS {
        let Some(setting) = shown.settings.get(key.name) else {
            continue;
        };
        if key.section() != section {
            section = key.section();
            text.push_str(&format!("\n[{section}]\n"));
        }
        let name = &key.name[section.len() + 1..];
        let source = match setting.line {
            Some(line) => format!("line {line}"),
            None => "default".to_owned(),
        };
        let line = match &setting.value {
            Value::Null => format!("# {name} is not set"),
            // What JSON writes, TOML reads.
            value => format!("{name} = {}", plain(&value.to_string())),
        };
        text.push_str(&format!("{line:<45}  # {source}\n"));
    }
    text
}

impl From<Trouble> for Failure {
    fn from(trouble: Trouble) -> Self {
        let failure = Self::new(ErrorCode::BadParams, trouble.to_string());
        match trouble {
            Trouble::Unreadable { path, .. } => failure.with("path", path),
            Trouble::Wrong(problem) => failure
                .with("path", problem.path)
                .with("line", problem.line)
                .with("column", problem.column)
                .with("key", problem.key),
        }
    }
}

/// What holds, with a word to the person if their file is not understood: nothing else stops for that.
pub fn or_default() -> Config {
    let (config, trouble) = Config::load_or_default();
    if let Some(trouble) = trouble {
        eprintln!("handover: the configuration is not used: {trouble}");
    }
    config
}
