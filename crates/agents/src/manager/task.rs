//! What is stored of an agent: its task, its result and its receipts.

use handover_protocol::{
    AgentId, AgentStatus, AgentView, DesktopId, SteerId, SteerState, Timestamp, Tokens,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Tasks, followed by the order in ten digits.
pub(crate) const TASKS: &str = "agent/";

/// Results, followed by the agent.
const RESULTS: &str = "agent-result/";

/// Receipts, followed by the agent, a slash and the steer.
const RECEIPTS: &str = "steer/";

/// How the keys begin of what is stored in large numbers or sizes, and read one by one.
pub const BULK: &[&str] = &[RESULTS, RECEIPTS];

/// An agent's task, from before its start until after its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Task {
    /// Its place among all agents of the session, from 1.
    pub order: u64,
    /// Its name on the wire.
    pub id: AgentId,
    /// Its name for people.
    pub name: String,
    /// Its driver.
    pub driver: String,
    /// How it stands.
    pub status: AgentStatus,
    /// The agent that it works for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<AgentId>,
    /// Steps down from an agent without a parent.
    pub depth: u32,
    /// The beginning of what it is to do.
    pub task: String,
    /// The desktop that it was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desktop: Option<DesktopId>,
    /// When its program was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    /// Where its output is; none for a program's own subagent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_file: Option<String>,
    /// Why nothing can be steered into it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_steerable: Option<String>,
}

/// What an agent came to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Outcome {
    /// What it said last.
    pub text: String,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A receipt as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredReceipt {
    /// How far the steer has come.
    pub state: SteerState,
    /// Why it ended there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Task {
    /// Where it is stored.
    pub fn key(&self) -> String {
        format!("{TASKS}{:010}", self.order)
    }

    /// The change of state that stores it.
    pub fn put(&self) -> (String, Option<Value>) {
        (self.key(), json(self))
    }

    /// As it is listed.
    pub fn view(&self, pending: u32, tokens: Option<Tokens>) -> AgentView {
        AgentView {
            id: self.id.clone(),
            name: self.name.clone(),
            kind: self.driver.clone(),
            status: self.status,
            parent: self.parent.clone(),
            depth: self.depth,
            task: self.task.clone(),
            started_at: self.started_at,
            output_file: self.output_file.clone(),
            pending,
            not_steerable: self.not_steerable.clone(),
            tokens,
        }
    }
}

/// Where an agent's result is stored.
pub(crate) fn result_key(id: &AgentId) -> String {
    format!("{RESULTS}{id}")
}

/// Where an agent's receipts are stored; followed by the steer's name.
pub(crate) fn receipts_prefix(id: &AgentId) -> String {
    format!("{RECEIPTS}{id}/")
}

/// Where one receipt is stored.
pub(crate) fn receipt_key(id: &AgentId, steer: &SteerId) -> String {
    format!("{}{steer}", receipts_prefix(id))
}

/// Text, numbers and lists of them can always be written as JSON.
pub(crate) fn json(value: &impl Serialize) -> Option<Value> {
    Some(serde_json::to_value(value).unwrap_or(Value::Null))
}

/// At most `max` characters of a text that becomes part of a line.
pub(crate) fn one_line(text: &str, max: usize) -> String {
    let mut line: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(max + 1)
        .collect();
    if line.chars().count() > max {
        line = line.chars().take(max.saturating_sub(1)).collect();
        line.push('…');
    }
    line.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_one_line_of_bounded_length() {
        assert_eq!(one_line(" a\nb\u{1b}[2J ", 20), "a b [2J");
        assert_eq!(one_line("ééééé", 4), "ééé…");
        assert_eq!(one_line("éééé", 4), "éééé");
    }
}
