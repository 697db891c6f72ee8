//! The agents of a host that died: their keepers end them, and what a keeper could not end any more is
//! ended by the next host.

use std::time::Duration;

use handover_protocol::AgentId;
use handover_store::{Put, Store, StoreError};
use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::task::JoinSet;

use crate::keeper::client::Keeper;
use crate::system::process::{self, ProcessIdentity};

/// Where keepers are stored: followed by the agent.
const PREFIX: &str = "agent-keeper/";

/// How long a keeper that lost its host may take to end its tree by itself.
const BY_ITSELF: Duration = Duration::from_secs(10);
/// How long one that was killed may take to be gone.
const KILLED: Duration = Duration::from_secs(5);
/// How often it is looked at.
const LOOK: Duration = Duration::from_millis(10);

/// An agent's keeper, as it is stored before anything runs below it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    process: ProcessIdentity,
    boot_id: String,
}

fn key(agent: &AgentId) -> String {
    format!("{PREFIX}{agent}")
}

/// Keeps in the record that this keeper has an agent; durable when it answers.
pub(super) async fn keep(
    store: &Store,
    agent: &AgentId,
    process: ProcessIdentity,
) -> Result<(), StoreError> {
    let boot_id = process::boot_id().map(str::to_owned).unwrap_or_default();
    let row = Row { process, boot_id };
    // Numbers and text can always be written as JSON.
    let value = serde_json::to_value(row).unwrap_or(Value::Null);
    store.put(key(agent), value).await
}

/// The keeper has ended with everything below it.
pub(super) fn forget(store: &Store, agent: &AgentId) {
    store.put_soon(vec![Put::delete(key(agent))]);
}

/// Waits until nothing of a former host's agents runs any more, and ends what does not end by itself.
///
/// # Errors
/// When the record cannot be read.
pub async fn end_leftovers(store: &Store) -> Result<(), StoreError> {
    let mut ending = JoinSet::new();
    for (key, value) in store.list(PREFIX).await? {
        match Row::deserialize(value) {
            // All at once: each may take its time.
            Ok(row) => {
                let key = key.clone();
                ending.spawn(async move { end(&key, &row).await });
            }
            Err(error) => tracing::warn!(key, %error, "an agent's keeper on record cannot be read"),
        }
        store.put_soon(vec![Put::delete(key)]);
    }
    ending.join_all().await;
    Ok(())
}

/// Waits until a process has ended, or so long.
async fn is_gone(process: ProcessIdentity, wait: Duration) -> bool {
    let gone = async {
        while process.is_alive() {
            tokio::time::sleep(LOOK).await;
        }
    };
    tokio::time::timeout(wait, gone).await.is_ok()
}

async fn end(key: &str, row: &Row) {
    if process::boot_id().is_ok_and(|boot| boot != row.boot_id) {
        return;
    }
    // An agent can stop its own keeper, which then does not see that its host is gone. Ended meanwhile
    // is as good, here and below.
    let _ = row.process.signal(Signal::CONT);
    if !is_gone(row.process, BY_ITSELF).await {
        let _ = row.process.signal(Signal::KILL);
        // What it kept is looked for only once it is gone.
        is_gone(row.process, KILLED).await;
    }
    let left = Keeper::kill_leftovers_of(row.process, &row.boot_id).await;
    if !left.is_empty() {
        tracing::error!(key, ?left, "processes could not be killed");
    }
}
