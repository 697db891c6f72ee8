//! What passes between a desktop's task and its viewers.
//!
//! The desktop publishes who has control; every viewer follows that on its open
//! connection, so that taking and returning control touches no connection. A
//! viewer sends its input back; the desktop decides again at the instant of the
//! write, whatever the viewer believed.

use std::sync::Arc;

use handover_control::{Control, Epoch, PauseReason, Phase, ViewerId};
use handover_rfb::input::InputMessage;

/// Input that may wait for the desktop's task, for all viewers together. A
/// viewer whose input does not fit waits, and with it its own client.
pub const INPUT_QUEUE: usize = 256;

/// Who has control of a desktop, as its viewers see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControlView {
    /// Who may act.
    pub control: Control,
    /// What is under way.
    pub phase: Phase,
    /// Why nobody may act, if it is paused.
    pub pause: Option<PauseReason>,
    /// The fencing number.
    pub epoch: Epoch,
    /// The viewer whose input is live, if one is.
    pub holder: Option<ViewerId>,
    /// What viewers show as the desktop's name.
    pub title: String,
    /// What an application copied while this holder has control.
    pub clipboard: Option<Copied>,
}

/// Text that an application copied, for the holder's viewer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copied {
    /// Grows with every text, so that the same text copied twice is offered
    /// twice.
    pub serial: u64,
    /// The text.
    pub text: Arc<str>,
}

/// What a viewer sends to its desktop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewerEvent {
    /// The viewer.
    pub viewer: ViewerId,
    /// The epoch that the viewer went by. Input from an earlier takeover that
    /// waited somewhere is recognised by it and dropped.
    pub epoch: Epoch,
    /// What it sends.
    pub kind: ViewerEventKind,
}

/// The kinds of what a viewer sends.
#[derive(Clone, PartialEq, Eq)]
pub enum ViewerEventKind {
    /// A client has connected to the viewer's socket and shaken hands. Comes
    /// once, before any input.
    Connected,
    /// The viewer is over: its client has left or was closed, or its socket
    /// expired unused. Comes once, as the last of this viewer.
    Gone,
    /// A key or pointer event.
    Input(InputMessage),
    /// The text that the person copied on their side.
    Clipboard(String),
}

impl std::fmt::Debug for ViewerEventKind {
    /// Says nothing of what a person types or copies.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Connected => "Connected",
            Self::Gone => "Gone",
            Self::Input(_) => "Input(..)",
            Self::Clipboard(_) => "Clipboard(..)",
        })
    }
}
