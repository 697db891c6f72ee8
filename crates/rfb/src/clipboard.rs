//! Clipboard text: the extended clipboard (pseudo-encoding `0xC0A1E5CE`) and classic cut text.
//!
//! With the extended clipboard each side says what it *has* (notify) and hands it over only when
//! asked (request, provide), compressed and in UTF-8. Both directions carry the same body behind
//! the head of a cut text message, marked by a negative length. Only text is understood here;
//! other formats are ignored.

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

/// The pseudo-encoding by which a client asks for the extended clipboard.
pub const EXTENDED_CLIPBOARD: i32 = 0xc0a1_e5ce_u32 as i32;
/// Most bytes of text, as UTF-8 with the wire's line ends, that are handed over in one message.
pub const TEXT_LIMIT: usize = 1 << 20;
/// Message type of a server's cut text.
pub const SERVER_CUT_TEXT: u8 = 3;
/// Message type of a client's cut text.
pub const CLIENT_CUT_TEXT: u8 = 6;

const FORMATS: u32 = 0xffff;
const TEXT: u32 = 1;
const CAPS: u32 = 1 << 24;
const REQUEST: u32 = 1 << 25;
const PEEK: u32 = 1 << 26;
const NOTIFY: u32 = 1 << 27;
const PROVIDE: u32 = 1 << 28;
const ACTIONS: u32 = 0xff << 24;

/// Which side sends a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// A viewer, or the host towards a display.
    Client,
    /// A display, or the gate towards a viewer.
    Server,
}

/// What the other side can do, as it announces it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Whether it understands text.
    pub text: bool,
    /// Most bytes of text that it wants provided without a request; 0 for none.
    pub unasked_text_limit: u32,
    /// Whether it answers requests.
    pub request: bool,
    /// Whether it answers peeks.
    pub peek: bool,
    /// Whether it understands notifications.
    pub notify: bool,
    /// Whether it takes what is provided.
    pub provide: bool,
}

impl Capabilities {
    /// What this program can do: everything, for text, and nothing unasked.
    pub const OURS: Self = Self {
        text: true,
        unasked_text_limit: 0,
        request: true,
        peek: true,
        notify: true,
        provide: true,
    };
}

/// One message of the extended clipboard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClipboardMessage {
    /// The sender says what it can do.
    Caps(Capabilities),
    /// The sender wants the text (if `text`) that the other side said it has.
    Request {
        /// Whether text is among the wanted formats.
        text: bool,
    },
    /// The sender wants to be notified of what the other side has.
    Peek,
    /// The sender says whether it has text; if not, its clipboard counts as empty.
    Notify {
        /// Whether text is among the formats that it has.
        text: bool,
    },
    /// The sender hands over its text, with `\n` line ends here; `None` if it provides only
    /// formats that are not understood.
    Provide(Option<String>),
}

/// Why a body is no message of the extended clipboard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClipboardError {
    /// It is shorter than its own flags require.
    #[error("extended clipboard message is cut short")]
    Truncated,
    /// Its flags name no action, or several at once.
    #[error("extended clipboard message has flags {0:#010x}, which name no single action")]
    Action(u32),
    /// Its text is over [`TEXT_LIMIT`].
    #[error("clipboard text of {0} bytes is over the limit of {TEXT_LIMIT}")]
    TooLarge(u64),
    /// What it provides cannot be decompressed.
    #[error("clipboard text cannot be decompressed")]
    Compression,
}

impl ClipboardMessage {
    /// Reads the body of an extended message: what follows the negative length, which says how
    /// long it is.
    ///
    /// # Errors
    /// A [`ClipboardError`]; whatever the body holds, no more than [`TEXT_LIMIT`] bytes are
    /// inflated.
    pub fn decode(body: &[u8]) -> Result<Self, ClipboardError> {
        let (flags, rest) = body.split_first_chunk().ok_or(ClipboardError::Truncated)?;
        let flags = u32::from_be_bytes(*flags);
        let text = flags & TEXT != 0;
        if flags & CAPS != 0 {
            return Self::decode_caps(flags, rest);
        }
        match flags & ACTIONS {
            REQUEST => Ok(Self::Request { text }),
            PEEK => Ok(Self::Peek),
            NOTIFY => Ok(Self::Notify { text }),
            PROVIDE if text => Ok(Self::Provide(Some(inflate_text(rest)?))),
            PROVIDE => Ok(Self::Provide(None)),
            _ => Err(ClipboardError::Action(flags)),
        }
    }

    fn decode_caps(flags: u32, sizes: &[u8]) -> Result<Self, ClipboardError> {
        // One size for each format, in the order of their bits; text is the first.
        let (sizes, _) = sizes.as_chunks::<4>();
        if sizes.len() < (flags & FORMATS).count_ones() as usize {
            return Err(ClipboardError::Truncated);
        }
        let text = flags & TEXT != 0;
        Ok(Self::Caps(Capabilities {
            text,
            unasked_text_limit: match sizes.first() {
                Some(size) if text => u32::from_be_bytes(*size),
                _ => 0,
            },
            request: flags & REQUEST != 0,
            peek: flags & PEEK != 0,
            notify: flags & NOTIFY != 0,
            provide: flags & PROVIDE != 0,
        }))
    }

