//! The display server is killed or stopped: control ends cleanly, or waits until it can.

use std::time::Duration;

use serde_json::json;

use crate::support::{
    LONG, Recorder, SHORT, Session, Signal, Typed, check_exclusion, eventually, holds_for, signal,
    stop, takeovers,
};

const AGENT: u32 = b'a' as u32;
const PERSON: u32 = b'h' as u32;

#[test]
fn killed_during_a_takeover() {
    let session = Session::up();
    let mut holder = session.take(json!({}));
    signal(session.display_server(), Signal::KILL);
    eventually("the viewer's connection is closed", SHORT, || {
        (!holder.viewer.open()).then_some(())
    });
    let record = eventually("the end is on record", SHORT, || {
        takeovers(&session.journal())
            .pop()
            .filter(|takeover| takeover.end.is_finite())
    });
    assert_eq!(
        record.lease,
        holder.granted["leaseId"].as_str().expect("a lease")
    );
    let proof = holder.proof();
    let refused = holder.wire.refused("control.renew", proof);
    assert!(
        ["lease_stale", "desktop_gone"].contains(&refused.code.as_str()),
        "{refused:?}"
    );
    let mut agent = session.wire();
    for (method, params) in [
        ("desktop.click", json!({"desktop": "d1", "x": 5, "y": 5})),
        ("desktop.screenshot", json!({"desktop": "d1"})),
        ("control.acquire", json!({"desktop": "d1"})),
        ("view.open", json!({"desktop": "d1"})),
    ] {
        assert_eq!(
            agent.refused(method, params).code,
            "desktop_gone",
            "{method}"
        );
    }
    // The session is usable.
    let new = agent.done("desktop.new", json!({}));
    agent.done("desktop.screenshot", json!({"desktop": new["id"]}));
    agent.done(
        "desktop.click",
        json!({"desktop": new["id"], "x": 5, "y": 5}),
    );
}

/// C5: stopped with the person's keys unread when control ends: the desktop is shown as unavailable, and the
/// agent is not back before the last of those keys has been worked through.
#[test]
fn stopped_when_control_ends() {
    let session = Session::up();
    let typed = Typed::start(&session);
    let recorder = Recorder::everything(&session.display());
    let mut holder = session.take(json!({}));
    holder.viewer.tap("h");
    typed.becomes("h");
    stop(&[session.display_server()]);
    holder.viewer.tap("hhhhhhhhhh");
    let proof = holder.proof();
    let returning = holder.wire.send("control.return", proof);
    let mut agent = session.wire();
    eventually("the desktop is shown as unavailable", LONG, || {
        let status = session.status();
        (status["control"] == "paused" && status["pauseReason"] == "display_unavailable")
            .then_some(())
    });
    assert!(
        takeovers(&session.journal())[0].end.is_infinite(),
        "the end is on record before it is true"
    );
    holds_for("nobody acts", Duration::from_millis(500), || {
        let code = agent.refused("desktop.type", json!({"text": "a"})).code;
        ["display_unavailable", "paused", "human_control_active"].contains(&code.as_str())
    });
    signal(session.display_server(), Signal::CONT);
    // The call was answered when it was plain that control could not be returned yet, or is now.
    if let Err(refused) = holder.wire.answer(returning) {
        assert_eq!(refused.code, "display_unavailable");
    }
    session.becomes("agent", LONG);
    agent.done("desktop.type", json!({"text": "a"}));
    // What of the person's keys had reached the display, and then the agent's: the terminal may read them late.
    eventually("all keys in their order", LONG, || {
        let persons = "h".repeat(recorder.presses(PERSON));
        (typed.text() == format!("{persons}a")).then_some(())
    });
    check_exclusion(
        &recorder.seen(),
        &takeovers(&session.journal()),
        AGENT,
        PERSON,
    );
    eventually("nothing is held", SHORT, || {
        recorder.held().is_empty().then_some(())
    });
}

