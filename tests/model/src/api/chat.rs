//! OpenAI chat completions.

use serde_json::{Value, json};

use super::{Stream, calls_of, data, model, names, push, push_content, text_of};
use crate::reply::Part;
use crate::request::{Message, Request, Role};

pub(super) fn read(body: &Value) -> (Vec<Message>, Vec<String>) {
    let mut messages = Vec::new();
    for message in body["messages"].as_array().into_iter().flatten() {
        let role = match message["role"].as_str() {
            Some("system" | "developer") => Role::System,
            Some("assistant") => Role::Assistant,
            Some("tool") => Role::Tool,
            _ => Role::User,
        };
        push_content(&mut messages, role, &message["content"]);
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            push(&mut messages, Role::Assistant, call["function"].to_string());
        }
    }
    (messages, names(&body["tools"], "/function/name"))
}

/// The chunks of a streamed reply.
pub(super) struct Chunks {
    number: usize,
    model: String,
    calls: usize,
}

impl Chunks {
    pub(super) fn new(request: &Request) -> Self {
        Self {
            number: request.number,
            model: model(request).to_owned(),
            calls: 0,
        }
    }

    fn chunk(&self, choices: &Value) -> Value {
        json!({
            "id": format!("chatcmpl-{}", self.number),
            "object": "chat.completion.chunk",
            "created": 0,
            "model": self.model,
            "choices": choices,
        })
    }

    fn delta(&self, delta: &Value, finish: Option<&str>) -> String {
        data(&self.chunk(&json!([{"index": 0, "delta": delta, "finish_reason": finish}])))
    }
}

impl Stream for Chunks {
    fn begin(&mut self) -> String {
        self.delta(&json!({"role": "assistant", "content": ""}), None)
    }

    fn text(&mut self, text: &str) -> String {
        self.delta(&json!({"content": text}), None)
    }

    fn call(&mut self, name: &str, arguments: &Value) -> String {
        let call = json!({"tool_calls": [{
            "index": self.calls,
            "id": call_id(self.number, self.calls),
            "type": "function",
            "function": {"name": name, "arguments": arguments.to_string()},
        }]});
        self.calls += 1;
        self.delta(&call, None)
    }

    fn end(&mut self) -> String {
        let mut out = self.delta(&json!({}), Some(finish(self.calls)));
        // What was used comes in a chunk without choices, whether or not it was asked for.
        let mut last = self.chunk(&json!([]));
        last["usage"] = usage();
        out.push_str(&data(&last));
        out.push_str("data: [DONE]\n\n");
        out
    }
}

pub(super) fn whole(request: &Request, parts: &[Part]) -> Value {
    let calls: Vec<Value> = calls_of(parts)
        .enumerate()
        .map(|(index, (name, arguments))| {
            json!({
                "id": call_id(request.number, index),
                "type": "function",
                "function": {"name": name, "arguments": arguments.to_string()},
            })
        })
        .collect();
    let reason = finish(calls.len());
    let mut message = json!({"role": "assistant", "content": text_of(parts)});
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    json!({
        "id": format!("chatcmpl-{}", request.number),
        "object": "chat.completion",
        "created": 0,
        "model": model(request),
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": usage(),
    })
}

fn call_id(number: usize, index: usize) -> String {
    format!("call_{number}_{index}")
}

fn finish(calls: usize) -> &'static str {
    if calls == 0 { "stop" } else { "tool_calls" }
}

fn usage() -> Value {
    json!({"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2})
}
