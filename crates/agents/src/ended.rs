//! Agents of a session that no host serves, as its record has them.

use handover_protocol::{AgentId, AgentStatus, ResultResult};
use serde::Deserialize;
use serde_json::Value;

use crate::manager::{HOST_ENDED, Outcome, TASKS, Task, result_key};

/// How the keys begin under which agents are stored.
pub const KEYS: &str = TASKS;

/// An agent that ended, at the latest with its host.
#[derive(Debug)]
pub struct Ended(Task);

impl Ended {
    /// Reads what is stored under one of [`KEYS`]; `None` if that is no agent.
    pub fn read(stored: Value) -> Option<Self> {
        Task::deserialize(stored).ok().map(Self)
    }

    /// Which one it is.
    pub fn id(&self) -> &AgentId {
        &self.0.id
    }

    /// The key under which it is stored what the agent came to.
    pub fn result_key(&self) -> String {
        result_key(&self.0.id)
    }

    /// What it came to, of which `stored` is under [`Ended::result_key`]. An agent that was under way
    /// when its host ended is `interrupted`, as the next host would find.
    pub fn result(self, stored: Option<Value>) -> ResultResult {
        let mut outcome = stored
            .and_then(|stored| Outcome::deserialize(stored).ok())
            .unwrap_or_default();
        let mut status = self.0.status;
        if !status.has_ended() {
            status = AgentStatus::Interrupted;
            outcome.error.get_or_insert_with(|| HOST_ENDED.to_owned());
        }
        ResultResult {
            id: self.0.id,
            status,
            text: outcome.text,
            error: outcome.error,
            finished_at: self.0.finished_at,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn agent(status: &str) -> Ended {
        let task = json!({
            "order": 1, "id": "a1", "name": "n", "driver": "pi", "status": status, "depth": 0,
            "task": "t"
        });
        Ended::read(task).unwrap()
    }

    #[test]
    fn what_was_under_way_was_interrupted_and_what_had_ended_stays() {
        let result = agent("running").result(None);
        assert_eq!(result.status, AgentStatus::Interrupted);
        assert_eq!(result.error.as_deref(), Some(HOST_ENDED));
        let result = agent("done").result(Some(json!({"text": "all of it"})));
        assert_eq!(result.status, AgentStatus::Done);
        assert_eq!((result.text.as_str(), result.error), ("all of it", None));
        // Read as far as it can be.
        assert_eq!(agent("failed").result(Some(json!(7))).text, "");
        assert!(Ended::read(json!("no agent")).is_none());
    }
}
