//! What the model says and does, as Claude Code passes it on.

use std::collections::VecDeque;

use serde_json::Value;

use super::tasks::Tasks;
use crate::driver::Effect;
use crate::driver::json::text;
use crate::driver::shorten::summary;

/// The most tool calls whose end is awaited.
const MAX_CALLS: usize = 256;

/// What was passed on so far.
#[derive(Debug, Default)]
pub(super) struct Talk {
    /// The message whose parts were passed on as they came.
    streamed: Option<String>,
    /// The calls under way: name and tool, the oldest first.
    calls: VecDeque<(String, String)>,
    /// What the agent itself said last.
    said: String,
    /// Whether the last of it was the program's own word that nobody is logged in.
    logged_out: bool,
}

impl Talk {
    /// What the agent itself said last.
    pub(super) fn said(&self) -> &str {
        &self.said
    }

    /// Whether the program said last that nobody is logged in.
    pub(super) fn is_logged_out(&self) -> bool {
        self.logged_out
    }

    /// A part of a message.
    pub(super) fn part(&mut self, message: &Value, out: &mut Vec<Effect>) {
        let Some(part) = text(message, "/event/delta/text").filter(|_| is_own(message)) else {
            return;
        };
        self.streamed = text(message, "/api_message_id").map(str::to_owned);
        out.push(Effect::Text {
            child: None,
            text: part.to_owned(),
        });
    }

    /// A block of a message of the model.
    pub(super) fn assistant(&mut self, message: &Value, tasks: &mut Tasks, out: &mut Vec<Effect>) {
        let child = tasks.sender(message);
        if child.is_none() && !is_own(message) {
            return;
        }
        if child.is_none() {
            let error = text(message, "/error");
            self.logged_out = error == Some("authentication_failed");
        }
        let streamed = self.streamed.is_some()
            && self.streamed.as_deref() == text(message, "/message/id")
            && child.is_none();
        for block in blocks(message) {
            if let Some(said) = text(block, "/text") {
                match &child {
                    Some(task) => tasks.said(task, said),
                    None => said.clone_into(&mut self.said),
                }
                if !streamed && !said.is_empty() {
                    out.push(Effect::Text {
                        child: child.clone(),
                        text: said.to_owned(),
                    });
                }
            }
            if let ("tool_use", Some(call)) = (kind(block), text(block, "/id")) {
                let tool = text(block, "/name").unwrap_or("tool");
                if self.calls.len() == MAX_CALLS {
                    self.calls.pop_front();
                }
                self.calls.push_back((call.to_owned(), tool.to_owned()));
                out.push(Effect::Tool {
                    child: child.clone(),
                    call: Some(call.to_owned()),
                    tool: tool.to_owned(),
                    ended: false,
                    summary: summary(&block["input"]),
                });
            }
        }
    }

    /// What the tools answered.
    pub(super) fn results(&mut self, message: &Value, tasks: &Tasks, out: &mut Vec<Effect>) {
        let child = tasks.sender(message);
        for block in blocks(message) {
            let Some(call) = text(block, "/tool_use_id") else {
                continue;
            };
            let Some(at) = self.calls.iter().position(|(begun, _)| begun == call) else {
                continue;
            };
            if let Some((call, tool)) = self.calls.remove(at) {
                out.push(Effect::Tool {
                    child: child.clone(),
                    call: Some(call),
                    tool,
                    ended: true,
                    summary: None,
                });
            }
        }
    }
}

/// Whether the model begins to answer the agent itself.
pub(super) fn begins(message: &Value) -> bool {
    is_own(message) && text(message, "/event/type") == Some("message_start")
}

/// Whether the agent itself is meant, and none of its subagents.
fn is_own(message: &Value) -> bool {
    message.get("parent_tool_use_id").is_none_or(Value::is_null)
}

fn blocks(message: &Value) -> impl Iterator<Item = &Value> {
    let blocks = message
        .pointer("/message/content")
        .and_then(Value::as_array);
    blocks.into_iter().flatten()
}

fn kind(block: &Value) -> &str {
    text(block, "/type").unwrap_or_default()
}
