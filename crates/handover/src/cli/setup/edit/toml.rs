//! Our entry in TOML: a table `[mcp_servers.handover]` at the end of the file, or `handover = {…}` where all
//! servers are written in one line.

use std::ops::Range;

use toml_edit::{Document, InlineTable, Item, Table, Value};

use super::layout::{newline_of, toml_string};
use super::{Entry, Place, Problem, Server, is_ours, spliced};

/// The table that holds the servers.
const SERVERS: &str = "mcp_servers";

/// A file with our server alone.
pub fn fresh(server: Server, command: &str) -> String {
    format!("{}\n", table(server, command, "\n"))
}

/// The entry of our name.
pub fn find(text: &str, server: Server) -> Result<Option<Entry>, Problem> {
    let document = parse(text)?;
    let Some(servers) = document.as_table().get(SERVERS) else {
        return Ok(None);
    };
    let Some(servers) = servers.as_table_like() else {
        let (what, remedy) = ("`mcp_servers` is no table", "take it out");
        return Err(by_hand(text, servers, what, remedy));
    };
    let Some((key, entry)) = servers.get_key_value(server.name) else {
        return Ok(None);
    };
    let start = entry.span().or_else(|| key.span());
    Ok(Some(Entry {
        start: start.map_or(0, |span| span.start),
        ours: ours(entry, server),
        by_owner: is_dotted(entry),
    }))
}

/// The text with our table, of which there is none yet.
pub fn insert(text: &str, server: Server, command: &str) -> Result<String, Problem> {
    let document = parse(text)?;
    match document.as_table().get(SERVERS) {
        None | Some(Item::Table(_)) => {}
        Some(Item::Value(Value::InlineTable(servers))) => {
            return insert_inline(text, servers, server, command);
        }
        Some(other) => {
            let what = "`mcp_servers` is no table of servers";
            return Err(by_hand(text, other, what, "write it as [mcp_servers.NAME]"));
        }
    }
    let newline = newline_of(text);
    let table = table(server, command, newline);
    // A last line without an end stays one: so what was put in can be told from what was there.
    Ok(if text.is_empty() || text.ends_with('\n') {
        format!("{text}{newline}{table}{newline}")
    } else {
        format!("{text}{newline}{newline}{table}")
    })
}

/// The same among servers that are written in one line, in front of them.
fn insert_inline(
    text: &str,
    servers: &InlineTable,
    server: Server,
    command: &str,
) -> Result<String, Problem> {
    let Some(span) = servers.span() else {
        let what = "`mcp_servers` is written in an unusual way".to_owned();
        let (remedy, at) = ("write it as [mcp_servers.NAME]", Place::of(text, 0));
        return Err(Problem::ByHand { what, remedy, at });
    };
    let (name, args) = (server.name, list(server));
    let end = if servers.is_empty() { " " } else { "," };
    let command = toml_string(command);
    let entry = format!(" {name} = {{ command = {command}, args = [{args}] }}{end}");
    let at = span.start + 1;
    Ok(spliced(text, at..at, &entry))
}

/// Where [`insert`] may have put something: at the end, with one line end or two before it, or at the start
/// of the servers that are written in one line.
pub fn inserted(text: &str, server: Server) -> Vec<Range<usize>> {
    if let Ok(document) = parse(text)
        && let Some(Item::Value(Value::InlineTable(servers))) = document.as_table().get(SERVERS)
    {
        let span = servers
            .span()
            .zip(servers.get(server.name).and_then(Value::span));
        let span = span.map(|(whole, entry)| whole.start + 1..entry.end + 1);
        return span
            .filter(|span| span.end < text.len())
            .into_iter()
            .collect();
    }
    let header = format!("[{SERVERS}.{}]", server.name);
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
pub fn cut(text: &str, server: Server) -> Result<String, Problem> {
    let document = parse(text)?;
    let servers = document.as_table().get(SERVERS);
    let Some(servers) = servers.and_then(Item::as_table_like) else {
        return Ok(text.to_owned());
    };
    let Some((key, entry)) = servers.get_key_value(server.name) else {
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
        // Among servers that are written in one line.
        Item::Value(Value::InlineTable(table)) if !table.is_dotted() => {
            let whole = key.span().zip(table.span());
            let span = whole.map(|(key, value)| with_comma(text, key.start..value.end));
            return Ok(span.map_or_else(|| text.to_owned(), |span| spliced(text, span, "")));
        }
        other => {
            let what = format!("the server `{}` is not written as one table", server.name);
            return Err(by_hand(text, other, &what, "take it out"));
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

fn table(server: Server, command: &str, newline: &str) -> String {
    let (name, args) = (server.name, list(server));
    let command = toml_string(command);
    format!("[{SERVERS}.{name}]{newline}command = {command}{newline}args = [{args}]")
}

fn list(server: Server) -> String {
    let args: Vec<String> = server.args.iter().map(|arg| toml_string(arg)).collect();
    args.join(", ")
}

/// What goes with one of several in a line: the comma after it and the blank there, or else the one before.
fn with_comma(text: &str, span: Range<usize>) -> Range<usize> {
    let after = text[span.end..].trim_start();
    if let Some(rest) = after.strip_prefix(',') {
        return span.start..text.len() - rest.trim_start_matches([' ', '\t']).len();
    }
    let before = text[..span.start].trim_end();
    let start = before.strip_suffix(',').map_or(span.start, str::len);
    start..span.end
}

/// What an entry runs and where that is written, if it is our server.
fn ours(entry: &Item, server: Server) -> Option<(String, Range<usize>)> {
    let entry = entry.as_table_like()?;
    let command = entry.get("command")?;
    let args = entry.get("args")?.as_array()?;
    let args = args.iter().map(|arg| arg.as_str().unwrap_or_default());
    let (name, at) = (command.as_str()?, command.span()?);
    is_ours(server, name, args).then(|| (name.to_owned(), at))
}

/// Whether it is written as dotted keys: `handover.command = …`.
fn is_dotted(entry: &Item) -> bool {
    match entry {
        Item::Table(table) => table.is_dotted(),
        Item::Value(Value::InlineTable(table)) => table.is_dotted(),
        Item::None | Item::Value(_) | Item::ArrayOfTables(_) => false,
    }
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

fn by_hand(text: &str, item: &Item, what: &str, remedy: &'static str) -> Problem {
    Problem::ByHand {
        what: what.to_owned(),
        remedy,
        at: Place::of(text, item.span().map_or(0, |span| span.start)),
    }
}
