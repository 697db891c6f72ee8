//! Our entry in JSON: `{"mcpServers": {"handover": {…}}}`.
//!
//! It is put in front of what is there already, so that no comma outside of it is touched, and after the
//! comment that stands in the line of the bracket, which is about the whole.

use std::ops::Range;

use jsonc_parser::ast::{Object, ObjectProp, Value};
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

use super::layout::{Layout, indent_of, json_string, newline_of};
use super::{Entry, Place, Problem, Server, is_ours, spliced};

/// What a program takes beyond JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// A byte order mark before it.
    Plain,
    /// Comments, but no byte order mark.
    Comments,
    /// A byte order mark, comments, and commas after the last member.
    CommentsAndTrailingCommas,
}

/// How a program writes what a server is started with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// `"command": "handover", "args": ["mcp"]`.
    CommandAndArgs,
    /// `"type": "local", "command": ["handover", "mcp"]`.
    Local,
}

/// How a program keeps its servers in JSON.
#[derive(Clone, Copy, Debug)]
pub struct Json {
    /// The member of the outermost object that holds the servers.
    pub servers: &'static str,
    /// What may stand in the file.
    pub dialect: Dialect,
    /// What stands in an entry.
    pub shape: Shape,
}

/// How much white space after an entry is looked at as having come with it, in bytes.
const LOOKED_AT: usize = 64;

impl Json {
    /// A file with our server alone.
    pub fn fresh(self, server: Server, command: &str) -> String {
        let layout = Layout::Lines {
            newline: "\n",
            step: "  ",
        };
        // A list in lines is what no entry has that was put into a file: so the two are told apart.
        let entry = self.entry(server, command, layout, "    ", true);
        let servers = layout.object("  ", &[entry]);
        let whole = layout.object("", &[layout.member(self.servers, &servers)]);
        format!("{whole}\n")
    }

    /// The entry of our name.
    pub fn find(self, text: &str, server: Server) -> Result<Option<Entry>, Problem> {
        let root = self.parse(text)?;
        let Some(servers) = self.servers(text, &root)? else {
            return Ok(None);
        };
        let Some(entry) = only(text, servers.object, server.name)? else {
            return Ok(None);
        };
        Ok(Some(Entry {
            start: entry.range.start,
            ours: self.ours(&entry.value, server),
            by_owner: false,
        }))
    }

    /// The text with our entry, of which there is none yet.
    pub fn insert(self, text: &str, server: Server, command: &str) -> Result<String, Problem> {
        let root = self.parse(text)?;
        let newline = newline_of(text);
        let step = step_of(text, &root);
        let lines = Layout::Lines { newline, step };
        let servers = self.servers(text, &root)?;
        let Some(servers) = servers else {
            return Ok(put_first(text, &root, lines, |layout, indent| {
                let inner = format!("{indent}{}", layout.step());
                let entry = self.entry(server, command, layout, &inner, false);
                layout.member(self.servers, &layout.object(indent, &[entry]))
            }));
        };
        if servers.object.properties.is_empty() {
            // With spaces inside of the brackets, which there are none of where the object was not there.
            let entry = self.entry(server, command, Layout::Spaced, "", false);
            let at = servers.object.range.start + 1;
            return Ok(spliced(text, at..at, &format!(" {entry} ")));
        }
        Ok(put_first(text, servers.object, lines, |layout, indent| {
            self.entry(server, command, layout, indent, false)
        }))
    }

    /// Where [`Json::insert`] may have put something.
    pub fn inserted(self, text: &str, server: Server) -> Vec<Range<usize>> {
        let mut spans = Vec::new();
        let Ok(root) = self.parse(text) else {
            return spans;
        };
        let Ok(Some(servers)) = self.servers(text, &root) else {
            return spans;
        };
        let Some(entry) = servers.object.get(server.name) else {
            return spans;
        };
        let within = [
            (servers.object, entry.range.end),
            (&root, servers.member.range.end),
        ];
        for (object, end) in within {
            let rest = &text.as_bytes()[end..];
            let blank = rest
                .iter()
                .take(LOOKED_AT)
                .take_while(|byte| byte.is_ascii_whitespace());
            // White space, or a comma and perhaps a space.
            let ends = (end..=end + blank.count()).chain([end + 1, end + 2]);
            for end in ends.filter(|end| *end <= object.range.end) {
                for start in [line_end(text, object), object.range.start + 1] {
                    if start < end && text.is_char_boundary(end) {
                        spans.push(start..end);
                    }
                }
            }
        }
        spans
    }

