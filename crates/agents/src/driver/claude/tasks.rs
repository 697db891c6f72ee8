//! The subagents of Claude Code: listed, followed and stopped; there is no way to speak to them.

use std::collections::BTreeMap;

use handover_protocol::AgentStatus;
use serde_json::Value;

use crate::driver::json::text;
use crate::driver::{Child, Effect};

/// Why no subagent can be steered.
pub(super) const NOT_STEERABLE: &str = "Claude Code has no way to address a running subagent";

/// The most subagents that are listed.
const MAX_TASKS: usize = 256;

/// The subagents so far, by the names that the program gives them.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    children: BTreeMap<String, Child>,
}

impl Tasks {
    /// `system` messages about tasks. Commands in the background are tasks too, but no subagents.
    pub(super) fn told(&mut self, message: &Value, out: &mut Vec<Effect>) {
        let Some(task) = text(message, "/task_id") else {
            return;
        };
        match text(message, "/subtype").unwrap_or_default() {
            "task_started" if text(message, "/task_type") == Some("local_agent") => {
                self.started(task, message, out);
            }
            "task_updated" => self.ended(task, text(message, "/patch/status"), out),
            "task_notification" => self.ended(task, text(message, "/status"), out),
            _ => {}
        }
    }

    /// Whether a subagent works.
    pub(super) fn any_runs(&self) -> bool {
        self.children.values().any(runs)
    }

    /// Whether this subagent works.
    pub(super) fn runs(&self, task: &str) -> bool {
        self.children.get(task).is_some_and(runs)
    }

    /// The subagent that sent this message, if one did and it is listed.
    pub(super) fn sender(&self, message: &Value) -> Option<String> {
        let task = text(message, "/agent_id")?;
        self.children.get(task).map(|child| child.native.clone())
    }

    /// A subagent says something.
    pub(super) fn said(&mut self, task: &str, said: &str) {
        if let Some(child) = self.children.get_mut(task) {
            child.text = Some(said.to_owned());
        }
    }

    fn started(&mut self, task: &str, message: &Value, out: &mut Vec<Effect>) {
        if self.children.len() >= MAX_TASKS && !self.children.contains_key(task) {
            return;
        }
        let name = text(message, "/description").or_else(|| text(message, "/subagent_type"));
        let parent = text(message, "/parent_task_id").filter(|parent| *parent != task);
        let child = Child {
            native: task.to_owned(),
            parent: parent
                .filter(|parent| self.children.contains_key(*parent))
                .map(str::to_owned),
            name: name.unwrap_or("subagent").to_owned(),
            task: text(message, "/prompt").unwrap_or_default().to_owned(),
            status: AgentStatus::Running,
            not_steerable: Some(NOT_STEERABLE.to_owned()),
            text: None,
        };
        out.push(Effect::Child(child.clone()));
        self.children.insert(task.to_owned(), child);
    }

    fn ended(&mut self, task: &str, status: Option<&str>, out: &mut Vec<Effect>) {
        let status = match status {
            Some("completed") => AgentStatus::Done,
            Some("failed") => AgentStatus::Failed,
            Some("killed" | "stopped") => AgentStatus::Aborted,
            _ => return,
        };
        // Both an update and a notice tell of the end; the first of them is passed on.
        if let Some(child) = self.children.get_mut(task).filter(|child| runs(child)) {
            child.status = status;
            out.push(Effect::Child(child.clone()));
        }
    }
}

fn runs(child: &Child) -> bool {
    child.status == AgentStatus::Running
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(tasks: &mut Tasks, message: Value) -> Vec<Effect> {
        let mut out = Vec::new();
        tasks.told(&message, &mut out);
        out
    }

    fn started(tasks: &mut Tasks, task: &str, parent: Option<&str>) -> Vec<Effect> {
        let message = json!({
            "subtype": "task_started", "task_type": "local_agent", "task_id": task,
            "description": "look around", "prompt": "find it", "parent_task_id": parent,
        });
        told(tasks, message)
    }

    #[test]
    fn a_grandchild_has_its_parent_and_an_end_is_told_once() {
        let mut tasks = Tasks::default();
        started(&mut tasks, "a", None);
        let out = started(&mut tasks, "b", Some("a"));
        let [Effect::Child(child)] = &out[..] else {
            panic!("a child: {out:?}");
        };
        assert_eq!(child.parent.as_deref(), Some("a"));
        assert_eq!(child.not_steerable.as_deref(), Some(NOT_STEERABLE));
        tasks.said("b", "found");
        let update = json!({
            "subtype": "task_updated", "task_id": "b", "patch": {"status": "completed"},
        });
        let out = told(&mut tasks, update);
        let [Effect::Child(child)] = &out[..] else {
            panic!("a child: {out:?}");
        };
        assert_eq!(child.status, AgentStatus::Done);
        assert_eq!(child.text.as_deref(), Some("found"));
        let notice = json!({
            "subtype": "task_notification", "task_id": "b", "status": "completed",
        });
        assert_eq!(told(&mut tasks, notice), []);
        assert!(tasks.runs("a") && !tasks.runs("b"));
    }

    #[test]
    fn a_command_in_the_background_is_no_subagent() {
        let mut tasks = Tasks::default();
        let bash = json!({
            "subtype": "task_started", "task_type": "local_bash", "task_id": "x",
        });
        assert_eq!(told(&mut tasks, bash), []);
        assert!(!tasks.any_runs());
    }

    #[test]
    fn no_more_are_listed_than_can_be_kept() {
        let mut tasks = Tasks::default();
        for number in 0..=MAX_TASKS {
            let out = started(&mut tasks, &number.to_string(), None);
            assert_eq!(out.is_empty(), number == MAX_TASKS);
        }
    }
}
