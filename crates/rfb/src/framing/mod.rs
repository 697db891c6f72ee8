//! Where messages begin and end, in both directions, without decoding pixels.

pub mod client;
pub mod server;

#[cfg(test)]
mod tests;

pub use client::{ClientMessage, ClientParser};
pub use server::{ServerEvent, ServerMessage, ServerParser};

use crate::input;

/// Longest clipboard text accepted in either direction, in bytes on the wire; a longer one is skipped, since its size
/// was decided by the owner of a clipboard and not by the side that sends it.
pub const CUT_TEXT_LIMIT: usize = 1 << 20;
/// Most encodings accepted in one list. The longest list that a known viewer sends has about sixty.
pub const ENCODINGS_LIMIT: usize = 1024;

/// A fence: a request that is answered once what came before it has been handled, or the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fence {
    /// The `FENCE_…` flags of [`crate::input`].
    pub flags: u32,
    /// Up to 64 bytes, which the answer repeats.
    pub payload: Vec<u8>,
}

impl Fence {
    /// Whether it asks for an answer.
    pub fn is_request(&self) -> bool {
        self.flags & input::FENCE_REQUEST != 0
    }

    /// Appends the answer of a side that handles messages strictly one after the other. It does not promise to
    /// handle the next message in one step with the answer, so that flag is missing from it.
    pub fn answer(&self, out: &mut Vec<u8>) {
        let kept = input::FENCE_BLOCK_BEFORE | input::FENCE_BLOCK_AFTER;
        input::fence(self.flags & kept, &self.payload, out);
    }

    /// Appends the fence as it goes over the wire, the same in both directions.
    pub fn encode(&self, out: &mut Vec<u8>) {
        input::fence(self.flags, &self.payload, out);
    }
}

/// Why a stream of messages cannot be followed any further. Where the next message begins is then unknown, so the
/// connection has to be closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FramingError {
    /// A message type that is unknown or never allowed.
    #[error("message type {0} is not allowed")]
    Message(u8),
    /// A submessage of type 255 that is unknown or never allowed.
    #[error("message type 255/{0} is not allowed")]
    QemuMessage(u8),
    /// A rectangle in an encoding that was not negotiated.
    #[error("a rectangle in encoding {0}, which was not negotiated")]
    Encoding(i32),
    /// A tight rectangle compressed in a way that was not negotiated.
    #[error("tight compression {0:#04x}, which was not negotiated")]
    TightCompression(u8),
    /// Pixels of other than 8, 16 or 32 bits.
    #[error("pixels of {0} bits are not supported")]
    PixelFormat(u8),
    /// A part of a message is longer than allowed.
    #[error("{what} of {length} is over the limit of {limit}")]
    TooLong {
        /// Which part.
        what: &'static str,
        /// Its announced length.
        length: u64,
        /// The longest allowed.
        limit: u64,
    },
    /// A part of a message is too short to be valid.
    #[error("{0} is too short")]
    TooShort(&'static str),
}

/// Passes `length` if it is within `limit`.
fn bounded(what: &'static str, length: u64, limit: usize) -> Result<usize, FramingError> {
    match usize::try_from(length) {
        Ok(length) if length <= limit => Ok(length),
        _ => Err(FramingError::TooLong {
            what,
            length,
            limit: limit as u64,
        }),
    }
}
