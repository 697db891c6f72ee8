//! The driver against what codex once said, and against what it might say.

mod anything;
mod nested;
mod odd;
mod transcripts;

use handover_protocol::{AgentStatus, SteerState};
use serde_json::{Value, json};

use crate::driver::Effect;
use crate::driver::replay::{Stage, steer, task};

const MAIN: &str = "main-thread";

/// Pairs requests by their method.
fn key(message: &Value) -> Option<(String, Value)> {
    let method = message.get("method")?.as_str()?;
    Some((method.to_owned(), message.get("id")?.clone()))
}

/// A driver whose program was started and has answered nothing.
fn begun() -> Stage {
    Stage::begin("codex", task("do it", &[]), key)
}

/// A driver in the turn `t1` of its own thread.
fn working() -> Stage {
    let mut stage = begun();
    stage.say(&json!({"id": 1, "result": {}}));
    stage.say(&json!({"id": 2, "result": {"thread": {"id": MAIN}}}));
    answer(&mut stage, "turn/start", json!({"turn": {"id": "t1"}}));
    stage
}

/// The program answers the driver's last request of this kind.
fn answer(stage: &mut Stage, method: &str, result: Value) -> Vec<Value> {
    let id = last(stage, method)["id"].clone();
    stage.say(&json!({"id": id, "result": result}))
}

/// The program refuses the driver's last request of this kind.
fn refuse(stage: &mut Stage, method: &str, message: &str) -> Vec<Value> {
    let id = last(stage, method)["id"].clone();
    stage.say(&json!({"id": id, "error": {"code": -32600, "message": message}}))
}

/// The driver's last request of this kind.
fn last(stage: &Stage, method: &str) -> Value {
    let found = stage.written.iter().rfind(|line| line["method"] == method);
    found.unwrap_or_else(|| panic!("no {method}")).clone()
}

/// How often the driver made a request of this kind.
fn count(stage: &Stage, method: &str) -> usize {
    let of_kind = |line: &&Value| line["method"] == method;
    stage.written.iter().filter(of_kind).count()
}

fn put(stage: &mut Stage, id: &str) -> Vec<Value> {
    stage.act(|driver, out| driver.steer(steer(id, "listen"), out))
}

fn notice(stage: &mut Stage, method: &str, params: Value) -> Vec<Value> {
    stage.say(&json!({"method": method, "params": params}))
}

fn turn_started(stage: &mut Stage, thread: &str, turn: &str) {
    let params = json!({"threadId": thread, "turn": {"id": turn}});
    notice(stage, "turn/started", params);
}

fn turn_completed(stage: &mut Stage, thread: &str, turn: &str, status: &str) -> Vec<Value> {
    let turn = json!({"id": turn, "status": status, "error": null});
    notice(
        stage,
        "turn/completed",
        json!({"threadId": thread, "turn": turn}),
    )
}

fn inserted(stage: &mut Stage, thread: &str, client: &str) {
    let item = json!({"type": "userMessage", "id": "u", "clientId": client});
    notice(
        stage,
        "item/started",
        json!({"threadId": thread, "item": item}),
    );
}

/// The model says something from its beginning to its end.
fn said(stage: &mut Stage, thread: &str, id: &str, text: &str) {
    let begun = json!({"type": "agentMessage", "id": id, "text": ""});
    notice(
        stage,
        "item/started",
        json!({"threadId": thread, "item": begun}),
    );
    let ended = json!({"type": "agentMessage", "id": id, "text": text});
    notice(
        stage,
        "item/completed",
        json!({"threadId": thread, "item": ended}),
    );
}

/// Why a steer was dropped or lost sight of.
fn reason(stage: &Stage, steer: &str) -> String {
    stage
        .effects
        .iter()
        .find_map(|effect| match effect {
            Effect::Receipt {
                steer: of,
                reason: Some(reason),
                ..
            } if of.as_str() == steer => Some(reason.clone()),
            _ => None,
        })
        .expect("a reason")
}

const ALL_THE_WAY: [SteerState; 4] = [
    SteerState::Queued,
    SteerState::Inserted,
    SteerState::Sent,
    SteerState::Answered,
];
