//! Relayed servers that may still act for a host that has died.
//!
//! A relay sees its host end, and then ends what is under way by itself. That takes it seconds, and one that is
//! stopped does not see it; a host that is back meanwhile would know of no permit and grant control at once. So a
//! host keeps on record whose calls it permits, and its successor grants none before those relays have had their
//! time. Where one is stopped, or gone, it ends the server, as soon as somebody waits for that.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use handover_protocol::{ErrorCode, Refusal};
use handover_store::{Put, Store, StoreError};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use super::overdue::{END, GRACE};
use super::relayed;
use crate::keeper::client::Keeper;
use crate::record::not_recorded;
use crate::system::process::{self, ProcessIdentity, Stat};

/// Where they are stored: followed by the keeper.
const PREFIX: &str = "relayed/";

/// How often a relay is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// A relayed server, as it is stored before its first call is permitted.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    keeper: ProcessIdentity,
    relay: ProcessIdentity,
    boot_id: String,
}

fn key(keeper: ProcessIdentity) -> String {
    format!("{PREFIX}{}-{}", keeper.pid, keeper.start_ticks)
}

/// The relayed servers of a session.
#[derive(Debug)]
pub struct RelayedServers {
    store: Store,
    /// Those on record whose keepers this host follows.
    kept: Mutex<HashSet<ProcessIdentity>>,
    /// How many of a former host's may still act.
    left: watch::Sender<usize>,
    /// Whether somebody waits for their end.
    wanted: watch::Sender<bool>,
}

impl RelayedServers {
    /// Those that a former host has left on record are seen to from now on. Must be called within a tokio
    /// runtime.
    ///
    /// # Errors
    /// The record cannot be read.
    pub async fn open(store: &Store) -> Result<Arc<Self>, StoreError> {
        let servers = Arc::new(Self {
            store: store.clone(),
            kept: Mutex::default(),
            left: watch::Sender::new(0),
            wanted: watch::Sender::new(false),
        });
        for (key, value) in store.list(PREFIX).await? {
            match Row::deserialize(value) {
                Ok(row) if process::boot_id().is_ok_and(|boot| boot == row.boot_id) => {
                    servers.left.send_modify(|left| *left += 1);
                    let servers = Arc::clone(&servers);
                    tokio::spawn(async move {
                        over(row.keeper, row.relay, servers.wanted.subscribe()).await;
                        servers.left.send_modify(|left| *left -= 1);
                        // If it lives on, it is kept again with its next call.
                        servers.store.put_soon(vec![Put::delete(key)]);
                    });
                }
                // Of before the machine was started anew, or of no use.
                Ok(_) | Err(_) => store.put_soon(vec![Put::delete(key)]),
            }
        }
        Ok(servers)
    }

    /// Keeps on record that calls of the server below `keeper` are permitted to `relay`; durable when it answers.
    ///
    /// # Errors
    /// `storage_failed`.
    pub(super) async fn keep(
        self: &Arc<Self>,
        keeper: ProcessIdentity,
        relay: ProcessIdentity,
    ) -> Result<(), Refusal> {
        if self.kept().contains(&keeper) {
            return Ok(());
        }
        let boot_id = process::boot_id().map(str::to_owned).unwrap_or_default();
        let row = Row {
            keeper,
            relay,
            boot_id,
        };
        // Numbers and text can always be written as JSON.
        let value = serde_json::to_value(row).unwrap_or(Value::Null);
        let stored = self.store.put(key(keeper), value).await;
        stored.map_err(|error| not_recorded(&error))?;
        if self.kept().insert(keeper) {
            let servers = Arc::clone(self);
            tokio::spawn(async move {
                if relayed::empty(relayed::follow(keeper)).await.is_ok() {
                    servers.kept().remove(&keeper);
                    servers.store.put_soon(vec![Put::delete(key(keeper))]);
                }
            });
        }
        Ok(())
    }

    /// Somebody wants what a former host has permitted to end.
    pub(super) fn want(&self) {
        self.wanted.send_replace(true);
    }

    /// Waits until nothing acts any more that a former host has permitted.
    ///
    /// # Errors
    /// `drain_timeout` if that takes longer.
    pub(super) async fn ended(&self, within: Duration) -> Result<(), Refusal> {
        self.want();
        let mut left = self.left.subscribe();
        match timeout(within, left.wait_for(|left| *left == 0)).await {
            Ok(_) => Ok(()),
            Err(_) => Err(Refusal::new(
                ErrorCode::DrainTimeout,
                "a relayed server may still act on what the session's former host has permitted; try again",
            )),
        }
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, HashSet<ProcessIdentity>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits until nothing below `keeper` acts on a permit of a host that `relay` has lost: nothing is left there, or
/// the relay has run for long enough since to have ended its calls. A server whose relay does not run is ended
/// once that is wanted.
pub(super) async fn over(
    keeper: ProcessIdentity,
    relay: ProcessIdentity,
    wanted: watch::Receiver<bool>,
) {
    let empty = relayed::follow(keeper);
    let began = Instant::now();
    let mut awake = Duration::ZERO;
    while !*empty.borrow() && awake < GRACE {
        let looked = Instant::now();
        sleep(LOOK).await;
        if empty.has_changed().is_err() && !keeper.is_alive() {
            // The end of its tree cannot be watched, and it has no keeper any more.
            return;
        }
        if runs(relay) {
            // How it was while this host did not look is not known.
            awake += looked.elapsed().min(LOOK * 4);
        } else if began.elapsed() >= GRACE && *wanted.borrow() && keeper.is_alive() {
            tracing::warn!(
                keeper = keeper.pid,
                relay = relay.pid,
                "a relay does not run; its server is ended"
            );
            Keeper::end_of_another(keeper, END).await;
        }
    }
}

/// Whether a process is there and not stopped.
fn runs(process: ProcessIdentity) -> bool {
    Stat::of(process.pid).is_ok_and(|stat| {
        stat.identity() == process && stat.is_living() && !matches!(stat.state, 'T' | 't')
    })
}
