//! The command line keeps its contract: what it prints for programs, with what status it ends, and how it finds
//! its session.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{
    LONG, Outcome, Place, Running, SHORT, Session, Signal, alive, eventually, holds_for, processes,
    signal,
};

fn run(place: &Place, arguments: &[&str]) -> Outcome {
    Running::start(place.handover().args(arguments)).finish(LONG)
}

#[test]
fn up_says_where_everything_is() {
    let session = Session::up();
    let said = &session.said;
    for field in ["sessionId", "name", "socketPath", "runtimeDir", "stateDir"] {
        assert!(
            said[field].as_str().is_some_and(|text| !text.is_empty()),
            "{field}: {said}"
        );
    }
    assert!(said["pid"].is_u64());
    assert_eq!(said["desktops"].as_array().map(Vec::len), Some(1), "{said}");
    assert!(session.socket().starts_with(session.runtime()));
    assert!(session.runtime().starts_with(session.place.runtime()));
    assert!(session.state().starts_with(session.place.state()));
    let manifest = fs::read(session.runtime().join("attach.json")).expect("a manifest");
    let manifest: Value = serde_json::from_slice(&manifest).expect("JSON");
    assert_eq!(
        (&manifest["sessionId"], &manifest["pid"]),
        (&said["sessionId"], &said["pid"])
    );
    assert_eq!(
        manifest["desktops"],
        json!([{"id": "d1", "control": "agent"}])
    );
    for field in [
        "protocol",
        "name",
        "projectDir",
        "startTicks",
        "bootId",
        "socketPath",
        "updatedAt",
        "agents",
    ] {
        assert!(!manifest[field].is_null(), "{field}: {manifest}");
    }
    assert!(manifest.get("herdrPaneId").is_some_and(Value::is_null));
}

/// A session's name is one line of bounded length, as an agent's is.
#[test]
fn names_of_sessions_are_bounded() {
    let place = Place::new();
    for name in ["", "  ", "two\nlines", &"x".repeat(101)] {
        let refused = run(&place, &["up", "--json", "--name", name]);
        assert_eq!(refused.code, 2, "{refused:?}");
        assert_eq!(refused.json()["error"]["code"], "bad_params");
    }
    let longest = "é".repeat(100);
    let session = Session::with(place, &["--name", &longest]);
    assert_eq!(session.said["name"], *longest);
    assert_eq!(session.cli(&["list", "--session", &longest]).code, 0);
}

