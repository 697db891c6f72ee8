//! Our entry in TOML: a table `[mcp_servers.handover]` at the end of the file.

use std::ops::Range;

use toml_edit::{Document, Item, Table};

use super::layout::{newline_of, toml_string};
use super::{ARGS, Entry, NAME, Place, Problem, is_ours};

/// The table that holds the servers.
const SERVERS: &str = "mcp_servers";

/// A file with our server alone.
pub fn fresh(command: &str) -> String {
    format!("{}\n", table(command, "\n"))
}

/// The entry of our name.
pub fn find(text: &str) -> Result<Option<Entry>, Problem> {
    let document = parse(text)?;
    let Some(servers) = document.as_table().get(SERVERS) else {
        return Ok(None);
    };
    let Some(servers) = servers.as_table_like() else {
        return Err(by_hand(text, servers, "`mcp_servers` is no table"));
    };
    let Some((key, entry)) = servers.get_key_value(NAME) else {
        return Ok(None);
    };
    let start = entry.span().or_else(|| key.span());
    Ok(Some(Entry {
        start: start.map_or(0, |span| span.start),
        ours: ours(entry),
    }))
}

/// The text with our table, of which there is none yet.
pub fn insert(text: &str, command: &str) -> Result<String, Problem> {
    let document = parse(text)?;
    match document.as_table().get(SERVERS) {
        None | Some(Item::Table(_)) => {}
        Some(other) => {
            let what = "`mcp_servers` is not written as tables `[mcp_servers.NAME]`";
            return Err(by_hand(text, other, what));
        }
    }
    let newline = newline_of(text);
    let table = table(command, newline);
    // A last line without an end stays one: so what was put in can be told from what was there.
    Ok(if text.is_empty() || text.ends_with('\n') {
        format!("{text}{newline}{table}{newline}")
    } else {
        format!("{text}{newline}{newline}{table}")
    })
}

/// Where [`insert`] may have put something: at the end, with one line end or two before it.
pub fn inserted(text: &str) -> Vec<Range<usize>> {
    let header = format!("[{SERVERS}.{NAME}]");
    let Some(start) = text.rfind(&header) else {
        return Vec::new();
    };
    let mut spans = Vec::new();
    let mut start = start;
    for _ in 0..2 {
        let Some(before) = text[..start].strip_suffix('\n') else {
            break;
        };
        start = before.strip_suffix('\r').unwrap_or(before).len();
        spans.push(start..text.len());
    }
    spans
}

/// The text without our entry and the tables in it, however they came there.
pub fn cut(text: &str) -> Result<String, Problem> {
    let document = parse(text)?;
    let servers = document.as_table().get(SERVERS);
    let Some(servers) = servers.and_then(Item::as_table_like) else {
        return Ok(text.to_owned());
    };
    let Some((key, entry)) = servers.get_key_value(NAME) else {
        return Ok(text.to_owned());
    };
    let mut spans = Vec::new();
    match entry {
        Item::Table(table) if !table.is_dotted() => tables(table, &mut spans),
        // A line of its own in a table of all servers.
        Item::Value(value) if matches!(document.as_table().get(SERVERS), Some(Item::Table(_))) => {
            let whole = key.span().zip(value.span());
            spans.extend(whole.map(|(key, value)| key.start..value.end));
        }
        other => {
            let what = "the server is not written as a table `[mcp_servers.handover]`";
            return Err(by_hand(text, other, what));
        }
    }
    spans.sort_unstable_by_key(|span| std::cmp::Reverse(span.start));
    let mut text = text.to_owned();
    for span in spans {
        let whole = lines(&text, span);
        text.replace_range(whole, "");
    }
    Ok(text)
}

fn table(command: &str, newline: &str) -> String {
    let args = ARGS.map(toml_string).join(", ");
    let command = toml_string(command);
    format!("[{SERVERS}.{NAME}]{newline}command = {command}{newline}args = [{args}]")
}

/// What an entry runs and where that is written, if it is our server.
fn ours(entry: &Item) -> Option<(String, Range<usize>)> {
    let entry = entry.as_table_like()?;
    let command = entry.get("command")?;
    let args = entry.get("args")?.as_array()?;
    let args = args.iter().map(|arg| arg.as_str().unwrap_or_default());
    let (name, at) = (command.as_str()?, command.span()?);
    is_ours(name, args).then(|| (name.to_owned(), at))
}

/// Where a table and those in it are written, each from its header to its last value.
fn tables(table: &Table, spans: &mut Vec<Range<usize>>) {
    if let Some(header) = table.span().filter(|_| !table.is_implicit()) {
        spans.push(header.start..last_value(table).unwrap_or(header.end).max(header.end));
    }
    for (_, item) in table.iter() {
        match item {
            Item::Table(inner) if !inner.is_dotted() => tables(inner, spans),
            Item::ArrayOfTables(inner) => inner.iter().for_each(|inner| tables(inner, spans)),
            Item::None | Item::Value(_) | Item::Table(_) => {}
        }
    }
}

/// Where the last value ends that stands below a table's own header.
fn last_value(table: &Table) -> Option<usize> {
    let ends = table.iter().filter_map(|(_, item)| match item {
        Item::Value(value) => value.span().map(|span| span.end),
        Item::Table(inner) if inner.is_dotted() => last_value(inner),
        Item::None | Item::Table(_) | Item::ArrayOfTables(_) => None,
    });
    ends.max()
}

/// The whole lines that a span touches, and the empty line before them.
fn lines(text: &str, span: Range<usize>) -> Range<usize> {
    let start = text[..span.start].rfind('\n').map_or(0, |end| end + 1);
    let end = text[span.end..].find('\n');
    let end = end.map_or(text.len(), |end| span.end + end + 1);
    let before = &text[..start];
    let blank = if before.ends_with("\r\n\r\n") {
        2
    } else if before.ends_with("\n\n") {
        1
    } else {
        0
    };
    start - blank..end
}

fn parse(text: &str) -> Result<Document<&str>, Problem> {
    Document::parse(text).map_err(|error| Problem::Unreadable {
        format: "TOML",
        what: error.message().trim().replace('\n', ", "),
        at: Place::of(text, error.span().map_or(0, |span| span.start)),
    })
}

fn by_hand(text: &str, item: &Item, what: &str) -> Problem {
    Problem::ByHand {
        what: what.to_owned(),
        at: Place::of(text, item.span().map_or(0, |span| span.start)),
    }
}
