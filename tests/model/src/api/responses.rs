//! OpenAI responses.

use serde_json::{Value, json};

use super::{Stream, calls_of, event, model, names, push, push_content, text_of};
use crate::reply::Part;
use crate::request::{Message, Request, Role};

pub(super) fn read(body: &Value) -> (Vec<Message>, Vec<String>) {
    let mut messages = Vec::new();
    push_content(&mut messages, Role::System, &body["instructions"]);
    push_content(&mut messages, Role::User, &body["input"]);
    for item in body["input"].as_array().into_iter().flatten() {
        match item["type"].as_str() {
            Some("function_call_output" | "custom_tool_call_output") => {
                push_content(&mut messages, Role::Tool, &item["output"]);
            }
            Some("function_call" | "custom_tool_call") => {
                push(&mut messages, Role::Assistant, item.to_string());
            }
            _ => {
                let role = match item["role"].as_str() {
                    Some("assistant") => Role::Assistant,
                    Some("system" | "developer") => Role::System,
                    _ => Role::User,
                };
                push_content(&mut messages, role, &item["content"]);
            }
        }
    }
    let tools = tools(body).into_iter().map(|tool| tool.name);
    (messages, tools.collect())
}

/// A tool that a request offers.
struct Tool {
    name: String,
    /// The group that it is in; a call must name it too.
    namespace: Option<String>,
}

fn tools(body: &Value) -> Vec<Tool> {
    let mut tools = Vec::new();
    for tool in body["tools"].as_array().into_iter().flatten() {
        // A tool that is the provider's own has a type and no name.
        let name = tool["name"].as_str().or(tool["type"].as_str());
        let Some(name) = name.map(str::to_owned) else {
            continue;
        };
        match tool["tools"].as_array() {
            Some(_) => tools.extend(
                names(&tool["tools"], "/name")
                    .into_iter()
                    .map(|inner| Tool {
                        name: inner,
                        namespace: Some(name.clone()),
                    }),
            ),
            None => tools.push(Tool {
                name,
                namespace: None,
            }),
        }
    }
    tools
}

/// The group of the tool `name`, if it is in one.
fn namespace(tools: &[Tool], name: &str) -> Option<String> {
    let tool = tools.iter().find(|tool| tool.name == name)?;
    tool.namespace.clone()
}

/// The events of a streamed reply.
pub(super) struct Events {
    number: usize,
    model: String,
    sequence: u64,
    /// The text of the message under way.
    text: Option<String>,
    output: Vec<Value>,
    tools: Vec<Tool>,
}

impl Events {
    pub(super) fn new(request: &Request) -> Self {
        Self {
            number: request.number,
            model: model(request).to_owned(),
            sequence: 0,
            text: None,
            output: Vec::new(),
            tools: tools(&request.body),
        }
    }

    fn event(&mut self, kind: &str, mut value: Value) -> String {
        value["type"] = kind.into();
        value["sequence_number"] = self.sequence.into();
        self.sequence += 1;
        event(&value)
    }

    fn response(&self, status: &str) -> Value {
        response(self.number, &self.model, status, &self.output)
    }

    fn close_text(&mut self) -> String {
        let Some(text) = self.text.take() else {
            return String::new();
        };
        let index = self.output.len();
        let item = message(self.number, index, "completed", Some(&text));
        let place = json!({"item_id": item["id"], "output_index": index, "content_index": 0});
        let mut done = place.clone();
        done["text"] = text.into();
        let mut part = place;
        part["part"] = item["content"][0].clone();
        let out = self.event("response.output_text.done", done)
            + &self.event("response.content_part.done", part)
            + &self.event(
                "response.output_item.done",
                json!({"output_index": index, "item": item}),
            );
        self.output.push(item);
        out
    }
}

impl Stream for Events {
    fn begin(&mut self) -> String {
        let response = self.response("in_progress");
        self.event("response.created", json!({"response": response}))
    }

    fn text(&mut self, text: &str) -> String {
        let index = self.output.len();
        let item = message(self.number, index, "in_progress", None);
        let place = json!({"item_id": item["id"], "output_index": index, "content_index": 0});
        let mut out = String::new();
        if self.text.is_none() {
            let added = json!({"output_index": index, "item": item});
            out.push_str(&self.event("response.output_item.added", added));
            let mut part = place.clone();
            part["part"] = output_text("");
            out.push_str(&self.event("response.content_part.added", part));
        }
        self.text.get_or_insert_default().push_str(text);
        let mut delta = place;
        delta["delta"] = text.into();
        out + &self.event("response.output_text.delta", delta)
    }

    fn call(&mut self, name: &str, arguments: &Value) -> String {
        let mut out = self.close_text();
        let index = self.output.len();
        let namespace = namespace(&self.tools, name);
        let item = function_call(self.number, index, (name, namespace), arguments);
        let mut begun = item.clone();
        begun["arguments"] = "".into();
        begun["status"] = "in_progress".into();
        let added = json!({"output_index": index, "item": begun});
        out.push_str(&self.event("response.output_item.added", added));
        let text = arguments.to_string();
        let place = json!({"item_id": item["id"], "output_index": index});
        let mut delta = place.clone();
        delta["delta"] = text.as_str().into();
        out.push_str(&self.event("response.function_call_arguments.delta", delta));
        let mut done = place;
        done["arguments"] = text.into();
        out.push_str(&self.event("response.function_call_arguments.done", done));
        let ended = json!({"output_index": index, "item": item});
        out.push_str(&self.event("response.output_item.done", ended));
        self.output.push(item);
        out
    }

    fn end(&mut self) -> String {
        let out = self.close_text();
        let response = self.response("completed");
        out + &self.event("response.completed", json!({"response": response}))
    }
}

pub(super) fn whole(request: &Request, parts: &[Part]) -> Value {
    let tools = tools(&request.body);
    let mut output = Vec::new();
    let text = text_of(parts);
    if !text.is_empty() {
        output.push(message(request.number, 0, "completed", Some(&text)));
    }
    for (name, arguments) in calls_of(parts) {
        let tool = (name, namespace(&tools, name));
        let index = output.len();
        output.push(function_call(request.number, index, tool, arguments));
    }
    response(request.number, model(request), "completed", &output)
}

fn response(number: usize, model: &str, status: &str, output: &[Value]) -> Value {
    json!({
        "id": format!("resp_{number}"),
        "object": "response",
        "created_at": 0,
        "model": model,
        "status": status,
        "output": output,
        "usage": {
            "input_tokens": 1,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 1,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 2,
        },
    })
}

fn message(number: usize, index: usize, status: &str, text: Option<&str>) -> Value {
    json!({
        "id": format!("msg_{number}_{index}"),
        "type": "message",
        "role": "assistant",
        "status": status,
        "content": text.map(output_text).into_iter().collect::<Vec<_>>(),
    })
}

fn output_text(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": []})
}

fn function_call(
    number: usize,
    index: usize,
    (name, namespace): (&str, Option<String>),
    arguments: &Value,
) -> Value {
    let mut call = json!({
        "id": format!("fc_{number}_{index}"),
        "type": "function_call",
        "status": "completed",
        "call_id": format!("call_{number}_{index}"),
        "name": name,
        "arguments": arguments.to_string(),
    });
    if let Some(namespace) = namespace {
        call["namespace"] = namespace.into();
    }
    call
}
