//! What a manager finds when it begins: the tasks of earlier hosts.

use std::sync::{Arc, Mutex};

use handover_protocol::{AgentId, AgentStatus, SteerState};
use serde::Deserialize;
use serde_json::Value;

use super::receipt::is_final;
use super::table::Table;
use super::task::{Outcome, StoredReceipt, TASKS, Task, json, receipts_prefix, result_key};
use super::{Inner, Manager, Settings, status_entry, steer};
use crate::environment::{Change, Environment, NotRecorded};

/// Why an agent is `interrupted`.
pub(crate) const HOST_ENDED: &str = "the host ended, and the agent with it";

/// Rows that are read at once.
const PAGE: usize = 500;

impl Manager {
    /// Reads the tasks of earlier hosts. What those had under way has ended with them: it is
    /// `interrupted`, and of its steers nothing more will be known.
    ///
    /// # Errors
    /// When the record can be neither read nor written.
    pub async fn open(env: Arc<dyn Environment>, settings: Settings) -> Result<Self, NotRecorded> {
        let mut tasks = Vec::new();
        let mut change = Change::default();
        let mut pages = Pages::of(&*env, TASKS);
        while let Some(page) = pages.next().await? {
            for (key, value) in page {
                let Ok(mut task) = Task::deserialize(value) else {
                    tracing::warn!(key, "a stored agent cannot be read and is left out");
                    continue;
                };
                if !task.status.has_ended() {
                    interrupt(&*env, &mut task, &mut change).await?;
                }
                tasks.push(task);
            }
        }
        if change != Change::default() {
            env.record(change).await?;
        }
        Ok(Self {
            inner: Arc::new(Inner {
                env,
                settings,
                table: Mutex::new(Table::of(tasks)),
            }),
        })
    }
}

/// What is stored, a page after the other: all at once may be much.
struct Pages<'a> {
    env: &'a dyn Environment,
    prefix: &'a str,
    after: String,
}

impl<'a> Pages<'a> {
    fn of(env: &'a dyn Environment, prefix: &'a str) -> Self {
        Self {
            env,
            prefix,
            after: String::new(),
        }
    }

    /// The next page; `None` after the last.
    async fn next(&mut self) -> Result<Option<Vec<(String, Value)>>, NotRecorded> {
        let page = self.env.stored(self.prefix, &self.after, PAGE).await?;
        let Some((last, _)) = page.last() else {
            return Ok(None);
        };
        self.after.clone_from(last);
        Ok(Some(page))
    }
}

/// The agent was under way when its host ended.
async fn interrupt(
    env: &dyn Environment,
    task: &mut Task,
    change: &mut Change,
) -> Result<(), NotRecorded> {
    task.status = AgentStatus::Interrupted;
    task.finished_at = Some(env.now());
    close_receipts(env, &task.id, change).await?;
    change
        .entries
        .push(status_entry(&task.id, task.status, Some(HOST_ENDED), None));
    change.state.push(task.put());
    let outcome = Outcome {
        text: String::new(),
        error: Some(HOST_ENDED.to_owned()),
    };
    let key = result_key(&task.id);
    if env.stored_at(&key).await?.is_none() {
        change.state.push((key, json(&outcome)));
    }
    Ok(())
}

/// What was on its way to the program may have arrived; what was not will not.
async fn close_receipts(
    env: &dyn Environment,
    id: &AgentId,
    change: &mut Change,
) -> Result<(), NotRecorded> {
    let prefix = receipts_prefix(id);
    let mut pages = Pages::of(env, &prefix);
    let mut stored = Vec::new();
    while let Some(page) = pages.next().await? {
        stored.extend(page.into_iter().filter_map(|(key, value)| {
            let receipt = StoredReceipt::deserialize(value).ok()?;
            (!is_final(receipt.state)).then_some((key, receipt))
        }));
    }
    for (key, mut receipt) in stored {
        let (state, reason) = match receipt.state {
            SteerState::Accepted => (
                SteerState::Dropped,
                "the host ended before it was handed over",
            ),
            _ => (SteerState::Unknown, "the host ended"),
        };
        receipt.state = state;
        receipt.reason = Some(reason.to_owned());
        let steer = key.strip_prefix(&prefix).unwrap_or_default().into();
        change
            .entries
            .push(steer::receipt_entry(id, &steer, state, Some(reason)));
        change.state.push((key, json(&receipt)));
    }
    Ok(())
}