#[test]
fn statuses_of_the_end() {
    let place = Place::new();
    let none = run(&place, &["desktop", "click", "5", "5", "--json"]);
    assert_eq!(none.code, 3, "{none:?}");
    assert_eq!(none.json()["error"]["code"], "session_unknown");
    for usage in [
        &["no-such-command"][..],
        &["desktop", "click", "5"],
        &["watch", "--no-such-option"],
    ] {
        let outcome = run(&place, usage);
        assert_eq!(outcome.code, 2, "{usage:?}");
        assert!(
            outcome.out.is_empty() && !outcome.err.is_empty(),
            "{outcome:?}"
        );
    }
    let session = Session::with(place, &["--desktop", "--size", "320x240"]);
    let done = session.cli(&["desktop", "click", "5", "5"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(
        session.cli(&["desktop", "click", "320", "5"]).refused(),
        "out_of_bounds"
    );
    let other = session.cli(&["list", "--session", "no-such-session"]);
    assert_eq!(other.code, 3, "{other:?}");
}

/// Standard output is one JSON object, whatever happens; everything for people goes to standard error.
#[test]
fn json_and_nothing_else() {
    let session = Session::up();
    for arguments in [
        &["list"][..],
        &["sessions"],
        &["takeover", "status"],
        &["desktop", "windows"],
        &["desktop", "screenshot"],
        &["desktop", "move", "5", "5"],
        &["desktop", "scroll", "--dy", "1"],
        &["desktop", "drag", "5", "5", "9", "9"],
        &["desktop", "key", "Escape"],
        &["desktop", "double-click", "5", "5"],
        &["pause"],
        &["desktop", "click", "5", "5"],
        &["resume"],
        &["verify"],
        &["takeover", "return"],
        &["takeover", "revoke"],
        &["steer", "a1", "text"],
        &["result", "a1"],
        &["stop-all"],
    ] {
        let outcome = session.cli(arguments);
        assert!([0, 1].contains(&outcome.code), "{arguments:?}: {outcome:?}");
        let said = outcome.json();
        assert!(said.is_object(), "{arguments:?}: {said}");
        if outcome.code == 1 {
            assert_eq!(said["ok"], false, "{arguments:?}: {said}");
            assert!(
                said["error"]["code"].is_string() && said["error"]["message"].is_string(),
                "{said}"
            );
        }
    }
}

/// The only live session of this directory is meant; else the only live one at all; else it must be named.
#[test]
fn how_the_session_is_found() {
    let session = Session::with(Place::new(), &[]);
    let elsewhere = session.place.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).expect("a directory");
    let list = |directory: &std::path::Path| {
        Running::start(
            session
                .place
                .handover()
                .current_dir(directory)
                .args(["list", "--json"]),
        )
        .finish(LONG)
    };
    assert_eq!(
        list(&elsewhere).done()["session"],
        session.said["sessionId"]
    );
    let mut command = session.place.handover();
    let second = Running::start(command.current_dir(&elsewhere).args(["up", "--json"]))
        .finish(LONG)
        .done();
    assert_eq!(
        list(&session.place.project()).done()["session"],
        session.said["sessionId"]
    );
    assert_eq!(list(&elsewhere).done()["session"], second["sessionId"]);
    let third = session.place.path().join("third");
    std::fs::create_dir(&third).expect("a directory");
    let refused = list(&third);
    assert_eq!(refused.refused(), "session_ambiguous");
    let id = second["sessionId"].as_str().expect("an id");
    assert!(refused.out.contains(id), "the list is missing: {refused:?}");
    let mut command = session.place.handover();
    command
        .current_dir(&third)
        .env("HANDOVER_SESSION", id)
        .args(["list", "--json"]);
    assert_eq!(
        Running::start(&mut command).finish(LONG).done()["session"],
        second["sessionId"]
    );
    let socket = session.socket();
    let by_socket = session
        .cli(&["list", "--socket", &socket.to_string_lossy()])
        .done();
    assert_eq!(by_socket["session"], session.said["sessionId"]);
}

/// A host that does not answer is given up on in time.
#[test]
fn a_silent_host_is_given_up_on() {
    let session = Session::with(Place::new(), &[]);
    crate::support::stop(&[session.host()]);
    let outcome = session.cli(&["list", "--timeout", "1s"]);
    crate::support::signal(session.host(), crate::support::Signal::CONT);
    assert_ne!(outcome.code, 0, "{outcome:?}");
    assert!(outcome.took < SHORT, "took {:?}", outcome.took);
}

#[test]
fn a_session_comes_back_by_its_id() {
    let mut session = Session::with(Place::new(), &["--name", "login work"]);
    let id = session.id();
    assert_eq!(session.said["name"], "login work");
    assert_eq!(session.cli(&["down"]).code, 0);
    session.again();
    assert_eq!(session.id(), id);
    assert_eq!(session.said["name"], "login work");
    let unknown = run(
        &session.place,
        &["up", "--json", "--session", "no-such-session"],
    );
    assert!([1, 3].contains(&unknown.code), "{unknown:?}");
}

/// What is missing is named with its remedy; this machine has what the tests need.
#[test]
fn doctor_looks_at_everything() {
    let place = Place::new();
    let outcome = run(&place, &["doctor", "--json"]);
    assert!(outcome.json().is_object(), "{outcome:?}");
    for part in ["Xtigervnc", "openbox", "unshare"] {
        assert!(
            outcome.out.contains(part),
            "{part} is not looked at: {}",
            outcome.out
        );
    }
    let mut command = place.handover();
    let bare = Running::start(
        command
            .env("PATH", "/nonexistent")
            .args(["doctor", "--json"]),
    )
    .finish(LONG);
    assert_eq!(bare.code, 1, "{bare:?}");
    assert!(
        bare.out.contains("tigervnc-standalone-server"),
        "no remedy: {bare:?}"
    );
}

#[test]
fn completions_and_the_manual() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish"] {
        let outcome = run(&place, &["completions", shell]);
        assert!(
            outcome.code == 0 && outcome.out.contains("handover"),
            "{shell}: {outcome:?}"
        );
    }
    let manual = run(&place, &["man"]);
    assert!(manual.code == 0 && manual.out.contains(".TH"), "{manual:?}");
}

/// A command that waits for the host's answer, started with interrupts as `disposition` (an option of `env`) says.
fn waits(session: &Session, disposition: &str, arguments: &[&str]) -> Running {
    let mut command = session.place.command("env");
    command
        .args([
            disposition,
            env!("CARGO_BIN_EXE_handover"),
            "--timeout",
            "5m",
        ])
        .args(arguments);
    Running::start(&mut command)
}

/// Whoever reads the status of an interrupted command sees 130, not only those who ask a shell.
#[test]
fn an_interrupted_command_ends_with_130() {
    let session = Session::up();
    signal(session.host(), Signal::STOP);
    for arguments in [
        &["list"][..],
        &["result", "a1"],
        &["takeover", "status"],
        &["pause", "d1"],
        &["desktop", "click", "1", "1"],
        &[
            "agent", "run", "--wait", "--driver", "command", "--", "true",
        ],
        &["watch", "d1", "--viewer", "none"],
        &["log", "--follow"],
    ] {
        let command = waits(&session, "--default-signal=INT", arguments);
        eventually("it minds interrupts", LONG, || {
            processes::minds(command.pid(), "SigCgt", Signal::INT).then_some(())
        });
        command.signal(Signal::INT);
        let interrupted = command.finish(LONG);
        assert_eq!(
            (interrupted.code, interrupted.signal),
            (130, None),
            "{arguments:?}: {interrupted:?}"
        );
    }
    signal(session.host(), Signal::CONT);
}

/// Interrupts that are ignored when a command starts, as in what a shell runs in the background, stay ignored.
#[test]
fn an_ignored_interrupt_stays_ignored() {
    let session = Session::up();
    signal(session.host(), Signal::STOP);
    let command = waits(&session, "--ignore-signal=INT", &["list"]);
    eventually("it runs", LONG, || {
        let name = fs::read_to_string(format!("/proc/{}/comm", command.pid())).ok()?;
        (name.trim() == "handover").then_some(())
    });
    holds_for("it goes on", Duration::from_secs(1), || {
        command.signal(Signal::INT);
        alive(command.pid())
    });
    signal(session.host(), Signal::CONT);
    let listed = command.finish(LONG);
    assert_eq!(listed.code, 0, "{listed:?}");
}
