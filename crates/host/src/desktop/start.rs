//! A desktop's task from its parts.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use handover_control::{Arbiter, Epoch, PauseReason};
use handover_protocol::{DesktopId, HandBack, Size, ViewerName};
use handover_rfb::handshake::Credentials;
use tokio::sync::{mpsc, watch};

use super::acting::Acting;
use super::actor::{Actor, Inbox};
use super::clipboard::DisplayClipboard;
use super::handle::{DesktopHandle, Inner};
use super::input::InputConnection;
use super::links::Links;
use super::observation::Observations;
use super::person::WaitingInput;
use super::programs::Programs;
use super::takeover::Takeovers;
use super::view::{ControlView, INPUT_QUEUE, ViewerEvent};
use crate::display::x11::Locks;
use crate::display::{ConnectError, Upstream};
use crate::system::clock::BootTimer;
use crate::viewer::Viewers;

/// Commands that may wait for a desktop's task. Whoever asks for more waits.
const COMMAND_QUEUE: usize = 256;

/// How control stands when the task begins.
#[derive(Debug, Clone, PartialEq)]
pub struct Beginning {
    /// The fencing number.
    pub epoch: Epoch,
    /// Set if nobody may act.
    pub paused: Option<PauseReason>,
    /// The takeover that a former host could not end, so that what agents saw
    /// before is stale.
    pub recovered: Option<HandBack>,
    /// True if buttons that a former host pressed have to be let go of.
    pub adopted: bool,
}

impl Beginning {
    /// That of a new desktop.
    pub fn new(epoch: Epoch) -> Self {
        Self {
            epoch,
            paused: None,
            recovered: None,
            adopted: false,
        }
    }

    /// That of a desktop that outlived its host.
    pub fn after_crash(
        epoch: Epoch,
        paused: Option<PauseReason>,
        recovered: Option<HandBack>,
    ) -> Self {
        Self {
            epoch,
            paused,
            recovered,
            adopted: true,
        }
    }
}

/// What a desktop is made of.
pub struct Parts {
    /// Its name.
    pub id: DesktopId,
    /// Its size at first.
    pub size: Size,
    /// Its RFB server.
    pub upstream: Upstream,
    /// The credentials of the full connection.
    pub credentials: Credentials,
    /// What the task works with.
    pub links: Links,
    /// Starts programs on it; none if it is attached to another server.
    pub programs: Option<Programs>,
    /// How control stands.
    pub beginning: Beginning,
    /// False with `--no-observe-guard`.
    pub observe_guard: bool,
    /// Numbers viewers through the whole session.
    pub viewer_numbers: Arc<AtomicU64>,
    /// Where a viewer's socket is.
    pub viewer_socket: Box<dyn Fn(&ViewerName) -> PathBuf + Send + Sync>,
}

/// Connects to the display and starts the desktop's task. `viewers` makes the
/// viewers from what they follow and where they report to.
///
/// # Errors
/// See [`ConnectError`].
pub async fn start(
    parts: Parts,
    viewers: impl FnOnce(watch::Receiver<ControlView>, mpsc::Sender<ViewerEvent>) -> Viewers,
) -> Result<DesktopHandle, ConnectError> {
    let mut input = InputConnection::open(&parts.upstream, parts.credentials).await?;
    if let Some(x11) = &parts.links.x11
        && !matches!(x11.mapping_is_of_rfb().await, Ok(true))
    {
        // Before anybody acts here, and before programs that would see it.
        input.press_first_key().await?;
    }
    if parts.beginning.adopted
        && let Some(x11) = &parts.links.x11
        && let Ok(pointer) = x11.pointer().await
    {
        // Where the pointer is: anywhere else would end a drag there.
        input.release_buttons((pointer.x, pointer.y))?;
    }
    if parts.beginning.recovered.is_some()
        && let Some(x11) = &parts.links.x11
        && let Ok(locks) = x11.locks().await
    {
        // How they were before the takeover is not known: as a display begins.
        input.press_locks(&locks.differing(Locks::default()))?;
    }
    let beginning = parts.beginning;
    let arbiter = Arbiter::new(beginning.epoch, beginning.paused);
    let status = arbiter.status();
    let (commands, command_queue) = mpsc::channel(COMMAND_QUEUE);
    let (events, event_queue) = mpsc::channel(INPUT_QUEUE);
    let (reports, report_queue) = mpsc::unbounded_channel();
    let (view_sender, view) = watch::channel(ControlView {
        control: status.control,
        phase: status.phase,
        pause: status.pause,
        epoch: status.epoch,
        holder: None,
        title: parts.id.to_string(),
        clipboard: None,
    });
    let links = Arc::new(parts.links);
    let actor = Actor {
        id: parts.id.clone(),
        links: links.clone(),
        arbiter,
        input: Some(input),
        clipboard: DisplayClipboard::default(),
        observations: Observations::new(parts.observe_guard, beginning.recovered),
        acting: Acting::default(),
        outside: Default::default(),
        waiting_since: None,
        takeovers: Takeovers::default(),
        flushes: Vec::new(),
        clearing: Default::default(),
        viewers: Default::default(),
        waiting: WaitingInput::default(),
        copied: None,
        copies: 0,
        reports,
        view: view_sender,
    };
    let inbox = Inbox {
        commands: command_queue,
        viewers: event_queue,
        reports: report_queue,
    };
    tokio::spawn(actor.run(inbox, BootTimer::new()?));
    Ok(DesktopHandle(Arc::new(Inner {
        id: parts.id,
        commands,
        viewers: viewers(view.clone(), events),
        view,
        links,
        viewer_numbers: parts.viewer_numbers,
        viewer_socket: parts.viewer_socket,
        programs: parts.programs,
        browser: Default::default(),
        last_size: std::sync::Mutex::new(parts.size),
        arrivals: tokio::sync::Mutex::default(),
    })))
}
