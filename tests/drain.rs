//! Control is granted only when nothing of the agent's is under way any more, or not at all.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::{
    LONG, Recorder, Running, SHORT, Session, Signal, Typed, eventually, stop, takeovers,
};

/// C4: an agent that never ends what it has a permit for is told, and the takeover is given up when the budget
/// is over; nothing is left behind.
#[test]
fn a_drain_that_cannot_finish_leaves_the_agent_in_control() {
    let session = Session::up();
    let mut agent = session.wire();
    let permit = agent.done(
        "control.permit",
        json!({"desktop": "d1", "what": "an act without an end"}),
    );

    let mut person = session.wire();
    let started = Instant::now();
    let acquire = person.send("control.acquire", json!({"desktop": "d1", "drainMs": 400}));
    let told = agent.notified("interrupt", |params| params["permit"] == permit["permit"]);
    assert_eq!(told["permit"], permit["permit"]);
    let refused = person
        .answer(acquire)
        .expect_err("a takeover that cannot be");
    assert_eq!(refused.code, "drain_timeout");
    assert!(
        started.elapsed() >= Duration::from_millis(400),
        "given up before the budget was over"
    );

    let status = session.status();
    assert_eq!(
        (&status["control"], &status["phase"]),
        (&json!("agent"), &json!("steady"))
    );
    assert!(
        status.get("lease").is_none_or(serde_json::Value::is_null),
        "a lease was left: {status}"
    );
    assert!(takeovers(&session.journal()).is_empty());
    session
        .wire()
        .done("desktop.move", json!({"desktop": "d1", "x": 5, "y": 5}));

    agent.done(
        "control.complete",
        json!({"desktop": "d1", "permit": permit["permit"]}),
    );
    person.done("control.acquire", json!({"desktop": "d1"}));
}

/// While it drains, nobody gets a new permit and nobody else gets the lease.
#[test]
fn a_draining_desktop_admits_nothing_new() {
    let session = Session::up();
    let mut agent = session.wire();
    let permit = agent.done("control.permit", json!({"desktop": "d1", "what": "slow"}));
    let mut person = session.wire();
    let acquire = person.send(
        "control.acquire",
        json!({"desktop": "d1", "drainMs": 50_000}),
    );
    eventually("it drains", SHORT, || {
        (session.status()["phase"] == "draining").then_some(())
    });

    let mut other = session.wire();
    let refused = other.refused("desktop.click", json!({"desktop": "d1", "x": 5, "y": 5}));
    assert_eq!(refused.code, "human_control_active");
    assert_eq!(
        other
            .refused("control.acquire", json!({"desktop": "d1"}))
            .code,
        "human_lease_held"
    );

    agent.done(
        "control.complete",
        json!({"desktop": "d1", "permit": permit["permit"]}),
    );
    person
        .answer(acquire)
        .expect("granted as soon as the permit is complete");
    assert_eq!(session.status()["control"], "human");
}

/// What one drain could not end is told to end again when the next person asks, who may get control then.
#[test]
fn a_permit_is_interrupted_at_every_drain() {
    let session = Session::up();
    let mut agent = session.wire();
    let permit = agent.done("control.permit", json!({"desktop": "d1", "what": "slow"}));
    let permit = &permit["permit"];
    let mut person = session.wire();
    let briefly = json!({"desktop": "d1", "drainMs": 100});
    let refused = person.refused("control.acquire", briefly);
    assert_eq!(refused.code, "drain_timeout");
    agent.notified("interrupt", |said| said["permit"] == *permit);

    let patiently = json!({"desktop": "d1", "drainMs": 30_000});
    let acquire = person.send("control.acquire", patiently);
    agent.notified("interrupt", |said| said["permit"] == *permit);
    agent.done(
        "control.complete",
        json!({"desktop": "d1", "permit": permit}),
    );
    person.answer(acquire).expect("granted");
    assert_eq!(session.status()["control"], "human");
}

/// L9: a person who goes away while it still drains leaves nothing behind.
#[test]
fn a_person_who_leaves_during_the_drain() {
    let session = Session::up();
    let mut agent = session.wire();
    let permit = agent.done("control.permit", json!({"desktop": "d1", "what": "slow"}));
    let mut person = session.wire();
    person.send(
        "control.acquire",
        json!({"desktop": "d1", "drainMs": 50_000}),
    );
    eventually("it drains", SHORT, || {
        (session.status()["phase"] == "draining").then_some(())
    });
    drop(person);
    let status = session.becomes("agent", SHORT);
    assert!(
        status.get("lease").is_none_or(serde_json::Value::is_null),
        "a lease was left: {status}"
    );
    agent.done(
        "control.complete",
        json!({"desktop": "d1", "permit": permit["permit"]}),
    );
    assert!(takeovers(&session.journal()).is_empty());
    session
        .wire()
        .done("control.acquire", json!({"desktop": "d1"}));
}