    /// The text without our entry, however it came there.
    pub fn cut(self, text: &str, server: Server) -> Result<String, Problem> {
        let root = self.parse(text)?;
        let entry_of = |servers: &Servers<'_, '_>| {
            let all = &servers.object.properties;
            let index = all
                .iter()
                .position(|member| member.name.as_str() == server.name)?;
            let (entry, inside) = (all[index].range, servers.object.range);
            let comma = comma_after(text, entry.end);
            if let Some(next) = all.get(index + 1) {
                // With what leads to the next member, if that is only white space.
                let end = comma.unwrap_or(entry.end);
                let blank = text[end..next.range.start].trim().is_empty();
                return Some(entry.start..if blank { next.range.start } else { end });
            }
            let end = comma.unwrap_or(entry.end);
            let Some(previous) = index.checked_sub(1).and_then(|index| all.get(index)) else {
                let (start, close) = (inside.start + 1, inside.end - 1);
                let alone = text[start..entry.start].trim().is_empty()
                    && text[end..close].trim().is_empty();
                return Some(if alone {
                    start..close
                } else {
                    entry.start..end
                });
            };
            // The last: the comma before it goes, unless the file ends its lists with one.
            let before = comma_after(text, previous.range.end).unwrap_or(previous.range.end);
            let blank = text[before..entry.start].trim().is_empty();
            let start = match (comma, blank) {
                (None, true) => previous.range.end,
                (Some(_), true) => before,
                (_, false) => entry.start,
            };
            Some(start..end)
        };
        let servers = self.servers(text, &root)?;
        let span = servers.and_then(|servers| entry_of(&servers));
        Ok(span.map_or_else(|| text.to_owned(), |span| spliced(text, span, "")))
    }

    fn entry(
        self,
        server: Server,
        command: &str,
        layout: Layout<'_>,
        indent: &str,
        in_lines: bool,
    ) -> String {
        let inner = format!("{indent}{}", layout.step());
        let args: Vec<String> = server.args.iter().map(|arg| json_string(arg)).collect();
        let members = match self.shape {
            Shape::CommandAndArgs => [
                layout.member("command", &json_string(command)),
                layout.member("args", &layout.list(&inner, &args, in_lines)),
            ],
            Shape::Local => {
                let words: Vec<String> = [json_string(command)].into_iter().chain(args).collect();
                [
                    layout.member("type", &json_string("local")),
                    layout.member("command", &layout.list(&inner, &words, in_lines)),
                ]
            }
        };
        layout.member(server.name, &layout.object(indent, &members))
    }

    /// What an entry runs and where that is written, if it is our server.
    fn ours(self, entry: &Value<'_>, server: Server) -> Option<(String, Range<usize>)> {
        let entry = entry.as_object()?;
        let (command, args) = match self.shape {
            Shape::CommandAndArgs => {
                let args = entry.get_array("args")?;
                (entry.get_string("command")?, args.elements.as_slice())
            }
            Shape::Local => {
                let (command, args) = entry.get_array("command")?.elements.split_first()?;
                (command.as_string_lit()?, args)
            }
        };
        let args = args
            .iter()
            .map(|arg| arg.as_string_lit().map_or("", |arg| &*arg.value));
        let at = command.range.start..command.range.end;
        is_ours(server, &command.value, args).then(|| (command.value.to_string(), at))
    }

    fn parse(self, text: &str) -> Result<Object<'_>, Problem> {
        let commas = self.dialect == Dialect::CommentsAndTrailingCommas;
        let options = ParseOptions {
            allow_comments: self.dialect != Dialect::Plain,
            allow_trailing_commas: commas,
            allow_loose_object_property_names: false,
            allow_missing_commas: false,
            allow_single_quoted_strings: false,
            allow_hexadecimal_numbers: false,
            allow_unary_plus_numbers: false,
            allow_bare_decimal_point_numbers: false,
            allow_non_finite_numbers: false,
            allow_extended_string_escapes: false,
        };
        let unreadable = |what: String, byte: usize| Problem::Unreadable {
            format: "JSON",
            what,
            at: Place::of(text, byte),
        };
        let parsed = parse_to_ast(text, &CollectOptions::default(), &options)
            .map_err(|error| unreadable(error.kind().to_string(), error.range().start))?;
        match parsed.value {
            Some(Value::Object(root)) => Ok(root),
            Some(other) => Err(unreadable(
                "the outermost value must be an object".to_owned(),
                other.start(),
            )),
            None => Err(unreadable(
                "nothing but comments is in it, not even {}".to_owned(),
                0,
            )),
        }
    }

    /// The object that holds the servers.
    fn servers<'o, 't>(
        self,
        text: &str,
        root: &'o Object<'t>,
    ) -> Result<Option<Servers<'o, 't>>, Problem> {
        let Some(member) = only(text, root, self.servers)? else {
            return Ok(None);
        };
        match &member.value {
            Value::Object(object) => Ok(Some(Servers { member, object })),
            other => Err(Problem::ByHand {
                what: format!("\"{}\" is no object", self.servers),
                remedy: "make it one, {}",
                at: Place::of(text, other.start()),
            }),
        }
    }
}

