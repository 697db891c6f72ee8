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

/// The name of our server in every program's configuration.
pub const NAME: &str = "handover";
/// What our server is started with, after its program.
pub const ARGS: [&str; 1] = ["mcp"];

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
    #[error("a server named \"{NAME}\" is there already (line {line}) and does not run `{NAME} mcp`; give it another name, or use --force", line = at.line)]
    Foreign {
        /// Where it stands.
        at: Place,
    },
    /// A file that is ours alone says something else.
    #[error("it is not what this version writes there; keep it, or use --force")]
    Altered,
    /// It is written in a way that this does not change.
    #[error("{what} (line {line}); change it by hand", line = at.line)]
    ByHand {
        /// What stands in the way.
        what: String,
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
    /// What it runs and where that is written, if it is `handover mcp` whatever else it sets.
    ours: Option<(String, Range<usize>)>,
}

impl Format {
    /// The text with our server run by `command`: that of a new file without `text`. `force` replaces a
    /// server of our name that is none of ours.
    pub fn add(self, text: Option<&str>, command: &str, force: bool) -> Result<Change, Problem> {
        let Some(text) = text else {
            return Ok(Change::Write(self.fresh(command)));
        };
        let (mark, text) = byte_order_mark(text);
        let added = match self.find(text)? {
            None => self.insert(text, command)?,
            Some(entry) => match entry.ours {
                Some((present, _)) if present == command => return Ok(Change::Nothing),
                Some((_, at)) => spliced(text, at, &self.literal(command)),
                None if force => self.insert(&self.cut(text)?, command)?,
                None => {
                    let at = Place::of(text, entry.start);
                    return Err(Problem::Foreign { at });
                }
            },
        };
        self.confirm(&added, Some(command))?;
        Ok(Change::Write(format!("{mark}{added}")))
    }

    /// The text without our server: what it was before [`Format::add`] if only that was done to it. `force`
    /// also takes out a server of our name that is none of ours.
    pub fn remove(self, text: Option<&str>, force: bool) -> Result<Change, Problem> {
        let Some(text) = text else {
            return Ok(Change::Nothing);
        };
        let (mark, text) = byte_order_mark(text);
        let Some(entry) = self.find(text)? else {
            return Ok(Change::Nothing);
        };
        let before = match &entry.ours {
            Some((command, _)) if mark.is_empty() && text == self.fresh(command) => {
                return Ok(Change::Delete);
            }
            Some((command, _)) => self.undone(text, command),
            None if force => None,
            None => {
                let at = Place::of(text, entry.start);
                return Err(Problem::Foreign { at });
            }
        };
        let removed = match before {
            Some(before) => before,
            None => self.cut(text)?,
        };
        self.confirm(&removed, None)?;
        Ok(Change::Write(format!("{mark}{removed}")))
    }

    /// The text that [`Format::insert`] made this one of, if it did: found by doing it again.
    fn undone(self, text: &str, command: &str) -> Option<String> {
        let spans = match self {
            Self::Json(json) => json.inserted(text),
            Self::Toml => toml::inserted(text),
        };
        spans.into_iter().find_map(|span| {
            let before = spliced(text, span, "");
            let again = self.insert(&before, command).ok()?;
            (again == text).then_some(before)
        })
    }

    /// Nothing is handed out that does not say what it should.
    fn confirm(self, text: &str, command: Option<&str>) -> Result<(), Problem> {
        let entry = self.find(text)?;
        let found = entry.and_then(|entry| entry.ours).map(|(found, _)| found);
        if found.as_deref() == command {
            return Ok(());
        }
        Err(Problem::ByHand {
            what: "it is written in an unusual way".to_owned(),
            at: Place { line: 1, column: 1 },
        })
    }

    /// A file with our server alone.
    fn fresh(self, command: &str) -> String {
        match self {
            Self::Json(json) => json.fresh(command),
            Self::Toml => toml::fresh(command),
        }
    }

    fn find(self, text: &str) -> Result<Option<Entry>, Problem> {
        match self {
            Self::Json(json) => json.find(text),
            Self::Toml => toml::find(text),
        }
    }

    /// With our server, of which there is none yet: one span more, or nothing else is done.
    fn insert(self, text: &str, command: &str) -> Result<String, Problem> {
        match self {
            Self::Json(json) => json.insert(text, command),
            Self::Toml => toml::insert(text, command),
        }
    }

    /// Without the entry of our name, whatever was done to the text since it was put in.
    fn cut(self, text: &str) -> Result<String, Problem> {
        match self {
            Self::Json(json) => json.cut(text),
            Self::Toml => toml::cut(text),
        }
    }

    fn literal(self, string: &str) -> String {
        match self {
            Self::Json(_) => layout::json_string(string),
            Self::Toml => layout::toml_string(string),
        }
    }
}

/// Whether this starts our server, wherever its program is.
fn is_ours<'a>(command: &str, mut args: impl Iterator<Item = &'a str>) -> bool {
    let name = command.rsplit('/').next();
    name == Some(NAME) && args.next() == ARGS.first().copied()
}

fn byte_order_mark(text: &str) -> (&str, &str) {
    let length = if text.starts_with('\u{feff}') { 3 } else { 0 };
    text.split_at(length)
}

fn spliced(text: &str, span: Range<usize>, with: &str) -> String {
    [&text[..span.start], with, &text[span.end..]].concat()
}
