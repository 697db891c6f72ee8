//! From the text to the settings.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use toml_edit::{Document, Item, Key as Name, TableLike};

use super::keys::{KEYS, Key, Wrong, consistent, written};
use super::problem::Problem;
use super::{Config, Trouble};
use crate::cli::duration;
use crate::cli::text::plain;

/// The most entries that a list may have.
const MOST_ENTRIES: usize = 64;
/// The longest text, in bytes.
const LONGEST: usize = 2048;
/// How unlike a name may be to be taken for a slip of the pen.
const UNLIKE: usize = 3;
/// The fewest bytes of a name that may stand for a longer one.
const SHORTENED: usize = 4;

/// A value as it stands in the file.
pub struct Given<'a> {
    item: &'a Item,
    /// The directory of the file: relative paths are from there.
    pub directory: &'a Path,
}

impl Given<'_> {
    /// A text that is not empty.
    pub fn text(&self, example: &str) -> Result<&str, Wrong> {
        let text = self.item.as_str();
        let text = text.ok_or_else(|| self.wrong("a text in quotes", example))?;
        check_text(text)?;
        Ok(text)
    }

    /// `true` or `false`.
    pub fn truth(&self) -> Result<bool, Wrong> {
        let truth = self.item.as_bool();
        truth.ok_or_else(|| self.wrong("true or false, without quotes", "true"))
    }

    /// A whole number within bounds.
    pub fn number(&self, bounds: Range<i64>, example: &str) -> Result<i64, Wrong> {
        let number = self.item.as_integer();
        let number = number.ok_or_else(|| self.wrong("a whole number, without quotes", example))?;
        if bounds.contains(&number) {
            return Ok(number);
        }
        let remedy = format!("give {} to {}", bounds.start, bounds.end - 1);
        Err(Wrong::new(format!("{number} is out of bounds"), remedy))
    }

    /// A duration within bounds, in milliseconds.
    pub fn duration(&self, (least, most): (u64, u64), example: &str) -> Result<Duration, Wrong> {
        let text = self.text(example)?;
        let given =
            duration::parse(text).map_err(|what| Wrong::new(what, format!("write {example}")))?;
        if (least..=most).contains(&duration::ms(given)) {
            return Ok(given);
        }
        let (least, most) = (written(least), written(most));
        Err(Wrong::new(
            "this duration is out of bounds",
            format!("give {least} to {most}"),
        ))
    }

    /// A list of texts, each with where it stands.
    pub fn texts(&self, example: &str) -> Result<Vec<(&str, Range<usize>)>, Wrong> {
        let list = self.item.as_array();
        let list = list.ok_or_else(|| self.wrong("a list of texts", example))?;
        if list.len() > MOST_ENTRIES {
            let remedy = format!("leave {MOST_ENTRIES} of them");
            return Err(Wrong::new(
                format!("{} entries are too many", list.len()),
                remedy,
            ));
        }
        let text = |entry: &'_ toml_edit::Value| entry.span().unwrap_or_default();
        list.iter()
            .map(|entry| match entry.as_str() {
                Some(value) => {
                    check_text(value).map_err(|wrong| wrong.at(text(entry)))?;
                    Ok((value, text(entry)))
                }
                None => {
                    let wrong = Wrong::new("this is no text", format!("write {example}"));
                    Err(wrong.at(text(entry)))
                }
            })
            .collect()
    }

    fn wrong(&self, wanted: &str, example: &str) -> Wrong {
        let is = match self.item.type_name() {
            "inline table" => "table",
            name => name,
        };
        Wrong::new(
            format!("this must be {wanted}, and is of type {is}"),
            format!("write {example}"),
        )
    }
}

fn check_text(text: &str) -> Result<(), Wrong> {
    if text.trim().is_empty() {
        return Err(Wrong::new(
            "this text is empty",
            "take the line out, or fill it in",
        ));
    }
    if text.len() > LONGEST {
        let message = format!("this text has {} bytes", text.len());
        return Err(Wrong::new(message, format!("shorten it to {LONGEST}")));
    }
    if text.chars().any(char::is_control) {
        return Err(Wrong::new(
            "this text has characters that cannot be seen",
            "take them out",
        ));
    }
    Ok(())
}

/// The settings in a text, with the line of each key.
pub fn read(path: &Path, text: &str) -> Result<(Config, BTreeMap<&'static str, usize>), Trouble> {
    Reading::new(path, text).all().map_err(Trouble::Wrong)
}

struct Reading<'a> {
    path: &'a Path,
    text: &'a str,
    config: Config,
    spans: BTreeMap<&'static str, Range<usize>>,
}

