//! A12: when control returns, an agent learns by whom, after how long, with what note, and sees the desktop as
//! it is now; what it saw before is stale.

use serde_json::json;

use crate::support::{Session, Typed};

#[test]
fn the_hand_back_tells_what_happened() {
    let session = Session::up();
    let mut holder = session.take(json!({}));
    let mut proof = holder.proof();
    proof["note"] = json!("logged in; go on with the form");
    let returned = holder.wire.done("control.return", proof);
    assert_eq!(returned["reason"], "return");
    assert!(returned["heldMs"].is_u64());

    let status = session.status();
    let told = &status["lastHandBack"];
    assert_eq!(told["end"], "return");
    assert_eq!(told["note"], "logged in; go on with the form");
    assert!(
        told["holder"]
            .as_str()
            .is_some_and(|holder| !holder.is_empty()),
        "{told}"
    );
    assert!(
        told["heldMs"].as_u64() == returned["heldMs"].as_u64(),
        "{told}"
    );
    let picture = told["screenshot"].as_str().expect("a picture");
    let bytes = std::fs::read(session.state().join(picture))
        .or_else(|_| std::fs::read(picture))
        .expect("the picture");
    assert!(bytes.starts_with(b"\x89PNG"));
}

/// An agent that saw the desktop before the takeover must look again before it points anywhere.
#[test]
fn what_was_seen_before_is_stale() {
    let session = Session::up();
    let mut agent = session.wire();
    agent.done("desktop.screenshot", json!({}));
    agent.done("desktop.click", json!({"x": 5, "y": 5}));
    session.take(json!({})).give_back();
    for (method, params) in [
        ("desktop.click", json!({"x": 5, "y": 5})),
        ("desktop.move", json!({"x": 5, "y": 5})),
        ("desktop.drag", json!({"from": [5, 5], "to": [9, 9]})),
        ("desktop.double_click", json!({"x": 5, "y": 5})),
    ] {
        let refused = agent.refused(method, params);
        assert_eq!(refused.code, "stale_observation", "{method}");
        assert!(refused.message.contains("screenshot"), "{refused:?}");
    }
    // Keys have no coordinates.
    agent.done("desktop.key", json!({"keys": "Escape"}));
    agent.done("desktop.screenshot", json!({}));
    agent.done("desktop.click", json!({"x": 5, "y": 5}));
}

/// L11: the same windows and programs are there after the hand-back.
#[test]
fn the_programs_are_the_same_ones() {
    let session = Session::up();
    let typed = Typed::start(&session);
    let mut agent = session.wire();
    let before = agent.done("desktop.windows", json!({}));
    let mut holder = session.take(json!({}));
    holder.viewer.tap("by the person;");
    typed.becomes("by the person;");
    holder.give_back();
    let after = agent.done("desktop.windows", json!({}));
    let ids = |list: &serde_json::Value| {
        let windows = list["windows"].as_array().expect("a list");
        windows
            .iter()
            .map(|window| (window["id"].clone(), window["pid"].clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(ids(&before), ids(&after));
    agent.done("desktop.type", json!({"text": "by the agent"}));
    typed.becomes("by the person;by the agent");
}

/// A request for a person is answered by the takeover, and the asker learns it there.
#[test]
fn a_request_ends_with_the_hand_back() {
    let session = Session::up();
    let mut agent = session.wire();
    let asked = agent.done(
        "request_human",
        json!({"desktop": "d1", "reason": "a login page"}),
    );
    let id = asked["requestId"].clone();
    let open = agent.done("request_status", json!({"requestId": id}));
    assert_eq!(open["state"], "open");
    let waiting = agent.send("request_status", json!({"requestId": id, "waitMs": 30_000}));
    let mut holder = session.take(json!({}));
    let taken = agent.answer(waiting).expect("a change");
    assert_eq!(taken["state"], "taken");
    let waiting = agent.send("request_status", json!({"requestId": id, "waitMs": 30_000}));
    let mut proof = holder.proof();
    proof["note"] = json!("done");
    holder.wire.done("control.return", proof);
    let done = agent.answer(waiting).expect("a change");
    assert_eq!(done["state"], "handed_back");
    assert_eq!(done["handBack"]["note"], "done");
}

/// `--private` refuses the agents' pictures in human time; otherwise they are given and not kept.
#[test]
fn pictures_in_human_time() {
    let session = Session::up();
    let mut agent = session.wire();
    let mut holder = session.take(json!({}));
    let picture = agent.done("desktop.screenshot", json!({"inline": true}));
    assert!(picture["png"].is_string());
    assert!(picture["path"].is_null(), "kept: {picture}");
    holder.give_back();
    let mut holder = session.take(json!({"private": true}));
    assert_eq!(
        agent
            .refused("desktop.screenshot", json!({"inline": true}))
            .code,
        "private"
    );
    holder.give_back();
    assert!(agent.done("desktop.screenshot", json!({}))["path"].is_string());
    let outcome = session.cli(&["verify"]);
    assert_eq!(outcome.code, 0, "{outcome:?}");
}
