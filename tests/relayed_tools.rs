//! Any MCP server behind `handover relay`: its tools act while the agent has control, and never while a
//! person has; and what was under way ends first.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Agent, Place, Relay, SHORT, Session, holds_for};

#[test]
fn a_call_passes_and_is_refused_in_human_time() {
    let session = Session::up();
    let mut relay = Relay::start(&session.place, &[]);
    relay.done(1, "act", json!({"note": "one"}));

    let mut holder = session.take(json!({}));
    let refused = relay.refused(2, "act");
    assert_eq!(refused["data"]["code"], "human_control_active");
    assert_eq!(
        refused["data"]["lease"]["leaseId"],
        holder.granted["leaseId"]
    );
    let message = refused["message"].as_str().expect("a message");
    assert!(message.contains("wait for the hand-back"), "{message}");
    assert!(
        !relay.reached().contains(r#""id":2"#),
        "it reached the server"
    );
    // What does not act goes on.
    relay.write(r#"{"jsonrpc":"2.0","id":3,"method":"ping"}"#);
    relay.answer(&json!(3));

    holder.give_back();
    relay.done(4, "act", json!({"note": "two"}));
    assert_eq!(relay.acts(), "acted one\nacted two\n");

    session.wire().done("control.pause", json!({}));
    assert_eq!(relay.refused(5, "act")["data"]["code"], "paused");
    assert_eq!(relay.finish().code, 0);
}

/// Who, which tool, when, in which epoch; what it was to do, never.
#[test]
fn a_refused_call_is_on_record_without_its_arguments() {
    let session = Session::up();
    let mut relay = Relay::start(&session.place, &[]);
    let holder = session.take(json!({}));
    relay.call(1, "act", json!({"note": "hunter2"}));
    let event = session.event("relay_refused");
    assert_eq!(event["tool"], "act");
    assert_eq!(event["code"], "human_control_active");
    assert_eq!(event["desktop"], "d1");
    assert_eq!(event["epoch"], holder.granted["epoch"]);
    assert_eq!(event["source"], "agent");
    assert_eq!(event["actor"]["via"], "relay");
    assert_eq!(event["pid"], relay.pid());
    let record = json!(session.journal()).to_string();
    assert!(!record.contains("hunter2"), "arguments on record");
    let refusals = session.events("call_refused");
    assert!(refusals.is_empty(), "recorded twice: {refusals:?}");
}

#[test]
fn the_official_client_works_through_it() {
    let session = Session::up();
    for mode in ["legacy", "auto"] {
        let mut agent = Agent::relayed(&session.place, mode);
        assert_eq!(agent.tools().len(), 11);
        agent.done("act", json!({"note": mode}));
        let mut holder = session.take(json!({}));
        let error = agent.failed("act");
        assert!(error.contains("has control of desktop d1"), "{error}");
        holder.give_back();
        agent.done("act", json!({}));
        agent.leave();
    }
}

/// A well-behaved call that would take for ever does not keep a person waiting.
#[test]
fn a_call_under_way_is_cancelled_and_control_granted_at_once() {
    let session = Session::up();
    let mut relay = Relay::start(&session.place, &[]);
    let mut best = Duration::MAX;
    for id in 1..=5 {
        relay.begin_call(id, "work", json!({}));
        let begun = usize::try_from(id).expect("small");
        relay.acted_times("work begins", begun);
        let mut person = session.wire();
        let started = Instant::now();
        person.done("control.acquire", json!({"desktop": "d1"}));
        best = best.min(started.elapsed());
        assert_eq!(
            relay.acts().matches("work ends").count(),
            begun,
            "granted before its end"
        );
        let error = relay.answer(&json!(id))["error"].clone();
        assert_eq!(error["data"]["code"], "interrupted_by_human");
        person.done("control.return", json!({"desktop": "d1"}));
    }
    assert!(best < Duration::from_millis(100), "took {best:?} at best");
    relay.done(9, "act", json!({}));
}

/// A server that does not care for cancellation is waited for; a takeover that cannot be is given up, and
/// nothing of the call happens in human time.
#[test]
fn a_call_that_goes_on_holds_control_back() {
    let session = Session::up();
    let mut relay = Relay::start(&session.place, &[]);
    relay.begin_call(1, "stubborn", json!({"s": 1.5}));
    relay.acted("stubborn");
    let mut person = session.wire();
    let refused = person.refused("control.acquire", json!({"desktop": "d1", "drainMs": 300}));
    assert_eq!(refused.code, "drain_timeout");
    assert_eq!(session.status()["control"], "agent");
    person.done(
        "control.acquire",
        json!({"desktop": "d1", "drainMs": 20_000}),
    );
    let acts = relay.acts();
    assert!(relay.answer(&json!(1))["result"].is_object());
    holds_for("nothing acts", Duration::from_millis(300), || {
        relay.acts() == acts
    });
}

/// One that is never heard of again is ended when people go on waiting.
#[test]
fn a_server_that_never_answers_is_cut_off() {
    let session = Session::up();
    let mut relay = Relay::start(&session.place, &[]);
    relay.begin_call(1, "silent", json!({}));
    relay.acted("silent begins");
    let server = relay.below();
    let mut person = session.wire();
    person.done(
        "control.acquire",
        json!({"desktop": "d1", "drainMs": 30_000}),
    );
    crate::support::all_gone(&server);
    let error = relay.answer(&json!(1))["error"].clone();
    assert_eq!(error["data"]["code"], "interrupted_by_human");
    let outcome = relay.finish();
    assert_eq!(outcome.code, 1, "{outcome:?}");
}

#[test]
fn tools_that_only_look_pass_if_allowed() {
    let session = Session::up();
    let list = r#"{"jsonrpc":"2.0","id":"l","method":"tools/list"}"#;
    let passes = |options: &[&str]| {
        let mut relay = Relay::start(&session.place, options);
        relay.write(list);
        relay.answer(&json!("l"));
        let tools = ["list_things", "take_screenshot", "act"];
        let passes: Vec<&str> = (1..)
            .zip(tools)
            .filter(|(id, tool)| relay.call(*id, tool, json!({}))["result"].is_object())
            .map(|(_, tool)| tool)
            .collect();
        passes
    };
    let mut holder = session.take(json!({}));
    assert!(passes(&[]).is_empty());
    assert_eq!(passes(&["--allow-readonly"]), ["list_things"]);
    assert_eq!(
        passes(&["--allow", "take_screenshot,list_*"]),
        ["list_things", "take_screenshot"]
    );
    holder.give_back();
    // A person who asked not to be watched is not.
    let _holder = session.take(json!({"private": true}));
    assert!(passes(&["--allow", "*"]).is_empty());
}

#[test]
fn records_that_cannot_be_read_are_answered_or_end_the_server() {
    let session = Session::up();
    let mut relay = Relay::start(&session.place, &[]);
    let null = Value::Null;
    relay.write("{");
    assert_eq!(relay.answer(&null)["error"]["data"]["code"], "malformed");
    let long = format!(
        r#"{{"jsonrpc":"2.0","method":"x","params":"{}"}}"#,
        "x".repeat(16 << 20)
    );
    relay.write(&long);
    let said = relay.says(|line| line["error"]["data"]["code"] == "line_too_long");
    assert_eq!(said["id"], null);
    relay.write(
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call","params":{"name":"act"}}"#,
    );
    // A megabyte each way is nothing special.
    let text = "é".repeat(1 << 20);
    let echoed = relay.call(2, "echo", json!({"text": text}));
    assert_eq!(echoed["result"]["text"], text);
    assert!(!relay.reached().contains("xxx") && relay.acts().is_empty());

    relay.begin_call(3, "work", json!({}));
    relay.acted("work begins");
    let below = relay.below();
    let error = relay.call(4, "garble", json!({}))["error"].clone();
    let message = error["message"].as_str().expect("a message");
    assert!(message.contains("something else than MCP"), "{message}");
    assert!(relay.answer(&json!(3))["error"].is_object());
    crate::support::all_gone(&below);
    let said = relay.said();
    assert!(
        said.lines()
            .all(|line| serde_json::from_str::<Value>(line).is_ok())
    );
    let outcome = relay.finish();
    assert_eq!(outcome.code, 1, "{outcome:?}");
    assert!(
        outcome.err.contains("something else than MCP"),
        "{outcome:?}"
    );
}

#[test]
fn what_the_server_complains_about_is_passed_on_without_secrets() {
    let session = Session::up();
    let mut relay = Relay::begin(&session.place, &[], &[("SOME_API_KEY", "correct-horse")]);
    let text = "cannot log in with correct-horse, password=staple";
    relay.done(1, "complain", json!({"text": text}));
    relay.done(2, "complain", json!({"text": "x".repeat(100_000)}));
    let outcome = relay.finish();
    assert!(
        outcome
            .err
            .contains("cannot log in with [redacted], password=[redacted]"),
        "{}",
        outcome.err
    );
    assert!(!outcome.err.contains("correct-horse") && !outcome.err.contains("staple"));
    assert!(outcome.err.len() < 20_000);
}

#[test]
fn what_cannot_be_started_is_said() {
    let place = Place::new();
    let relay = |command: &[&str]| {
        let mut relay = place.handover();
        let relay = relay.args(["relay", "--json"]).args(command);
        let (relay, _input) = crate::support::Running::start_with_input(relay);
        relay.finish(SHORT)
    };
    let outcome = relay(&["--", "/nonexistent/server"]);
    let refused = outcome.refused();
    assert_eq!(refused, "internal");
    assert!(outcome.out.contains("/nonexistent/server"), "{outcome:?}");
    assert_eq!(relay(&[]).code, 2);
    let outcome = relay(&["--", "sh", "-c", "exit 7"]);
    assert!(outcome.out.contains("exit status 7"), "{outcome:?}");
}
