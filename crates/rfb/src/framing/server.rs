//! From a server: updates pass through by range, control messages come out whole.

mod rectangle;

use std::ops::Range;

pub use rectangle::Rectangle;

use super::{CUT_TEXT_LIMIT, Fence, FramingError, bounded};
use crate::{PixelFormat, input};
use rectangle::{Next, Part};

/// Longest fixed part of a message or rectangle, in bytes.
const HEAD_LIMIT: usize = 12;

/// A message that is not pixels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerMessage {
    /// A fence, or the answer to one of ours.
    Fence(Fence),
    /// The clipboard, in Latin-1.
    CutText(Vec<u8>),
    /// A message of the extended clipboard: flags and what follows them.
    ExtendedCutText(Vec<u8>),
    /// A clipboard longer than [`CUT_TEXT_LIMIT`]; it was skipped.
    CutTextTooLong {
        /// Its length in bytes.
        length: u64,
    },
    /// The bell rang.
    Bell,
    /// The server sends no more updates without a request, or says that it could do so.
    EndOfContinuousUpdates,
}

/// What [`ServerParser::next`] found. Ranges are of the input that it was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerEvent {
    /// Part of the fixed fields of an update or colour map.
    Header(Range<usize>),
    /// The fixed fields of a rectangle are complete; its payload follows.
    Rectangle(Rectangle),
    /// Part of what is in a rectangle or colour map.
    Payload(Range<usize>),
    /// An update is complete.
    End,
    /// A whole message of another kind. None of its bytes are in a `Header` or `Payload`.
    Message(ServerMessage),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Type,
    Update,
    ColourMap,
    Rectangle,
    Part(Part),
    Fence,
    FenceBody { flags: u32 },
    CutText,
    CutTextBody { extended: bool },
    CutTextSkip { length: u64 },
}

/// Finds the boundaries of a server's messages in pieces of any size.
#[derive(Debug)]
pub struct ServerParser {
    format: PixelFormat,
    step: Step,
    /// Gathered bytes of the present step.
    head: Vec<u8>,
    /// Bytes that the present step needs before it can be taken.
    wanted: usize,
    /// Bytes of payload before the present step.
    payload: u64,
    /// Rectangles of the present update that are not complete.
    rectangles: u16,
}

impl ServerParser {
    /// A parser for a stream that starts with a message, right after the handshake.
    pub fn new(format: PixelFormat) -> ServerParser {
        ServerParser {
            format,
            step: Step::Type,
            head: Vec::with_capacity(HEAD_LIMIT),
            wanted: 1,
            payload: 0,
            rectangles: 0,
        }
    }

    /// The pixels of later messages have this format. Call it between messages, where the server changes over.
    pub fn set_format(&mut self, format: PixelFormat) {
        self.format = format;
    }

    /// The pixel format that the parser goes by.
    pub fn format(&self) -> PixelFormat {
        self.format
    }

    /// Whether everything so far was whole messages, so that another one may be put in here.
    pub fn at_boundary(&self) -> bool {
        self.step == Step::Type && self.head.is_empty() && self.payload == 0
    }

    /// Finds the next event in `input` from `at` on and moves `at` behind it; `None` when all is taken.
    ///
    /// # Errors
    /// The stream cannot be followed. Every further call says the same.
    pub fn next_event(
        &mut self,
        input: &[u8],
        at: &mut usize,
    ) -> Result<Option<ServerEvent>, FramingError> {
        loop {
            let start = *at;
            let rest = &input[start..];
            if self.payload > 0 {
                let taken = rest
                    .len()
                    .min(usize::try_from(self.payload).unwrap_or(usize::MAX));
                if taken == 0 {
                    return Ok(None);
                }
                self.payload -= taken as u64;
                *at += taken;
                if matches!(self.step, Step::CutTextSkip { .. }) {
                    continue;
                }
                return Ok(Some(ServerEvent::Payload(start..*at)));
            }
            if self.head.len() < self.wanted {
                let taken = rest.len().min(self.wanted - self.head.len());
                if taken == 0 {
                    return Ok(None);
                }
                self.head.extend_from_slice(&rest[..taken]);
                *at += taken;
                if self.passes_on() {
                    return Ok(Some(ServerEvent::Header(start..*at)));
                }
                continue;
            }
            if let Some(event) = self.step()? {
                return Ok(Some(event));
            }
        }
    }

