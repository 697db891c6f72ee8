//! A person starts, watches, reads and ends agents from any terminal. Nothing is ended without being
//! asked for, and nothing that an agent writes acts on the terminal.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{ChildStdin, Stdio};

use serde_json::{Value, json};

use crate::support::scripted::{agent, becomes};
use crate::support::{
    LONG, Outcome, Place, Running, SHORT, Session, Signal, eventually, signal, stop,
};

/// A program that says who it is and then stays.
const STAYS: &str = "echo started; exec sleep 600";

fn session() -> Session {
    Session::with(Place::new(), &[])
}

/// Runs a command to its end as a person would, without `--json`.
fn plain(session: &Session, arguments: &[&str]) -> Outcome {
    Running::start(session.place.handover().args(arguments)).finish(LONG)
}

/// Starts an agent that runs a shell script, with further options, and gives its id.
fn start(session: &Session, options: &[&str], script: &str) -> String {
    let run = ["agent", "run", "--driver", "command"];
    let arguments = [&run[..], options, &["--", "sh", "-c", script]].concat();
    let started = session.cli(&arguments).done();
    started["id"].as_str().expect("an id").to_owned()
}

fn agents(session: &Session) -> Vec<Value> {
    let list = session.cli(&["list"]).done();
    list["agents"].as_array().expect("agents").clone()
}

fn status(session: &Session, id: &str) -> String {
    let status = agent(session, id)["status"].take();
    status.as_str().expect("a status").to_owned()
}

/// A command at a real terminal, and what is typed there.
fn terminal(session: &Session, line: &str) -> (Running, ChildStdin) {
    let mut terminal = session.place.command("script");
    terminal.env("TERM", "xterm").env_remove("NO_COLOR");
    let line = format!("{} {line}", env!("CARGO_BIN_EXE_handover"));
    Running::start_with_input(terminal.args(["-qec", &line, "/dev/null"]))
}

/// The same to its end, with everything typed ahead.
fn at_a_terminal(session: &Session, line: &str, typed: &str) -> Outcome {
    let (terminal, mut input) = terminal(session, line);
    input
        .write_all(typed.as_bytes())
        .expect("a terminal that reads");
    let outcome = terminal.finish(LONG);
    drop(input);
    outcome
}

#[test]
fn a_command_is_run_waited_for_and_read() {
    let session = session();
    let waited = session.cli(&[
        "agent",
        "run",
        "--driver",
        "command",
        "--prompt",
        "to its input",
        "--wait",
        "--env",
        "GREETING=hello",
        "--",
        "sh",
        "-c",
        "echo $GREETING; cat",
    ]);
    let result = waited.done();
    assert_eq!(result["status"], "done");
    assert_eq!(
        result["text"].as_str().map(str::trim),
        Some("hello\nto its input")
    );
    let id = result["id"].as_str().expect("an id");
    assert_eq!(session.cli(&["result", id]).done()["text"], result["text"]);
    let read = plain(&session, &["result", id]);
    assert_eq!((read.code, read.out.trim()), (0, "hello\nto its input"));

    // Its arguments by option, its input after the dashes, and options behind the text.
    let arguments = ["--arg", "cat", "--arg", "-u", "--", "--json is text here"];
    let run = [
        "agent", "run", "--driver", "command", "--wait", "--name", "reader",
    ];
    let said = session.cli(&[&run[..], &arguments].concat()).done();
    assert_eq!(
        said["text"].as_str().map(str::trim),
        Some("--json is text here")
    );
    let named = agents(&session);
    assert!(
        named.iter().any(|agent| agent["name"] == "reader"),
        "{named:?}"
    );
}

/// Whoever is told that an agent is done can read what it came to, at once.
#[test]
fn no_end_is_told_before_what_it_came_to() {
    let session = session();
    for round in 0..20 {
        let said = format!("round {round}");
        let run = [
            "agent", "run", "--driver", "command", "--wait", "--", "echo",
        ];
        let result = session.cli(&[&run[..], &[&said]].concat()).done();
        assert_eq!(
            result["text"].as_str().map(str::trim),
            Some(said.as_str()),
            "{result}"
        );
    }
}

#[test]
fn an_agent_that_fails_fails_the_command_that_waits_for_it() {
    let session = session();
    let run = ["agent", "run", "--driver", "command", "--wait", "--"];
    let failed = session.cli(&[&run[..], &["sh", "-c", "echo half; exit 3"]].concat());
    assert_eq!(failed.code, 1, "{failed:?}");
    let said = failed.json();
    assert_eq!(
        (&said["ok"], &said["status"]),
        (&json!(false), &json!("failed"))
    );
    assert!(
        said["error"]["message"]
            .as_str()
            .is_some_and(|text| !text.is_empty())
    );
    let id = said["id"].as_str().expect("an id");
    // Reading what it came to is no failure.
    assert_eq!(session.cli(&["result", id]).done()["status"], "failed");
}

