//! Follows a desktop's processes and its server's log of connections.

use std::sync::Mutex;

use handover_control::PauseReason;
use handover_protocol::DesktopId;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::desktop::DesktopHandle;
use crate::display::Upstream;
use crate::keeper::client::{Keeper, KeeperEvent};
use crate::xvnc::{ConnectionEvent, ConnectionLog};

/// The tasks that follow one desktop.
#[derive(Debug, Default)]
pub struct Watch(Mutex<Vec<JoinHandle<()>>>);

impl Watch {
    /// Nothing to follow: the desktop is attached to another server.
    pub fn nothing() -> Self {
        Self::default()
    }

    /// Follows a desktop of the host's own, whose display is the process `server`.
    pub fn start(
        id: DesktopId,
        handle: &DesktopHandle,
        keeper: Keeper,
        server: u32,
        events: mpsc::UnboundedReceiver<KeeperEvent>,
        connections: ConnectionLog,
        upstream: Upstream,
    ) -> Self {
        Self(Mutex::new(vec![
            tokio::spawn(follow_keeper(
                id.clone(),
                handle.clone(),
                keeper,
                server,
                events,
            )),
            tokio::spawn(follow_connections(
                id,
                handle.clone(),
                connections,
                upstream,
            )),
        ]))
    }

    /// Stops following: the desktop is being ended.
    pub fn stop(&self) {
        let tasks = self.0.lock().map(|mut tasks| std::mem::take(&mut *tasks));
        for task in tasks.unwrap_or_default() {
            task.abort();
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Notices when the display or its keeper ends.
async fn follow_keeper(
    id: DesktopId,
    handle: DesktopHandle,
    keeper: Keeper,
    server: u32,
    mut events: mpsc::UnboundedReceiver<KeeperEvent>,
) {
    while let Some(event) = events.recv().await {
        match event {
            KeeperEvent::ChildExited { pid, exit } => {
                tracing::debug!(desktop = %id, pid, ?exit, "a program has ended");
            }
            // One whose display number was taken meanwhile, before the one that came up.
            KeeperEvent::ServerExited { pid, .. } if pid != server => {}
            KeeperEvent::ServerExited { exit, .. } => {
                tracing::warn!(desktop = %id, ?exit, "the display has ended");
                handle.server_gone().await;
            }
            KeeperEvent::Gone => break,
        }
    }
    // Nothing keeps what was below a keeper that is gone.
    tracing::warn!(desktop = %id, "the keeper is gone");
    handle.server_gone().await;
    let left = keeper.kill_leftovers().await;
    if !left.is_empty() {
        tracing::error!(desktop = %id, ?left, "processes could not be killed");
    }
}

/// Notices a connection to the display that the host did not make. The host
/// counts its own before it makes them, so that the log is never ahead of the
/// count.
async fn follow_connections(
    id: DesktopId,
    handle: DesktopHandle,
    mut log: ConnectionLog,
    upstream: Upstream,
) {
    let mut accepted: u64 = 0;
    loop {
        match log.next().await {
            Ok(ConnectionEvent::Accepted) => accepted += 1,
            Ok(ConnectionEvent::Closed) => continue,
            Err(error) => {
                tracing::error!(desktop = %id, %error, "the display's log cannot be followed");
                return;
            }
        }
        let made = upstream.connections_made();
        if accepted > made {
            tracing::error!(desktop = %id, accepted, made, "foreign connection to the display");
            // From here on it counts as known, so that the next one is seen too.
            accepted = made;
            // A desktop that has ended lets nobody act anyway.
            let _ = handle.pause_for(PauseReason::ForeignConnection).await;
        }
    }
}
