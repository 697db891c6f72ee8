//! What is put in looks as if its owner had written it, and what is not understood is left alone.

use super::*;

const CLAUDE: Format = Format::Json(Json {
    servers: "mcpServers",
    dialect: Dialect::Plain,
    shape: Shape::CommandAndArgs,
});
const OPENCODE: Format = Format::Json(Json {
    servers: "mcp",
    dialect: Dialect::CommentsAndTrailingCommas,
    shape: Shape::Local,
});

fn added(format: Format, text: &str) -> String {
    match format.add(Some(text), DESKTOP, "handover", false) {
        Ok(Change::Write(text)) => text,
        other => panic!("{other:?}"),
    }
}

fn removed(format: Format, text: &str) -> String {
    match format.remove(Some(text), DESKTOP, false) {
        Ok(Change::Write(text)) => text,
        other => panic!("{other:?}"),
    }
}

fn problem(format: Format, text: &str) -> String {
    format
        .add(Some(text), DESKTOP, "handover", false)
        .unwrap_err()
        .to_string()
}

#[test]
fn a_new_file_goes_with_what_was_put_in() {
    for format in [CLAUDE, OPENCODE, Format::Toml] {
        let Ok(Change::Write(text)) = format.add(None, DESKTOP, "/a \"b\"/handover", false) else {
            panic!("nothing to write");
        };
        assert_eq!(
            format.remove(Some(&text), DESKTOP, false),
            Ok(Change::Delete)
        );
        assert_eq!(format.remove(None, DESKTOP, false), Ok(Change::Nothing));
    }
}

