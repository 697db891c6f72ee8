//! Whatever is in a file, what is put in is all that changes, and taking it out gives the file back.

use jsonc_parser::{JsonObject, JsonValue, ParseOptions, parse_to_value};
use proptest::prelude::*;

use super::*;

const MEMBER: &str = "servers";

fn json(dialect: Dialect, shape: Shape) -> Format {
    Format::Json(Json {
        servers: MEMBER,
        dialect,
        shape,
    })
}

/// What may stand between two tokens.
fn gap(dialect: Dialect) -> BoxedStrategy<String> {
    let blank = prop::sample::select(vec![
        "", "", " ", "\n", "\n  ", "\r\n\t", "\r\n", "\n\n    ",
    ]);
    let comment = prop::sample::select(vec![
        "/* , } */",
        "/**/",
        "// { \"\n",
        "/* a\n b */",
        "//\r\n",
    ]);
    if dialect == Dialect::Plain {
        return blank.prop_map(str::to_owned).boxed();
    }
    let part = prop_oneof![4 => blank, 1 => comment];
    prop::collection::vec(part, 1..3)
        .prop_map(|parts| parts.concat())
        .boxed()
}

/// An object of these members, written in some way.
fn object(dialect: Dialect, members: Vec<(String, String)>) -> BoxedStrategy<String> {
    let gaps = prop::collection::vec(gap(dialect), 4 * members.len() + 1);
    let trailing = dialect == Dialect::CommentsAndTrailingCommas;
    (gaps, any::<bool>())
        .prop_map(move |(gaps, comma)| {
            let mut gap = gaps.iter();
            let mut next = move || gap.next().cloned().unwrap_or_default();
            let mut text = "{".to_owned();
            for (index, (name, value)) in members.iter().enumerate() {
                let last = index + 1 == members.len();
                let comma = if last && !(comma && trailing) {
                    ""
                } else {
                    ","
                };
                text.push_str(&format!(
                    "{}\"{name}\"{}:{}{value}{}{comma}",
                    next(),
                    next(),
                    next(),
                    next()
                ));
            }
            format!("{text}{}}}", next())
        })
        .boxed()
}

fn value(dialect: Dialect) -> BoxedStrategy<String> {
    let plain = prop::sample::select(vec![
        "1",
        "null",
        "\"}{\"",
        "[]",
        "[{\"a\": [1]}]",
        "\"ä\\n\"",
        "{}",
    ]);
    let plain = plain.prop_map(str::to_owned);
    let nested = prop::collection::vec(plain.clone(), 0..3)
        .prop_flat_map(move |values| object(dialect, named("m", values)));
    prop_oneof![plain, nested].boxed()
}

fn named(prefix: &str, values: Vec<String>) -> Vec<(String, String)> {
    let number = |(index, value)| (format!("{prefix}{index}"), value);
    values.into_iter().enumerate().map(number).collect()
}

/// A file: other members, perhaps servers among them, and what is around the whole.
fn file(dialect: Dialect) -> BoxedStrategy<String> {
    let values = move |most| prop::collection::vec(value(dialect), 0..most);
    let servers = prop::option::of(
        values(3).prop_flat_map(move |values| object(dialect, named("s", values))),
    );
    (values(3), servers, any::<prop::sample::Index>())
        .prop_flat_map(move |(values, servers, at)| {
            let mut members = named("o", values);
            if let Some(servers) = servers {
                let at = at.index(members.len() + 1);
                members.insert(at, (MEMBER.to_owned(), servers));
            }
            let marks = match dialect {
                Dialect::Comments => vec![""],
                Dialect::Plain | Dialect::CommentsAndTrailingCommas => vec!["", "", "\u{feff}"],
            };
            let mark = prop::sample::select(marks);
            (mark, gap(dialect), object(dialect, members), gap(dialect))
        })
        .prop_map(|(mark, before, object, after)| [mark, &before, &object, &after].concat())
        .boxed()
}

fn any_json() -> impl Strategy<Value = (Format, String)> {
    let dialect = prop::sample::select(vec![
        Dialect::Plain,
        Dialect::Comments,
        Dialect::CommentsAndTrailingCommas,
    ]);
    let shape = prop::sample::select(vec![Shape::CommandAndArgs, Shape::Local]);
    (dialect, shape).prop_flat_map(|(dialect, shape)| (Just(json(dialect, shape)), file(dialect)))
}

