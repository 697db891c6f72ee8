//! Any MCP server behind `handover relay`: its tools act while the agent has control, and never while a
//! person has; and what was under way ends first.

use std::io::Write;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Agent, LONG, Place, Relay, Running, SHORT, Session, eventually, holds_for};

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
        assert_eq!(agent.tools().len(), 12);
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
    // A busy machine may hold up any one of them, but not every one.
    for id in 1..=25 {
        relay.begin_call(id, "work", json!({}));
        let begun = usize::try_from(id).expect("small");
        relay.acted_times("work begins", begun);
        let mut person = session.wire();
        let started = Instant::now();
        let patient = json!({"desktop": "d1", "drainMs": 20_000});
        person.done("control.acquire", patient);
        best = best.min(started.elapsed());
        assert_eq!(
            relay.acts().matches("work ends").count(),
            begun,
            "granted before its end"
        );
        let error = relay.answer(&json!(id))["error"].clone();
        assert_eq!(error["data"]["code"], "interrupted_by_human");
        person.done("control.return", json!({"desktop": "d1"}));
        if best < Duration::from_millis(100) {
            break;
        }
    }
    assert!(best < Duration::from_millis(100), "took {best:?} at best");
    relay.done(99, "act", json!({}));
}

/// The host takes 256 calls of one connection at once; permits beyond wait for their turn, and all of them are
/// given back.
#[test]
fn hundreds_of_calls_under_way_end_at_once() {
    const CALLS: u64 = 300;
    let session = Session::up();
    let mut relay = Relay::start(&session.place, &[]);
    for id in 1..=CALLS {
        relay.begin_call(id, "work", json!({}));
    }
    relay.acted_times("work begins", CALLS as usize);
    let mut person = session.wire();
    for _ in 0..2 {
        let patient = json!({"desktop": "d1", "drainMs": 20_000});
        person.done("control.acquire", patient);
        person.done("control.return", json!({"desktop": "d1"}));
    }
    for id in 1..=CALLS {
        let error = relay.answer(&json!(id))["error"].clone();
        assert_eq!(error["data"]["code"], "interrupted_by_human", "{error}");
    }
}

/// A server that does not care for cancellation is waited for; a takeover that cannot be is given up, and
/// nothing of the call happens in human time.
#[test]
fn a_call_that_goes_on_holds_control_back() {
    let session = Session::up();
    let mut relay = Relay::start(&session.place, &[]);
    relay.greet();
    let mut person = session.wire();
    // Any one may be ended for the person's sake, if a busy machine holds this test up meanwhile, but not every one.
    let has_ended_by_itself = (1..=5).any(|id| {
        let enough = session.place.path().join(format!("enough-{id}"));
        let before = relay.acts().len();
        relay.begin_call(id, "stubborn", json!({"s": 600, "until": enough}));
        eventually("it acts", LONG, || {
            (relay.acts().len() > before).then_some(())
        });
        let refused = person.refused("control.acquire", json!({"desktop": "d1", "drainMs": 300}));
        assert_eq!(refused.code, "drain_timeout");
        assert_eq!(session.status()["control"], "agent");
        let drain = json!({"desktop": "d1", "drainMs": 20_000});
        let acquire = person.send("control.acquire", drain);
        std::fs::write(&enough, "").expect("a file");
        person.answer(acquire).expect("granted at its end");
        let acts = relay.acts();
        let answer = relay.answer(&json!(id));
        holds_for("nothing acts", Duration::from_millis(300), || {
            relay.acts() == acts
        });
        person.done("control.return", json!({"desktop": "d1"}));
        answer["result"].is_object()
    });
    assert!(has_ended_by_itself, "each was ended");
}