/// The servers of a file.
struct Servers<'o, 't> {
    member: &'o ObjectProp<'t>,
    object: &'o Object<'t>,
}

/// The member of that name.
fn only<'o, 't>(
    text: &str,
    object: &'o Object<'t>,
    name: &str,
) -> Result<Option<&'o ObjectProp<'t>>, Problem> {
    let mut named = object
        .properties
        .iter()
        .filter(|member| member.name.as_str() == name);
    let first = named.next();
    match named.next() {
        Some(second) => Err(Problem::ByHand {
            what: format!("\"{name}\" is there twice"),
            remedy: "join the two into one, since programs differ on which of them counts",
            at: Place::of(text, second.range.start),
        }),
        None => Ok(first),
    }
}

/// The text with a member before all others of an object, in the way in which those are laid out.
fn put_first(
    text: &str,
    object: &Object<'_>,
    lines: Layout<'_>,
    member: impl Fn(Layout<'_>, &str) -> String,
) -> String {
    let Layout::Lines { newline, .. } = lines else {
        return text.to_owned();
    };
    let inside = object.range.start + 1;
    let Some(first) = object.properties.first() else {
        let outer = indent_of(text, object.range.start);
        let indent = format!("{outer}{}", lines.step());
        let member = member(lines, &indent);
        let member = format!("{newline}{indent}{member}{newline}{outer}");
        return spliced(text, inside..inside, &member);
    };
    let lead = &text[inside..first.range.start];
    if lead.contains('\n') {
        let at = line_end(text, object);
        let indent = indent_of(text, first.range.start);
        let member = format!("{newline}{indent}{},", member(lines, indent));
        return spliced(text, at..at, &member);
    }
    let spaced = text[first.name.end()..first.value.start()].contains(' ');
    let (layout, lead) = match lead.trim().is_empty() {
        true if spaced || !lead.is_empty() => (Layout::Spaced, lead),
        true => (Layout::Tight, lead),
        false => (Layout::Spaced, " "),
    };
    let member = format!("{lead}{},", member(layout, ""));
    let gap = if lead.is_empty() && spaced { " " } else { "" };
    spliced(text, inside..inside, &format!("{member}{gap}"))
}

/// The end of the line in which an object's bracket stands, if nothing but comments follows there; else
/// right after the bracket.
fn line_end(text: &str, object: &Object<'_>) -> usize {
    let inside = object.range.start + 1;
    let mut at = inside;
    loop {
        let rest = &text[at..];
        let blank = rest.len() - rest.trim_start_matches([' ', '\t']).len();
        let rest = &rest[blank..];
        at += blank;
        if rest.starts_with('\n') || rest.starts_with("\r\n") {
            return at;
        }
        let comment = if rest.starts_with("//") {
            rest.find('\n')
                .map(|end| end - usize::from(rest[..end].ends_with('\r')))
        } else {
            let inside = rest.strip_prefix("/*");
            inside.and_then(|inside| Some(inside.find("*/")? + "/**/".len()))
        };
        match comment {
            Some(length) => at += length,
            None => return inside,
        }
    }
}

/// What one step to the right is in a file.
fn step_of<'t>(text: &'t str, root: &Object<'_>) -> &'t str {
    let first = root.properties.first();
    let step = first.map_or("", |first| indent_of(text, first.range.start));
    if step.is_empty() { "  " } else { step }
}

/// The end of the comma that follows, if only white space is before it.
fn comma_after(text: &str, end: usize) -> Option<usize> {
    let rest = &text[end..];
    let blank = rest.len() - rest.trim_start().len();
    rest[blank..].starts_with(',').then_some(end + blank + 1)
}
