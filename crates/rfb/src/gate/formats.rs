//! Where in the server's stream a new pixel format begins.
//!
//! The server does not say when it changes over. So each change is preceded by a fence with a payload of its own that
//! is to be handled in one step with the next message, the change: what comes before the answer is in the old format,
//! what comes after it in the new one. The answer is not for the viewer.

use std::collections::VecDeque;

use crate::PixelFormat;
use crate::framing::Fence;
use crate::input;

/// How the payloads of the gate's own fences begin.
pub(super) const NONCE_PREFIX: &[u8; 8] = b"handover";

/// Most changes on their way at once.
const LIMIT: usize = 32;

/// A change that the server has been told but has not been seen to make.
#[derive(Debug)]
pub(super) struct Marker {
    /// The format from there on.
    pub(super) format: PixelFormat,
    /// The viewer marked the same change with a fence of its own, which is to be answered then.
    pub(super) for_viewer: Option<Fence>,
}

/// The changes on their way, oldest first.
#[derive(Debug, Default)]
pub(super) struct Formats {
    waiting: VecDeque<Marker>,
    /// Number of the oldest waiting change, counted from the first that there ever was.
    oldest: u64,
}

impl Formats {
    /// Whether the server is known to have made every change.
    pub(super) fn is_settled(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Appends the fence that goes right before the change; `false` if there are too many already.
    pub(super) fn announce(&mut self, marker: Marker, to_server: &mut Vec<u8>) -> bool {
        if self.waiting.len() == LIMIT {
            return false;
        }
        let nonce = nonce(self.oldest + self.waiting.len() as u64);
        input::fence(
            input::FENCE_REQUEST | input::FENCE_SYNC_NEXT,
            &nonce,
            to_server,
        );
        self.waiting.push_back(marker);
        true
    }

    /// The change that this answer marks. An answer that nothing waits for marks none.
    pub(super) fn reached(&mut self, answer: &Fence) -> Option<Marker> {
        if answer.payload != nonce(self.oldest) {
            return None;
        }
        let marker = self.waiting.pop_front()?;
        self.oldest += 1;
        Some(marker)
    }
}

/// The payload of the fence with this number.
fn nonce(number: u64) -> Vec<u8> {
    [*NONCE_PREFIX, number.to_be_bytes()].concat()
}
