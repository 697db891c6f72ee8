//! Text in, text out: our entry in a configuration file. Everything outside of what is put in, taken
//! out or renewed stays as it is, byte for byte.

mod jsonc;
mod layout;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
mod toml;
pub mod whole;

use std::ops::Range;

pub use self::jsonc::{Dialect, Json, Shape};

/// What our program is called.
pub const NAME: &str = "handover";

/// One of our MCP servers, as programs are told of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Server {
    /// Its name in every program's configuration.
    pub name: &'static str,
    /// What it is started with, after its program.
    pub args: &'static [&'static str],
}

/// All of them, in the order in which they are put in.
pub const SERVERS: [Server; 2] = [DESKTOP, BROWSER];
/// Desktops and agents.
pub const DESKTOP: Server = Server {
    name: NAME,
    args: &["mcp"],
};
/// The browser of a desktop.
pub const BROWSER: Server = Server {
    name: "handover-browser",
    args: &["browser", "mcp"],
};

/// How a configuration file is written.
#[derive(Clone, Copy, Debug)]
pub enum Format {
    /// JSON, with what its program allows beyond that.
    Json(Json),
    /// TOML with a table for each server below `mcp_servers`.
    Toml,
}

/// What is to become of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// It is as it should be.
    Nothing,
    /// This is its new text.
    Write(String),
    /// It holds nothing but what was put into it.
    Delete,
}

/// Why a file is left alone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// Its program cannot read it either.
    #[error("it cannot be read as {format}: {what} (line {line}, column {column}); correct it first", line = at.line, column = at.column)]
    Unreadable {
        /// What it should be.
        format: &'static str,
        /// What is wrong.
        what: String,
        /// Where.
        at: Place,
    },
    /// Another server has our name.
    #[error("a server named \"{name}\" is there already (line {line}) and does not run `{NAME} {args}`; give it another name, or use --force", name = server.name, args = server.args.join(" "), line = at.line)]
    Foreign {
        /// Which of ours has that name.
        server: Server,
        /// Where it stands.
        at: Place,
    },
    /// A file that is ours alone says something else.
    #[error("it is not what this version writes there; keep it, or use --force")]
    Altered,
    /// It is written in a way that this does not change.
    #[error("{what} (line {line}); {remedy}, then try again", line = at.line)]
    ByHand {
        /// What stands in the way.
        what: String,
        /// What a person has to do.
        remedy: &'static str,
        /// Where.
        at: Place,
    },
}

/// A place in a text; lines and columns count from 1, columns in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its line.
    pub line: usize,
    /// Its column.
    pub column: usize,
}

impl Place {
    /// That of a byte.
    fn of(text: &str, byte: usize) -> Self {
        let mut end = byte.min(text.len());
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let before = &text[..end];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Self {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }
}

/// The entry of our name in a text.
pub struct Entry {
    /// Where it begins, to be named to people.
    start: usize,
    /// What it runs and where that is written, if it is our server whatever else it sets.
    ours: Option<(String, Range<usize>)>,
    /// It is written in a way in which this never writes one, and cannot take one out: it is its owner's.
    by_owner: bool,
}

impl Format {
    /// The text with all our servers, as [`Format::add`] puts them in.
    pub fn add_all(
        self,
        text: Option<&str>,
        command: &str,
        force: bool,
    ) -> Result<Change, Problem> {
        let add = |text: Option<&str>, server| self.add(text, server, command, force);
        all(text, SERVERS.into_iter(), add)
    }

    /// The text without our servers, as [`Format::remove`] takes them out: the last first, since each was
    /// put into what the ones before it had made.
    pub fn remove_all(self, text: Option<&str>, force: bool) -> Result<Change, Problem> {
        let remove = |text: Option<&str>, server| self.remove(text, server, force);
        all(text, SERVERS.into_iter().rev(), remove)
    }

    /// The text with our server run by `command`: that of a new file without `text`. `force` replaces a
    /// server of our name that is none of ours.
    pub fn add(
        self,
        text: Option<&str>,
        server: Server,
        command: &str,
        force: bool,
    ) -> Result<Change, Problem> {
        let existing = text.is_some();
        let (mark, text) = byte_order_mark(text.unwrap_or_default());
        if !mark.is_empty() && !self.takes_byte_order_mark() {
            return Err(Problem::Unreadable {
                format: "JSON",
                what: "it begins with a byte order mark".to_owned(),
                at: Place { line: 1, column: 1 },
            });
        }
        if !existing || self.is_nothing(text) {
            let fresh = self.fresh(server, command);
            return Ok(Change::Write(format!("{mark}{fresh}")));
        }
        let added = match self.find(text, server)? {
            None => self.insert(text, server, command)?,
            Some(entry) => match entry.ours {
                Some((present, _)) if present == command => return Ok(Change::Nothing),
                Some((_, at)) => spliced(text, at, &self.literal(command)),
                None if force => self.insert(&self.cut(text, server)?, server, command)?,
                None => {
                    let at = Place::of(text, entry.start);
                    return Err(Problem::Foreign { server, at });
                }
            },
        };
        self.confirm(&added, server, Some(command))?;
        Ok(Change::Write(format!("{mark}{added}")))
    }