#[test]
fn it_is_laid_out_like_what_is_there() {
    let by_four =
        "{ // mine\n    \"theme\": \"x\",\n    \"mcp\": {\n        \"b\": {},\n    },\n}\n";
    let expected = "{ // mine\n    \"theme\": \"x\",\n    \"mcp\": {\n        \"handover\": {\n            \"type\": \"local\",\n            \"command\": [\"handover\", \"mcp\"]\n        },\n        \"b\": {},\n    },\n}\n";
    assert_eq!(added(OPENCODE, by_four), expected);
    let without = "{ // mine\r\n\t\"theme\": \"x\"\r\n}";
    let expected = "{ // mine\r\n\t\"mcp\": {\r\n\t\t\"handover\": {\r\n\t\t\t\"type\": \"local\",\r\n\t\t\t\"command\": [\"handover\", \"mcp\"]\r\n\t\t}\r\n\t},\r\n\t\"theme\": \"x\"\r\n}";
    assert_eq!(added(OPENCODE, without), expected);
    let server = r#""handover":{"command":"handover","args":["mcp"]}"#;
    let tight = r#"{"a":1,"mcpServers":{"b":{}}}"#;
    let expected = format!(r#"{{"a":1,"mcpServers":{{{server},"b":{{}}}}}}"#);
    assert_eq!(added(CLAUDE, tight), expected);
    let expected = format!(r#"{{"mcpServers":{{{server}}},"a":1}}"#);
    assert_eq!(added(CLAUDE, r#"{"a":1}"#), expected);
}

#[test]
fn toml_gets_a_table_at_its_end() {
    let table = "[mcp_servers.handover]\ncommand = \"handover\"\nargs = [\"mcp\"]";
    assert_eq!(
        added(Format::Toml, "a = 1\n"),
        format!("a = 1\n\n{table}\n")
    );
    assert_eq!(
        added(Format::Toml, "a = 1 # b"),
        format!("a = 1 # b\n\n{table}")
    );
}

#[test]
fn an_earlier_path_is_renewed_and_other_settings_stay() {
    let text = "[mcp_servers.handover]\ncommand = '/old/handover' # c\nargs = [\"mcp\", \"--desktop\", \"d2\"]\nenabled = false\n";
    let renewed = added(Format::Toml, text);
    assert_eq!(renewed, text.replace("'/old/handover'", "\"handover\""));
    let inline =
        "[mcp_servers]\nhandover = { command = \"/old/handover\", args = [\"mcp\"] }\nb = {}\n";
    let renewed = added(Format::Toml, inline);
    assert_eq!(renewed, inline.replace("/old/handover", "handover"));
    assert_eq!(removed(Format::Toml, inline), "[mcp_servers]\nb = {}\n");
}

#[test]
fn what_others_have_done_since_stays() {
    let text = added(Format::Toml, "a = 1\n");
    let later = "\n[mcp_servers.handover.tools.desktop_click]\napproval_mode = \"approve\"\n\n# theirs\n[b]\nc = 2\n";
    assert_eq!(
        removed(Format::Toml, &(text + later)),
        "a = 1\n\n# theirs\n[b]\nc = 2\n"
    );
    let rewritten = "{\n  \"a\": 1,\n  \"mcpServers\": {\n    \"b\": {},\n    \"handover\": {\n      \"command\": \"handover\",\n      \"args\": [\n        \"mcp\"\n      ],\n      \"env\": {}\n    }\n  }\n}";
    assert_eq!(
        removed(CLAUDE, rewritten),
        "{\n  \"a\": 1,\n  \"mcpServers\": {\n    \"b\": {}\n  }\n}"
    );
    let alone = rewritten.replace("    \"b\": {},\n", "");
    assert_eq!(
        removed(CLAUDE, &alone),
        "{\n  \"a\": 1,\n  \"mcpServers\": {}\n}"
    );
}

#[test]
fn another_server_of_the_name_is_replaced_by_force_alone() {
    for (format, text) in [
        (
            CLAUDE,
            "{\"mcpServers\": {\n\"handover\": {\"url\": \"https://x\"}, \"b\": {}}}",
        ),
        (
            Format::Toml,
            "a = 1\n[mcp_servers.handover]\ncommand = \"other\"\n[b]\n",
        ),
    ] {
        let refused = problem(format, text);
        assert!(
            refused.contains("line 2") && refused.contains("--force"),
            "{refused}"
        );
        assert!(format.remove(Some(text), DESKTOP, false).is_err());
        let Ok(Change::Write(replaced)) = format.add(Some(text), DESKTOP, "handover", true) else {
            panic!("not replaced");
        };
        assert_eq!(
            format.add(Some(&replaced), DESKTOP, "handover", false),
            Ok(Change::Nothing)
        );
        assert!(replaced.contains('b'));
    }
}

#[test]
fn what_is_not_understood_is_named_by_its_place() {
    for (format, text, place) in [
        (CLAUDE, "{\n  \"ä\": 1 2}", "line 2, column 9"),
        (CLAUDE, "{} // comment", "line 1, column 4"),
        (CLAUDE, "{\"a\": 1,}", "line 1, column 8"),
        (CLAUDE, "[]", "line 1, column 1"),
        (CLAUDE, "{\"mcpServers\":\n[]}", "line 2"),
        (CLAUDE, "{\"mcpServers\":{},\n\"mcpServers\":{}}", "line 2"),
        (Format::Toml, "a = 1\nb = = 2\n", "line 2, column 5"),
        (Format::Toml, "a = 1\nmcp_servers = 1\n", "line 2"),
        (Format::Toml, "a = 1\n[[mcp_servers]]\n", "line 2"),
        (
            Format::Toml,
            "mcp_servers = {}\nmcp_servers = {}\n",
            "line 2",
        ),
        (
            Format::Json(Json {
                servers: "m",
                dialect: Dialect::Comments,
                shape: Shape::Local,
            }),
            "// a\n",
            "{}",
        ),
        (
            Format::Json(Json {
                servers: "m",
                dialect: Dialect::Comments,
                shape: Shape::Local,
            }),
            "\u{feff}{}",
            "byte order mark",
        ),
    ] {
        let refused = problem(format, text);
        assert!(refused.contains(place), "{text:?}: {refused}");
    }
}

#[test]
fn servers_in_one_line_of_toml_stay_in_it() {
    let entry = "handover = { command = \"handover\", args = [\"mcp\"] }";
    for (before, after) in [
        (
            "mcp_servers = {}\n",
            format!("mcp_servers = {{ {entry} }}\n"),
        ),
        (
            "mcp_servers = { a = { command = \"a\" } } # mine\n",
            format!("mcp_servers = {{ {entry}, a = {{ command = \"a\" }} }} # mine\n"),
        ),
    ] {
        assert_eq!(added(Format::Toml, before), after);
        assert_eq!(removed(Format::Toml, &after), before);
    }
    let last = format!("mcp_servers = {{ a = {{}}, {entry} }}\nb = 1\n");
    assert_eq!(
        removed(Format::Toml, &last),
        "mcp_servers = { a = {} }\nb = 1\n"
    );
    let first = format!("mcp_servers = {{{entry}, a = {{}} }}\n");
    assert_eq!(removed(Format::Toml, &first), "mcp_servers = {a = {} }\n");
}

#[test]
fn dotted_keys_are_their_owners() {
    let dotted =
        "mcp_servers.handover.command = \"handover\"\nmcp_servers.handover.args = [\"mcp\"]\n";
    for owners in [
        format!("{dotted}\n[a]\nb = 1\n"),
        format!(
            "[a]\nb = 1\n\n[mcp_servers]\n{}",
            dotted.replace("mcp_servers.", "")
        ),
        "mcp_servers = { handover.command = \"handover\", handover.args = [\"mcp\"] }\n".to_owned(),
        dotted
            .replace("handover.", "handover-browser.")
            .replace("[\"mcp\"]", "[\"browser\", \"mcp\"]"),
    ] {
        let Ok(Change::Write(both)) = Format::Toml.add_all(Some(&owners), "handover", false) else {
            panic!("nothing to write: {owners}");
        };
        let removed = Format::Toml.remove_all(Some(&both), false);
        assert_eq!(removed, Ok(Change::Write(owners.clone())), "{both}");
        let again = Format::Toml.remove_all(Some(&owners), false);
        assert_eq!(again, Ok(Change::Nothing), "{owners}");
        assert_eq!(Format::Toml.left(Some(&owners)).len(), 1, "{owners}");
        // By force too it takes a person.
        let forced = Format::Toml.remove_all(Some(&both), true).unwrap_err();
        assert!(forced.to_string().contains("take it out"), "{forced}");
    }
}

#[test]
fn an_empty_file_is_where_programs_begin() {
    for text in ["", "\n", " \n\n"] {
        let written = added(CLAUDE, text);
        assert_eq!(
            Ok(Change::Write(written.clone())),
            CLAUDE.add(None, DESKTOP, "handover", false)
        );
        assert_eq!(
            CLAUDE.remove(Some(text), DESKTOP, false),
            Ok(Change::Nothing)
        );
        assert_eq!(
            CLAUDE.remove(Some(&written), DESKTOP, false),
            Ok(Change::Delete)
        );
    }
}

#[test]
fn all_of_ours_come_and_go_together() {
    let formats = [CLAUDE, OPENCODE, Format::Toml];
    for format in formats {
        let Ok(Change::Write(text)) = format.add_all(None, "handover", false) else {
            panic!("nothing to write");
        };
        for server in SERVERS {
            assert!(text.contains(server.name), "{text}");
        }
        assert_eq!(
            format.add_all(Some(&text), "handover", false),
            Ok(Change::Nothing)
        );
        // An earlier version put in the first alone.
        let first = format.add(None, DESKTOP, "handover", false);
        let Ok(Change::Write(first)) = first else {
            panic!("nothing to write");
        };
        assert_eq!(
            format.add_all(Some(&first), "handover", false),
            Ok(Change::Write(text.clone()))
        );
        assert_eq!(format.remove_all(Some(&text), false), Ok(Change::Delete));
        assert_eq!(format.remove_all(None, false), Ok(Change::Nothing));
    }
}
