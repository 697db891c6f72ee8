//! Gemini.

use serde_json::{Value, json};

use super::{Stream, calls_of, data, names, push, push_content, text_of};
use crate::reply::Part;
use crate::request::{Message, Role};

pub(super) fn read(body: &Value) -> (Vec<Message>, Vec<String>) {
    let mut messages = Vec::new();
    push_content(
        &mut messages,
        Role::System,
        &body["systemInstruction"]["parts"],
    );
    for content in body["contents"].as_array().into_iter().flatten() {
        let role = match content["role"].as_str() {
            Some("model") => Role::Assistant,
            _ => Role::User,
        };
        for part in content["parts"].as_array().into_iter().flatten() {
            if let Some(text) = part["text"].as_str() {
                push(&mut messages, role, text);
            } else if part["functionResponse"].is_object() {
                push_result(&mut messages, &part["functionResponse"]["response"]);
            } else if part["functionCall"].is_object() {
                let call = part["functionCall"].to_string();
                push(&mut messages, Role::Assistant, call);
            }
        }
    }
    let groups = body["tools"].as_array().into_iter().flatten();
    let tools = groups.flat_map(|group| names(&group["functionDeclarations"], "/name"));
    (messages, tools.collect())
}

/// A tool's result has whatever members the tool likes; mostly one with its output.
fn push_result(messages: &mut Vec<Message>, response: &Value) {
    match response["output"].as_str() {
        Some(output) => push(messages, Role::Tool, output),
        None => push(messages, Role::Tool, response.to_string()),
    }
}

/// The chunks of a streamed reply: each is a small whole reply.
pub(super) struct Chunks;

impl Chunks {
    pub(super) fn new() -> Self {
        Self
    }
}

impl Stream for Chunks {
    fn begin(&mut self) -> String {
        String::new()
    }

    fn text(&mut self, text: &str) -> String {
        data(&candidate(&json!([{"text": text}]), None))
    }

    fn call(&mut self, name: &str, arguments: &Value) -> String {
        data(&candidate(&json!([call(name, arguments)]), None))
    }

    fn end(&mut self) -> String {
        data(&candidate(&json!([{"text": ""}]), Some("STOP")))
    }
}

pub(super) fn whole(parts: &[Part]) -> Value {
    let mut content = vec![json!({"text": text_of(parts)})];
    content.extend(calls_of(parts).map(|(name, arguments)| call(name, arguments)));
    candidate(&content.into(), Some("STOP"))
}

fn call(name: &str, arguments: &Value) -> Value {
    json!({"functionCall": {"name": name, "args": arguments}})
}

fn candidate(parts: &Value, finish: Option<&str>) -> Value {
    let mut candidate = json!({"index": 0, "content": {"role": "model", "parts": parts}});
    if let Some(finish) = finish {
        candidate["finishReason"] = finish.into();
    }
    json!({
        "candidates": [candidate],
        "modelVersion": "scripted",
        "usageMetadata": {
            "promptTokenCount": 1,
            "candidatesTokenCount": 1,
            "totalTokenCount": 2,
        },
    })
}
