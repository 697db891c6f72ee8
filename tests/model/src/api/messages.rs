//! Anthropic messages.

use serde_json::{Value, json};

use super::{Stream, calls_of, event, model, names, push, push_content, text_of};
use crate::reply::Part;
use crate::request::{Message, Request, Role};

pub(super) fn read(body: &Value) -> (Vec<Message>, Vec<String>) {
    let mut messages = Vec::new();
    push_content(&mut messages, Role::System, &body["system"]);
    for message in body["messages"].as_array().into_iter().flatten() {
        let role = match message["role"].as_str() {
            Some("assistant") => Role::Assistant,
            Some("system") => Role::System,
            _ => Role::User,
        };
        let content = &message["content"];
        let Some(blocks) = content.as_array() else {
            push_content(&mut messages, role, content);
            continue;
        };
        for block in blocks {
            match block["type"].as_str() {
                Some("tool_result") => push_content(&mut messages, Role::Tool, &block["content"]),
                Some("tool_use") => push(&mut messages, Role::Assistant, block.to_string()),
                _ => {
                    if let Some(text) = block["text"].as_str() {
                        push(&mut messages, role, text);
                    }
                }
            }
        }
    }
    (messages, names(&body["tools"], "/name"))
}

/// The events of a streamed reply.
pub(super) struct Events {
    number: usize,
    model: String,
    /// The block under way or to come next.
    index: usize,
    in_text: bool,
    calls: usize,
}

impl Events {
    pub(super) fn new(request: &Request) -> Self {
        Self {
            number: request.number,
            model: model(request).to_owned(),
            index: 0,
            in_text: false,
            calls: 0,
        }
    }

    fn start(&self, block: &Value) -> String {
        let index = self.index;
        event(&json!({"type": "content_block_start", "index": index, "content_block": block}))
    }

    fn delta(&self, delta: &Value) -> String {
        event(&json!({"type": "content_block_delta", "index": self.index, "delta": delta}))
    }

    fn stop(&mut self) -> String {
        let index = self.index;
        self.index += 1;
        event(&json!({"type": "content_block_stop", "index": index}))
    }

    fn close_text(&mut self) -> String {
        if !std::mem::take(&mut self.in_text) {
            return String::new();
        }
        self.stop()
    }
}

impl Stream for Events {
    fn begin(&mut self) -> String {
        event(&json!({"type": "message_start", "message": {
            "id": format!("msg_{}", self.number),
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": [],
            "stop_reason": null,
            "stop_sequence": null,
            "usage": usage(),
        }}))
    }

    fn text(&mut self, text: &str) -> String {
        let mut out = String::new();
        if !self.in_text {
            self.in_text = true;
            out.push_str(&self.start(&json!({"type": "text", "text": ""})));
        }
        out + &self.delta(&json!({"type": "text_delta", "text": text}))
    }

    fn call(&mut self, name: &str, arguments: &Value) -> String {
        let mut out = self.close_text();
        let id = call_id(self.number, self.calls);
        self.calls += 1;
        out.push_str(
            &self.start(&json!({"type": "tool_use", "id": id, "name": name, "input": {}})),
        );
        let json = arguments.to_string();
        out.push_str(&self.delta(&json!({"type": "input_json_delta", "partial_json": json})));
        out + &self.stop()
    }

    fn end(&mut self) -> String {
        let mut out = self.close_text();
        out.push_str(&event(&json!({
            "type": "message_delta",
            "delta": {"stop_reason": reason(self.calls), "stop_sequence": null},
            "usage": {"output_tokens": 1},
        })));
        out + &event(&json!({"type": "message_stop"}))
    }
}

pub(super) fn whole(request: &Request, parts: &[Part]) -> Value {
    let mut content = Vec::new();
    let text = text_of(parts);
    if !text.is_empty() {
        content.push(json!({"type": "text", "text": text}));
    }
    let mut calls = 0;
    for (name, input) in calls_of(parts) {
        let id = call_id(request.number, calls);
        content.push(json!({"type": "tool_use", "id": id, "name": name, "input": input}));
        calls += 1;
    }
    json!({
        "id": format!("msg_{}", request.number),
        "type": "message",
        "role": "assistant",
        "model": model(request),
        "content": content,
        "stop_reason": reason(calls),
        "stop_sequence": null,
        "usage": usage(),
    })
}

fn call_id(number: usize, index: usize) -> String {
    format!("toolu_{number}_{index}")
}

fn reason(calls: usize) -> &'static str {
    if calls == 0 { "end_turn" } else { "tool_use" }
}

fn usage() -> Value {
    json!({
        "input_tokens": 1,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": 1,
    })
}
