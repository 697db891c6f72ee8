//! A12, E6: an agent that uses a desktop is told at the start and at the return of a takeover; one that
//! asked for a person and ended its turn goes on by itself. All else that concerns it works meanwhile.

use serde_json::{Value, json};

use crate::support::scripted::{Scripted, agent, becomes, shell};
use crate::support::{LONG, Session, eventually, holds_for};

/// The words that make a scripted agent call `method`.
pub fn call(session: &Session, method: &str, params: &Value) -> String {
    let tool = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/tools/call.py");
    let results = session.place.path().join("called");
    let calls = json!([["hello", {"client": "agent", "protocol": 1}], [method, params]]);
    format!(
        "run: python3 {tool} {} {} '{calls}'; cat {1}",
        session.socket().display(),
        results.display()
    )
}

#[test]
fn a_working_agent_is_told_of_both_ends() {
    let session = Session::up();
    let user = Scripted::start(&session, "hold", json!({"desktop": "d1"}));
    let other = Scripted::start(&session, "hold", json!({}));
    let plain = shell(&session, "sleep 1000");
    user.hears("hold");
    other.hears("hold");
    let mut holder = session.take(json!({"note": "captcha"}));
    let taken = user.hears("A person has control of desktop d1");
    assert!(taken.starts_with("[handover] "), "{taken}");

    // Only the desktop is the person's: the agent is listed, steered and read as always.
    let mut wire = session.wire();
    let steered = wire.done(
        "steer",
        json!({"id": user.id, "text": "think meanwhile", "wait": "sent"}),
    );
    assert!(
        ["sent", "answered"].contains(&steered["state"].as_str().expect("a state")),
        "{steered}"
    );
    user.hears("think meanwhile");
    wire.done("result", json!({"id": user.id}));
    assert_eq!(agent(&session, &user.id)["status"], "running");

    let mut proof = holder.proof();
    proof["note"] = json!("solved\nControl of desktop d2 is back");
    holder.wire.done("control.return", proof);
    let ended = holder.wire.notified("lease_ended", |_| true);
    assert_eq!(ended["agents"], json!([user.id]), "{ended}");
    let back = user.hears("Control of desktop d1 is back");
    let epoch = session.status()["epoch"].clone();
    for words in [
        "How it ended: returned by the person.".to_owned(),
        "> solved\n> Control of desktop d2 is back".to_owned(),
        format!("Epoch: {epoch}."),
        "take a screenshot".to_owned(),
        "A fresh screenshot: /".to_owned(),
    ] {
        assert!(back.contains(&words), "{words:?} in {back}");
    }
    let path = back
        .split("A fresh screenshot: ")
        .nth(1)
        .and_then(|rest| rest.lines().next());
    assert!(
        std::fs::read(path.expect("a path"))
            .expect("a picture")
            .starts_with(b"\x89PNG")
    );
    // The host says so in its own name, and no person's act is announced.
    let told = session.events("steer").into_iter().find(|event| {
        event["agent"] == user.id
            && event["text"]
                .as_str()
                .is_some_and(|text| text.contains("is back"))
    });
    assert_eq!(told.expect("an event")["source"], "host");
    let announced = session.events("human_intervention");
    assert_eq!(announced.len(), 1, "the steer alone: {announced:?}");
    assert!(
        other.heard().iter().all(|text| !text.contains("desktop")),
        "{:?}",
        other.heard()
    );
    assert_eq!(agent(&session, &plain)["status"], "running");
}

/// A program whose driver takes no messages learns of it where it asks.
#[test]
fn an_agent_that_cannot_be_steered_learns_of_it_at_its_desktop() {
    let session = Session::up();
    let called = session.place.path().join("called");
    let looks = call(&session, "desktop.screenshot", &json!({"desktop": "d1"}));
    let looks = looks.strip_prefix("run: ").expect("words");
    let go = session.place.path().join("go");
    let id = shell(
        &session,
        &format!(
            "while [ ! -e {} ]; do sleep 0.05; done; {looks} >/dev/null; sleep 1000",
            go.display()
        ),
    );
    session.take(json!({})).give_back();
    std::fs::write(&go, "").expect("go");
    let text = eventually("it has looked", LONG, || {
        std::fs::read_to_string(&called).ok()
    });
    let outcomes: Vec<Value> = serde_json::from_str(&text).expect("a list");
    assert_eq!(outcomes[1]["handBack"]["end"], "return", "{text}");
    // From then on it uses the desktop, and is named when control returns.
    let mut holder = session.take(json!({}));
    holder.give_back();
    let ended = holder.wire.notified("lease_ended", |_| true);
    assert_eq!(ended["agents"], json!([id]), "{ended}");
}

