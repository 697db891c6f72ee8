//! L11: an agent program's own configuration is made to start Handover, and nothing else in it is touched.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use serde_json::Value;

use crate::support::{LONG, Outcome, Place, Running};

/// Each program, its configuration below the home directory and what may stand in it.
const PROGRAMS: [(&str, &str, &str); 4] = [
    (
        "claude-code",
        ".claude.json",
        "{\n  \"numStartups\": 7,\n  \"projects\": { \"/a\": { \"mcpServers\": {} } }\n}",
    ),
    (
        "codex",
        ".codex/config.toml",
        "# mine\r\nmodel = 'x'  # the best\r\n\r\n[mcp_servers.other]\r\ncommand = \"o\"",
    ),
    (
        "gemini",
        ".gemini/settings.json",
        "// mine\n{\t\"theme\":  \"x\", /* dark */\n\t\"mcpServers\": {\n\t\t\"other\": {\"command\": \"o\"}\n\t}\n}\n\n",
    ),
    (
        "opencode",
        ".config/opencode/opencode.jsonc",
        "\u{feff}{ // mine\n    \"mcp\": {},\n    \"share\": \"disabled\", // never\n}\n",
    ),
];

struct Home {
    place: Place,
}

impl Home {
    fn new() -> Self {
        let mut place = Place::new();
        for name in [
            "CLAUDE_CONFIG_DIR",
            "CODEX_HOME",
            "GEMINI_CLI_HOME",
            "XDG_CONFIG_HOME",
            "PI_CODING_AGENT_DIR",
        ] {
            place.set(name, "");
        }
        Self { place }
    }

    fn with(path: &str, text: &str) -> (Self, PathBuf) {
        let home = Self::new();
        let path = home.place.path().join(path);
        fs::create_dir_all(path.parent().expect("a directory")).expect("directories");
        fs::write(&path, text).expect("a file");
        (home, path)
    }

    fn setup(&self, arguments: &[&str]) -> Outcome {
        let mut command = self.place.handover();
        command.args(["setup", "--json"]).args(arguments);
        Running::start(&mut command).finish(LONG)
    }
}

#[test]
fn what_is_put_in_is_shown_first_kept_apart_and_comes_out_again() {
    for (program, path, text) in PROGRAMS {
        let (home, path) = Home::with(path, text);
        let read = || fs::read_to_string(&path).expect("a file");

        let shown = home.setup(&[program]).done();
        assert_eq!(shown["action"], "change", "{shown}");
        assert_eq!(shown["written"], false);
        assert_eq!(shown["path"].as_str(), path.to_str());
        assert_eq!(read(), text);

        let written = home.setup(&[program, "--write"]).done();
        assert_eq!(written["written"], true, "{written}");
        assert_eq!(written["diff"], shown["diff"]);
        let backup = written["backup"].as_str().expect("a backup");
        assert_eq!(fs::read_to_string(backup).expect("a backup"), text);
        let after = read();
        assert!(after.contains(env!("CARGO_BIN_EXE_handover")), "{after}");
        assert_eq!(written["servers"][0]["name"], "handover");
        assert_eq!(written["servers"][1]["name"], "handover-browser");
        assert_eq!(after.matches("handover-browser").count(), 1, "{after}");

        let again = home.setup(&[program, "--write"]).done();
        assert_eq!(again["action"], "none", "{again}");
        assert_eq!(again["written"], false);
        assert_eq!(read(), after);

        home.setup(&[program, "--remove", "--dry-run"]).done();
        assert_eq!(read(), after);
        let removed = home.setup(&[program, "--remove"]).done();
        assert_eq!(removed["action"], "change", "{removed}");
        assert_eq!(read(), text, "{program}");
        let again = home.setup(&[program, "--remove"]).done();
        assert_eq!(again["action"], "none", "{again}");
    }
}

#[test]
fn a_file_that_was_made_for_it_goes_with_it() {
    let home = Home::new();
    for program in ["claude-code", "codex", "gemini", "opencode", "pi"] {
        for scope in ["user", "project"] {
            let arguments = [program, "--scope", scope];
            let made = home.setup(&[&arguments[..], &["--write"]].concat()).done();
            assert_eq!(made["action"], "create", "{made}");
            let path = PathBuf::from(made["path"].as_str().expect("a path"));
            let mode = fs::metadata(&path).expect("a file").permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
            let removed = home.setup(&[&arguments[..], &["--remove"]].concat()).done();
            assert_eq!(removed["action"], "delete", "{removed}");
            assert!(!path.exists());
        }
    }
}

#[test]
fn links_and_modes_stay() {
    let (_, path, text) = PROGRAMS[1];
    let (home, link) = Home::with(path, "");
    let real = home.place.path().join("dotfiles");
    fs::remove_file(&link).expect("the file");
    fs::write(&real, text).expect("a file");
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).expect("a mode");
    symlink(&real, &link).expect("a link");
    home.setup(&["codex", "--write"]).done();
    assert!(fs::symlink_metadata(&link).expect("a link").is_symlink());
    let metadata = fs::metadata(&real).expect("a file");
    assert_eq!(metadata.permissions().mode() & 0o777, 0o640);
    home.setup(&["codex", "--remove"]).done();
    assert_eq!(fs::read_to_string(&real).expect("a file"), text);
}

