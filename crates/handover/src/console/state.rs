//! What all connections of the console share.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use handover_host::system::clock;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::auth::Access;
use super::grant::Grant;
use super::origin::Names;
use super::scope::Scope;
use super::sessions::Sessions;

/// Most WebSockets at a time.
pub const MAX_SOCKETS: usize = 64;
/// How often it is looked whether a time is over: timers stand still while the machine sleeps.
const LOOK: Duration = Duration::from_secs(1);

/// One console.
#[derive(Debug)]
pub struct Console {
    /// The names that it answers to.
    pub names: Names,
    /// The name of its cookie, with its port: browsers keep cookies by host alone.
    pub cookie: String,
    /// The live sessions.
    pub sessions: Sessions,
    /// Whose turn it is to have a report made.
    pub reports: Semaphore,
    access: Mutex<Access>,
    sockets: Arc<Semaphore>,
    stop: watch::Sender<bool>,
}

impl Console {
    /// One that answers to `names` and listens on `port`.
    pub fn new(names: Names, port: u16) -> Self {
        Self {
            names,
            cookie: format!("handover-{port}"),
            sessions: Sessions::new(),
            reports: Semaphore::new(1),
            access: Mutex::default(),
            sockets: Arc::new(Semaphore::new(MAX_SOCKETS)),
            stop: watch::Sender::new(false),
        }
    }

    /// Links and cookies.
    pub fn access(&self) -> MutexGuard<'_, Access> {
        // No code panics while it holds the lock.
        self.access.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Room for one more WebSocket, if there is any.
    pub fn socket(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.sockets).try_acquire_owned().ok()
    }

    /// Ends everything.
    pub fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// Waits until everything is to end.
    pub async fn stopped(&self) {
        // The sender lives as long as we do.
        let _ = self.stop.subscribe().wait_for(|stop| *stop).await;
    }

    /// Waits until no WebSocket is left.
    pub async fn quiet(&self) {
        let all = u32::try_from(MAX_SOCKETS).unwrap_or(u32::MAX);
        let _ = self.sockets.acquire_many(all).await;
    }

    /// Waits until the time of `grant` is over.
    pub async fn over(&self, grant: &Grant) {
        let Some(until) = grant.until() else {
            return std::future::pending().await;
        };
        loop {
            let left = until.moment.since(clock::now());
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left.min(LOOK)).await;
        }
    }

    /// The home directory, by which the app shortens paths; nobody else's business than the user's.
    pub fn home(&self, scope: &Scope) -> String {
        match scope {
            Scope::All => std::env::var("HOME").unwrap_or_default(),
            Scope::Desktop { .. } => String::new(),
        }
    }
}