#[test]
fn what_is_wrong_on_the_command_line_is_said_and_nothing_starts() {
    let session = session();
    let wrong: [&[&str]; 5] = [
        &["agent", "run"],
        &["agent", "run", "--driver", "command"],
        &[
            "agent", "run", "--driver", "pi", "--prompt", "one", "--", "two",
        ],
        &[
            "agent", "run", "--driver", "command", "--env", "hunter2", "--", "true",
        ],
        &[
            "agent", "run", "--driver", "command", "--cwd", "nowhere", "--", "true",
        ],
    ];
    for arguments in wrong {
        let outcome = session.cli(arguments);
        assert_eq!(outcome.code, 2, "{arguments:?}: {outcome:?}");
        assert!(!outcome.out.contains("hunter2"), "{outcome:?}");
    }
    let drivers = plain(&session, &["agent", "run"]).err;
    for driver in ["pi", "codex", "claude", "acp", "command"] {
        assert!(drivers.contains(driver), "{drivers}");
    }
    let unknown = session.cli(&["agent", "run", "--driver", "nonsense", "--", "x"]);
    assert_eq!(unknown.refused(), "bad_params");
    assert_eq!(agents(&session), Vec::<Value>::new());
    // The environment may choose the driver.
    let mut command = session.place.handover();
    command.env("HANDOVER_DRIVER", "command");
    command.args(["--json", "agent", "run", "--wait", "--", "echo", "chosen"]);
    let said = Running::start(&mut command).finish(LONG).done();
    assert_eq!(said["text"].as_str().map(str::trim), Some("chosen"));
}

#[test]
fn the_tree_is_shown_and_coloured_only_on_a_terminal() {
    let session = session();
    let root = start(&session, &["--name", "root"], STAYS);
    let child = start(&session, &["--name", "child", "--parent", &root], STAYS);
    let other = start(&session, &["--name", "other"], STAYS);
    for id in [&root, &child, &other] {
        becomes(&session, id, "running");
    }
    let shown = plain(&session, &["list"]).out;
    let place = |id: &str| {
        let line = shown.lines().position(|line| line.contains(id));
        line.unwrap_or_else(|| panic!("{id} is not in {shown}"))
    };
    assert_eq!(place(&child), place(&root) + 1, "{shown}");
    assert!(shown.contains(&format!("└─ {child}")), "{shown}");
    assert!(shown.contains("not steerable"), "{shown}");
    assert!(!shown.contains('\u{1b}'), "{shown}");
    let heading = shown
        .lines()
        .find(|line| line.contains("STATUS"))
        .expect("a heading");
    let column = heading.find("STATUS").expect("a column");
    // In characters: the branches of the tree are longer in bytes.
    let under: String = shown
        .lines()
        .nth(place(&child))
        .expect("a line")
        .chars()
        .skip(column)
        .collect();
    assert!(under.starts_with("running"), "{shown}");

    let coloured = at_a_terminal(&session, "list", "");
    assert!(coloured.out.contains("\u{1b}[32mrunning"), "{coloured:?}");
    let line = format!("list --socket {}", session.socket().display());
    let mut command = session.place.command("script");
    command.env("TERM", "xterm").env("NO_COLOR", "1");
    let line = format!("{} {line}", env!("CARGO_BIN_EXE_handover"));
    let bare = Running::start(command.args(["-qec", &line, "/dev/null"])).finish(LONG);
    assert!(
        bare.out.contains("running") && !bare.out.contains('\u{1b}'),
        "{bare:?}"
    );
}

/// Whoever speaks to the host gets the ids there are, and the one behind a name; a name is no id.
#[test]
fn an_unknown_agent_is_told_with_those_there_are() {
    let session = session();
    let mut wire = session.wire();
    let refused = wire.refused("result", json!({"id": "counter"}));
    assert_eq!(refused.code, "agent_unknown");
    assert_eq!(refused.data["agents"], json!([]));
    let counter = start(&session, &["--name", "counter"], STAYS);
    let other = start(&session, &[], STAYS);
    let unknown = |id: &str| json!({"id": id, "text": "stop", "steerId": "s"});
    let refused = wire.refused("steer", unknown("counter"));
    assert_eq!(refused.code, "agent_unknown");
    assert_eq!(refused.data["named"], json!([counter]));
    assert!(refused.message.contains(&counter), "{refused:?}");
    assert!(!refused.message.contains(&other), "{refused:?}");
    let refused = wire.refused("abort", json!({"id": "nobody"}));
    assert_eq!(refused.code, "agent_unknown");
    assert_eq!(refused.data["agents"], json!([other, counter]));
    assert!(refused.data["named"].is_null(), "{refused:?}");
    for id in [&other, &counter] {
        assert!(refused.message.contains(id), "{refused:?}");
    }
}