#[test]
fn what_is_not_understood_or_not_ours_is_left_alone() {
    for (program, path, text, said) in [
        (
            "claude-code",
            ".claude.json",
            "{\n  // no\n}",
            "line 2, column 3",
        ),
        (
            "codex",
            ".codex/config.toml",
            "a = 1\nb = = 2",
            "line 2, column 5",
        ),
        ("gemini", ".gemini/settings.json", "[]", "line 1, column 1"),
        (
            "opencode",
            ".config/opencode/opencode.json",
            "{\"mcp\": {\n\"handover\": {\"type\": \"remote\", \"url\": \"http://x\"}}}",
            "line 2",
        ),
        (
            "pi",
            ".pi/agent/skills/handover/SKILL.md",
            "mine",
            "--force",
        ),
    ] {
        let (home, path) = Home::with(path, text);
        for arguments in [&[program, "--write"][..], &[program, "--remove"]] {
            let outcome = home.setup(arguments);
            // Nothing of ours is in what is not there.
            assert_eq!(outcome.refused(), "bad_params", "{outcome:?}");
            let message = outcome.json()["error"]["message"].to_string();
            assert!(message.contains(said), "{message}");
            assert_eq!(fs::read_to_string(&path).expect("a file"), text);
        }
    }
}

#[test]
fn an_empty_file_is_a_start() {
    for (program, path, _) in PROGRAMS {
        let (home, path) = Home::with(path, "");
        let written = home.setup(&[program, "--write"]).done();
        assert_eq!(written["action"], "change", "{written}");
        let again = home.setup(&[program, "--write"]).done();
        assert_eq!(again["action"], "none", "{again}");
        home.setup(&[program, "--remove"]).done();
        let left = fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(left, "", "{program}");
    }
}

/// What is printed goes into reports and logs.
#[test]
fn nothing_of_others_is_shown() {
    for (program, path, text) in [
        (
            "claude-code",
            ".claude.json",
            "{\"token\":\"SECRET\",\"mcpServers\":{\"a\":{\"env\":{\"K\":\"SECRET\"}}},\"SECRET\":1}",
        ),
        (
            "gemini",
            ".gemini/settings.json",
            "{\n  \"token\": \"SECRET\",\n  \"mcpServers\": {\n    \"handover\": { \"command\": \"/old/handover\", \"args\": [\"mcp\"], \"env\": { \"K\": \"SECRET\" } }\n  }\n}",
        ),
        (
            "codex",
            ".codex/config.toml",
            "token = 'SECRET'\nmcp_servers = { a = { env = { K = 'SECRET' } } }\nkey = 'SECRET'",
        ),
    ] {
        let (home, _) = Home::with(path, text);
        for arguments in [&[program, "--write"][..], &[program, "--remove"]] {
            let said = home.setup(arguments).done();
            let diff = said["diff"].as_str().expect("a diff");
            assert!(diff.contains("handover"), "{diff}");
            assert!(!diff.contains("SECRET"), "{diff}");
        }
    }
}

#[test]
fn force_replaces_a_server_of_our_name() {
    let text = "[mcp_servers.handover]\ncommand = \"other\" # mine\n\n[b]\nc = 1\n";
    let (home, path) = Home::with(".codex/config.toml", text);
    let written = home.setup(&["codex", "--write", "--force"]).done();
    assert_eq!(written["action"], "change");
    home.setup(&["codex", "--remove"]).done();
    let left = fs::read_to_string(&path).expect("a file");
    assert_eq!(left.trim(), "[b]\nc = 1");
}

#[test]
fn it_is_started_by_name_where_that_is_found() {
    let mut home = Home::new();
    let bin = home.place.path().join("bin");
    fs::create_dir(&bin).expect("a directory");
    symlink(env!("CARGO_BIN_EXE_handover"), bin.join("handover")).expect("a link");
    let command = |said: &Value| said["servers"][0]["command"].as_str().map(str::to_owned);
    let by_path = command(&home.setup(&["codex"]).done());
    assert_eq!(by_path.as_deref(), Some(env!("CARGO_BIN_EXE_handover")));
    home.place.set("PATH", bin);
    let by_name = command(&home.setup(&["codex"]).done());
    assert_eq!(by_name.as_deref(), Some("handover"));
}

#[test]
fn programs_may_keep_their_configuration_elsewhere() {
    let mut home = Home::new();
    for (program, variable, below) in [
        ("claude-code", "CLAUDE_CONFIG_DIR", ".claude.json"),
        ("codex", "CODEX_HOME", "config.toml"),
        ("gemini", "GEMINI_CLI_HOME", ".gemini/settings.json"),
        ("opencode", "XDG_CONFIG_HOME", "opencode/opencode.json"),
        ("pi", "PI_CODING_AGENT_DIR", "skills/handover/SKILL.md"),
    ] {
        let elsewhere = home.place.path().join("elsewhere");
        home.place.set(variable, &elsewhere);
        let said = home.setup(&[program]).done();
        assert_eq!(said["path"].as_str(), elsewhere.join(below).to_str());
    }
}
