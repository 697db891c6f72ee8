//! What is wrong in the file, with the line shown and what to do about it.

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;

use unicode_width::UnicodeWidthStr;

use super::KEYS;
use crate::cli::text::plain;
use crate::relay::redact::Redactor;

/// How much of a long line is shown, in characters.
const SHOWN: usize = 100;
/// What stands for what is not shown.
const INSTEAD: &str = "…";
/// Parts of names that say that the value is nobody's business.
const SECRET: [&str; 6] = [
    "token",
    "password",
    "passwd",
    "secret",
    "auth",
    "credential",
];

/// The same for parameters of addresses: there, short words mean it.
const SECRET_PARAMETER: [&str; 6] = ["key", "pass", "pwd", "sig", "jwt", "session"];

/// Something in the file that is not understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file.
    pub path: PathBuf,
    /// The line, counted from 1.
    pub line: usize,
    /// The column, counted from 1 in characters.
    pub column: usize,
    /// The key that it is about, if it is about one.
    pub key: Option<String>,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub remedy: String,
    /// The line as it may be shown.
    shown: String,
    /// Where in it the fault is, in columns of a terminal.
    mark: Range<usize>,
}

impl Problem {
    /// One about this span of bytes of a text.
    pub fn at(
        path: PathBuf,
        text: &str,
        span: Range<usize>,
        message: String,
        remedy: String,
    ) -> Self {
        let floor = |mut byte: usize| {
            byte = byte.min(text.len());
            while !text.is_char_boundary(byte) {
                byte -= 1;
            }
            byte
        };
        let (start, end) = (floor(span.start), floor(span.end.max(span.start)));
        let begin = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let line = text[begin..].lines().next().unwrap_or_default();
        let start_in_line = (start - begin).min(line.len());
        let end_in_line = (end - begin).clamp(start_in_line, line.len());
        let (shown, mark) = shown(line, start_in_line..end_in_line);
        Self {
            path,
            line: text[..start].matches('\n').count() + 1,
            column: line[..start_in_line].chars().count() + 1,
            key: None,
            message,
            remedy,
            shown,
            mark,
        }
    }
}

/// A line as it may be shown, and where the span is in it.
fn shown(line: &str, span: Range<usize>) -> (String, Range<usize>) {
    if let Some(masked) = masked(line) {
        let width = masked.trim_start().width();
        let all = masked.width() - width;
        return (plain(&masked), all..all + width);
    }
    let width_to = |byte: usize| plain(&line[..byte]).width();
    let mark = width_to(span.start)..width_to(span.end).max(width_to(span.start) + 1);
    let whole = plain(line);
    if whole.chars().count() <= SHOWN {
        return (whole, mark);
    }
    // The part that holds the fault.
    let first = plain(&line[..span.start])
        .chars()
        .count()
        .saturating_sub(SHOWN / 2);
    let part: String = whole.chars().skip(first).take(SHOWN).collect();
    let before: String = whole.chars().take(first).collect();
    let (lead, skipped) = if first > 0 {
        (INSTEAD, before.width())
    } else {
        ("", 0)
    };
    let start = mark.start - skipped + lead.width();
    let end = (start + mark.len())
        .min(lead.width() + part.width())
        .max(start + 1);
    (format!("{lead}{part}{INSTEAD}"), start..end)
}

/// The line without what may be secret in it, if something may be. Errors go into logs and reports.
fn masked(line: &str) -> Option<String> {
    if let Some(masked) = without_value(line) {
        return Some(masked);
    }
    let shown = without_parameters(&without_user(line));
    // It knows credentials by their looks, too. Of the key all was said: `token_file` is no secret.
    let value = shown.find('=').map_or(0, |equals| equals + 1);
    let (key, value) = shown.split_at(value);
    let shown = format!("{key}{}", Redactor::new([]).clean(value));
    (shown != line).then_some(shown)
}

/// The line without its value, if the key's name says that it is secret.
fn without_value(line: &str) -> Option<String> {
    if let Some((name, _)) = line.split_once('=') {
        let word = name.trim().trim_matches(['"', '\'']).to_lowercase();
        let known =
            |key: &&super::Key| key.name.rsplit('.').next() == Some(&*word) || key.name == word;
        let secret = SECRET.iter().any(|part| word.contains(part));
        if secret && !KEYS.iter().any(|key| known(&key)) {
            return Some(format!("{}= {INSTEAD}", name));
        }
    }
    None
}

/// The line without the user and the password of an address. In a wrong one they end where the last `@` is,
/// whatever stands before it.
fn without_user(line: &str) -> String {
    let scheme = line.find("://").map(|at| at + 3);
    // The scheme may be what is wrong.
    let value = line.split_once('=').filter(|(key, _)| key.contains("url"));
    let begin = scheme.or_else(|| Some(value?.0.len() + 1));
    match begin.zip(line.rfind('@')).filter(|(begin, at)| begin <= at) {
        Some((begin, at)) => format!("{}{INSTEAD}{}", &line[..begin], &line[at..]),
        None => line.to_owned(),
    }
}

/// The line without the values of an address's parameters whose names say that they are secret. Each goes to
/// the next parameter or the end: in a wrong address nothing else tells where it ends.
fn without_parameters(line: &str) -> String {
    let mut parts = line.split_inclusive(['?', '&']);
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let name = part.split_once('=').map(|(name, _)| name);
        let is_secret = |name: &&str| {
            let name = name.to_lowercase();
            // What is written in codes can be any name.
            let mut words = SECRET.iter().chain(&SECRET_PARAMETER);
            name.contains('%') || words.any(|word| name.contains(word))
        };
        match name.filter(is_secret) {
            Some(name) => {
                let end = &part[part.trim_end_matches(['?', '&']).len()..];
                shown.push_str(&format!("{name}={INSTEAD}{end}"));
            }
            None => shown.push_str(part),
        }
    }
    shown
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, line, column) = (plain(&self.path.to_string_lossy()), self.line, self.column);
        let (message, remedy) = (&self.message, &self.remedy);
        writeln!(
            f,
            "{path}, line {line}, column {column}: {message}; {remedy}"
        )?;
        let margin = " ".repeat(line.to_string().len());
        writeln!(f, "  {line} | {}", self.shown)?;
        let (blank, marks) = (" ".repeat(self.mark.start), "^".repeat(self.mark.len()));
        write!(f, "  {margin} | {blank}{marks}")
    }
}
