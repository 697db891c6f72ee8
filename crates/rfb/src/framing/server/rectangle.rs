//! How long a rectangle of an update is, by its encoding.

use crate::framing::FramingError;
use crate::{PixelFormat, encodings};

/// Below this many bytes tight data is sent as it is, without compression and length.
const TIGHT_UNCOMPRESSED: u64 = 12;

/// The fixed fields of a rectangle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rectangle {
    /// Left edge in framebuffer pixels; for some pseudo-encodings something else.
    pub x: u16,
    /// Upper edge in framebuffer pixels; for some pseudo-encodings something else.
    pub y: u16,
    /// Width in pixels.
    pub width: u16,
    /// Height in pixels.
    pub height: u16,
    /// One of the numbers in [`crate::encodings`].
    pub encoding: i32,
}

/// What has to be read to know how a rectangle goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// The rectangle is complete.
    End,
    /// A length of four bytes, then as many bytes.
    Length,
    /// The encoding inside a cursor with transparency.
    AlphaEncoding { pixels: u64 },
    /// The kind of a VMware cursor.
    VmwareCursor {
        /// Pixels of the cursor.
        pixels: u64,
    },
    /// The number of screens.
    Screens,
    /// Tight: how it is compressed.
    Tight(Area),
    /// Tight: which filter comes before the compression.
    TightFilter(Area),
    /// Tight: how many colours the palette has.
    TightPalette(Area),
    /// Tight: a length in up to three bytes, of which `bytes` are read and give `value`.
    TightLength { value: u64, bytes: u8 },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Area {
    width: u64,
    height: u64,
}

/// How a rectangle goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// So many bytes without meaning for the framing, then a part.
    Payload(u64, Part),
    /// A part.
    Part(Part),
    /// It was the mark that ends an update early.
    LastRectangle,
}

impl Area {
    fn pixels(self) -> u64 {
        self.width * self.height
    }

    /// Bytes of a mask of one bit for each pixel, every row padded to whole bytes.
    fn mask(self) -> u64 {
        self.width.div_ceil(8) * self.height
    }
}

impl Rectangle {
    /// Reads the fixed fields, which are twelve bytes.
    pub(super) fn decode(head: &[u8]) -> Rectangle {
        let field = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
        Rectangle {
            x: field(0),
            y: field(2),
            width: field(4),
            height: field(6),
            encoding: i32::from_be_bytes([head[8], head[9], head[10], head[11]]),
        }
    }

    /// How it goes on after the fixed fields.
    pub(super) fn begin(&self, format: &PixelFormat) -> Result<Next, FramingError> {
        let area = Area {
            width: u64::from(self.width),
            height: u64::from(self.height),
        };
        let payload = |length| Ok(Next::Payload(length, Part::End));
        match self.encoding {
            encodings::RAW => payload(area.pixels() * format.bytes_per_pixel()),
            encodings::COPY_RECT => payload(4),
            encodings::ZRLE | encodings::DESKTOP_NAME => Ok(Next::Part(Part::Length)),
            encodings::TIGHT => Ok(Next::Part(Part::Tight(area))),
            encodings::CURSOR => payload(area.pixels() * format.bytes_per_pixel() + area.mask()),
            encodings::X_CURSOR if area.pixels() == 0 => payload(0),
            // Two colours of three bytes, the shape, the mask.
            encodings::X_CURSOR => payload(6 + 2 * area.mask()),
            encodings::CURSOR_WITH_ALPHA => Ok(Next::Part(Part::AlphaEncoding {
                pixels: area.pixels(),
            })),
            encodings::VMWARE_CURSOR => Ok(Next::Part(Part::VmwareCursor {
                pixels: area.pixels(),
            })),
            encodings::EXTENDED_DESKTOP_SIZE => Ok(Next::Part(Part::Screens)),
            encodings::LED_STATE => payload(1),
            encodings::DESKTOP_SIZE | encodings::QEMU_KEYS => payload(0),
            encodings::LAST_RECT => Ok(Next::LastRectangle),
            unknown => Err(FramingError::Encoding(unknown)),
        }
    }
}