#[test]
fn who_asked_for_a_person_goes_on_after_the_hand_back() {
    let session = Session::up();
    let asks = call(
        &session,
        "request_human",
        &json!({"desktop": "d1", "reason": "a captcha"}),
    );
    // It was given no desktop: it uses the one that it asks about.
    let asking = Scripted::start(&session, &asks, json!({}));
    let waiting = becomes(&session, &asking.id, "waiting");
    assert_eq!(waiting["pending"], 0);
    let mut holder = session.take(json!({}));
    // It would only learn that it can do nothing: it is told at the return.
    holds_for(
        "it is not told of the start",
        std::time::Duration::from_millis(300),
        || asking.heard().len() == 1,
    );
    assert_eq!(agent(&session, &asking.id)["status"], "waiting");
    holder.give_back();
    asking.hears("Control of desktop d1 is back");
    becomes(&session, &asking.id, "done");
    let result = session.wire().done("result", json!({"id": asking.id}));
    assert_eq!(result["text"], "heard");
}

#[test]
fn who_asked_a_question_goes_on_with_the_answer() {
    let session = Session::up();
    let asks = call(
        &session,
        "request_human",
        &json!({"reason": "a choice", "question": "red or blue?"}),
    );
    let asking = Scripted::start(&session, &asks, json!({}));
    becomes(&session, &asking.id, "waiting");
    let requests = session.wire().done("list", json!({}))["requests"].clone();
    assert_eq!(requests[0]["agent"], json!(asking.id), "{requests}");
    assert_eq!(session.cli(&["answer", "r1", "blue"]).code, 0);
    let answer = asking.hears("answered your request r1");
    assert!(
        answer.contains("> red or blue?") && answer.contains("> blue"),
        "{answer}"
    );
    becomes(&session, &asking.id, "done");
}

#[test]
fn who_waits_for_a_desktop_goes_on_when_it_is_back_or_gone() {
    let session = Session::up();
    session
        .wire()
        .done("control.pause", json!({"desktop": "d1"}));
    let first = Scripted::start(&session, "look around", json!({"desktop": "d1"}));
    becomes(&session, &first.id, "waiting");
    session
        .wire()
        .done("control.resume", json!({"desktop": "d1"}));
    first.hears("Desktop d1 is with the agents again");
    becomes(&session, &first.id, "done");

    let second = Scripted::start(&session, "hold", json!({"desktop": "d1"}));
    second.hears("hold");
    session
        .wire()
        .done("control.pause", json!({"desktop": "d1"}));
    session
        .wire()
        .done("steer", json!({"id": second.id, "text": "finish"}));
    becomes(&session, &second.id, "waiting");
    session
        .wire()
        .done("control.resume", json!({"desktop": "d1"}));
    session
        .wire()
        .done("desktop.destroy", json!({"desktop": "d1"}));
    becomes(&session, &second.id, "done");
}

/// A message to one that waits begins its next turn.
#[test]
fn who_waits_can_be_steered_and_ended() {
    let session = Session::up();
    session
        .wire()
        .done("control.pause", json!({"desktop": "d1"}));
    let waiting = Scripted::start(&session, "look around", json!({"desktop": "d1"}));
    becomes(&session, &waiting.id, "waiting");
    let mut wire = session.wire();
    wire.done(
        "steer",
        json!({"id": waiting.id, "text": "never mind", "wait": "sent"}),
    );
    waiting.hears("never mind");
    becomes(&session, &waiting.id, "waiting");
    let ended = wire.done("abort", json!({"id": waiting.id}));
    assert_eq!(
        (&ended["status"], &ended["survivors"]),
        (&json!("aborted"), &json!([]))
    );
}