    /// Whether the bytes of the present step belong to a message that passes through. The type byte decides for
    /// itself, so it is looked at as soon as it is there.
    fn passes_on(&self) -> bool {
        match self.step {
            Step::Type => matches!(self.head[0], 0 | 1),
            Step::Update | Step::ColourMap | Step::Rectangle | Step::Part(_) => true,
            Step::Fence
            | Step::FenceBody { .. }
            | Step::CutText
            | Step::CutTextBody { .. }
            | Step::CutTextSkip { .. } => false,
        }
    }

    /// Takes the present step, whose bytes are all there.
    fn step(&mut self) -> Result<Option<ServerEvent>, FramingError> {
        match self.step {
            Step::Type => match self.head[0] {
                0 => self.go(Step::Update, 3),
                1 => self.go(Step::ColourMap, 5),
                2 => return Ok(Some(self.message(ServerMessage::Bell))),
                3 => self.go(Step::CutText, 7),
                150 => return Ok(Some(self.message(ServerMessage::EndOfContinuousUpdates))),
                248 => self.go(Step::Fence, 8),
                unknown => return Err(FramingError::Message(unknown)),
            },
            Step::Update => {
                self.rectangles = u16::from_be_bytes([self.head[1], self.head[2]]);
                return Ok(self.next_rectangle());
            }
            Step::ColourMap => {
                // Three values of two bytes for each colour, and then the next message.
                let colours = u16::from_be_bytes([self.head[3], self.head[4]]);
                self.go(Step::Type, 1);
                self.payload = u64::from(colours) * 6;
            }
            Step::Rectangle => {
                let rectangle = Rectangle::decode(&self.head);
                let next = rectangle.begin(&self.format)?;
                if next == Next::LastRectangle {
                    self.rectangles = 0;
                    return Ok(self.next_rectangle());
                }
                self.follow(next);
                return Ok(Some(ServerEvent::Rectangle(rectangle)));
            }
            Step::Part(Part::End) => return Ok(self.next_rectangle()),
            Step::Part(part) => {
                let next = part.read(&self.head, &self.format)?;
                self.follow(next);
            }
            Step::Fence => {
                let flags = self.head_u32(3);
                let length = bounded(
                    "a fence",
                    u64::from(self.head[7]),
                    input::FENCE_PAYLOAD_LIMIT,
                )?;
                self.go(Step::FenceBody { flags }, length);
            }
            Step::FenceBody { flags } => {
                let payload = std::mem::take(&mut self.head);
                return Ok(Some(
                    self.message(ServerMessage::Fence(Fence { flags, payload })),
                ));
            }
            Step::CutText => {
                let length = self.head_u32(3).cast_signed();
                let (extended, length) = (length < 0, length.unsigned_abs());
                match bounded("a clipboard", u64::from(length), CUT_TEXT_LIMIT) {
                    Ok(length) => self.go(Step::CutTextBody { extended }, length),
                    // The owner of a clipboard decides its size, not the server: no reason to lose the connection.
                    Err(_) => {
                        let length = u64::from(length);
                        self.go(Step::CutTextSkip { length }, 0);
                        self.payload = length;
                    }
                }
            }
            Step::CutTextBody { extended } => {
                let text = std::mem::take(&mut self.head);
                return Ok(Some(self.message(if extended {
                    ServerMessage::ExtendedCutText(text)
                } else {
                    ServerMessage::CutText(text)
                })));
            }
            Step::CutTextSkip { length } => {
                return Ok(Some(self.message(ServerMessage::CutTextTooLong { length })));
            }
        }
        Ok(None)
    }

    fn go(&mut self, step: Step, wanted: usize) {
        self.head.clear();
        self.step = step;
        self.wanted = wanted;
    }

    fn message(&mut self, message: ServerMessage) -> ServerEvent {
        self.go(Step::Type, 1);
        ServerEvent::Message(message)
    }

    fn head_u32(&self, at: usize) -> u32 {
        u32::from_be_bytes([
            self.head[at],
            self.head[at + 1],
            self.head[at + 2],
            self.head[at + 3],
        ])
    }

    /// Goes on to the next rectangle of the update, or ends it.
    fn next_rectangle(&mut self) -> Option<ServerEvent> {
        match self.rectangles.checked_sub(1) {
            Some(left) => {
                self.rectangles = left;
                self.go(Step::Rectangle, HEAD_LIMIT);
                None
            }
            None => {
                self.go(Step::Type, 1);
                Some(ServerEvent::End)
            }
        }
    }

    fn follow(&mut self, next: Next) {
        match next {
            Next::Payload(length, then) => {
                self.go(Step::Part(then), then.wanted());
                self.payload = length;
            }
            Next::Part(part) => self.go(Step::Part(part), part.wanted()),
            Next::LastRectangle => {}
        }
    }
}