/// A process that is killed with a permit in its hands holds up nobody.
#[test]
fn an_agent_that_dies_with_its_permit() {
    let session = Session::up();
    let ask = format!(
        "import socket, time\ns = socket.socket(socket.AF_UNIX)\ns.connect('{}')\ns.sendall(b'{}\\n')\nprint(s.recv(9999).decode(), flush=True)\ntime.sleep(600)",
        session.socket().display(),
        json!({"jsonrpc": "2.0", "id": 1, "method": "control.permit", "params": {"desktop": "d1", "what": "cut short"}}),
    );
    let agent = Running::start(session.place.command("python3").args(["-c", &ask]));
    agent.line("a permit", |line| line["result"]["permit"].is_string());
    let mut person = session.wire();
    let acquire = person.send(
        "control.acquire",
        json!({"desktop": "d1", "drainMs": 50_000}),
    );
    eventually("it drains", SHORT, || {
        (session.status()["phase"] == "draining").then_some(())
    });
    agent.signal(Signal::KILL);
    // A drain that waits for somebody ends with a refusal.
    person
        .answer(acquire)
        .expect("nobody waits for an owner that has gone");
}

/// 20,000 characters under way when a person takes over: the agent learns how far it got, and that is what the
/// application received.
#[test]
fn typing_is_interrupted_and_says_how_far_it_got() {
    let session = Session::up();
    let typed = Typed::start(&session);
    let recorder = Recorder::everything(&session.display());
    let text = "abcdefghi ".repeat(2000);
    let mut agent = session.wire();
    let call = agent.send(
        "desktop.type",
        json!({"desktop": "d1", "text": text, "method": "keys"}),
    );
    eventually("typing has begun", SHORT, || {
        (typed.text().len() > 20).then_some(())
    });

    let mut person = session.wire();
    let started = Instant::now();
    person.done("control.acquire", json!({"desktop": "d1"}));
    assert!(
        started.elapsed() < Duration::from_secs(10),
        "took {:?}",
        started.elapsed()
    );
    let refused = agent.answer(call).expect_err("an interrupted call");
    assert_eq!(refused.code, "interrupted_by_human");
    let reached =
        usize::try_from(refused.data["typed"].as_u64().expect("how far it got")).expect("small");
    assert!(reached < text.len());
    typed.becomes(&text[..reached]);
    eventually("nothing is held", SHORT, || {
        recorder.held().is_empty().then_some(())
    });

    let events = session.events("desktop_type");
    let event = events.last().expect("the act is on record");
    assert_eq!(
        (&event["outcome"], &event["code"]),
        (&json!("failed"), &json!("interrupted_by_human"))
    );
    assert!(
        !event.to_string().contains("abcdefghi"),
        "typed text on record: {event}"
    );
}

/// L16: a client that is stopped while it has a call under way cannot hold up a takeover, and what it sent is
/// not delivered when it wakes.
#[test]
fn a_stopped_client_holds_up_nothing() {
    let session = Session::up();
    let typed = Typed::start(&session);
    // Long enough not to be over before the client is stopped.
    let text = "a".repeat(2000);
    let agent = session.start(&["desktop", "type", "--method", "keys", "--", &text]);
    eventually("typing has begun", LONG, || {
        (!typed.text().is_empty()).then_some(())
    });
    stop(&[agent.pid()]);
    let started = Instant::now();
    let mut holder = session.take(json!({}));
    assert!(
        started.elapsed() < Duration::from_secs(10),
        "took {:?}",
        started.elapsed()
    );
    holder.viewer.tap("h");
    eventually("the person types", SHORT, || {
        typed.text().ends_with('h').then_some(())
    });
    let text = typed.text();
    agent.signal(Signal::CONT);
    let outcome = agent.finish(LONG);
    assert!([0, 1].contains(&outcome.code), "{outcome:?}");
    assert_eq!(typed.text(), text, "something came late");
    holder.give_back();
    assert_eq!(typed.text(), text, "something came after the return");
}

/// The budget is the person's to set from the shell too.
#[test]
fn watch_passes_the_budget_on() {
    let session = Session::up();
    let mut agent = session.wire();
    let asked = json!({"desktop": "d1", "what": "an act without an end"});
    agent.done("control.permit", asked);
    let control = ["watch", "d1", "--control", "--viewer", "none", "--drain"];
    let started = Instant::now();
    let briefly = session.start(&[&control[..], &["100ms"]].concat());
    let outcome = briefly.finish(LONG);
    assert_eq!(outcome.code, 1, "{outcome:?}");
    assert!(format!("{outcome:?}").contains("drain_timeout"));
    assert!(format!("{outcome:?}").contains("--drain"));
    assert!(started.elapsed() >= Duration::from_millis(100));
    // The bounds are those of the wire.
    let outcome = session
        .start(&[&control[..], &["61s"]].concat())
        .finish(LONG);
    assert_eq!(outcome.code, 1, "{outcome:?}");
    assert!(format!("{outcome:?}").contains("drainMs"));
}
