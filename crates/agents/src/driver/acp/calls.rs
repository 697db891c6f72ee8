//! Tool calls of an agent, told as beginning and end whatever the agent leaves out.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::driver::shorten::{shorten, summary};
use crate::driver::{Effect, MAX_SUMMARY};

/// More running calls than this are not remembered.
const MAX_RUNNING: usize = 256;

/// The calls that run, with their tools.
#[derive(Debug, Default)]
pub struct Calls(BTreeMap<String, String>);

impl Calls {
    /// News of a call: a `tool_call`, a `tool_call_update`, or one that a person has allowed.
    pub fn news(&mut self, call: &Value, out: &mut Vec<Effect>) {
        let Some(id) = call["toolCallId"].as_str() else {
            return;
        };
        if !self.0.contains_key(id) {
            let tool = name(call);
            out.push(Effect::Tool {
                child: None,
                call: Some(id.to_owned()),
                tool: tool.clone(),
                ended: false,
                summary: in_short(call),
            });
            if self.0.len() < MAX_RUNNING {
                self.0.insert(id.to_owned(), tool);
            }
        }
        if matches!(call["status"].as_str(), Some("completed" | "failed")) {
            let tool = self.0.remove(id).unwrap_or_else(|| name(call));
            out.push(end(id.to_owned(), tool));
        }
    }

    /// The turn is over, and with it every call.
    pub fn end(&mut self, out: &mut Vec<Effect>) {
        out.extend(
            std::mem::take(&mut self.0)
                .into_iter()
                .map(|(id, tool)| end(id, tool)),
        );
    }
}

fn end(id: String, tool: String) -> Effect {
    Effect::Tool {
        child: None,
        call: Some(id),
        tool,
        ended: true,
        summary: None,
    }
}

fn name(call: &Value) -> String {
    let name = call["name"].as_str().or_else(|| call["kind"].as_str());
    shorten(name.unwrap_or("tool"), 100)
}

fn in_short(call: &Value) -> Option<String> {
    let title = || {
        call["title"]
            .as_str()
            .map(|title| shorten(title, MAX_SUMMARY))
    };
    summary(&call["rawInput"]).or_else(title)
}