fn any_toml() -> impl Strategy<Value = (Format, String)> {
    let line = prop::sample::select(vec![
        "",
        "",
        "# [mcp_servers.handover]",
        "  # ä",
        "x = 1 # y",
        "t = \"\"\"\n[mcp_servers.handover]\n\"\"\"",
        "[[mcp_servers_]]",
        "[a.b]",
        "[mcp_servers.other]",
        "\tk = { q = [1,\n 2] }",
        "[mcp_servers.x.env]",
        "mcp_servers = {}",
        "mcp_servers = { i = {},j={ args = [] } } # one line",
        "\"z\" = ''",
    ]);
    let lines = prop::collection::vec(line, 0..8);
    let newline = prop::sample::select(vec!["\n", "\r\n"]);
    let mark = prop::sample::select(vec!["", "", "\u{feff}"]);
    (mark, lines, newline, any::<bool>()).prop_filter_map(
        "no TOML",
        |(mark, lines, newline, end)| {
            let mut text = lines.join("\n").replace('\n', newline);
            if end {
                text.push_str(newline);
            }
            toml::find(&text, DESKTOP).ok()?;
            Some((Format::Toml, format!("{mark}{text}")))
        },
    )
}

fn written(change: Result<Change, Problem>) -> String {
    match change {
        Ok(Change::Write(text)) => text,
        other => panic!("{other:?}"),
    }
}

/// What is put in is one piece, nothing is to be done the second time, and it comes out again.
fn comes_and_goes(format: Format, text: &str, command: &str) -> String {
    let added = written(format.add_all(Some(text), command, false));
    let shared = text
        .bytes()
        .zip(added.bytes())
        .take_while(|(a, b)| a == b)
        .count();
    let rest = &text.as_bytes()[shared..];
    assert!(
        added.as_bytes().ends_with(rest),
        "{text:?} became {added:?}"
    );
    assert_eq!(
        format.add_all(Some(&added), command, true),
        Ok(Change::Nothing)
    );
    assert_eq!(
        written(format.remove_all(Some(&added), false)),
        text,
        "{added:?}"
    );
    added
}

/// What a program reads in a file, without our server and without servers if there are no others.
fn others(text: &str) -> String {
    let (_, text) = byte_order_mark(text);
    let Ok(Some(JsonValue::Object(mut root))) = parse_to_value(text, &ParseOptions::default())
    else {
        panic!("no object: {text}");
    };
    let mut servers = match root.take(MEMBER) {
        Some(JsonValue::Object(servers)) => servers,
        _ => JsonObject::with_capacity(0),
    };
    for server in SERVERS {
        servers.take(server.name);
    }
    let (root, servers) = (JsonValue::Object(root), JsonValue::Object(servers));
    format!("{} {}", in_order(root), in_order(servers))
}

/// The same for all orders of members.
fn in_order(value: JsonValue<'_>) -> String {
    match value {
        JsonValue::Object(object) => {
            let members = object.into_iter();
            let mut members: Vec<String> = members
                .map(|(name, value)| format!("{name}: {}", in_order(value)))
                .collect();
            members.sort_unstable();
            format!("{members:?}")
        }
        JsonValue::Array(array) => {
            let items: Vec<String> = array.into_iter().map(in_order).collect();
            format!("{items:?}")
        }
        other => format!("{other:?}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn json_is_given_back((format, text) in any_json(), command in "(/[a-zä \"\\\\]{0,5}/)?handover") {
        let added = comes_and_goes(format, &text, &command);
        prop_assert_eq!(others(&text), others(&added));
    }

    #[test]
    fn toml_is_given_back((format, text) in any_toml(), command in "(/[a-zä \"\\\\\u{7f}]{0,5}/)?handover") {
        comes_and_goes(format, &text, &command);
    }

    /// Also when others have been at the file since: what is theirs is still there.
    #[test]
    fn json_loses_nothing_else((format, text) in any_json(), (_, later) in any_json()) {
        let added = written(format.add_all(Some(&text), "handover", false));
        let moved = written(format.add_all(Some(&added), "/elsewhere/handover", false));
        let removed = written(format.remove_all(Some(&moved), false));
        prop_assert_eq!(others(&text), others(&removed));
        // Nothing panics on what is none of the format.
        let _ = Format::Toml.add_all(Some(&later), "handover", true);
    }
}
