//! A host that is back knows whose calls its predecessor has permitted: it grants no control while one of them may
//! still be under way.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{
    LONG, Relay, SHORT, Session, Signal, alive, eventually, holds_for, signal, stop,
};

/// A call that goes on whatever it is told, and the processes below its relay.
fn stubborn(session: &Session) -> (Relay, Vec<i32>) {
    let mut relay = Relay::start(&session.place, &[]);
    relay.greet();
    relay.begin_call(1, "stubborn", json!({"s": 600}));
    relay.acted("stubborn");
    let below = relay.below();
    (relay, below)
}

/// Kills the host and brings the session back.
fn crash(session: &mut Session) {
    let host = session.host();
    signal(host, Signal::KILL);
    eventually("the host is gone", SHORT, || (!alive(host)).then_some(()));
    session.again();
}

/// What a person asks for who has time, as a busy machine may need it.
fn takeover() -> Value {
    json!({"desktop": "d1", "drainMs": 20_000})
}

/// Takes control at the first try, and nothing acts from the grant on.
fn quiet(session: &Session, relay: &Relay, below: &[i32]) {
    session.wire().done("control.acquire", takeover());
    let left: Vec<i32> = below.iter().copied().filter(|&pid| alive(pid)).collect();
    assert!(left.is_empty(), "granted while there was: {left:?}");
    let acts = relay.acts();
    holds_for("nothing acts", Duration::from_millis(200), || {
        relay.acts() == acts
    });
}

#[test]
fn with_a_relay_that_is_stopped() {
    let mut session = Session::up();
    let (mut relay, below) = stubborn(&session);
    stop(&[relay.pid()]);
    crash(&mut session);
    // Nobody waits for it, so nothing is ended.
    holds_for("the server runs", Duration::from_millis(500), || {
        below.iter().all(|&pid| alive(pid))
    });
    let mut person = session.wire();
    person.done("control.acquire", takeover());
    let left: Vec<i32> = below.iter().copied().filter(|&pid| alive(pid)).collect();
    assert!(left.is_empty(), "granted while there was: {left:?}");
    signal(relay.pid(), Signal::CONT);
    assert!(relay.answer(&json!(1))["error"].is_object());
    let refused = relay.refused(2, "act");
    assert_eq!(refused["data"]["code"], "human_control_active");
    person.done("control.return", json!({"desktop": "d1"}));
    relay.done(3, "act", json!({}));
}

#[test]
fn with_a_relay_that_is_stopped_and_a_desktop_that_is_paused() {
    let mut session = Session::up();
    let (relay, below) = stubborn(&session);
    stop(&[relay.pid()]);
    crash(&mut session);
    session
        .wire()
        .done("control.pause", json!({"desktop": "d1"}));
    crate::support::all_gone(&below);
    quiet(&session, &relay, &below);
}

/// The relay ends it, but not at once.
#[test]
fn with_a_call_that_its_relay_is_about_to_end() {
    let mut session = Session::up();
    let (relay, below) = stubborn(&session);
    crash(&mut session);
    quiet(&session, &relay, &below);
}

/// With nothing under way a person waits seconds at most, and the server is not ended.
#[test]
fn with_a_server_that_does_nothing() {
    let mut session = Session::up();
    let mut relay = Relay::start(&session.place, &[]);
    relay.done(1, "act", json!({}));
    let server = relay.server();
    let mut calls = 1;
    // A busy machine may hold up any one of them, but not every one.
    let is_soon = (0..3).any(|_| {
        eventually("the host permits a call", LONG, || {
            calls += 1;
            relay.call(calls, "act", json!({}))["result"]
                .is_object()
                .then_some(())
        });
        crash(&mut session);
        let mut person = session.wire();
        let mut waits = || {
            let began = Instant::now();
            person.done("control.acquire", takeover());
            let waited = began.elapsed();
            person.done("control.return", json!({"desktop": "d1"}));
            waited
        };
        let (first, second) = (waits(), waits());
        println!("waited {first:?}, then {second:?}");
        // Once is enough.
        first < Duration::from_secs(5) && second < Duration::from_secs(1)
    });
    assert!(is_soon, "a person waits too long each time");
    assert!(alive(server));
}
