//! Pixels: what a client that asks for raw encoding only makes of a server's messages.
//!
//! A [`FrameDecoder`] is given the bytes that follow the handshake and keeps the framebuffer.
//! It belongs to a client that has set [`PixelFormat::BGRX`] before its first request and
//! advertised no more than [`ENCODINGS`].
//!
//! [`PixelFormat::BGRX`]: crate::PixelFormat::BGRX

use std::fmt;

use crate::encodings::{DESKTOP_SIZE, RAW};

/// What a client of this decoder advertises: raw pixels and changes of size, without which a
/// server would close its connection at a resize. The extended form of the latter would make
/// Xvnc answer each request for a whole frame with the layout of its screens first.
pub const ENCODINGS: [i32; 2] = [RAW, DESKTOP_SIZE];
/// Most pixels of a framebuffer; at four bytes each they take 256 MiB.
pub const PIXEL_LIMIT: usize = 1 << 26;

/// Bytes of a pixel in [`PixelFormat::BGRX`](crate::PixelFormat::BGRX).
const PIXEL: usize = 4;

/// Why a server's bytes cannot be followed. The connection is of no further use then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// A message that nobody asked for.
    #[error("the server sent a message of unknown type {0}")]
    Message(u8),
    /// Pixels in an encoding that was not advertised.
    #[error("the server used encoding {0}, which was not advertised")]
    Encoding(i32),
    /// A rectangle that reaches out of the framebuffer.
    #[error("the server sent a rectangle of {width}x{height} at {x},{y}, outside the framebuffer")]
    OutOfBounds {
        /// Left edge in pixels.
        x: u16,
        /// Top edge in pixels.
        y: u16,
        /// Width in pixels.
        width: u16,
        /// Height in pixels.
        height: u16,
    },
    /// A framebuffer of more than [`PIXEL_LIMIT`] pixels, or of none.
    #[error("a framebuffer of {width}x{height} pixels cannot be handled")]
    Size {
        /// Width in pixels.
        width: u16,
        /// Height in pixels.
        height: u16,
    },
}

/// A picture of a desktop.
#[derive(Clone, PartialEq, Eq)]
pub struct Frame {
    /// Width in pixels.
    pub width: u16,
    /// Height in pixels.
    pub height: u16,
    /// Red, green and blue of each pixel, row by row from the top left.
    pub rgb: Vec<u8>,
}

impl fmt::Debug for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Frame({}x{})", self.width, self.height)
    }
}

impl Frame {
    /// Whether every pixel is black, as in a picture of a display that shows nothing.
    #[must_use]
    pub fn is_black(&self) -> bool {
        self.rgb.iter().all(|&byte| byte == 0)
    }
}

