//! A desktop from a display that runs.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use handover_protocol::{DesktopId, ErrorCode, Refusal, Size, ViewerName};
use handover_rfb::gate;
use handover_rfb::handshake::Credentials;
use tokio::sync::mpsc;

use super::{DesktopSet, Entry, Shared, Traces, Watch};
use crate::desktop::{Beginning, DesktopHandle, Links, Parts, Programs, start};
use crate::display::{Address, Screen, SizeChanges, Upstream, X11};
use crate::keeper::client::{Keeper, KeeperEvent};
use crate::viewer::{Patience, Settings, Viewers};
use crate::xvnc::{DesktopFiles, Started};

/// The root window of a new desktop, red, green, blue. Not black, so that a
/// picture that is all black is known to be wrong.
const BACKGROUND: [u8; 3] = [0x2e, 0x34, 0x40];

/// A display that runs below its keeper.
pub(super) struct Running {
    pub(super) id: DesktopId,
    pub(super) keeper: Keeper,
    pub(super) events: mpsc::UnboundedReceiver<KeeperEvent>,
    pub(super) files: DesktopFiles,
    pub(super) started: Started,
}

/// A server whose desktop is made: what differs between one of the host's own
/// and one that it is attached to.
pub(super) struct Server {
    pub(super) id: DesktopId,
    pub(super) size: Size,
    pub(super) upstream: Upstream,
    pub(super) full: Credentials,
    pub(super) view_only: Credentials,
    pub(super) gate: gate::Upstream,
    pub(super) changes: SizeChanges,
    pub(super) x11: Option<X11>,
    pub(super) programs: Option<Programs>,
    pub(super) beginning: Beginning,
}

/// The display does not do what a desktop needs.
pub(super) fn unavailable(id: &DesktopId, why: impl std::fmt::Display) -> Refusal {
    Refusal::new(
        ErrorCode::DisplayUnavailable,
        format!("failed to start desktop {id}: {why}"),
    )
}

impl DesktopSet {
    /// Makes the desktop of a running display and follows it.
    pub(super) async fn assemble(
        &self,
        running: Running,
        beginning: Beginning,
    ) -> Result<DesktopHandle, Refusal> {
        let Running {
            id,
            keeper,
            events,
            files,
            started,
        } = running;
        let stored = started.stored;
        let cookie = files
            .cookie()
            .map_err(|error| unavailable(&id, format_args!("no X cookie: {error}")))?;
        let x11 = X11::spawn(stored.display, cookie).map_err(|error| unavailable(&id, error))?;
        if let Err(error) = x11.set_background(BACKGROUND).await {
            tracing::warn!(desktop = %id, %error, "no background");
        }
        let shared = &self.shared;
        let upstream = Upstream::new(Address::Unix(files.rfb_socket.clone()));
        let server = Server {
            size: Size {
                width: stored.width,
                height: stored.height,
            },
            upstream: upstream.clone(),
            full: Credentials::Password(started.passwords.full.clone()),
            view_only: Credentials::Password(started.passwords.view_only.clone()),
            gate: gate::Upstream::OWN,
            changes: SizeChanges::Follow,
            x11: Some(x11),
            programs: Some(Programs {
                keeper: keeper.clone(),
                files: files.clone(),
                display: stored.display,
                desktop: id.clone(),
                session: shared.session.clone(),
                project_dir: shared.project_dir.clone(),
                logs: shared.paths.logs(),
                launches: AtomicU64::new(0),
            }),
            beginning,
            id: id.clone(),
        };
        let handle = self.connect(server).await?;
        let watch = Watch::start(
            id.clone(),
            &handle,
            keeper,
            stored.server.pid,
            events,
            started.connections,
            upstream,
        );
        self.insert(
            &id,
            Entry {
                handle: handle.clone(),
                watch: Arc::new(watch),
                traces: Some(Traces { files, stored }),
            },
        );
        Ok(handle)
    }

    /// Connects to a server and starts the desktop's task.
    pub(super) async fn connect(&self, server: Server) -> Result<DesktopHandle, Refusal> {
        let shared: &Shared = &self.shared;
        let id = server.id.clone();
        let screen = Screen::spawn(
            server.upstream.clone(),
            server.view_only.clone(),
            server.changes,
        );
        let settings = {
            let upstream = server.upstream.clone();
            let admit = shared.admit.clone();
            let (credentials, gate) = (server.view_only, server.gate);
            move |control, events| {
                Viewers::new(Settings {
                    upstream,
                    credentials,
                    server: gate,
                    control,
                    events,
                    admit,
                    patience: Patience::default(),
                })
            }
        };
        let paths = shared.paths.clone();
        let viewer_socket: Box<dyn Fn(&ViewerName) -> PathBuf + Send + Sync> =
            Box::new(move |viewer| paths.viewer_socket(viewer));
        let parts = Parts {
            id: id.clone(),
            size: server.size,
            upstream: server.upstream,
            credentials: server.full,
            links: Links {
                store: shared.store.clone(),
                screen: screen.clone(),
                x11: server.x11,
                outlets: shared.outlets.clone(),
                relayed: shared.relayed.clone(),
                hooks: shared.hooks.clone(),
            },
            programs: server.programs,
            beginning: server.beginning,
            observe_guard: shared.observe_guard,
            viewer_numbers: self.viewer_numbers.clone(),
            viewer_socket,
        };
        let (handle, size) = tokio::join!(start(parts, settings), screen.size());
        let handle = handle.map_err(|error| unavailable(&id, error))?;
        if let Err(error) = size {
            handle.close().await;
            return Err(unavailable(&id, error));
        }
        Ok(handle)
    }
}
