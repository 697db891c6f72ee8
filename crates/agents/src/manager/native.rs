//! Subagents that an agent's own program has started.

use handover_protocol::{AgentId, AgentStatus};

use super::end::Finish;
use super::spawn::spawned_entry;
use super::table::{Native, Work};
use super::task::{Outcome, Task, json, one_line, result_key};
use super::{Manager, status_entry};
use crate::driver::Child;
use crate::environment::Change;

/// So many a program can have at once; more are not listed.
const MAX_NATIVE: usize = 256;

impl Manager {
    /// The agent that stands for a program's own subagent.
    pub(crate) fn native(&self, root: &AgentId, name: &str) -> Option<AgentId> {
        let table = self.inner.table();
        Some(table.native(root, name)?.task.id.clone())
    }

    /// News of a subagent: lists it, or notes how it stands.
    pub(crate) fn child(&self, root: &AgentId, child: Child) {
        let known = self.native(root, &child.native);
        let Some(id) = known.or_else(|| self.list_child(root, &child)) else {
            return;
        };
        let mut table = self.inner.table();
        let Some(entry) = table.get_mut(&id) else {
            return;
        };
        let steerable = entry.task.not_steerable == child.not_steerable;
        entry.task.not_steerable = child.not_steerable;
        if child.status.has_ended() {
            drop(table);
            let outcome = Outcome {
                text: child.text.unwrap_or_default(),
                error: None,
            };
            let finish = Finish {
                status: child.status,
                outcome: Some(outcome),
                survivors: Vec::new(),
            };
            tokio::spawn(self.end(&id, finish, None));
            return;
        }
        let mut change = Change::default();
        if entry.task.status != child.status {
            entry.task.status = child.status;
            change
                .entries
                .push(status_entry(&id, child.status, None, None));
        }
        if !change.entries.is_empty() || !steerable {
            change.state.push(entry.task.put());
        }
        if let Some(text) = child.text {
            let outcome = Outcome { text, error: None };
            change.state.push((result_key(&id), json(&outcome)));
        }
        if change != Change::default() {
            self.inner.env.record_soon(change);
            drop(table);
            self.inner.env.changed();
        }
    }

    fn list_child(&self, root: &AgentId, child: &Child) -> Option<AgentId> {
        // News of the end of one that was never listed adds nothing.
        if child.status.has_ended() {
            return None;
        }
        let id = self.inner.fresh_id().ok()?;
        let mut table = self.inner.table();
        let above = match &child.parent {
            Some(parent) => table.native(root, parent).or_else(|| table.get(root))?,
            None => table.get(root)?,
        };
        let (parent, depth) = (above.task.id.clone(), above.task.depth + 1);
        let driver = above.task.driver.clone();
        if table.children(root) >= MAX_NATIVE {
            tracing::warn!(agent = %root, "a program has more subagents than are listed");
            return None;
        }
        let task = Task {
            order: table.next_order(),
            id: id.clone(),
            name: one_line(&child.name, 100),
            driver,
            status: AgentStatus::Running,
            parent: Some(parent),
            depth,
            task: one_line(&child.task, 200),
            desktop: None,
            started_at: Some(self.inner.env.now()),
            finished_at: None,
            output_file: None,
            not_steerable: child.not_steerable.clone(),
        };
        let change = Change {
            entries: vec![
                spawned_entry(&task, None),
                status_entry(&id, AgentStatus::Running, None, None),
            ],
            state: vec![task.put()],
        };
        let native = Native {
            root: root.clone(),
            name: child.native.clone(),
        };
        table.insert(task, Some(Box::new(Work::new(None, Some(native)))));
        self.inner.env.record_soon(change);
        drop(table);
        self.inner.env.changed();
        Some(id)
    }
}