/// Stopped, then killed: the takeover ends with the desktop.
#[test]
fn stopped_and_then_killed() {
    let session = Session::up();
    let mut holder = session.take(json!({}));
    stop(&[session.display_server()]);
    holder.viewer.tap("hhh");
    let proof = holder.proof();
    holder.wire.send("control.return", proof);
    eventually("the desktop is shown as unavailable", LONG, || {
        (session.status()["control"] == "paused").then_some(())
    });
    signal(session.display_server(), Signal::KILL);
    eventually("the end is on record", SHORT, || {
        takeovers(&session.journal())
            .pop()
            .filter(|takeover| takeover.end.is_finite())
    });
    assert_eq!(
        session
            .wire()
            .refused("desktop.click", json!({"desktop": "d1", "x": 5, "y": 5}))
            .code,
        "desktop_gone"
    );
}

/// A stopped display delays nobody who does not need it.
#[test]
fn stopped_in_agent_time() {
    let session = Session::up();
    stop(&[session.display_server()]);
    let mut agent = session.wire();
    let acts = agent.send("desktop.click", json!({"x": 5, "y": 5}));
    session.wire().done("list", json!({}));
    session.wire().done("ping", json!({}));
    signal(session.display_server(), Signal::CONT);
    let _ = agent.answer(acts);
    eventually("the agent acts again", SHORT, || {
        agent.call("desktop.click", json!({"x": 5, "y": 5})).ok()
    });
}

/// A keeper that is killed takes its desktop with it, and nothing below it stays.
#[test]
fn the_keeper_is_killed() {
    let session = Session::up();
    let typed = Typed::start(&session);
    let server = session.display_server();
    let mut holder = session.take(json!({}));
    signal(session.keeper(), Signal::KILL);
    eventually("the display server ends", SHORT, || {
        (!crate::support::alive(server)).then_some(())
    });
    eventually("its programs end", SHORT, || {
        (!crate::support::alive(typed.pid)).then_some(())
    });
    eventually("the takeover ends", SHORT, || {
        takeovers(&session.journal())
            .pop()
            .filter(|takeover| takeover.end.is_finite())
    });
    let proof = holder.proof();
    holder.wire.refused("control.renew", proof);
    let mut agent = session.wire();
    assert_eq!(
        agent
            .refused("desktop.click", json!({"desktop": "d1", "x": 5, "y": 5}))
            .code,
        "desktop_gone"
    );
    let new = agent.done("desktop.new", json!({}));
    agent.done(
        "desktop.click",
        json!({"desktop": new["id"], "x": 5, "y": 5}),
    );
}

/// A connection to the display server that the host did not make ends control and pauses the desktop.
#[test]
fn a_foreign_connection_ends_control() {
    let session = Session::up();
    let recorder = Recorder::everything(&session.display());
    let mut holder = session.take(json!({}));
    let socket = session.runtime().join("d1.rfb");
    let intruder =
        std::os::unix::net::UnixStream::connect(&socket).expect("the display server's own socket");
    let status = session.becomes("paused", SHORT);
    assert_eq!(status["pauseReason"], "foreign_connection");
    session.event("foreign_connection");
    let before = recorder.presses(PERSON);
    holder.viewer.tap("hhh");
    let mut agent = session.wire();
    let refused = agent.refused("desktop.click", json!({"x": 5, "y": 5}));
    assert!(
        ["foreign_connection", "paused"].contains(&refused.code.as_str()),
        "{refused:?}"
    );
    assert_eq!(recorder.presses(PERSON), before);
    let proof = holder.proof();
    assert_eq!(
        holder.wire.refused("control.renew", proof).code,
        "lease_stale"
    );
    drop(intruder);
    session
        .wire()
        .done("control.resume", json!({"force": true}));
    agent.done("desktop.screenshot", json!({}));
    agent.done("desktop.click", json!({"x": 5, "y": 5}));
}
