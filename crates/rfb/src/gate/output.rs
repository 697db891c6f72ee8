//! What comes out of a gate.

use std::ops::Range;

use crate::framing::FramingError;
use crate::input::InputMessage;

/// What a gate wants done. The host empties it after each call.
#[derive(Debug, Default)]
pub struct GateOutput {
    /// To be written to the viewer, in order.
    pub to_viewer: Vec<Segment>,
    /// To be written to the server.
    pub to_server: Vec<u8>,
    /// What the holder did, in order.
    pub input: Vec<ViewerInput>,
    /// The viewer must be closed, after `to_viewer` if that can be written at once. Nothing else comes out any more.
    pub close: Option<CloseReason>,
}

impl GateOutput {
    /// Forgets everything and keeps the memory.
    pub fn clear(&mut self) {
        self.to_viewer.clear();
        self.to_server.clear();
        self.input.clear();
        self.close = None;
    }

    /// Lets a range of the server's input through, joined to the one before it where they touch.
    pub(super) fn pass(&mut self, range: Range<usize>) {
        if let Some(Segment::Input(last)) = self.to_viewer.last_mut()
            && last.end == range.start
        {
            last.end = range.end;
        } else {
            self.to_viewer.push(Segment::Input(range));
        }
    }
}

/// A piece of what a viewer is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Segment {
    /// This range of the server's input, unchanged.
    Input(Range<usize>),
    /// Messages of the gate's own.
    Owned(Vec<u8>),
}

impl Segment {
    /// The bytes of the segment, given the input that it may refer to.
    pub fn bytes<'a>(&'a self, input: &'a [u8]) -> &'a [u8] {
        match self {
            Segment::Input(range) => &input[range.clone()],
            Segment::Owned(bytes) => bytes,
        }
    }
}

/// What a holder did in a viewer. It holds what a person typed, so it is never logged.
#[derive(Clone, PartialEq, Eq)]
pub enum ViewerInput {
    /// A key or the pointer.
    Input(InputMessage),
    /// The clipboard was set, with `\n` line ends.
    Clipboard(String),
}

impl std::fmt::Debug for ViewerInput {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            ViewerInput::Input(_) => "Input(..)",
            ViewerInput::Clipboard(_) => "Clipboard(..)",
        })
    }
}

/// Why a gate gave up on its viewer. Nobody else is harmed by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CloseReason {
    /// The viewer sent what is not allowed.
    #[error("the viewer sent what is not allowed: {0}")]
    Viewer(FramingError),
    /// The server sent what cannot be followed.
    #[error("the display server sent what cannot be followed: {0}")]
    Server(FramingError),
    /// The viewer sent a fence that looks like one of the gate's.
    #[error("the viewer sent a fence with a payload that is reserved")]
    ReservedFence,
    /// The viewer changed its pixel format again and again without reading.
    #[error("the viewer changed its pixel format too often at once")]
    TooManyFormats,
    /// The viewer changed its pixel format while an update was on its way from a server that has no fences.
    #[error(
        "the viewer changed its pixel format in mid-update, which this display server cannot do"
    )]
    FormatInFlight,
    /// The viewer asked for more answers than can wait for the end of an update.
    #[error("too much waits for the viewer")]
    Backlog,
}