impl<'a> Reading<'a> {
    fn new(path: &'a Path, text: &'a str) -> Self {
        // An editor on another system may have put it there.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        Self {
            path,
            text,
            config: Config::default(),
            spans: BTreeMap::new(),
        }
    }

    fn all(mut self) -> Result<(Config, BTreeMap<&'static str, usize>), Box<Problem>> {
        let document = Document::parse(self.text).map_err(|error| {
            let message = format!(
                "this is no TOML: {}",
                error.message().trim().replace('\n', ", ")
            );
            self.problem(
                error.span().unwrap_or_default(),
                message,
                "correct it".to_owned(),
            )
        })?;
        let root = document.as_table();
        for (section, item) in root.iter() {
            let name = root.key(section);
            let known = KEYS.iter().any(|key| key.section() == section);
            match item.as_table_like() {
                Some(table) if known => self.section(section, table)?,
                _ => return Err(self.unknown(section, span_of(name, item))),
            }
        }
        if let Some((key, wrong)) = consistent(&self.config) {
            let span = self.spans.get(key).cloned().unwrap_or_default();
            return Err(self.about(key, span, wrong));
        }
        let lines = self.spans.iter();
        let lines =
            lines.map(|(key, span)| (*key, self.text[..span.start].matches('\n').count() + 1));
        let lines = lines.collect();
        Ok((self.config, lines))
    }

    fn section(&mut self, section: &str, table: &dyn TableLike) -> Result<(), Box<Problem>> {
        for (name, item) in table.iter() {
            let full = format!("{section}.{name}");
            let span = span_of(table.key(name), item);
            let Some(key) = KEYS.iter().find(|key| key.name == full) else {
                return Err(self.unknown(&full, span));
            };
            let directory = self.path.parent().unwrap_or(self.path);
            let given = Given { item, directory };
            if let Err(wrong) = (key.set)(&mut self.config, &given) {
                let value = item.span().unwrap_or_else(|| span.clone());
                return Err(self.about(key.name, value, wrong));
            }
            self.spans.insert(key.name, span);
        }
        Ok(())
    }

    fn unknown(&self, name: &str, span: Range<usize>) -> Box<Problem> {
        let is_section = |key: &Key| key.section() == name;
        let message = if KEYS.iter().any(is_section) {
            format!("`{name}` is a table and no value")
        } else {
            format!("there is no key `{}`", plain(name))
        };
        let like = KEYS
            .iter()
            .filter_map(|key| Some((unlike(name, key.name)?, key)));
        let nearest = like.min_by_key(|(unlike, _)| *unlike).map(|(_, key)| key);
        let nearest = nearest.filter(|_| !KEYS.iter().any(is_section));
        let remedy = match nearest {
            Some(key) if name.starts_with(&format!("{}.", key.section())) => {
                format!("is `{}` meant?", key.name)
            }
            Some(key) => format!(
                "is `{}` meant? It belongs below [{}]",
                key.name,
                key.section()
            ),
            None if KEYS.iter().any(is_section) => {
                format!("write [{name}] in a line above its keys")
            }
            None => "take it out; `handover config show` has all keys".to_owned(),
        };
        let mut problem = self.problem(span, message, remedy);
        problem.key = Some(name.to_owned());
        problem
    }

    fn about(&self, key: &str, span: Range<usize>, wrong: Wrong) -> Box<Problem> {
        let message = format!("`{key}`: {}", wrong.message);
        let mut problem = self.problem(wrong.span.unwrap_or(span), message, wrong.remedy);
        problem.key = Some(key.to_owned());
        problem
    }

    fn problem(&self, span: Range<usize>, message: String, remedy: String) -> Box<Problem> {
        Box::new(Problem::at(
            self.path.to_owned(),
            self.text,
            span,
            message,
            remedy,
        ))
    }
}

/// How unlike a name is to that of a key; none if nobody would take one for the other.
fn unlike(name: &str, key: &str) -> Option<usize> {
    let last = |name: &str| name.rsplit('.').next().unwrap_or_default().to_owned();
    let (own, its) = (last(name), last(key));
    let elsewhere = usize::from(name.strip_suffix(&own) != key.strip_suffix(&its));
    let slips = strsim::osa_distance(&own, &its);
    // Of a short name a few slips leave nothing.
    if slips <= UNLIKE && slips * 2 < own.chars().count().max(its.len()) {
        return Some(slips + elsewhere);
    }
    let begins = own.len() >= SHORTENED && (its.starts_with(&own) || own.starts_with(&its));
    begins.then_some(UNLIKE + elsewhere)
}

/// Where a name is written, or else what it names.
fn span_of(name: Option<&Name>, item: &Item) -> Range<usize> {
    let name = name.and_then(Name::span);
    name.or_else(|| item.span()).unwrap_or_default()
}