/// Follows a server's messages and keeps its framebuffer.
pub struct FrameDecoder {
    width: u16,
    height: u16,
    bgrx: Vec<u8>,
    /// Which pixels were sent since the last call of [`begin`](Self::begin), one byte a pixel.
    seen: Vec<bool>,
    state: State,
    /// The part of a head that has arrived.
    head: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Between messages.
    Message,
    /// Before the head of one of `left` rectangles.
    Rectangle { left: u16 },
    /// Inside the pixels of a rectangle; `at` counts the bytes that have arrived.
    Pixels { area: Area, at: usize, left: u16 },
    /// Inside the rest of a message without interest.
    Skip { bytes: u64 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Area {
    x: usize,
    y: usize,
    width: usize,
    height: usize,
}

impl FrameDecoder {
    /// A decoder for a framebuffer of the size that the handshake announced, in pixels.
    ///
    /// # Errors
    /// [`FrameError::Size`].
    pub fn new(width: u16, height: u16) -> Result<Self, FrameError> {
        let mut decoder = Self {
            width: 0,
            height: 0,
            bgrx: Vec::new(),
            seen: Vec::new(),
            state: State::Message,
            head: Vec::new(),
        };
        decoder.resize(width, height)?;
        Ok(decoder)
    }

    /// Width and height in pixels.
    #[must_use]
    pub fn size(&self) -> (u16, u16) {
        (self.width, self.height)
    }

    /// Counts pixels afresh; a request for the whole frame follows.
    pub fn begin(&mut self) {
        self.seen.fill(false);
    }

    /// Whether every pixel has arrived since [`begin`](Self::begin). A change of size in between
    /// leaves the frame incomplete, and another request must be sent.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.seen.iter().all(|&seen| seen)
    }

    /// The framebuffer as it is.
    #[must_use]
    pub fn frame(&self) -> Frame {
        Frame {
            width: self.width,
            height: self.height,
            rgb: rgb(&self.bgrx),
        }
    }

    /// Takes bytes from the front of `input`: up to the end of an update, and then `true`, or all
    /// of them, and then `false`.
    ///
    /// # Errors
    /// A [`FrameError`], after which the decoder must not be used again.
    pub fn feed(&mut self, input: &mut &[u8]) -> Result<bool, FrameError> {
        loop {
            if self.state == (State::Rectangle { left: 0 }) {
                self.state = State::Message;
                return Ok(true);
            }
            if input.is_empty() {
                return Ok(false);
            }
            self.state = self.step(input)?;
        }
    }

    /// Takes at least one byte of `input`, which is not empty.
    fn step(&mut self, input: &mut &[u8]) -> Result<State, FrameError> {
        let state = self.state;
        let need = match state {
            State::Message => self.message_head(input),
            State::Rectangle { .. } => 12,
            State::Pixels { area, at, left } => return Ok(self.pixels(input, area, at, left)),
            State::Skip { bytes } => return Ok(skip(input, bytes)),
        };
        let missing = need - self.head.len();
        self.head.extend(take(input, missing));
        if self.head.len() < need {
            return Ok(state);
        }
        let head = std::mem::take(&mut self.head);
        match state {
            State::Rectangle { left } => self.rectangle(&head, left - 1),
            _ => message(&head),
        }
    }

    /// Length of the head of the message whose first byte has arrived or is next.
    fn message_head(&self, input: &[u8]) -> usize {
        match self.head.first().or(input.first()) {
            Some(0) => 4,
            Some(1) => 6,
            Some(3) => 8,
            Some(248) => 9,
            _ => 1,
        }
    }

    fn rectangle(&mut self, head: &[u8], left: u16) -> Result<State, FrameError> {
        let [x, y, width, height] = [0, 2, 4, 6].map(|at| u16_at(head, at));
        match u32_at(head, 8) as i32 {
            RAW => {
                let fits = |start: u16, length: u16, end: u16| {
                    u32::from(start) + u32::from(length) <= u32::from(end)
                };
                if !fits(x, width, self.width) || !fits(y, height, self.height) {
                    return Err(FrameError::OutOfBounds {
                        x,
                        y,
                        width,
                        height,
                    });
                }
                let area = Area {
                    x: x.into(),
                    y: y.into(),
                    width: width.into(),
                    height: height.into(),
                };
                Ok(State::Pixels { area, at: 0, left })
            }
            DESKTOP_SIZE => {
                self.resize(width, height)?;
                Ok(State::Rectangle { left })
            }
            encoding => Err(FrameError::Encoding(encoding)),
        }
    }

    fn pixels(&mut self, input: &mut &[u8], area: Area, mut at: usize, left: u16) -> State {
        let row = area.width * PIXEL;
        let total = row * area.height;
        while at < total && !input.is_empty() {
            let (line, column) = (at / row, at % row);
            let part = take(input, row - column);
            let start = ((area.y + line) * usize::from(self.width) + area.x) * PIXEL + column;
            self.bgrx[start..start + part.len()].copy_from_slice(part);
            at += part.len();
            if column + part.len() == row {
                let start = (area.y + line) * usize::from(self.width) + area.x;
                self.seen[start..start + area.width].fill(true);
            }
        }
        if at < total {
            State::Pixels { area, at, left }
        } else {
            State::Rectangle { left }
        }
    }

    fn resize(&mut self, width: u16, height: u16) -> Result<(), FrameError> {
        let pixels = usize::from(width) * usize::from(height);
        if pixels == 0 || pixels > PIXEL_LIMIT {
            return Err(FrameError::Size { width, height });
        }
        // Servers also announce their layout without any change.
        if (width, height) != (self.width, self.height) {
            (self.width, self.height) = (width, height);
            self.bgrx = vec![0; pixels * PIXEL];
            self.seen = vec![false; pixels];
        }
        Ok(())
    }
}

/// What follows the head of a message.
fn message(head: &[u8]) -> Result<State, FrameError> {
    let skip = |bytes: u64| State::Skip { bytes };
    match head[0] {
        0 => Ok(State::Rectangle {
            left: u16_at(head, 2),
        }),
        1 => Ok(skip(6 * u64::from(u16_at(head, 4)))),
        // A bell, and the end of continuous updates.
        2 | 150 => Ok(State::Message),
        // A negative length marks an extended clipboard message of that many bytes.
        3 => Ok(skip((u32_at(head, 4) as i32).unsigned_abs().into())),
        248 => Ok(skip(head[8].into())),
        other => Err(FrameError::Message(other)),
    }
}

fn skip(input: &mut &[u8], bytes: u64) -> State {
    let most = usize::try_from(bytes).unwrap_or(usize::MAX);
    match bytes - take(input, most).len() as u64 {
        0 => State::Message,
        bytes => State::Skip { bytes },
    }
}

/// Takes up to `most` bytes from the front of `input`.
fn take<'a>(input: &mut &'a [u8], most: usize) -> &'a [u8] {
    let (taken, rest) = input.split_at(most.min(input.len()));
    *input = rest;
    taken
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Drops each pixel's fourth byte and turns the others round. Four pixels at a time, in a form
/// that the compiler turns into byte shuffles.
fn rgb(bgrx: &[u8]) -> Vec<u8> {
    let mut rgb = vec![0; bgrx.len() / PIXEL * 3];
    let (wide, narrow) = bgrx.as_chunks::<16>();
    let (wide_to, narrow_to) = rgb.as_chunks_mut::<12>();
    for (to, p) in wide_to.iter_mut().zip(wide) {
        *to = [
            p[2], p[1], p[0], p[6], p[5], p[4], p[10], p[9], p[8], p[14], p[13], p[12],
        ];
    }
    for (to, pixel) in narrow_to
        .as_chunks_mut::<3>()
        .0
        .iter_mut()
        .zip(narrow.as_chunks::<4>().0)
    {
        *to = [pixel[2], pixel[1], pixel[0]];
    }
    rgb
}

#[cfg(test)]
mod tests;
