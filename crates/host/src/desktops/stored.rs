//! What the record keeps of a desktop for the next host.

use handover_protocol::DesktopId;
use handover_store::{Store, StoreError};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::xvnc::StoredDesktop;

const PREFIX: &str = "desktop/";

/// How far a desktop had come. The row is there before anything is started, so
/// that a host that crashes leaves nothing unknown behind.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum Row {
    /// Its keeper and display were being started.
    Starting,
    /// It was running.
    Running {
        /// What is needed to adopt it.
        display: StoredDesktop,
    },
    /// It fronted another server.
    Attached {
        /// Where, as it was asked for.
        target: String,
    },
}

/// A desktop's number, from its name.
pub fn number(id: &DesktopId) -> Option<u64> {
    id.as_str().strip_prefix('d')?.parse().ok()
}

/// The name of a desktop with this number.
pub fn name(number: u64) -> DesktopId {
    DesktopId(format!("d{number}"))
}

/// Keeps a row; durable when it answers.
///
/// # Errors
/// The record cannot be written.
pub async fn keep(store: &Store, id: &DesktopId, row: &Row) -> Result<(), StoreError> {
    let value = serde_json::to_value(row).unwrap_or(Value::Null);
    store.put(format!("{PREFIX}{id}"), value).await
}

/// Where the last number given to a desktop is kept.
const LAST_NUMBER: &str = "desktops/last";

/// The last number given to a desktop of this session, by any of its hosts.
///
/// # Errors
/// The record cannot be read.
pub async fn last_number(store: &Store) -> Result<u64, StoreError> {
    let last = store.get(LAST_NUMBER).await?;
    Ok(last.and_then(|last| last.as_u64()).unwrap_or(0))
}

/// Keeps the last number given to a desktop; durable when it answers.
///
/// # Errors
/// The record cannot be written.
pub async fn keep_last_number(store: &Store, number: u64) -> Result<(), StoreError> {
    store.put(LAST_NUMBER, number).await
}

/// Forgets a desktop that has ended.
pub async fn forget(store: &Store, id: &DesktopId) {
    // A row that stays says `running` of processes that are gone, which the
    // next host finds out.
    for key in [format!("{PREFIX}{id}"), crate::desktop::control_key(id)] {
        if let Err(error) = store.delete(key).await {
            tracing::warn!(desktop = %id, %error, "failed to forget a desktop");
        }
    }
}

/// The rows of a former host, by number.
///
/// # Errors
/// The record cannot be read.
pub async fn rows(store: &Store) -> Result<Vec<(DesktopId, Row)>, StoreError> {
    let mut rows: Vec<_> = store
        .list(PREFIX)
        .await?
        .into_iter()
        .filter_map(|(key, value)| {
            let id = DesktopId::from(key.strip_prefix(PREFIX)?);
            number(&id)?;
            // What cannot be read is of no use for adoption; its processes are
            // looked for all the same.
            let row = serde_json::from_value(value).unwrap_or(Row::Starting);
            Some((id, row))
        })
        .collect();
    rows.sort_by_key(|(id, _)| number(id));
    Ok(rows)
}
