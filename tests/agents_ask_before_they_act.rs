//! A program that asks for permission is answered by people, through a request like any other; nothing else
//! is ever put into its question.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::scripted::{Scripted, agent, becomes};
use crate::support::{LONG, Session, eventually, holds_for};

/// The request that an agent's program waits for.
fn request(session: &Session, asking: &Scripted) -> Value {
    eventually("people are asked", LONG, || {
        let requests = session.wire().done("list", json!({}))["requests"].clone();
        let mut all = requests.as_array().expect("a list").iter();
        all.find(|request| request["agent"] == json!(asking.id))
            .cloned()
    })
}

#[test]
fn a_person_decides_and_nothing_else_does() {
    let session = Session::up();
    for (answer, outcome) in [("yes", "allowed"), ("no", "refused")] {
        let asking = Scripted::start(
            &session,
            "may: run rm -r build with password=x",
            json!({"desktop": "d1"}),
        );
        let request = request(&session, &asking);
        let name = request["requestId"].as_str().expect("an id").to_owned();
        assert_eq!(request["desktop"], "d1");
        let question = request["question"].as_str().expect("a question");
        assert!(question.contains("run rm -r build"), "{question}");
        becomes(&session, &asking.id, "waiting");

        let mut wire = session.wire();
        let refused = wire.refused("steer", json!({"id": asking.id, "text": "yes"}));
        assert_eq!(refused.code, "not_steerable");
        assert_eq!(refused.data["requestId"], json!(name), "{refused:?}");
        // A takeover is no decision about a command.
        session.take(json!({})).give_back();
        assert_eq!(
            wire.done("request_status", json!({"requestId": name}))["state"],
            "open"
        );
        // What is neither yes nor no decides nothing.
        assert_eq!(session.cli(&["answer", &name, "hm?"]).code, 1);
        assert_eq!(session.cli(&["answer", &name, answer]).code, 0);
        becomes(&session, &asking.id, "done");
        let result = wire.done("result", json!({"id": asking.id}));
        assert_eq!(result["text"], outcome, "{answer}");
        let answered = session.events("request_answered");
        let last = answered.last().expect("an event");
        assert_eq!(
            (&last["source"], &last["agent"]),
            (&json!("human"), &json!(asking.id))
        );
        assert_eq!(asking.heard().len(), 1, "{:?}", asking.heard());
    }
}

#[test]
fn an_agent_cannot_answer_for_a_person() {
    let session = Session::up();
    let asking = Scripted::start(&session, "may: format the disk", json!({}));
    let request = request(&session, &asking);
    let name = request["requestId"].as_str().expect("an id");
    let tool = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/tools/call.py");
    let results = session.place.path().join("called");
    let calls = json!([["answer", {"requestId": name, "text": "yes"}]]);
    let script = format!(
        "run: python3 {tool} {} {} '{calls}'; cat {1}",
        session.socket().display(),
        results.display()
    );
    let other = Scripted::start(&session, &script, json!({}));
    becomes(&session, &other.id, "done");
    let result = session.wire().done("result", json!({"id": other.id}));
    assert!(
        result["text"]
            .as_str()
            .is_some_and(|text| text.contains("caller_refused")),
        "{result}"
    );
    holds_for("it is not answered", Duration::from_millis(200), || {
        agent(&session, &asking.id)["status"] == "waiting"
    });
}

#[test]
fn a_question_goes_with_its_agent() {
    let session = Session::up();
    let asking = Scripted::start(&session, "may: go on", json!({}));
    let request = request(&session, &asking);
    session.wire().done("abort", json!({"id": asking.id}));
    let open = session.wire().done("list", json!({}))["requests"].clone();
    assert_eq!(open, json!([]));
    let status = session
        .wire()
        .done("request_status", json!({"requestId": request["requestId"]}));
    assert_eq!(status["state"], "cancelled");
    let late = session.wire().refused(
        "answer",
        json!({"requestId": request["requestId"], "text": "yes"}),
    );
    assert_eq!(late.code, "bad_params");
}
