//! The viewers of one desktop: a socket for each, and behind it the gate.
//!
//! Each viewer has a connection of its own to the display, on which the server itself ignores input, and a task that
//! moves bytes between the two. Control never touches these connections: the task follows what the desktop publishes
//! and lets the holder's input through to it.

mod outgoing;
mod pump;
mod waiting;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use handover_control::{Moment, ViewerId};
use handover_protocol::{ErrorCode, Refusal};
use handover_rfb::gate;
use handover_rfb::handshake::Credentials;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};

use crate::desktop::view::{ControlView, ViewerEvent, ViewerEventKind};
use crate::display::{ConnectError, Upstream};
use crate::system::creds::Sender;
use crate::system::socket;

/// Most viewers of one desktop, whether a client is connected or not.
pub const VIEWERS_LIMIT: usize = 64;

/// How long viewers may keep others waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// How long a socket waits for a client, unless the live lease is bound to its viewer.
    pub unused: Duration,
    /// How long a client may take nothing of what waits for it.
    pub stalled: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Patience {
            unused: Duration::from_secs(60),
            stalled: Duration::from_secs(30),
        }
    }
}

/// Whether the process that connected at that moment may watch. What is refused is closed and logged.
pub type Admit = dyn Fn(Sender, Moment) -> Result<(), Refusal> + Send + Sync;

/// What viewers need of their desktop.
#[derive(Clone)]
pub struct Settings {
    /// The desktop's RFB server.
    pub upstream: Upstream,
    /// The view-only password, where the server has one.
    pub credentials: Credentials,
    /// What is known about the server.
    pub server: gate::Upstream,
    /// Who has control. When its sender is dropped, all viewers end.
    pub control: watch::Receiver<ControlView>,
    /// Where what viewers do goes.
    pub events: mpsc::Sender<ViewerEvent>,
    /// Who may connect, besides being of the same user.
    pub admit: Arc<Admit>,
    /// The default, except in tests.
    pub patience: Patience,
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings")
            .field("upstream", &self.upstream)
            .finish_non_exhaustive()
    }
}

/// Why a viewer is over.
#[derive(Debug, thiserror::Error)]
enum Ended {
    /// No client came.
    #[error("no client connected to it in time")]
    Unused,
    /// The desktop is gone.
    #[error("its desktop is gone")]
    DesktopGone,
    /// Its socket failed.
    #[error("its socket failed: {0}")]
    Socket(#[from] std::io::Error),
    /// The display turned the viewer's connection away.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// A client was connected.
    #[error(transparent)]
    Pump(#[from] pump::Ended),
}

/// The viewers of one desktop.
#[derive(Debug, Clone)]
pub struct Viewers {
    settings: Settings,
    places: Arc<Semaphore>,
}

impl Viewers {
    /// No viewers yet.
    pub fn new(settings: Settings) -> Viewers {
        Viewers {
            settings,
            places: Arc::new(Semaphore::new(VIEWERS_LIMIT)),
        }
    }

    /// Opens a viewer: binds a socket at `path` for one client. From then on exactly one
    /// [`ViewerEventKind::Gone`] comes for it. Needs a tokio runtime.
    ///
    /// # Errors
    /// `queue_full` if there are [`VIEWERS_LIMIT`] already; `internal` if the socket cannot be bound.
    pub fn open(&self, viewer: ViewerId, path: PathBuf) -> Result<(), Refusal> {
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
            return Err(Refusal::new(
                ErrorCode::QueueFull,
                format!(
                    "this desktop has {VIEWERS_LIMIT} viewers, which is the limit; close one and try again"
                ),
            ));
        };
        let listener = socket::bind_private(&path)
            .and_then(|listener| waiting::Listener::new(listener, path))
            .map_err(|error| Refusal::new(ErrorCode::Internal, error.to_string()))?;
        let settings = self.settings.clone();
        tokio::spawn(supervise(settings, viewer, listener, place));
        Ok(())
    }

    /// Viewers that are not over, whether a client is connected or not.
    pub fn count(&self) -> usize {
        VIEWERS_LIMIT - self.places.available_permits()
    }
}

/// Runs a viewer and reports its end, however it comes about: a lease may hang on it.
async fn supervise(
    settings: Settings,
    viewer: ViewerId,
    listener: waiting::Listener,
    place: OwnedSemaphorePermit,
) {
    let events = settings.events.clone();
    let epoch = settings.control.borrow().epoch;
    match tokio::spawn(run(settings, viewer, listener)).await {
        Ok(ended) => tracing::info!(%viewer, "viewer over: {ended}"),
        Err(panic) => tracing::error!(%viewer, "viewer failed: {panic}"),
    }
    drop(place);
    // Without a desktop there is nobody to tell.
    let _ = events
        .send(ViewerEvent {
            viewer,
            epoch,
            kind: ViewerEventKind::Gone,
        })
        .await;
}

async fn run(settings: Settings, viewer: ViewerId, listener: waiting::Listener) -> Ended {
    let client = match waiting::for_client(&settings, viewer, listener).await {
        Ok(client) => client,
        Err(ended) => return ended,
    };
    let epoch = settings.control.borrow().epoch;
    let connected = ViewerEvent {
        viewer,
        epoch,
        kind: ViewerEventKind::Connected,
    };
    if settings.events.send(connected).await.is_err() {
        return Ended::DesktopGone;
    }
    pump::Pump::new(settings, viewer, client).run().await.into()
}
