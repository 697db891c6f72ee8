//! The desktops of a session: made, adopted from a former host, watched, ended.

mod adopt;
mod assemble;
mod attached;
mod create;
mod places;
mod recover;
mod stored;
mod watch;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use handover_protocol::{DesktopId, ErrorCode, Refusal};
use handover_store::Store;

use self::places::{Place, Places};
use crate::attach::Outlets;
use crate::browser::AdmitClient;
use crate::callers::{Caller, CallerKind};
use crate::desktop::{DesktopHandle, Hooks, RelayedServers};
use crate::session::SessionPaths;
use crate::viewer::Admit;
use crate::xvnc::DesktopFiles;

pub use watch::Watch;

/// The most desktops of one session.
pub const MAX_DESKTOPS: usize = 32;

/// What all desktops of a session share.
pub struct Shared {
    /// The session's name on the wire.
    pub session: String,
    /// Where its files are.
    pub paths: SessionPaths,
    /// Where programs run.
    pub project_dir: PathBuf,
    /// The record.
    pub store: Store,
    /// The clients of the host.
    pub outlets: Outlets,
    /// The relayed servers whose calls are permitted.
    pub relayed: Arc<RelayedServers>,
    /// The rest of the host.
    pub hooks: Arc<dyn Hooks>,
    /// Who may connect to a viewer's socket.
    pub admit: Arc<Admit>,
    /// Who may connect to a browser's socket.
    pub admit_to_browser: Arc<AdmitClient>,
    /// How long a desktop goes on without a host.
    pub orphan_timeout: std::time::Duration,
    /// False with `--no-observe-guard`.
    pub observe_guard: bool,
}

/// One desktop and what ends with it.
#[derive(Clone)]
struct Entry {
    handle: DesktopHandle,
    /// Follows its processes and its server's log.
    watch: Arc<Watch>,
    /// What remains of it on disk; none if it is attached to another server.
    traces: Option<Traces>,
}

/// What a display leaves behind.
#[derive(Clone)]
struct Traces {
    files: DesktopFiles,
    stored: crate::xvnc::StoredDesktop,
}

/// The desktops of one session.
pub struct DesktopSet {
    shared: Arc<Shared>,
    /// A number is used once in a session's life.
    places: Places<Entry>,
    viewer_numbers: Arc<AtomicU64>,
}

impl DesktopSet {
    /// None yet.
    pub fn new(shared: Shared) -> Self {
        Self {
            shared: Arc::new(shared),
            places: Places::new(MAX_DESKTOPS),
            viewer_numbers: Arc::default(),
        }
    }

    /// All of them, oldest first.
    pub fn all(&self) -> Vec<DesktopHandle> {
        let entries = self.places.all().into_iter();
        entries.map(|entry| entry.handle).collect()
    }

    /// Ends a desktop, if the caller may: its programs, its display, its task.
    ///
    /// # Errors
    /// As for every act on the desktop; a person may also end one whose display
    /// does not answer, is not the host's alone, or has ended.
    pub async fn destroy(&self, caller: &Caller, desktop: &DesktopHandle) -> Result<(), Refusal> {
        use ErrorCode::{DesktopGone, DisplayUnavailable, ForeignConnection};
        let person = matches!(caller.kind, CallerKind::Human { .. });
        match desktop.permit_to_end(caller).await {
            Ok(()) => {}
            Err(refusal) if refusal.code == DesktopGone => {}
            Err(refusal)
                if person && matches!(refusal.code, DisplayUnavailable | ForeignConnection) => {}
            Err(refusal) => return Err(refusal),
        }
        self.end(desktop).await;
        Ok(())
    }

    /// Ends a desktop whatever its state.
    pub async fn end(&self, desktop: &DesktopHandle) {
        use crate::attach::Desktop;
        let id = desktop.id().clone();
        let number = stored::number(&id).unwrap_or_default();
        let Some(entry) = self.places.empty(number) else {
            return;
        };
        entry.watch.stop();
        entry.handle.close().await;
        if let Some(programs) = entry.handle.programs() {
            let left = programs.end().await;
            if !left.is_empty() {
                tracing::error!(desktop = %id, ?left, "processes could not be killed");
            }
        }
        if let Some(traces) = &entry.traces
            && let Err(error) = crate::xvnc::clean_up(&traces.files, Some(&traces.stored))
        {
            tracing::warn!(desktop = %id, %error, "failed to remove the desktop's files");
        }
        stored::forget(&self.shared.store, &id).await;
        self.shared.hooks.gone(&id);
        self.shared.hooks.changed(&id);
    }

    /// A place for a desktop that is to be made.
    fn place(&self) -> Result<Place<'_, Entry>, Refusal> {
        self.places.take().ok_or_else(|| {
            Refusal::new(
                ErrorCode::QueueFull,
                format!(
                    "the session has {MAX_DESKTOPS} desktops, which is the limit; end one with `handover desktop destroy`"
                ),
            )
        })
    }

    fn insert(&self, id: &DesktopId, entry: Entry) {
        if let Some(number) = stored::number(id) {
            self.places.fill(number, entry);
        }
        self.shared.hooks.changed(id);
    }
}