/// A5: a destructive command asks first unless told not to; without a terminal it refuses.
#[test]
fn ending_is_asked_for_with_what_would_end() {
    let session = session();
    let root = start(&session, &[], STAYS);
    let child = start(&session, &["--parent", &root], STAYS);
    becomes(&session, &child, "running");
    becomes(&session, &root, "running");
    assert_eq!(session.cli(&["abort", &root]).refused(), "caller_refused");
    assert_eq!(status(&session, &root), "running");

    for no in ["n\n", "\n", "maybe\n"] {
        let asked = at_a_terminal(&session, &format!("abort {root}"), no);
        assert_eq!(asked.code, 1, "{asked:?}");
        assert!(
            asked.out.contains(&child),
            "what would end is not shown: {asked:?}"
        );
        assert!(asked.out.contains("[y/N]"), "{asked:?}");
        assert_eq!(status(&session, &child), "running");
    }
    let (asked, mut keys) = terminal(&session, &format!("abort {root}"));
    eventually("what would end is shown", LONG, || {
        asked.out().contains(&child).then_some(())
    });
    keys.write_all(b"\x03").expect("a terminal that reads");
    let interrupted = asked.finish(LONG);
    assert_eq!(interrupted.code, 130, "{interrupted:?}");
    assert_eq!(status(&session, &root), "running");
    let asked = at_a_terminal(&session, &format!("abort {root}"), "y\n");
    assert_eq!(asked.code, 0, "{asked:?}");
    assert_eq!(status(&session, &root), "aborted");
    assert_eq!(status(&session, &child), "aborted");

    // One that has ended is refused with its status, and nobody is asked.
    let over = at_a_terminal(&session, &format!("abort {root} --json"), "");
    let said: Value = serde_json::from_str(over.out.trim()).expect("JSON");
    assert_eq!(said["error"]["code"], "agent_not_running");
    assert_eq!(said["error"]["data"]["status"], "aborted");
    let third = start(&session, &[], STAYS);
    let ended = session.cli(&["abort", &third, "--yes"]).done();
    assert_eq!(
        (&ended["status"], &ended["survivors"]),
        (&json!("aborted"), &json!([]))
    );
}

#[test]
fn a_state_that_cannot_be_learnt_ends_nothing() {
    let session = session();
    let id = start(&session, &[], STAYS);
    becomes(&session, &id, "running");
    stop(&[session.host()]);
    let asked = at_a_terminal(&session, &format!("abort {id} --timeout 1s"), "y\n");
    signal(session.host(), Signal::CONT);
    assert_eq!(asked.code, 1, "{asked:?}");
    assert!(!asked.out.contains("[y/N]"), "{asked:?}");
    assert!(asked.out.contains("[timeout]"), "{asked:?}");
    assert_eq!(status(&session, &id), "running");
}

/// A2, A4: a message to what cannot take it is refused with the status; options may stand behind it.
#[test]
fn messages_are_refused_with_the_reason() {
    let session = Session::with(Place::new(), &["--max-agents", "1"]);
    let running = start(&session, &[], STAYS);
    let queued = start(&session, &[], STAYS);
    becomes(&session, &running, "running");
    let refused = session.cli(&["steer", &running, "go on", "--when", "now"]);
    assert_eq!(refused.refused(), "not_steerable");
    let refused = session.cli(&["steer", "--steer-id", "m1", &queued, "--", "--json"]);
    assert_eq!(refused.refused(), "agent_not_running");
    assert_eq!(refused.json()["error"]["data"]["status"], "queued");
    assert_eq!(
        session.cli(&["steer", "zz", "text"]).refused(),
        "agent_unknown"
    );
    assert_eq!(session.cli(&["steer", &running, "  "]).code, 2);
    assert_eq!(session.cli(&["steer", "", "text"]).code, 2);
    let cancelled = session.cli(&["abort", &queued, "--yes"]).done();
    assert_eq!(cancelled["status"], "cancelled-before-start");
    let result = session.cli(&["result", &queued]).done();
    assert_eq!(result["status"], "cancelled-before-start");
}

