//! No agent outlives its host unseen, and what is known of it does.

use std::fs;

use serde_json::{Value, json};

use crate::support::scripted::{Scripted, agent, becomes, shell, spawn};
use crate::support::{LONG, Place, SHORT, Session, Signal, eventually, processes, signal, stop};

fn up(options: &[&str]) -> Session {
    Session::with(Place::new(), options)
}

/// The processes that mention this text in their command line.
fn running(session: &Session, mark: &str) -> Vec<i32> {
    let all = session.place.processes().into_iter();
    all.filter(|&pid| processes::mentions(pid, mark)).collect()
}

/// The last word on each steer of an agent.
fn receipts(session: &Session, id: &str) -> Vec<(String, String)> {
    let mut last = std::collections::BTreeMap::new();
    for event in session.events("steer") {
        if event["agent"] == id {
            let word = |name: &str| event[name].as_str().expect("a word").to_owned();
            last.insert(word("steerId"), word("state"));
        }
    }
    last.into_iter().collect()
}

#[test]
fn a_killed_host_leaves_interrupted_tasks_and_no_process() {
    let mut session = up(&["--max-agents", "2"]);
    let scripted = Scripted::start(&session, "hold", json!({}));
    scripted.hears("hold");
    becomes(&session, &scripted.id, "running");
    let mark = session.place.path().join("hidden").display().to_string();
    let hidden = shell(
        &session,
        &format!(
            "setsid -f env -i sh -c 'trap \"\" TERM; while :; do sleep 1; done' {mark}; sleep 1000"
        ),
    );
    let queued = spawn(
        &session,
        json!({"driver": "command", "prompt": "", "args": ["true"]}),
    );
    let queued = queued.expect("spawned")["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    eventually("the hidden one runs", LONG, || {
        (!running(&session, &mark).is_empty()).then_some(())
    });
    let mut wire = session.wire();
    wire.done(
        "steer",
        json!({"id": scripted.id, "text": "one", "steerId": "s1", "wait": "sent"}),
    );
    // Its program does not read any more: what is written now may or may not have arrived.
    let program = running(&session, "scripted_pi")
        .into_iter()
        .chain(running(&session, "--mode rpc"))
        .next()
        .expect("the program");
    stop(&[program]);
    for steer in ["s2", "s3"] {
        wire.done(
            "steer",
            json!({"id": scripted.id, "text": steer, "steerId": steer}),
        );
    }
    eventually("a message is handed over", LONG, || {
        let known = receipts(&session, &scripted.id);
        known
            .contains(&("s2".to_owned(), "handed".to_owned()))
            .then_some(())
    });
    let host = session.host();
    signal(host, Signal::KILL);
    eventually("the trees end with the host", LONG, || {
        let own = format!("HANDOVER_AGENT={}", scripted.id);
        let left = session.place.processes().into_iter().any(|pid| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            String::from_utf8_lossy(&environment).contains(&own)
        });
        (!left && running(&session, &mark).is_empty()).then_some(())
    });

    session.again();
    for id in [&scripted.id, &hidden, &queued] {
        assert_eq!(agent(&session, id)["status"], "interrupted", "{id}");
    }
    let known = receipts(&session, &scripted.id);
    assert_eq!(
        known[1],
        ("s2".to_owned(), "unknown".to_owned()),
        "{known:?}"
    );
    assert_eq!(
        known[2],
        ("s3".to_owned(), "dropped".to_owned()),
        "{known:?}"
    );
    assert!(
        ["sent", "answered", "unknown"].contains(&known[0].1.as_str()),
        "{known:?}"
    );
    let mut wire = session.wire();
    let result = wire.done("result", json!({"id": scripted.id}));
    assert_eq!(result["status"], "interrupted");
    assert!(
        result["error"]
            .as_str()
            .is_some_and(|error| error.contains("host")),
        "{result}"
    );
    assert!(result["finishedAt"].is_string());
    let refused = wire.refused("steer", json!({"id": scripted.id, "text": "x"}));
    assert_eq!(
        (refused.code.as_str(), &refused.data["status"]),
        ("agent_not_running", &json!("interrupted"))
    );
    // The same steer is still the same steer.
    let again = wire.done(
        "steer",
        json!({"id": scripted.id, "text": "s2", "steerId": "s2"}),
    );
    assert_eq!(again["state"], "unknown");
    // And the session goes on.
    let next = shell(&session, "echo on");
    becomes(&session, &next, "done");
    assert_eq!(wire.done("result", json!({"id": next}))["text"], "on\n");
}

