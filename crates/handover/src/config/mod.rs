//! What a person sets once for all sessions: `$XDG_CONFIG_HOME/handover/config.toml`.
//!
//! Every key stands in [`KEYS`]; `docs/config.md` says what each does. A file with anything in it that is not
//! understood is not used at all: half a configuration would be a surprise.

mod file;
mod given;
mod keys;
mod problem;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use self::file::{Trouble, read_limited};
pub use self::keys::{KEYS, Key, is_loopback, is_topic};
use self::problem::Problem;

/// All settings. What is not in the file has its default.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Config {
    /// How people are told that they are needed.
    pub notify: Notify,
    /// The web console.
    pub console: Console,
    /// Terms of `handover watch --control` that its options do not name.
    pub control: Control,
}

/// Settings `notify.*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notify {
    /// Where notices are posted to; not at all if there is none.
    pub url: Option<String>,
    /// The topic of an ntfy server that `url` is the root of.
    pub topic: Option<String>,
    /// A file with the token that `url` asks for.
    pub token_file: Option<PathBuf>,
    /// Whether notices are shown on this user's own desktop, where there is one.
    pub desktop: bool,
    /// Whether terminals ring and have their title changed.
    pub bell: bool,
    /// Of what notices are given.
    pub on: Vec<Occasion>,
}

impl Default for Notify {
    fn default() -> Self {
        Self {
            url: None,
            topic: None,
            token_file: None,
            desktop: true,
            bell: true,
            on: Occasion::ALL.to_vec(),
        }
    }
}

/// Something that people are told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occasion {
    /// An agent asks for a person.
    RequestHuman,
    /// A person's control is about to end by a limit.
    LeaseWarning,
}

impl Occasion {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::RequestHuman, Self::LeaseWarning];

    /// Its name in the file and on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::RequestHuman => "request_human",
            Self::LeaseWarning => "lease_warning",
        }
    }
}

/// Settings `console.*`.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Console {
    /// The port that the console listens on.
    pub port: Option<u16>,
    /// Further names by which browsers may call it.
    pub hosts: Vec<String>,
}

/// Settings `control.*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Control {
    /// How long control lasts when its holder's program stops answering.
    pub ttl: Option<Duration>,
    /// The longest time without input.
    pub idle: Option<Duration>,
    /// The longest time in control.
    pub max: Option<Duration>,
}

/// A configuration and where it comes from.
#[derive(Clone, Debug, Default)]
pub struct Loaded {
    /// The settings.
    pub config: Config,
    /// The file, if it is known where that would be.
    pub path: Option<PathBuf>,
    /// Whether it is there.
    pub exists: bool,
    /// The keys that it sets, each with its line, counted from 1.
    pub lines: BTreeMap<&'static str, usize>,
    text: String,
}

impl Loaded {
    /// What is wrong with the value of a key that the file sets, shown in its line; nothing if it does not.
    pub fn about(&self, key: &str, message: &str, remedy: String) -> Option<Trouble> {
        let (path, line) = (self.path.clone()?, *self.lines.get(key)?);
        let before: usize = self
            .text
            .split_inclusive('\n')
            .take(line - 1)
            .map(str::len)
            .sum();
        let whole = self.text[before..].lines().next().unwrap_or_default();
        let written = before + whole.len() - whole.trim_start().len();
        let span = written..before + whole.trim_end().len();
        let message = format!("`{key}`: {message}");
        let mut problem = Problem::at(path, &self.text, span, message, remedy);
        problem.key = Some(key.to_owned());
        Some(Trouble::Wrong(Box::new(problem)))
    }
}

impl Config {
    /// Reads this user's configuration. That there is none is no trouble.
    ///
    /// # Errors
    /// When the file cannot be read, or says something that is not understood.
    pub fn load() -> Result<Loaded, Trouble> {
        match file::of_user() {
            Some(path) => Self::load_from(&path),
            None => Ok(Loaded::default()),
        }
    }

    /// Reads this file.
    ///
    /// # Errors
    /// As [`Config::load`].
    pub fn load_from(path: &Path) -> Result<Loaded, Trouble> {
        let text = file::read(path)?;
        let mut loaded = Loaded {
            path: Some(path.to_owned()),
            exists: text.is_some(),
            ..Loaded::default()
        };
        let (config, lines) = given::read(path, text.as_deref().unwrap_or_default())?;
        (loaded.config, loaded.lines) = (config, lines);
        loaded.text = text.unwrap_or_default();
        Ok(loaded)
    }

    /// This user's configuration, or what holds without one, with the reason to be told to a person.
    pub fn load_or_default() -> (Self, Option<Trouble>) {
        match Self::load() {
            Ok(loaded) => (loaded.config, None),
            Err(trouble) => (Self::default(), Some(trouble)),
        }
    }
}
