//! The agents of a session: queue, tree, states, receipts and results.
//!
//! Whatever is decided is decided under one lock, which is never held across an await; changes of the
//! record are queued under it too, so that their order is the order of the decisions.

mod abort;
mod end;
mod ids;
pub(crate) mod limits;
mod native;
mod news;
mod open;
pub(crate) mod receipt;
mod refuse;
mod spawn;
mod steer;
pub(crate) mod table;
mod task;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use handover_protocol::{
    AgentId, AgentState, AgentStatus, AgentView, DesktopId, Refusal, ResultParams, ResultResult,
};
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::sync::mpsc;

pub(crate) use end::Finish;
pub use limits::Limits;
pub(crate) use open::HOST_ENDED;
pub use task::BULK;
pub(crate) use task::{Outcome, TASKS, Task, result_key};

use crate::driver::{Capabilities, Create, ToolServer};
use crate::environment::{By, Change, Entry as RecordEntry, Environment};
use crate::run::Order;
use limits::LISTED_ENDED;
use table::Table;

/// What a manager is to be.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Bounds.
    pub limits: Limits,
    /// Where agents work if nothing else is said, absolute.
    pub project_dir: PathBuf,
    /// Handover's own tools, for programs that take them.
    pub tools: Option<ToolServer>,
    /// The drivers there are.
    pub drivers: Create,
}

/// The agents of a session, behind a cheap handle.
#[derive(Clone)]
pub struct Manager {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) env: Arc<dyn Environment>,
    settings: Settings,
    table: Mutex<Table>,
}

impl std::fmt::Debug for Manager {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Manager").finish_non_exhaustive()
    }
}

impl Manager {
    /// The agents that have not ended, and the newest that have, oldest first.
    pub fn list(&self) -> Vec<AgentView> {
        let table = self.inner.table();
        let listed = table.listed(LISTED_ENDED).into_iter();
        listed
            .map(|entry| {
                let pending = entry.work.as_ref().map_or(0, |work| work.steers.open());
                let pending = u32::try_from(pending).unwrap_or(u32::MAX);
                entry.task.view(pending, entry.tokens)
            })
            .collect()
    }

    /// How one agent stands, if there is such an agent.
    pub fn status(&self, id: &AgentId) -> Option<AgentStatus> {
        self.inner.table().get(id).map(|entry| entry.task.status)
    }

    /// Whether `id` is below `ancestor` in the tree.
    pub fn is_below(&self, id: &AgentId, ancestor: &AgentId) -> bool {
        self.inner.table().is_below(id, ancestor)
    }

    /// What an agent came to; of one that has not ended, what it said last.
    ///
    /// # Errors
    /// `agent_unknown`, `storage_failed`.
    pub async fn result(&self, params: ResultParams) -> Result<ResultResult, Refusal> {
        let id = params.id;
        let (status, finished_at, left) = {
            let table = self.inner.table();
            let entry = table.known(&id)?;
            let task = &entry.task;
            let left = entry.left.as_ref().and_then(|left| left.outcome.clone());
            (task.status, task.finished_at, left)
        };
        let outcome = match left {
            Some(outcome) => outcome,
            None => {
                let stored = self.inner.env.stored_at(&result_key(&id)).await;
                let stored = stored.map_err(|error| refuse::storage(&error))?;
                let outcome = stored.and_then(|value| Outcome::deserialize(value).ok());
                outcome.unwrap_or_default()
            }
        };
        Ok(ResultResult {
            id,
            status,
            text: outcome.text,
            error: outcome.error,
            finished_at,
        })
    }

    /// The agents that use a desktop and have not ended.
    pub fn users_of(&self, desktop: &DesktopId) -> Vec<AgentState> {
        let table = self.inner.table();
        let users = table.unfinished().filter(|entry| {
            let work = entry.work.as_ref();
            work.is_some_and(|work| work.desktops.contains(desktop))
        });
        users
            .map(|entry| AgentState {
                id: entry.task.id.clone(),
                status: entry.task.status,
            })
            .collect()
    }

    /// The desktops that an agent uses.
    pub(crate) fn desktops_of(&self, id: &AgentId) -> Vec<DesktopId> {
        let table = self.inner.table();
        let work = table.get(id).and_then(|entry| entry.work.as_ref());
        work.map(|work| work.desktops.clone()).unwrap_or_default()
    }

    /// Notes that an agent has acted on a desktop, and so uses it.
    pub fn uses(&self, id: &AgentId, desktop: &DesktopId) {
        let mut table = self.inner.table();
        if let Some(work) = table.work_mut(id)
            && !work.desktops.contains(desktop)
        {
            work.desktops.push(desktop.clone());
        }
    }
}

impl Inner {
    pub(crate) fn table(&self) -> MutexGuard<'_, Table> {
        // Nothing panics while it holds this lock.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the status of an unfinished agent and records it.
    pub(crate) fn set_status(&self, id: &AgentId, status: AgentStatus) {
        debug_assert!(!status.has_ended());
        let mut table = self.table();
        let Some(entry) = table.get_mut(id) else {
            return;
        };
        if entry.work.is_none() || entry.task.status == status {
            return;
        }
        entry.task.status = status;
        let change = Change {
            entries: vec![status_entry(id, status, None, None)],
            state: vec![entry.task.put()],
        };
        self.env.record_soon(change);
        drop(table);
        self.env.changed();
    }
}

impl Manager {
    /// The program of an agent can take work.
    pub(crate) fn ready(&self, id: &AgentId, capabilities: Capabilities) {
        {
            let mut table = self.inner.table();
            let Some(entry) = table.get_mut(id) else {
                return;
            };
            entry.task.not_steerable = capabilities.not_steerable.map(str::to_owned);
            if let Some(work) = &mut entry.work {
                work.when = capabilities.when;
            }
        }
        self.inner.set_status(id, AgentStatus::Running);
    }

    /// Takes no message for an agent any more, unless one waits or is on its way: then it goes on. True
    /// if it is closed.
    pub(crate) fn close_inbox(&self, id: &AgentId, inbox: &mut mpsc::Receiver<Order>) -> bool {
        let mut table = self.inner.table();
        // Messages are accepted under this lock, so none comes between the look and the end.
        if !inbox.is_empty() {
            return false;
        }
        if let Some(work) = table.work_mut(id) {
            // The turn that it begins has not begun yet.
            if work.steers.any_on_its_way() {
                return false;
            }
            work.inbox = None;
        }
        inbox.close();
        true
    }

    pub(crate) fn set_status(&self, id: &AgentId, status: AgentStatus) {
        self.inner.set_status(id, status);
    }
}

/// The event of a change of status.
fn status_entry(
    id: &AgentId,
    status: AgentStatus,
    error: Option<&str>,
    by: Option<&By>,
) -> RecordEntry {
    let mut fields = Map::new();
    fields.insert("status".to_owned(), task::json(&status).unwrap_or_default());
    if let Some(error) = error {
        fields.insert("error".to_owned(), Value::from(error));
    }
    RecordEntry {
        kind: "agent_status",
        by: by.cloned(),
        agent: id.clone(),
        fields,
    }
}
