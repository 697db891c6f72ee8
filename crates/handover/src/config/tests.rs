//! What is taken, and how what is not is told.

use std::fs;
use std::path::Path;

use super::*;

fn read(text: &str) -> Result<(Config, BTreeMap<&'static str, usize>), String> {
    given::read(Path::new("/c/config.toml"), text).map_err(|trouble| trouble.to_string())
}

fn wrong(text: &str) -> String {
    read(text).expect_err("it is refused")
}

#[test]
fn every_key_is_taken_and_told_with_its_line() {
    let (config, lines) = read(
        "[notify]
url = \"https://ntfy.example/alerts?auth=SECRET\"
token_file = \"token\"
desktop = false
bell = false
on = [\"lease_warning\", \"lease_warning\"]

[console]
port = 8000
hosts = [\"Box.example\", \"::1\"]

[control]
ttl = \"1m\"
idle = \"90s\"
max = \"2h\"
",
    )
    .unwrap();
    assert_eq!(config.notify.token_file, Some("/c/token".into()));
    assert_eq!(config.notify.on, [Occasion::LeaseWarning]);
    assert_eq!(config.console.hosts, ["box.example", "::1"]);
    assert_eq!(config.control.idle, Some(Duration::from_secs(90)));
    assert_eq!(lines.get("console.port"), Some(&9));
    let shown: Vec<String> = KEYS
        .iter()
        .map(|key| format!("{} {}", key.name, (key.value)(&config)))
        .collect();
    insta::assert_snapshot!(shown.join("\n"), @r#"
    notify.url "https://ntfy.example/alerts?…"
    notify.topic null
    notify.token_file "/c/token"
    notify.desktop false
    notify.bell false
    notify.on ["lease_warning"]
    console.port 8000
    console.hosts ["box.example","::1"]
    control.ttl "1m"
    control.idle "90s"
    control.max "2h"
    "#);
}

#[test]
fn no_file_an_empty_one_and_comments_mean_the_defaults() {
    for text in ["", "\u{feff}", "# nothing\n", "[notify]\n[console]\n"] {
        assert_eq!(read(text).unwrap().0, Config::default(), "{text:?}");
    }
    let dir = tempfile::tempdir().unwrap();
    let loaded = Config::load_from(&dir.path().join("none")).unwrap();
    assert!(!loaded.exists && loaded.lines.is_empty());
    assert_eq!(loaded.config, Config::default());
}

#[test]
fn tables_may_be_written_in_every_way_of_toml() {
    for text in [
        "notify.bell = false",
        "notify = { bell = false }",
        "[notify]\nbell = false",
        "[\"notify\"]\n'bell' = false",
    ] {
        assert!(!read(text).unwrap().0.notify.bell, "{text:?}");
    }
}

#[test]
fn what_is_wrong_is_shown() {
    insta::assert_snapshot!(wrong("[notify]\nurl = \"https://a/b\"\n  ulr = 1\n"), @"
    /c/config.toml, line 3, column 3: there is no key `notify.ulr`; is `notify.url` meant?
      3 |   ulr = 1
        |   ^^^
    ");
    insta::assert_snapshot!(wrong("url = 'https://a/b'"), @"
    /c/config.toml, line 1, column 1: there is no key `url`; is `notify.url` meant? It belongs below [notify]
      1 | url = 'https://a/b'
        | ^^^
    ");
    insta::assert_snapshot!(wrong("[notify]\ntoken = 'SECRET'"), @"
    /c/config.toml, line 2, column 1: there is no key `notify.token`; is `notify.token_file` meant?
      2 | token = …
        | ^^^^^^^^^
    ");
    insta::assert_snapshot!(wrong("[notify]\nx = 1"), @"
    /c/config.toml, line 2, column 1: there is no key `notify.x`; take it out; `handover config show` has all keys
      2 | x = 1
        | ^
    ");
    insta::assert_snapshot!(wrong("[console]\nhost = []"), @"
    /c/config.toml, line 2, column 1: there is no key `console.host`; is `console.hosts` meant?
      2 | host = []
        | ^^^^
    ");
    insta::assert_snapshot!(wrong("[console]\nidel = '1m'"), @"
    /c/config.toml, line 2, column 1: there is no key `console.idel`; is `control.idle` meant? It belongs below [control]
      2 | idel = '1m'
        | ^^^^
    ");
    insta::assert_snapshot!(wrong("[colours]\nred = 1"), @"
    /c/config.toml, line 1, column 2: there is no key `colours`; take it out; `handover config show` has all keys
      1 | [colours]
        |  ^^^^^^^
    ");
    insta::assert_snapshot!(wrong("notify = 7"), @"
    /c/config.toml, line 1, column 1: `notify` is a table and no value; write [notify] in a line above its keys
      1 | notify = 7
        | ^^^^^^
    ");
    insta::assert_snapshot!(wrong("[notify]\ndesktop = \"yes\" # please"), @r#"
    /c/config.toml, line 2, column 11: `notify.desktop`: this must be true or false, without quotes, and is of type string; write true
      2 | desktop = "yes" # please
        |           ^^^^^
    "#);
    insta::assert_snapshot!(wrong("[notify]\non = [\"request_human\", \"ünder\", 3]"), @r#"
    /c/config.toml, line 2, column 33: `notify.on`: this is no text; write on = ["request_human"]
      2 | on = ["request_human", "ünder", 3]
        |                                 ^
    "#);
    insta::assert_snapshot!(wrong("[console]\nport = 70000"), @"
    /c/config.toml, line 2, column 8: `console.port`: 70000 is out of bounds; give 1 to 65535
      2 | port = 70000
        |        ^^^^^
    ");
    insta::assert_snapshot!(wrong("[control]\nttl = \"1 day\""), @r#"
    /c/config.toml, line 2, column 7: `control.ttl`: a duration must look like 500ms, 10s, 2m, 1h or 1d; write ttl = "30s"
      2 | ttl = "1 day"
        |       ^^^^^^^
    "#);
    insta::assert_snapshot!(wrong("[control]\nttl = \"1h\""), @r#"
    /c/config.toml, line 2, column 7: `control.ttl`: this duration is out of bounds; give 200ms to 10m
      2 | ttl = "1h"
        |       ^^^^
    "#);
    insta::assert_snapshot!(wrong("[notify]\nbell = yes\n"), @"
    /c/config.toml, line 2, column 8: this is no TOML: string values must be quoted, expected literal string; correct it
      2 | bell = yes
        |        ^^^
    ");
    insta::assert_snapshot!(wrong("[notify]\nurl = \"gopher://a\""), @r#"
    /c/config.toml, line 2, column 7: `notify.url`: this address is not of the web; write it as https://HOST/PATH
      2 | url = "gopher://a"
        |       ^^^^^^^^^^^^
    "#);
    insta::assert_snapshot!(wrong("[notify]\nbell = true\nbell = true"), @"
    /c/config.toml, line 3, column 1: this is no TOML: duplicate key; correct it
      3 | bell = true
        | ^^^^
    ");
}

#[test]
fn what_does_not_go_together_is_refused() {
    for (text, place, said) in [
        ("[notify]\ntopic = \"a\"", "line 2", "notify.url"),
        ("[notify]\ntoken_file = \"a\"", "line 2", "notify.url"),
        (
            "[notify]\ntopic = \"a\"\nurl = \"https://a/b\"",
            "line 2",
            "path already",
        ),
        (
            "[notify]\nurl = \"http://a/b\"\ntoken_file = \"t\"",
            "line 3",
            "https://",
        ),
        ("[control]\nmax = \"1m\"\nidle = \"2m\"", "line 3", "longer"),
        ("[console]\nhosts = [\"https://a\"]", "line 2", "name alone"),
        (
            "[console]\nhosts = [\"a.example.\"]",
            "line 2",
            "name alone",
        ),
    ] {
        let refused = wrong(text);
        assert!(
            refused.contains(place) && refused.contains(said),
            "{refused}"
        );
    }
    read("[notify]\nurl = \"http://127.0.0.1:8/b\"\ntoken_file = \"t\"").unwrap();
    read("[notify]\nurl = \"https://ntfy.sh\"\ntopic = \"t\"").unwrap();
}

/// Errors are pasted into reports.
#[test]
fn secrets_are_not_repeated() {
    for text in [
        "[notify]\ntoken = \"SECRET\"",
        "[notify]\n\"Auth-Token\" = \"SECRET\"",
        "[notify]\nurl = \"https://me:SECRET@ntfy.sh/x\"",
        "[notify]\nurl = \"https://m e:SEC/RET@SECRET@ntfy.sh/x\"",
        "[notify]\nurl = \"http://h o/x?auth=tk_SECRET\"",
        "[notify]\nurl = \"http://h o/x?a=1&token=tk_SECRET\"",
        "[notify]\nurl = \"http://h o/x?ApiKey=SEC;#RET SECRET&b=2\"",
        "[notify]\nurl = \"http://h o/x?%74oken=SECRET\"",
        "[notify]\nurl = http://h/?access_token=SECRET",
        "[notify]\nurl = 'http://h o/x?a=sk-0123456789SECRET0'",
        "[notify]\nurl = \"me:SECRET@ntfy.sh/x\"",
        "[notify]\npassword = \"SECRET",
    ] {
        let refused = wrong(text);
        assert!(refused.contains("line 2"), "{refused}");
        assert!(!refused.contains("SECRET"), "{refused}");
    }
    // What is none is seen.
    let refused = wrong("[notify]\nurl = \"http://h o/x?title=Hi&auth=tk_SECRET&x=2\"");
    let shown = "url = \"http://h o/x?title=Hi&auth=…&x=2\"";
    assert!(refused.contains(shown), "{refused}");
}

#[test]
fn long_lines_and_escapes_are_shown_in_part_and_harmless() {
    let long = format!("[notify]\non = [{}\"x\"]", "\"request_human\", ".repeat(20));
    let refused = wrong(&long);
    let lines: Vec<&str> = refused.lines().collect();
    assert!(lines[1].chars().count() < 120, "{refused}");
    let caret = lines[2].find('^').unwrap();
    let column = lines[1].char_indices().nth(caret).unwrap().0;
    assert!(lines[1][column..].starts_with("\"x\""), "{refused}");
    let refused = wrong("[notify]\n\"\\u001b[2J\" = '\u{202e}'");
    assert!(!refused.contains(['\u{1b}', '\u{202e}']), "{refused}");
    wrong(&format!(
        "[notify]\nurl = \"https://a/{}\"",
        "a".repeat(3000)
    ));
    wrong(&format!(
        "[notify]\non = [{}]",
        "\"request_human\",".repeat(65)
    ));
}

proptest::proptest! {
    /// Whatever is in the file: it is understood, or told.
    #[test]
    fn nothing_in_a_file_panics(
        parts in proptest::collection::vec(
            proptest::sample::select(vec![
                "[notify]", "\n", "\r\n", "url", "=", " ", "\"", "'", "ä\u{1f600}", "\t", "[", "]", "{", "}", ",", "7",
                "token = ", "://a@b", "\u{feff}", "on", "true", "#", "\u{1b}", "[[console]]", "port", ".",
            ]),
            0..40,
        ),
    ) {
        let _ = read(&parts.concat());
    }
}

#[test]
fn every_key_is_documented() {
    let page = include_str!("../../../../docs/config.md");
    for key in &KEYS {
        let name = key.name;
        assert!(
            page.contains(&format!("| `{name}` |")),
            "{name} is not in docs/config.md"
        );
    }
}

#[test]
fn a_file_that_cannot_be_used_is_told_by_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config.toml");
    fs::write(&path, "[notify]\nbell = 1\n").unwrap();
    let told = Config::load_from(&path).unwrap_err().to_string();
    assert!(told.starts_with(&*path.to_string_lossy()), "{told}");
    assert!(Config::load_from(dir.path()).is_err());
}
