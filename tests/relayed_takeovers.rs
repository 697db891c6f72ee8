//! Relayed servers that do not let go: a person gets control all the same, and what was not done is on record.

use std::time::Duration;

use serde_json::json;

use crate::support::{LONG, Relay, Session, all_gone, eventually, holds_for};

/// A relay whose server works on call 1 for minutes and does not care for cancellation.
fn stubborn(session: &Session) -> Relay {
    let mut relay = Relay::start(&session.place, &[]);
    relay.begin_call(1, "stubborn", json!({"s": 600}));
    relay.acted("stubborn");
    relay
}

/// The host interrupts a permit once. A takeover that was given up too soon is not the last that can be.
#[test]
fn a_takeover_succeeds_after_one_that_was_given_up() {
    let session = Session::up();
    let relay = stubborn(&session);
    let before = relay.below();
    let mut person = session.wire();
    let refused = person.refused("control.acquire", json!({"desktop": "d1", "drainMs": 200}));
    assert_eq!(refused.code, "drain_timeout");
    // Longer than the relay waits for an answer to its cancellation: nobody asks, so nothing is ended.
    holds_for("the server runs on", Duration::from_millis(2500), || {
        session.status()["control"] == "agent" && !relay.said().contains(r#""id":1,"#)
    });
    person.done(
        "control.acquire",
        json!({"desktop": "d1", "drainMs": 20_000}),
    );
    all_gone(&before);
    let error = relay.answer(&json!(1))["error"].clone();
    assert_eq!(error["data"]["code"], "interrupted_by_human");
}

/// While a desktop is paused nobody acts, whoever does not care.
#[test]
fn a_pause_ends_a_server_that_goes_on() {
    let session = Session::up();
    let relay = stubborn(&session);
    let before = relay.below();
    session.wire().done("control.pause", json!({}));
    let error = relay.answer(&json!(1))["error"].clone();
    assert_eq!(error["data"]["code"], "interrupted_by_human");
    all_gone(&before);
    let acts = relay.acts();
    holds_for("nothing acts", Duration::from_millis(200), || {
        relay.acts() == acts
    });
}

/// A tool that may be called at any time is not while a person is not to be watched; that it was not is on
/// record like any other refusal.
#[test]
fn what_a_private_takeover_keeps_back_is_on_record() {
    let session = Session::up();
    let mut relay = Relay::start(&session.place, &["--allow", "list_*"]);
    let _holder = session.take(json!({"private": true}));
    assert_eq!(relay.refused(1, "list_things")["data"]["code"], "private");
    let event = eventually("it is on record", LONG, || {
        session.events("relay_refused").pop()
    });
    assert_eq!(event["tool"], "list_things");
    assert_eq!(event["desktop"], "d1");
    assert_eq!(relay.acts(), "");
}