/// A server that obeys a cancellation is not to answer, and looks like one that goes on. A person who asks
/// once gets control within the drain's default time; that nothing goes on is sure since the server has
/// ended. Its client finds it again, greeted as before.
#[test]
fn a_server_that_does_not_answer_is_ended_for_a_person_and_started_again() {
    for tool in ["silent", "stubborn"] {
        let session = Session::up();
        let mut relay = Relay::start(&session.place, &[]);
        relay.greet();
        relay.begin_call(1, tool, json!({"s": 600}));
        relay.acted(tool);
        let before = relay.below();
        let mut person = session.wire();
        let started = Instant::now();
        person.done("control.acquire", json!({"desktop": "d1"}));
        assert!(
            started.elapsed() < Duration::from_secs(10),
            "took {:?}",
            started.elapsed()
        );
        let left: Vec<_> = before
            .iter()
            .filter(|pid| crate::support::alive(**pid))
            .collect();
        assert!(left.is_empty(), "granted while there was: {left:?}");
        let error = relay.answer(&json!(1))["error"].clone();
        assert_eq!(error["data"]["code"], "interrupted_by_human");
        assert!(
            error["message"]
                .as_str()
                .is_some_and(|message| message.contains("started again"))
        );
        let acts = relay.acts();
        // In human time, the new one answers what does not act.
        relay.write(r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#);
        relay.answer(&json!(2));
        assert_eq!(
            relay.refused(3, "act")["data"]["code"],
            "human_control_active"
        );
        holds_for("nothing acts", Duration::from_millis(200), || {
            relay.acts() == acts
        });
        person.done("control.return", json!({"desktop": "d1"}));
        relay.done(4, "act", json!({"note": "again"}));
        let reached = relay.reached();
        assert_eq!(
            reached.matches(r#""method":"initialize""#).count(),
            2,
            "{reached}"
        );
        assert_eq!(
            reached.matches("notifications/initialized").count(),
            2,
            "{reached}"
        );
        let outcome = relay.finish();
        assert_eq!(outcome.code, 0, "{outcome:?}");
        assert!(
            !outcome.out.contains("handover-1"),
            "its own greeting was passed on"
        );
        assert!(
            outcome.err.contains("ended and started again"),
            "{outcome:?}"
        );
        // No terminal shows it.
        assert!(!outcome.err.contains('\x1b'), "{outcome:?}");
    }
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

/// The longest record passes in both directions. A longer one of the client's is answered; after one of the
/// server's everything open is, and nothing half-written is left behind.
#[test]
fn records_pass_up_to_16_mib() {
    const LIMIT: usize = 16 << 20;
    let session = Session::up();
    let mut relay = Relay::start(&session.place, &[]);
    let padded = |id: u64, size: usize| {
        let ping = json!({"jsonrpc": "2.0", "id": id, "method": "ping"}).to_string();
        format!("{ping}{}", " ".repeat(size - ping.len()))
    };
    relay.write(&padded(1, LIMIT));
    assert!(relay.answer(&json!(1))["result"].is_object());
    relay.write(&padded(2, LIMIT + 1));
    relay.says(|line| line["error"]["data"]["code"] == "line_too_long");
    assert!(relay.call(3, "pad", json!({"size": LIMIT}))["result"].is_object());
    relay.begin_call(4, "work", json!({}));
    relay.acted("work begins");
    let below = relay.below();
    let error = relay.call(5, "pad", json!({"size": LIMIT + 1}))["error"].clone();
    assert!(
        error["message"]
            .as_str()
            .is_some_and(|message| message.contains("16777216")),
        "{error}"
    );
    assert!(relay.answer(&json!(4))["error"].is_object());
    crate::support::all_gone(&below);
    assert!(
        !relay.reached().contains(r#""id":2"#),
        "half of it has passed"
    );
    let outcome = relay.finish();
    assert_eq!(outcome.code, 1, "{}", outcome.err);
    assert!(
        outcome
            .out
            .lines()
            .all(|line| serde_json::from_str::<Value>(line).is_ok())
    );
}

/// What does not act passes also when it stands beside a call that is refused.
#[test]
fn each_call_of_a_batch_is_gated_for_itself() {
    let session = Session::up();
    let mut relay = Relay::start(&session.place, &["--allow", "list_*"]);
    let call = |id: u64, tool: &str| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool}});
    let ping = json!({"jsonrpc": "2.0", "id": 2, "method": "ping"});
    let _holder = session.take(json!({}));
    relay.write(&json!([call(1, "act"), ping, call(3, "list_things")]).to_string());
    let refused = relay.says(|line| line[0]["id"] == 1);
    assert_eq!(refused[0]["error"]["data"]["code"], "human_control_active");
    assert_eq!(refused.as_array().map(Vec::len), Some(1));
    for id in [2, 3] {
        assert!(relay.answer(&json!(id))["result"].is_object());
    }
    assert!(!relay.reached().contains(r#""act""#));
    // The relay answers its client first, and tells the host then.
    eventually("the refusal is on record", SHORT, || {
        (session.events("relay_refused").len() == 1).then_some(())
    });
}

/// A server without a session runs, and its tools do nothing.
#[test]
fn without_a_session_nothing_acts() {
    let place = Place::new();
    let mut relay = Relay::start(&place, &["--allow", "list_*"]);
    for (id, tool) in [(1, "act"), (2, "list_things")] {
        assert_eq!(relay.refused(id, tool)["data"]["code"], "session_unknown");
    }
    assert!(!relay.reached().contains("tools/call"));
    assert_eq!(relay.finish().code, 0);
}

/// A client that ends without a newline gets an answer all the same.
#[test]
fn the_last_record_needs_no_newline() {
    let place = Place::new();
    for (last, code) in [
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"act"}}"#,
            -32050,
        ),
        (r#"{"jsonrpc":"2.0","id":7,"meth"#, -32700),
    ] {
        let mut relay = place.handover();
        let relay = relay.args(["relay", "--", "cat"]);
        let (relay, mut input) = Running::start_with_input(relay);
        write!(input, "{last}").expect("it reads");
        drop(input);
        let outcome = relay.finish(LONG);
        assert_eq!(outcome.done()["error"]["code"], code, "{outcome:?}");
    }
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
        let (relay, _input) = Running::start_with_input(relay);
        relay.finish(SHORT)
    };
    // The client's stream is not the place for it, whatever was asked for.
    for (command, code, what, exit) in [
        (
            &["--", "/nonexistent/server"][..],
            "internal",
            "/nonexistent/server",
            1,
        ),
        (
            &["--", "sh", "-c", "exit 7"],
            "internal",
            "exit status 7",
            1,
        ),
        (&[], "bad_params", "COMMAND", 2),
        (
            &["--no-such-option", "--", "true"],
            "bad_params",
            "no-such-option",
            2,
        ),
    ] {
        let outcome = relay(command);
        assert_eq!((&*outcome.out, outcome.code), ("", exit), "{outcome:?}");
        let mut told = outcome
            .err
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let error = told.next_back().expect("an error in JSON")["error"].clone();
        assert_eq!(error["code"], code);
        assert!(
            error["message"]
                .as_str()
                .is_some_and(|message| message.contains(what)),
            "{error}"
        );
    }
}
