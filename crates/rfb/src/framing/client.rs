//! From a viewer: every message comes out whole, since each is either rewritten, kept or answered.

use super::{CUT_TEXT_LIMIT, ENCODINGS_LIMIT, Fence, FramingError, bounded};
use crate::PixelFormat;
use crate::input::{self, InputMessage};

/// A message of a viewer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientMessage {
    /// Pixels shall come in this format.
    SetPixelFormat(PixelFormat),
    /// The encodings that the viewer understands, best first.
    SetEncodings(Vec<i32>),
    /// The viewer wants to see an area.
    UpdateRequest {
        /// Only what changed since it was sent last.
        incremental: bool,
        /// The area in framebuffer pixels: left, top, width, height.
        area: [u16; 4],
    },
    /// A key or the pointer.
    Input(InputMessage),
    /// The clipboard, in Latin-1.
    CutText(Vec<u8>),
    /// A message of the extended clipboard: flags and what follows them.
    ExtendedCutText(Vec<u8>),
    /// A clipboard longer than [`CUT_TEXT_LIMIT`]; it is skipped.
    CutTextTooLong {
        /// Its length in bytes.
        length: u64,
    },
    /// Updates without a request for each.
    ContinuousUpdates {
        /// On or off.
        enable: bool,
        /// The area in framebuffer pixels: left, top, width, height.
        area: [u16; 4],
    },
    /// A fence, or the answer to one.
    Fence(Fence),
    /// The framebuffer shall have another size.
    SetDesktopSize {
        /// Width in pixels.
        width: u16,
        /// Height in pixels.
        height: u16,
    },
    /// Power over the machine (xvp): shut down, reboot or reset.
    Power,
    /// The person at the display shall be locked out (UltraVNC).
    SetServerInput,
}

/// Finds a viewer's messages in pieces of any size. What is buffered is at most one message, besides the piece that
/// was pushed last.
#[derive(Debug, Default)]
pub struct ClientParser {
    buffer: Vec<u8>,
    /// Where in the buffer the next message begins.
    start: usize,
    /// Bytes to come of a clipboard that is skipped.
    skip: u64,
}

impl ClientParser {
    /// A parser for a stream that starts with a message, right after the handshake.
    pub fn new() -> ClientParser {
        ClientParser::default()
    }

    /// Adds what was read. Take all messages with [`ClientParser::next`] before adding more.
    pub fn push(&mut self, input: &[u8]) {
        self.buffer.drain(..self.start);
        self.start = 0;
        let skipped = input
            .len()
            .min(usize::try_from(self.skip).unwrap_or(usize::MAX));
        self.skip -= skipped as u64;
        self.buffer.extend_from_slice(&input[skipped..]);
    }

    /// The next whole message, if it is there.
    ///
    /// # Errors
    /// The message is not allowed or over a limit. Every further call says the same.
    pub fn next_message(&mut self) -> Result<Option<ClientMessage>, FramingError> {
        let bytes = &self.buffer[self.start..];
        match length(bytes)? {
            Some(Length::Whole(length)) => {
                let Some(message) = bytes.get(..length) else {
                    return Ok(None);
                };
                let message = decode(message)?;
                self.start += length;
                Ok(Some(message))
            }
            Some(Length::Skip { head, body }) => {
                let there = (bytes.len() - head).min(usize::try_from(body).unwrap_or(usize::MAX));
                self.start += head + there;
                self.skip = body - there as u64;
                Ok(Some(ClientMessage::CutTextTooLong { length: body }))
            }
            None => Ok(None),
        }
    }

    /// Bytes that are there but not yet a message.
    pub fn left_over(&self) -> usize {
        self.buffer.len() - self.start
    }
}

/// What the front of a message says about its length.
enum Length {
    /// So many bytes in all.
    Whole(usize),
    /// A head that is there, and a body too long to be kept.
    Skip { head: usize, body: u64 },
}

