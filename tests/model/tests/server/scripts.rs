//! Which reply a request gets, and what the record says of it.

use std::time::Duration;

use handover_model::{Hold, ModelServer, Outcome, Reply};
use serde_json::{Value, json};

use super::client::{Answer, ask};

/// Generous: everything happens on one machine.
const BOUND: Duration = Duration::from_secs(10);

/// A chat request with tools in which the user said `texts`.
fn turn(server: &ModelServer, texts: &[&str]) -> Answer {
    let mut body = side_body(texts);
    body["tools"] = json!([{"type": "function", "function": {"name": "bash"}}]);
    ask(server, "/v1/chat/completions", &body)
}

fn side_body(texts: &[&str]) -> Value {
    let message = |text: &&str| json!({"role": "user", "content": text});
    let messages: Vec<Value> = texts.iter().map(message).collect();
    json!({"model": "m", "stream": true, "messages": messages})
}

fn said(answer: Answer) -> String {
    let text = |event: &Value| {
        let content = &event["choices"][0]["delta"]["content"];
        content.as_str().unwrap_or_default().to_owned()
    };
    answer.events().iter().map(text).collect()
}

#[test]
fn each_conversation_has_a_script_of_its_own() {
    let server = ModelServer::start();
    server.script("red", [Reply::text("r1"), Reply::text("r2")]);
    server.script("blue", [Reply::text("b1")]);
    assert_eq!(said(turn(&server, &["do red"])), "r1");
    assert_eq!(said(turn(&server, &["do blue"])), "b1");
    assert_eq!(said(turn(&server, &["do red", "and more"])), "r2");
    assert_eq!(
        said(turn(&server, &["do red", "the end"])),
        "heard: the end"
    );
    server.script("red", [Reply::text("r3")]);
    assert_eq!(said(turn(&server, &["do red"])), "r3");
}

#[test]
fn side_requests_take_nothing_from_a_script_and_are_not_seen() {
    let server = ModelServer::start();
    server.script("red", [Reply::text("r1")]);
    let side = ask(
        &server,
        "/v1/chat/completions",
        &side_body(&["a title for red"]),
    );
    assert_eq!(said(side), "ok");
    assert!(!server.saw("red") && !server.answered("red"));
    assert_eq!(said(turn(&server, &["red"])), "r1");
    assert!(server.saw("red"));
}

#[test]
fn rules_come_before_scripts() {
    let server = ModelServer::start();
    server.script("red", [Reply::text("scripted")]);
    server.rule(|request| request.holds("twice").then(|| Reply::text("ruled")));
    assert_eq!(said(turn(&server, &["red twice"])), "ruled");
    assert_eq!(said(turn(&server, &["red"])), "scripted");
}

#[test]
fn what_was_sent_before_a_hold_has_arrived() {
    let server = ModelServer::start();
    let hold = Hold::new();
    server.script("red", [Reply::text("half ").hold(&hold).say("whole")]);
    assert!(!hold.reached(Duration::ZERO));
    let mut answer = turn(&server, &["red"]);
    let half = std::iter::from_fn(|| answer.next_event())
        .find(|event| event["choices"][0]["delta"]["content"] == "half ");
    assert!(half.is_some());
    assert!(hold.reached(BOUND));
    assert!(server.saw("red") && !server.answered("red"));
    hold.release();
    assert_eq!(said(answer), "whole");
    assert!(server.answers("red", BOUND));
}

#[test]
fn a_reply_whose_reader_went_away_is_cut() {
    let server = ModelServer::start();
    let hold = Hold::new();
    server.script("red", [Reply::text("half ").hold(&hold)]);
    let mut answer = turn(&server, &["red"]);
    assert!(hold.reached(BOUND) && answer.next_event().is_some());
    drop(answer);
    let cut = server.await_request(|request| request.outcome == Outcome::Cut, BOUND);
    assert!(cut.is_some_and(|request| request.holds("red")));
    assert!(server.saw("red") && !server.answered("red"));
}

#[test]
fn a_refusal_is_no_answer() {
    let server = ModelServer::start();
    server.script("red", [Reply::refusal(500, "overloaded")]);
    let answer = turn(&server, &["red"]);
    assert_eq!(answer.status, 500);
    assert_eq!(answer.json()["error"]["message"], "overloaded");
    let refused = server.await_request(|request| request.outcome == Outcome::Refused, BOUND);
    assert!(refused.is_some() && !server.answered("red"));
}

#[test]
fn a_shell_that_is_not_offered_is_a_failure_that_shows() {
    let server = ModelServer::start();
    server.script("red", [Reply::shell("ls")]);
    let mut body = side_body(&["red"]);
    body["tools"] = json!([{"type": "function", "function": {"name": "read"}}]);
    let answer = ask(&server, "/v1/chat/completions", &body);
    assert_eq!(answer.status, 400);
    let message = answer.json()["error"]["message"].to_string();
    assert!(message.contains("read"), "{message}");
}