    /// Appends the whole cut text message that carries this.
    ///
    /// # Errors
    /// [`ClipboardError::TooLarge`] for text that [`wire_length`] puts over [`TEXT_LIMIT`];
    /// nothing is appended then.
    pub fn encode(&self, sender: Sender, out: &mut Vec<u8>) -> Result<(), ClipboardError> {
        let formats = |text: bool| if text { TEXT } else { 0 };
        let (flags, data) = match self {
            Self::Caps(caps) => {
                let size = caps.unasked_text_limit.to_be_bytes();
                let action = |has: bool, bit: u32| if has { bit } else { 0 };
                let flags = CAPS
                    | formats(caps.text)
                    | action(caps.request, REQUEST)
                    | action(caps.peek, PEEK)
                    | action(caps.notify, NOTIFY)
                    | action(caps.provide, PROVIDE);
                let size = if caps.text { size.to_vec() } else { Vec::new() };
                (flags, size)
            }
            Self::Request { text } => (REQUEST | formats(*text), Vec::new()),
            Self::Peek => (PEEK, Vec::new()),
            Self::Notify { text } => (NOTIFY | formats(*text), Vec::new()),
            Self::Provide(None) => (PROVIDE, deflate(&[])),
            Self::Provide(Some(text)) => {
                let plain = wire_text(text);
                if plain.len() > TEXT_LIMIT {
                    return Err(ClipboardError::TooLarge(plain.len() as u64));
                }
                let mut part = (plain.len() as u32).to_be_bytes().to_vec();
                part.extend(plain);
                (PROVIDE | TEXT, deflate(&part))
            }
        };
        // Deflated text is hardly longer than the text, which is far below 2 GiB.
        let length = -(4 + data.len() as i32);
        out.extend([message_type(sender), 0, 0, 0]);
        out.extend(length.to_be_bytes());
        out.extend(flags.to_be_bytes());
        out.extend(data);
        Ok(())
    }
}

fn message_type(sender: Sender) -> u8 {
    match sender {
        Sender::Client => CLIENT_CUT_TEXT,
        Sender::Server => SERVER_CUT_TEXT,
    }
}

/// Bytes that `text` takes when it is provided: UTF-8 with `\r\n` line ends and a final zero.
#[must_use]
pub fn wire_length(text: &str) -> usize {
    wire_text(text).len()
}

/// The text of a classic cut text message, which is Latin-1, with `\n` line ends.
#[must_use]
pub fn classic_text(latin1: &[u8]) -> String {
    unix_lines(
        &latin1
            .iter()
            .map(|&byte| char::from(byte))
            .collect::<String>(),
    )
}

/// Every line end, of whatever system, as `\n`.
fn unix_lines(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

fn wire_text(text: &str) -> Vec<u8> {
    // A zero ends the text on the wire, so what follows one in the text could not be seen.
    let text = text.split('\0').next().unwrap_or_default();
    let mut plain = unix_lines(text).replace('\n', "\r\n").into_bytes();
    plain.push(0);
    plain
}

fn deflate(plain: &[u8]) -> Vec<u8> {
    let mut compress = Compress::new(Compression::fast(), true);
    let mut out = Vec::with_capacity(plain.len() / 2 + 64);
    loop {
        let taken = compress.total_in() as usize;
        match compress.compress_vec(&plain[taken..], &mut out, FlushCompress::Finish) {
            Ok(Status::Ok | Status::BufError) => out.reserve(out.len().max(1024)),
            // Compression in memory only ever fails for want of room.
            Ok(Status::StreamEnd) | Err(_) => return out,
        }
    }
}

/// The first part of a provided stream, which is the text.
fn inflate_text(stream: &[u8]) -> Result<String, ClipboardError> {
    let mut inflate = Inflate {
        decompress: Decompress::new(true),
        stream,
    };
    let mut size = [0; 4];
    inflate.fill(&mut size)?;
    let size = u32::from_be_bytes(size);
    if size as usize > TEXT_LIMIT {
        return Err(ClipboardError::TooLarge(size.into()));
    }
    let mut plain = vec![0; size as usize];
    inflate.fill(&mut plain)?;
    let text = String::from_utf8_lossy(&plain);
    Ok(unix_lines(text.split('\0').next().unwrap_or_default()))
}

/// Reads exactly as much as is asked for, so a bomb costs no more than an honest text.
struct Inflate<'a> {
    decompress: Decompress,
    stream: &'a [u8],
}

impl Inflate<'_> {
    fn fill(&mut self, out: &mut [u8]) -> Result<(), ClipboardError> {
        let start = self.decompress.total_out();
        loop {
            let written = (self.decompress.total_out() - start) as usize;
            if written == out.len() {
                return Ok(());
            }
            let read = self.decompress.total_in() as usize;
            let before = (read, written);
            // Peers may leave the stream open at its end, so it is not asked to finish.
            self.decompress
                .decompress(
                    &self.stream[read..],
                    &mut out[written..],
                    FlushDecompress::None,
                )
                .map_err(|_| ClipboardError::Compression)?;
            let written = (self.decompress.total_out() - start) as usize;
            if before == (self.decompress.total_in() as usize, written) {
                return Err(ClipboardError::Truncated);
            }
        }
    }
}

#[cfg(test)]
mod tests;
