use handover_protocol::SteerState::{Answered, Dropped, Inserted, Queued, Sent, Unknown};
use serde_json::{Value, json};

use crate::driver::replay::{Line, Stage, steer, task, transcript};
use crate::driver::{Effect, Framing, create};

mod anything;
mod odd;
mod recorded;

/// Requests of a transcript are the driver's own when they say the same.
fn key(message: &Value) -> Option<(String, Value)> {
    let what = match message["type"].as_str()? {
        "prompt" | "steer" | "follow_up" => format!("say {}", message["message"]),
        "abort" => "abort".to_owned(),
        _ => return None,
    };
    Some((what, message["id"].clone()))
}

/// pi with this prompt, which has just been put to it.
fn prompted(prompt: &str) -> Stage {
    let mut stage = Stage::begin("pi", task(prompt, &[]), key);
    assert!(!stage.effects.contains(&Effect::Ready));
    answer_state(&mut stage, false);
    assert!(stage.effects.contains(&Effect::Ready));
    stage
}

/// Answers the last `get_state`.
fn answer_state(stage: &mut Stage, streaming: bool) -> Vec<Value> {
    let asked = stage
        .written
        .iter()
        .rfind(|message| message["type"] == "get_state")
        .expect("a get_state");
    let answer = json!({
        "id": asked["id"],
        "type": "response",
        "command": "get_state",
        "success": true,
        "data": {"isStreaming": streaming, "isCompacting": false, "pendingMessageCount": 0},
    });
    stage.say(&answer)
}

/// Answers the last message that was put to pi.
fn answer_prompt(stage: &mut Stage, data: Value) -> Vec<Value> {
    let prompt = last(stage, "prompt");
    stage.say(&json!({
        "id": prompt["id"],
        "type": "response",
        "command": "prompt",
        "success": true,
        "data": data,
    }))
}

/// The last line of this type that the driver wrote.
fn last(stage: &Stage, kind: &str) -> Value {
    stage
        .written
        .iter()
        .rfind(|message| message["type"] == kind)
        .unwrap_or_else(|| panic!("no {kind}"))
        .clone()
}

fn event(kind: &str) -> Value {
    json!({"type": kind})
}

fn user(kind: &str, text: &str) -> Value {
    json!({"type": kind, "message": {"role": "user", "content": [{"type": "text", "text": text}]}})
}

/// A message of the model.
fn model(kind: &str, text: &str, stop: &str) -> Value {
    let content = if text.is_empty() {
        json!([])
    } else {
        json!([{"type": "text", "text": text}])
    };
    json!({"type": kind, "message": {"role": "assistant", "content": content, "stopReason": stop}})
}

fn queues(steering: &[&str], follow_up: &[&str]) -> Value {
    json!({"type": "queue_update", "steering": steering, "followUp": follow_up})
}
