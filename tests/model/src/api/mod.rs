//! The protocols in which agent programs talk to their models.

mod chat;
mod gemini;
mod messages;
mod responses;

use serde_json::Value;

use crate::reply::Part;
use crate::request::{Message, Request, Role};

/// A protocol between an agent program and its model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Api {
    /// OpenAI chat completions: `POST …/chat/completions`.
    ChatCompletions,
    /// OpenAI responses: `POST …/responses`.
    Responses,
    /// Anthropic messages: `POST …/messages`.
    Messages,
    /// Gemini: `POST …:generateContent` and `…:streamGenerateContent`.
    Gemini,
}

/// A streamed reply in one protocol. Each step gives the bytes to send, as text.
pub(crate) trait Stream: Send {
    /// What comes before all else.
    fn begin(&mut self) -> String;
    /// A piece of text.
    fn text(&mut self, text: &str) -> String;
    /// A tool call.
    fn call(&mut self, name: &str, arguments: &Value) -> String;
    /// The end.
    fn end(&mut self) -> String;
}

impl Api {
    /// What the model reads in a request, and the names of the tools that it is offered.
    pub(crate) fn read(self, body: &Value) -> (Vec<Message>, Vec<String>) {
        match self {
            Self::ChatCompletions => chat::read(body),
            Self::Responses => responses::read(body),
            Self::Messages => messages::read(body),
            Self::Gemini => gemini::read(body),
        }
    }

    /// A streamed reply to `request`.
    pub(crate) fn stream(self, request: &Request) -> Box<dyn Stream> {
        match self {
            Self::ChatCompletions => Box::new(chat::Chunks::new(request)),
            Self::Responses => Box::new(responses::Events::new(request)),
            Self::Messages => Box::new(messages::Events::new(request)),
            Self::Gemini => Box::new(gemini::Chunks::new()),
        }
    }

    /// The whole reply to `request` as one object.
    pub(crate) fn whole(self, request: &Request, parts: &[Part]) -> Value {
        match self {
            Self::ChatCompletions => chat::whole(request, parts),
            Self::Responses => responses::whole(request, parts),
            Self::Messages => messages::whole(request, parts),
            Self::Gemini => gemini::whole(parts),
        }
    }
}

/// The model that a request names; programs expect it back.
fn model(request: &Request) -> &str {
    request.body["model"].as_str().unwrap_or("scripted")
}

/// The text of all parts.
fn text_of(parts: &[Part]) -> String {
    let text = |part: &Part| match part {
        Part::Text(text) => Some(text.clone()),
        Part::Hold(_) | Part::Call { .. } => None,
    };
    parts.iter().filter_map(text).collect()
}

/// The tool calls among the parts, in order.
fn calls_of(parts: &[Part]) -> impl Iterator<Item = (&str, &Value)> {
    parts.iter().filter_map(|part| match part {
        Part::Call { name, arguments } => Some((name.as_str(), arguments)),
        Part::Text(_) | Part::Hold(_) => None,
    })
}

/// Adds the texts of `content`, a string or a list of parts that have a `text`, one message each.
fn push_content(messages: &mut Vec<Message>, role: Role, content: &Value) {
    match content {
        Value::String(text) => push(messages, role, text),
        Value::Array(parts) => {
            for text in parts.iter().filter_map(|part| part["text"].as_str()) {
                push(messages, role, text);
            }
        }
        _ => {}
    }
}

fn push(messages: &mut Vec<Message>, role: Role, text: impl Into<String>) {
    let text = text.into();
    messages.push(Message { role, text });
}

/// The strings at `pointer` in each element of a list.
fn names(list: &Value, pointer: &str) -> Vec<String> {
    let elements = list.as_array().into_iter().flatten();
    elements
        .filter_map(|element| element.pointer(pointer)?.as_str().map(str::to_owned))
        .collect()
}

/// One server-sent event without a name.
fn data(value: &Value) -> String {
    format!("data: {value}\n\n")
}

/// One server-sent event under the name that its `type` gives.
fn event(value: &Value) -> String {
    let name = value["type"].as_str().unwrap_or_default();
    format!("event: {name}\ndata: {value}\n\n")
}
