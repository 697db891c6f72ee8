//! What a manager finds when it begins: the tasks of earlier hosts.

use std::sync::{Arc, Mutex};

use handover_protocol::{AgentId, AgentStatus, SteerState};
use serde::Deserialize;

use super::receipt::is_final;
use super::table::Table;
use super::task::{StoredReceipt, TASKS, Task, has_ended, json, receipts_prefix};
use super::{Inner, Manager, Settings, status_entry, steer};
use crate::environment::{Change, Environment, NotRecorded};

impl Manager {
    /// Reads the tasks of earlier hosts. What those had under way has ended with them: it is
    /// `interrupted`, and of its steers nothing more will be known.
    ///
    /// # Errors
    /// When the record can be neither read nor written.
    pub async fn open(env: Arc<dyn Environment>, settings: Settings) -> Result<Self, NotRecorded> {
        let mut table = Table::new();
        let mut change = Change::default();
        for (key, value) in env.stored(TASKS).await? {
            let Ok(mut task) = Task::deserialize(value) else {
                tracing::warn!(key, "a stored agent cannot be read and is left out");
                continue;
            };
            if !has_ended(task.status) {
                task.status = AgentStatus::Interrupted;
                task.finished_at = Some(env.now());
                close_receipts(&*env, &task.id, &mut change).await?;
                let why = "the host ended, and the agent with it";
                change
                    .entries
                    .push(status_entry(&task.id, task.status, Some(why), None));
                change.state.push(task.put());
                let outcome = super::task::Outcome {
                    text: String::new(),
                    error: Some(why.to_owned()),
                };
                let key = super::task::result_key(&task.id);
                if env.stored_at(&key).await?.is_none() {
                    change.state.push((key, json(&outcome)));
                }
            }
            table.insert(task, None);
        }
        if change != Change::default() {
            env.record(change).await?;
        }
        Ok(Self {
            inner: Arc::new(Inner {
                env,
                settings,
                table: Mutex::new(table),
            }),
        })
    }
}

/// What was on its way to the program may have arrived; what was not will not.
async fn close_receipts(
    env: &dyn Environment,
    id: &AgentId,
    change: &mut Change,
) -> Result<(), NotRecorded> {
    let prefix = receipts_prefix(id);
    for (key, value) in env.stored(&prefix).await? {
        let Ok(mut receipt) = StoredReceipt::deserialize(value) else {
            continue;
        };
        if is_final(receipt.state) {
            continue;
        }
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