/// The length of the message at the front of `bytes`; `None` if too little of it is there to say.
fn length(bytes: &[u8]) -> Result<Option<Length>, FramingError> {
    let Some(kind) = bytes.first() else {
        return Ok(None);
    };
    let whole = match *kind {
        0 => Some(4 + PixelFormat::WIRE_LEN),
        2 => match u16_at(bytes, 2) {
            Some(count) => {
                let count = bounded("a list of encodings", u64::from(count), ENCODINGS_LIMIT)?;
                Some(4 + 4 * count)
            }
            None => None,
        },
        3 | 150 => Some(10),
        4 => Some(8),
        5 => Some(6),
        6 => match u32_at(bytes, 4).map(u32::cast_signed) {
            Some(-3..0) => return Err(FramingError::TooShort("an extended clipboard message")),
            Some(length) => {
                let length = u64::from(length.unsigned_abs());
                match bounded("a clipboard", length, CUT_TEXT_LIMIT) {
                    Ok(length) => Some(8 + length),
                    Err(_) => {
                        return Ok(Some(Length::Skip {
                            head: 8,
                            body: length,
                        }));
                    }
                }
            }
            None => None,
        },
        9 | 250 => Some(4),
        248 => match bytes.get(8) {
            Some(length) => {
                let limit = input::FENCE_PAYLOAD_LIMIT;
                Some(9 + bounded("a fence", u64::from(*length), limit)?)
            }
            None => None,
        },
        // At most 255 screens of 16 bytes each, so the length needs no other limit.
        251 => bytes.get(6).map(|screens| 8 + 16 * usize::from(*screens)),
        255 => match bytes.get(1) {
            Some(0) => Some(12),
            Some(unknown) => return Err(FramingError::QemuMessage(*unknown)),
            None => None,
        },
        unknown => return Err(FramingError::Message(unknown)),
    };
    Ok(whole.map(Length::Whole))
}

/// Reads a message that is there from its first byte to its last.
fn decode(message: &[u8]) -> Result<ClientMessage, FramingError> {
    let field = |at: usize| u16::from_be_bytes([message[at], message[at + 1]]);
    let area = || [field(2), field(4), field(6), field(8)];
    Ok(match message[0] {
        0 => {
            let mut format = [0; PixelFormat::WIRE_LEN];
            format.copy_from_slice(&message[4..]);
            let bits = format[0];
            ClientMessage::SetPixelFormat(
                PixelFormat::decode(&format).ok_or(FramingError::PixelFormat(bits))?,
            )
        }
        2 => {
            let (encodings, _) = message[4..].as_chunks::<4>();
            ClientMessage::SetEncodings(
                encodings
                    .iter()
                    .map(|encoding| i32::from_be_bytes(*encoding))
                    .collect(),
            )
        }
        3 => ClientMessage::UpdateRequest {
            incremental: message[1] != 0,
            area: area(),
        },
        // A negative length says that it is an extended one.
        6 if message[4] & 0x80 == 0 => ClientMessage::CutText(message[8..].to_vec()),
        6 => ClientMessage::ExtendedCutText(message[8..].to_vec()),
        9 => ClientMessage::SetServerInput,
        150 => ClientMessage::ContinuousUpdates {
            enable: message[1] != 0,
            area: area(),
        },
        248 => ClientMessage::Fence(Fence {
            flags: u32::from_be_bytes([message[4], message[5], message[6], message[7]]),
            payload: message[9..].to_vec(),
        }),
        250 => ClientMessage::Power,
        251 => ClientMessage::SetDesktopSize {
            width: field(2),
            height: field(4),
        },
        kind => match InputMessage::decode(message) {
            Some(event) => ClientMessage::Input(event),
            None => return Err(FramingError::Message(kind)),
        },
    })
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes: [u8; 4] = bytes.get(at..at + 4)?.try_into().ok()?;
    Some(u32::from_be_bytes(bytes))
}