    /// The text without our server: what it was before [`Format::add`] if only that was done to it. What its owner
    /// has written, in a way of their own, stays. `force` also takes out a server of our name that is none of ours.
    pub fn remove(
        self,
        text: Option<&str>,
        server: Server,
        force: bool,
    ) -> Result<Change, Problem> {
        let (mark, text) = byte_order_mark(text.unwrap_or_default());
        if self.is_nothing(text) {
            return Ok(Change::Nothing);
        }
        let Some(entry) = self.find(text, server)? else {
            return Ok(Change::Nothing);
        };
        let before = match &entry.ours {
            Some(_) if entry.by_owner && !force => return Ok(Change::Nothing),
            Some((command, _)) if text == self.fresh(server, command) => {
                return Ok(Change::Delete);
            }
            Some((command, _)) => self.undone(text, server, command),
            None if force => None,
            None => {
                let at = Place::of(text, entry.start);
                return Err(Problem::Foreign { server, at });
            }
        };
        let removed = match before {
            Some(before) => before,
            None => self.cut(text, server)?,
        };
        self.confirm(&removed, server, None)?;
        Ok(Change::Write(format!("{mark}{removed}")))
    }

    /// Those of our servers that [`Format::remove_all`] has left to their owner, each with its place.
    pub fn left(self, text: Option<&str>) -> Vec<(Server, Place)> {
        let (_, text) = byte_order_mark(text.unwrap_or_default());
        let place = |server: Server| {
            let entry = self.find(text, server).ok().flatten()?;
            Some((server, Place::of(text, entry.start)))
        };
        SERVERS.into_iter().filter_map(place).collect()
    }

    /// The text that [`Format::insert`] made this one of, if it did: found by doing it again.
    fn undone(self, text: &str, server: Server, command: &str) -> Option<String> {
        let spans = match self {
            Self::Json(json) => json.inserted(text, server),
            Self::Toml => toml::inserted(text, server),
        };
        spans.into_iter().find_map(|span| {
            let before = spliced(text, span, "");
            let again = self.insert(&before, server, command).ok()?;
            (again == text).then_some(before)
        })
    }

    /// Nothing is handed out that does not say what it should.
    fn confirm(self, text: &str, server: Server, command: Option<&str>) -> Result<(), Problem> {
        let entry = self.find(text, server)?;
        let found = entry.and_then(|entry| entry.ours).map(|(found, _)| found);
        if found.as_deref() == command {
            return Ok(());
        }
        Err(Problem::ByHand {
            what: "it is written in an unusual way".to_owned(),
            remedy: "make the change by hand",
            at: Place { line: 1, column: 1 },
        })
    }

    /// A file with our server alone.
    fn fresh(self, server: Server, command: &str) -> String {
        match self {
            Self::Json(json) => json.fresh(server, command),
            Self::Toml => toml::fresh(server, command),
        }
    }

    /// Whether this is none of the format, and begun anew all the same. (No text is good TOML.)
    fn is_nothing(self, text: &str) -> bool {
        match self {
            Self::Json(_) => text.trim().is_empty(),
            Self::Toml => false,
        }
    }

    fn takes_byte_order_mark(self) -> bool {
        match self {
            Self::Json(json) => json.dialect != Dialect::Comments,
            Self::Toml => true,
        }
    }

    fn find(self, text: &str, server: Server) -> Result<Option<Entry>, Problem> {
        match self {
            Self::Json(json) => json.find(text, server),
            Self::Toml => toml::find(text, server),
        }
    }

    /// With our server, of which there is none yet: one span more, or nothing else is done.
    fn insert(self, text: &str, server: Server, command: &str) -> Result<String, Problem> {
        match self {
            Self::Json(json) => json.insert(text, server, command),
            Self::Toml => toml::insert(text, server, command),
        }
    }

    /// Without the entry of our name, whatever was done to the text since it was put in.
    fn cut(self, text: &str, server: Server) -> Result<String, Problem> {
        match self {
            Self::Json(json) => json.cut(text, server),
            Self::Toml => toml::cut(text, server),
        }
    }

    fn literal(self, string: &str) -> String {
        match self {
            Self::Json(_) => layout::json_string(string),
            Self::Toml => layout::toml_string(string),
        }
    }
}

/// What becomes of a file by one step a server.
fn all(
    text: Option<&str>,
    servers: impl Iterator<Item = Server>,
    step: impl Fn(Option<&str>, Server) -> Result<Change, Problem>,
) -> Result<Change, Problem> {
    let mut now = text.map(str::to_owned);
    for server in servers {
        match step(now.as_deref(), server)? {
            Change::Nothing => {}
            Change::Write(text) => now = Some(text),
            Change::Delete => now = None,
        }
    }
    Ok(match now {
        now if now.as_deref() == text => Change::Nothing,
        Some(text) => Change::Write(text),
        None => Change::Delete,
    })
}

/// Whether this starts that server, wherever its program is and whatever follows.
fn is_ours<'a>(server: Server, command: &str, mut args: impl Iterator<Item = &'a str>) -> bool {
    let name = command.rsplit('/').next();
    name == Some(NAME) && server.args.iter().all(|arg| args.next() == Some(*arg))
}

fn byte_order_mark(text: &str) -> (&str, &str) {
    let length = if text.starts_with('\u{feff}') { 3 } else { 0 };
    text.split_at(length)
}

fn spliced(text: &str, span: Range<usize>, with: &str) -> String {
    [&text[..span.start], with, &text[span.end..]].concat()
}
