use handover_protocol::SteerState::{Answered, Dropped, Queued, Unknown};
use handover_protocol::SteerWhen;
use serde_json::{Value, json};

use crate::driver::replay::{Stage, steer, task};
use crate::driver::{Capabilities, Effect, Steer, create};

mod anything;
mod odd;
mod recorded;

/// Requests of a transcript are the driver's own when they ask for the same.
fn key(message: &Value) -> Option<(String, Value)> {
    let method = message["method"].as_str()?;
    let id = message.get("id")?;
    let text = &message["params"]["prompt"][0]["text"];
    Some((format!("{method} {text}"), id.clone()))
}

fn begin(prompt: &str) -> Stage {
    Stage::begin("acp", task(prompt, &["agent", "--acp"]), key)
}

/// An agent that was just given its prompt.
fn prompted(initialized: Value) -> Stage {
    let mut stage = begin("go");
    answer_last(&mut stage, "initialize", initialized);
    answer_last(&mut stage, "session/new", json!({"sessionId": "s1"}));
    stage
}

/// One of which nothing is known.
fn plain() -> Stage {
    prompted(json!({"protocolVersion": 1}))
}

/// One that takes messages into its turn.
fn steering() -> Stage {
    prompted(json!({"protocolVersion": 1, "_meta": {"steering": {"supported": true}}}))
}

/// The last request of this kind.
fn last(stage: &Stage, method: &str) -> Value {
    stage
        .written
        .iter()
        .rfind(|message| message["method"] == method)
        .unwrap_or_else(|| panic!("no {method}"))
        .clone()
}

/// Answers the last request of this kind.
fn answer_last(stage: &mut Stage, method: &str, result: Value) -> Vec<Value> {
    let id = last(stage, method)["id"].clone();
    stage.say(&json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

/// Refuses the last request of this kind.
fn refuse_last(stage: &mut Stage, method: &str, code: i64, message: &str) -> Vec<Value> {
    let id = last(stage, method)["id"].clone();
    let error = json!({"code": code, "message": message});
    stage.say(&json!({"jsonrpc": "2.0", "id": id, "error": error}))
}

fn end_prompt(stage: &mut Stage, stop: &str) -> Vec<Value> {
    answer_last(stage, "session/prompt", json!({"stopReason": stop}))
}

fn update(stage: &mut Stage, update: Value) -> Vec<Value> {
    stage.say(&json!({
        "jsonrpc": "2.0",
        "method": "session/update",
        "params": {"sessionId": "s1", "update": update},
    }))
}

fn says(stage: &mut Stage, text: &str) {
    update(
        stage,
        json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}),
    );
}

fn put(stage: &mut Stage, id: &str, text: &str) -> Vec<Value> {
    stage.act(|acp, out| acp.steer(steer(id, text), out))
}

fn put_when(stage: &mut Stage, id: &str, text: &str, when: SteerWhen) -> Vec<Value> {
    let steer = Steer {
        when,
        ..steer(id, text)
    };
    stage.act(|acp, out| acp.steer(steer, out))
}

/// The text of a prompt or message.
fn text(message: &Value) -> &str {
    message["params"]["prompt"][0]["text"]
        .as_str()
        .unwrap_or_default()
}