impl Part {
    /// Bytes that it takes.
    pub(super) fn wanted(self) -> usize {
        match self {
            Part::End => 0,
            Part::Length | Part::AlphaEncoding { .. } | Part::Screens => 4,
            Part::VmwareCursor { .. } => 2,
            Part::Tight(_)
            | Part::TightFilter(_)
            | Part::TightPalette(_)
            | Part::TightLength { .. } => 1,
        }
    }

    /// How the rectangle goes on, given the bytes of this part.
    pub(super) fn read(self, head: &[u8], format: &PixelFormat) -> Result<Next, FramingError> {
        match self {
            Part::End => Ok(Next::Part(Part::End)),
            Part::Length => Ok(Next::Payload(u64::from(u32_of(head)), Part::End)),
            Part::AlphaEncoding { pixels } => match u32_of(head).cast_signed() {
                // Always four bytes a pixel, whatever the pixel format.
                encodings::RAW => Ok(Next::Payload(pixels * 4, Part::End)),
                unknown => Err(FramingError::Encoding(unknown)),
            },
            Part::VmwareCursor { pixels } => match head[0] {
                // A mask to keep and a mask to flip, each a whole picture.
                0 => Ok(Next::Payload(
                    pixels * format.bytes_per_pixel() * 2,
                    Part::End,
                )),
                1 => Ok(Next::Payload(pixels * 4, Part::End)),
                _ => Err(FramingError::Encoding(encodings::VMWARE_CURSOR)),
            },
            Part::Screens => Ok(Next::Payload(u64::from(head[0]) * 16, Part::End)),
            Part::Tight(area) => tight(head[0], area, format),
            Part::TightFilter(area) => match head[0] {
                0 | 2 => Ok(tight_data(area.pixels() * format.tight_pixel_bytes())),
                1 => Ok(Next::Part(Part::TightPalette(area))),
                unknown => Err(FramingError::TightCompression(unknown)),
            },
            Part::TightPalette(area) => {
                let colours = u64::from(head[0]) + 1;
                let data = if colours == 2 {
                    area.mask()
                } else {
                    area.pixels()
                };
                Ok(tight_data(data).after(colours * format.tight_pixel_bytes()))
            }
            Part::TightLength { value, bytes } => {
                // Seven bits in each of the first two bytes, eight in the third.
                let more = bytes < 2 && head[0] & 0x80 != 0;
                let bits = if bytes < 2 { head[0] & 0x7f } else { head[0] };
                let value = value | u64::from(bits) << (7 * bytes);
                Ok(if more {
                    Next::Part(Part::TightLength {
                        value,
                        bytes: bytes + 1,
                    })
                } else {
                    Next::Payload(value, Part::End)
                })
            }
        }
    }
}

impl Next {
    /// The same, after so many bytes of payload.
    fn after(self, length: u64) -> Next {
        match self {
            Next::Part(part) => Next::Payload(length, part),
            Next::Payload(more, then) => Next::Payload(length + more, then),
            Next::LastRectangle => Next::LastRectangle,
        }
    }
}

/// How a tight rectangle goes on after its control byte, whose low half only resets zlib streams.
fn tight(control: u8, area: Area, format: &PixelFormat) -> Result<Next, FramingError> {
    match control >> 4 {
        0x8 => Ok(Next::Payload(format.tight_pixel_bytes(), Part::End)),
        0x9 => Ok(Next::Part(Part::TightLength { value: 0, bytes: 0 })),
        basic @ 0..=7 if basic & 0x4 != 0 => Ok(Next::Part(Part::TightFilter(area))),
        0..=7 => Ok(tight_data(area.pixels() * format.tight_pixel_bytes())),
        _ => Err(FramingError::TightCompression(control)),
    }
}

/// Tight data that has `length` bytes before compression.
fn tight_data(length: u64) -> Next {
    if length < TIGHT_UNCOMPRESSED {
        Next::Payload(length, Part::End)
    } else {
        Next::Part(Part::TightLength { value: 0, bytes: 0 })
    }
}

fn u32_of(head: &[u8]) -> u32 {
    u32::from_be_bytes([head[0], head[1], head[2], head[3]])
}
