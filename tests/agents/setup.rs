//! Agent programs find the server that `handover setup` puts into their configuration, start it, and lose it again.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::{LONG, Outcome, Place, Program, Running, Shell};

const NOWHERE: &str = "http://127.0.0.1:9";

fn place(program: Program) -> Place {
    let mut place = Place::new();
    program.prepare(&mut place, NOWHERE, Shell::Allowed);
    place
}

fn run(command: &mut Command) -> Outcome {
    Running::start(command).finish(LONG)
}

fn setup(place: &Place, arguments: &[&str]) {
    let outcome = run(place.handover().arg("setup").args(arguments));
    assert_eq!(outcome.code, 0, "{outcome:?}");
}

/// What the program says of its servers.
fn servers(place: &Place, program: &Path, arguments: &[&str]) -> String {
    let said = run(place.command(&program.to_string_lossy()).args(arguments));
    assert_eq!(said.code, 0, "{said:?}");
    said.out + &said.err
}

/// The program lists our server, and that it answers, until it is taken out of this scope again.
fn lists_it(place: &Place, name: &str, program: &Path, scope: &str, works: &str) {
    setup(place, &[name, "--scope", scope, "--write"]);
    let said = servers(place, program, &["mcp", "list"]);
    assert!(said.contains("handover") && said.contains(works), "{said}");
    setup(place, &[name, "--scope", scope, "--remove"]);
    let said = servers(place, program, &["mcp", "list"]);
    assert!(!said.contains(env!("CARGO_BIN_EXE_handover")), "{said}");
}

/// What codex says of its servers.
fn codex_lists(place: &Place) -> Vec<Value> {
    let codex = Program::Codex.executable();
    let said = run(place
        .command(&codex.to_string_lossy())
        .args(["mcp", "list", "--json"]));
    let all: Value = serde_json::from_str(&said.out).expect("JSON");
    all.as_array().expect("a list").clone()
}

/// Both of our servers and no other.
fn assert_ours(all: &[Value]) {
    let arguments = [
        ("handover", serde_json::json!(["mcp"])),
        ("handover-browser", serde_json::json!(["browser", "mcp"])),
    ];
    assert_eq!(all.len(), arguments.len(), "{all:?}");
    for (name, arguments) in arguments {
        let server = all.iter().find(|server| server["name"] == name);
        let server = server.expect("our server");
        assert_eq!(server["enabled"], true);
        let transport = &server["transport"];
        assert_eq!(transport["command"], env!("CARGO_BIN_EXE_handover"));
        assert_eq!(transport["args"], arguments);
    }
}

#[test]
fn codex_reads_it() {
    let place = place(Program::Codex);
    let listed = || codex_lists(&place);
    setup(&place, &["codex", "--write"]);
    let all = listed();
    assert_ours(&all);
    setup(&place, &["codex", "--remove"]);
    assert!(listed().is_empty());
}

/// Only where it was told to trust the directory.
#[test]
fn codex_reads_it_in_a_project() {
    let place = place(Program::Codex);
    setup(&place, &["codex", "--scope", "project", "--write"]);
    assert!(codex_lists(&place).is_empty());
    let directory = place.project().canonicalize().expect("a directory");
    let config = place.path().join(".codex/config.toml");
    let trust = format!("\n[projects.{directory:?}]\ntrust_level = \"trusted\"\n");
    let mut text = fs::read_to_string(&config).expect("a configuration");
    text.push_str(&trust);
    fs::write(&config, text).expect("a configuration");
    assert_ours(&codex_lists(&place));
    setup(&place, &["codex", "--scope", "project", "--remove"]);
    assert!(codex_lists(&place).is_empty());
}

#[test]
fn claude_code_starts_it() {
    let place = place(Program::Claude);
    let claude = Program::Claude.executable();
    lists_it(&place, "claude-code", &claude, "user", "✔ Connected");
}

#[test]
fn claude_code_asks_about_it_in_a_project() {
    let place = place(Program::Claude);
    let claude = Program::Claude.executable();
    lists_it(
        &place,
        "claude-code",
        &claude,
        "project",
        "Pending approval",
    );
}

#[test]
fn gemini_starts_it() {
    let mut place = place(Program::Gemini);
    let gemini = Program::Gemini.executable();
    place.set("GEMINI_CLI_TRUST_WORKSPACE", "true");
    for scope in ["user", "project"] {
        lists_it(&place, "gemini", &gemini, scope, "Connected");
    }
}

// Where `scripts/install-deps` installs the program; elsewhere it says that it does not.
#[cfg(target_arch = "x86_64")]
#[test]
fn opencode_starts_it() {
    let mut place = Place::new();
    place.set("XDG_CONFIG_HOME", place.path().join(".config"));
    place.set("XDG_DATA_HOME", place.path().join(".data"));
    place.set("XDG_CACHE_HOME", place.path().join(".cache"));
    place.set("OPENCODE_DISABLE_MODELS_FETCH", "1");
    place.set("OPENCODE_DISABLE_AUTOUPDATE", "1");
    let opencode = Program::installed("opencode/node_modules/opencode-linux-x64/bin/opencode");
    for scope in ["user", "project"] {
        lists_it(&place, "opencode", &opencode, scope, "connected");
    }
}

/// It knows no MCP: what it lists is the skill.
#[test]
fn pi_knows_the_skill() {
    let place = place(Program::Pi);
    let pi = Program::Pi.executable();
    let knows = || {
        let mut command = place.command(&pi.to_string_lossy());
        command.args(["--mode", "rpc", "--no-session"]);
        let (pi, mut input) = Running::start_with_input(&mut command);
        input
            .write_all(b"{\"type\": \"get_commands\"}\n")
            .expect("it reads");
        let answer = pi.line("its commands", |said| said["command"] == "get_commands");
        answer["data"]["commands"]
            .as_array()
            .expect("a list")
            .iter()
            .any(|command| command["name"] == "skill:handover")
    };
    setup(&place, &["pi", "--write"]);
    assert!(knows());
    setup(&place, &["pi", "--remove"]);
    assert!(!knows());
}