/// An agent can stop its own keeper, which then does not see that its host is gone.
#[test]
fn an_agent_that_stops_its_keeper_ends_with_the_next_host() {
    let mut session = up(&[]);
    let mark = session.place.path().join("mark").display().to_string();
    let id = shell(
        &session,
        &format!("kill -STOP $PPID; exec sh -c 'while :; do sleep 1; done' {mark}"),
    );
    // It is in the words of the first shell too.
    eventually("it runs, and its keeper does not", LONG, || {
        let stopped = |pid| processes::state(pid) == Some('T');
        let keepers = session
            .place
            .processes()
            .into_iter()
            .filter(|&pid| stopped(pid));
        let mut below = keepers.flat_map(processes::children);
        below
            .any(|pid| processes::mentions(pid, &mark))
            .then_some(())
    });
    signal(session.host(), Signal::KILL);
    session.again();
    assert_eq!(running(&session, &mark), [0; 0]);
    assert_eq!(agent(&session, &id)["status"], "interrupted");
}

/// Asked or told to end, the host ends its agents first, and in order.
#[test]
fn an_orderly_end_aborts_agents() {
    for by_signal in [false, true] {
        let mut session = up(&["--max-agents", "1"]);
        let mark = session.place.path().join("mark").display().to_string();
        let stubborn = "trap \"\" TERM; while :; do sleep 1; done";
        let id = shell(&session, &format!("sh -c '{stubborn}' {mark}"));
        let queued = shell(&session, "true");
        eventually("it runs", LONG, || {
            (!running(&session, &mark).is_empty()).then_some(())
        });
        let host = session.host();
        if by_signal {
            signal(host, Signal::TERM);
            eventually("the host is gone", LONG, || {
                (!processes::alive(host)).then_some(())
            });
        } else {
            assert_eq!(session.cli(&["down"]).code, 0);
        }
        assert_eq!(running(&session, &mark), [0; 0]);
        session.again();
        assert_eq!(agent(&session, &id)["status"], "aborted");
        assert_eq!(agent(&session, &queued)["status"], "cancelled-before-start");
        let result = session.wire().done("result", json!({"id": id}));
        assert_eq!(result["status"], "aborted");
        // A signal is nobody's intervention.
        let acts = session.events("human_intervention").len();
        assert_eq!(acts == 0, by_signal, "{acts}");
    }
}

#[test]
fn a_result_outlives_program_host_and_files() {
    let mut session = up(&[]);
    let id = shell(&session, "echo first; echo second");
    let ended = becomes(&session, &id, "done");
    let output = ended["outputFile"].as_str().expect("a path");
    assert_eq!(
        fs::read_to_string(output).expect("the output"),
        "first\nsecond\n"
    );
    let before = session.wire().done("result", json!({"id": id}));
    assert_eq!(before["text"], "first\nsecond\n");
    signal(session.host(), Signal::KILL);
    eventually("the host is gone", SHORT, || {
        (!processes::alive(session.host())).then_some(())
    });
    fs::remove_file(output).expect("removed");
    session.again();
    let after = session.wire().done("result", json!({"id": id}));
    assert_eq!(after, before);
}

/// A machine that was switched off looks like a host that died, but for its boot: no process of then is
/// looked for, since another may have its number now.
#[test]
fn after_a_restart_of_the_machine_nobody_else_is_ended() {
    let mut session = up(&[]);
    let id = shell(&session, "sleep 1000");
    becomes(&session, &id, "running");
    signal(session.host(), Signal::KILL);
    eventually("the tree ends", LONG, || {
        session.place.processes().is_empty().then_some(())
    });
    // The row that the dead host left, as it would be after a restart: this test has its number now.
    let database = session.state().join("session.db");
    let row = json!({"process": {"pid": std::process::id(), "startTicks": 1}, "bootId": "another"});
    let update = format!(
        "import sqlite3; db = sqlite3.connect('{}'); db.execute('UPDATE projection SET value = ? WHERE key LIKE ?', ('{row}', 'agent-keeper/%')); db.commit(); db.close()",
        database.display()
    );
    let status = session
        .place
        .command("python3")
        .args(["-c", &update])
        .status();
    assert!(status.expect("python").success());
    session.again();
    assert_eq!(agent(&session, &id)["status"], "interrupted");
    let manifest = fs::read(session.runtime().join("attach.json")).expect("a manifest");
    let manifest: Value = serde_json::from_slice(&manifest).expect("JSON");
    assert_eq!(manifest["agents"][0]["status"], "interrupted", "{manifest}");
}