#[test]
fn following_one_agent_ends_with_it_and_goes_on_where_it_stopped() {
    let session = session();
    let go = session.place.path().join("go");
    let script = format!(
        "echo one; while [ ! -e {} ]; do sleep 0.05; done; echo two",
        go.display()
    );
    let id = start(&session, &[], &script);
    let following = session.start(&["follow", &id, "--since", "0"]);
    following.line("it runs", |event| {
        event["kind"] == "agent_status" && event["status"] == "running"
    });
    // It tells of what happens from its beginning on, of which nothing is seen before it tells something.
    let all = session.start(&["follow"]);
    eventually("another agent is told of", LONG, || {
        start(&session, &[], "true");
        let told = all.out();
        let mut told = told.lines().map(|line| serde_json::from_str(line).ok());
        let other = |event: Value| event["agent"].is_string() && event["agent"] != id.as_str();
        told.any(|event| event.is_some_and(other)).then_some(())
    });
    fs::write(&go, "").expect("a file");
    let outcome = following.finish(LONG);
    assert_eq!(outcome.code, 0, "{outcome:?}");
    let events = lines(&outcome);
    assert!(
        events.iter().all(|event| event["agent"] == id.as_str()),
        "{events:?}"
    );
    let last = events.last().expect("events");
    assert_eq!(
        (&last["kind"], &last["status"]),
        (&json!("agent_status"), &json!("done"))
    );
    all.signal(Signal::INT);
    assert_eq!(all.finish(LONG).code, 130);

    // Afterwards: its end alone, or the same story again, or the rest of it.
    let end = &events[events.len() - 1..];
    assert_eq!(lines(&session.cli(&["follow", &id])), end);
    let again = lines(&session.cli(&["follow", &id, "--since", "0"]));
    assert_eq!(again, events);
    let from = events[1]["seq"].as_u64().expect("a number").to_string();
    let rest = lines(&session.cli(&["follow", &id, "--since", &from]));
    assert_eq!(rest, events[2..]);
    let told = plain(&session, &["follow", &id, "--since", "0"]);
    assert!(told.out.contains("● done"), "{told:?}");
}

fn lines(outcome: &Outcome) -> Vec<Value> {
    assert_eq!(outcome.code, 0, "{outcome:?}");
    let lines = outcome.out.lines();
    lines
        .map(|line| serde_json::from_str(line).expect("a line of JSON"))
        .collect()
}

/// As with `follow | head -1`: nobody has to wait for the next event.
#[test]
fn following_ends_as_soon_as_nobody_reads() {
    let session = session();
    let id = start(&session, &[], STAYS);
    becomes(&session, &id, "running");
    for words in [
        &["follow", "--since", "0", "--json"][..],
        &["follow", &id, "--since", "0"],
        &["log", "--follow"],
    ] {
        let mut command = session.place.handover();
        let command = command.args(words).stdin(Stdio::null());
        let mut following = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut first = String::new();
        let mut out = BufReader::new(following.stdout.take().expect("piped"));
        out.read_line(&mut first).expect("a line");
        drop(out);
        let status = eventually("it ends", SHORT, || following.try_wait().expect("a child"));
        let mut said = String::new();
        let err = following.stderr.as_mut().expect("piped");
        err.read_to_string(&mut said).expect("text");
        assert_eq!((status.code(), said.as_str()), (Some(1), ""), "{words:?}");
    }
}

#[test]
fn the_end_of_the_host_ends_the_following() {
    let session = session();
    let id = start(&session, &[], STAYS);
    let following = session.start(&["follow", &id, "--since", "0"]);
    following.line("it is told of", |event| event["agent"] == id.as_str());
    assert_eq!(session.cli(&["down"]).code, 0);
    let outcome = following.finish(LONG);
    // Either the end of the agent came first, or that of the connection.
    assert!([0, 3].contains(&outcome.code), "{outcome:?}");
}

/// Whatever an agent writes, no control character of it reaches a person's terminal.
#[test]
fn nothing_that_an_agent_writes_acts_on_the_terminal() {
    let session = session();
    let evil = r"printf 'a\033]0;title\007b\033[2J\302\233m\r\n\tc\342\200\256d\177'";
    let id = start(&session, &["--name", "n\u{202e}ame"], evil);
    becomes(&session, &id, "done");
    let shown = [
        plain(&session, &["result", &id]),
        plain(&session, &["list"]),
        plain(&session, &["follow", &id, "--since", "0"]),
        plain(&session, &["log"]),
    ];
    for outcome in &shown {
        let harmful = |c: char| {
            (c.is_control() && c != '\n' && c != '\t') || ('\u{202a}'..='\u{202e}').contains(&c)
        };
        let harm: Vec<char> = outcome
            .out
            .chars()
            .chain(outcome.err.chars())
            .filter(|&c| harmful(c))
            .collect();
        assert!(harm.is_empty(), "{harm:?} in {outcome:?}");
    }
    assert!(
        shown[0].out.contains("\n\tc"),
        "lines and tabs stay: {:?}",
        shown[0]
    );
    // For programs it is as it was.
    let raw = session.cli(&["result", &id]).done();
    assert!(
        raw["text"]
            .as_str()
            .is_some_and(|text| text.contains('\u{1b}')),
        "{raw}"
    );
}
