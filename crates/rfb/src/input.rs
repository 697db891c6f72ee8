//! What a client writes to an RFB server: input events and the few requests around them.
//!
//! Every encoder appends whole messages to a buffer, so that the owner of a socket decides when
//! and in what order they leave.

use crate::pixel_format::PixelFormat;

/// Message type of a key event.
pub const KEY_EVENT: u8 = 4;
/// Message type of a pointer event.
pub const POINTER_EVENT: u8 = 5;
/// Message type shared by QEMU's client messages; the key event is its submessage 0.
pub const QEMU_CLIENT_MESSAGE: u8 = 255;

/// Flag of a fence: answer only when everything sent before it has been handled.
pub const FENCE_BLOCK_BEFORE: u32 = 1 << 0;
/// Flag of a fence: handle nothing sent after it until it has been answered.
pub const FENCE_BLOCK_AFTER: u32 = 1 << 1;
/// Flag of a fence: the message after it must be handled in one step with the answer.
pub const FENCE_SYNC_NEXT: u32 = 1 << 2;
/// Flag of a fence: this is a request that wants an answer.
pub const FENCE_REQUEST: u32 = 1 << 31;
/// Longest payload of a fence in bytes.
pub const FENCE_PAYLOAD_LIMIT: usize = 64;

/// One event of a keyboard or pointer, as RFB carries it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InputMessage {
    /// A key named by its keysym (message 4).
    Key {
        /// Whether it goes down.
        down: bool,
        /// X keysym.
        keysym: u32,
    },
    /// A key named by its keysym and its place on the keyboard (message 255, submessage 0).
    QemuKey {
        /// Whether it goes down.
        down: bool,
        /// X keysym, 0 when the client does not know it.
        keysym: u32,
        /// XT scan code.
        keycode: u32,
    },
    /// The pointer's place and its pressed buttons (message 5).
    Pointer {
        /// Pressed buttons: bit 0 left, 1 middle, 2 right, 3-6 wheel up, down, left, right.
        mask: u8,
        /// Pixels from the left edge of the framebuffer.
        x: u16,
        /// Pixels from the top edge of the framebuffer.
        y: u16,
    },
}

impl InputMessage {
    /// Appends the message as it goes over the wire.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match *self {
            Self::Key { down, keysym } => {
                out.extend([KEY_EVENT, u8::from(down), 0, 0]);
                out.extend(keysym.to_be_bytes());
            }
            Self::QemuKey {
                down,
                keysym,
                keycode,
            } => {
                out.extend([QEMU_CLIENT_MESSAGE, 0, 0, u8::from(down)]);
                out.extend(keysym.to_be_bytes());
                out.extend(keycode.to_be_bytes());
            }
            Self::Pointer { mask, x, y } => {
                out.extend([POINTER_EVENT, mask]);
                out.extend(x.to_be_bytes());
                out.extend(y.to_be_bytes());
            }
        }
    }

    /// Reads one whole message, of which `bytes` must be exactly the encoding.
    /// `None` when it is not an input message or not of its length.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        match *bytes {
            [KEY_EVENT, down, _, _, a, b, c, d] => Some(Self::Key {
                down: down != 0,
                keysym: u32::from_be_bytes([a, b, c, d]),
            }),
            [POINTER_EVENT, mask, x0, x1, y0, y1] => Some(Self::Pointer {
                mask,
                x: u16::from_be_bytes([x0, x1]),
                y: u16::from_be_bytes([y0, y1]),
            }),
            [QEMU_CLIENT_MESSAGE, 0, d0, d1, a, b, c, d, e, f, g, h] => Some(Self::QemuKey {
                down: (d0, d1) != (0, 0),
                keysym: u32::from_be_bytes([a, b, c, d]),
                keycode: u32::from_be_bytes([e, f, g, h]),
            }),
            _ => None,
        }
    }
}

/// Asks the server to send pixels in `format` from its next update on.
pub fn set_pixel_format(format: &PixelFormat, out: &mut Vec<u8>) {
    out.extend([0, 0, 0, 0]);
    format.encode(out);
}

/// Tells the server which encodings this client understands, the preferred ones first.
/// More than 65,535 of them cannot be said; the rest is left out.
pub fn set_encodings(encodings: &[i32], out: &mut Vec<u8>) {
    let count = u16::try_from(encodings.len()).unwrap_or(u16::MAX);
    out.extend([2, 0]);
    out.extend(count.to_be_bytes());
    for encoding in &encodings[..usize::from(count)] {
        out.extend(encoding.to_be_bytes());
    }
}

/// Asks for the pixels of a rectangle: at once and all of them, or with `incremental` only what
/// changed, as soon as something did.
pub fn update_request(
    incremental: bool,
    x: u16,
    y: u16,
    width: u16,
    height: u16,
    out: &mut Vec<u8>,
) {
    out.extend([3, u8::from(incremental)]);
    for value in [x, y, width, height] {
        out.extend(value.to_be_bytes());
    }
}

/// Asks for the changes of a rectangle without a request for each, or no longer.
pub fn continuous_updates(
    enable: bool,
    x: u16,
    y: u16,
    width: u16,
    height: u16,
    out: &mut Vec<u8>,
) {
    out.extend([150, u8::from(enable)]);
    for value in [x, y, width, height] {
        out.extend(value.to_be_bytes());
    }
}

/// Writes a fence with `flags` and the first [`FENCE_PAYLOAD_LIMIT`] bytes of `payload`.
/// The server answers one that carries [`FENCE_REQUEST`] with the same payload.
pub fn fence(flags: u32, payload: &[u8], out: &mut Vec<u8>) {
    let payload = &payload[..payload.len().min(FENCE_PAYLOAD_LIMIT)];
    out.extend([248, 0, 0, 0]);
    out.extend(flags.to_be_bytes());
    // The slice above is at most 64 bytes long.
    out.push(payload.len() as u8);
    out.extend(payload);
}

/// Offers `text` as the clipboard in the classic way, which knows Latin-1 only: line ends become
/// a single line feed and a character outside Latin-1 becomes `?`. Whoever needs the text exact
/// uses the extended clipboard of [`crate::clipboard`].
pub fn cut_text(text: &str, out: &mut Vec<u8>) {
    let latin1: Vec<u8> = text
        .replace("\r\n", "\n")
        .chars()
        .map(|c| u8::try_from(u32::from(c)).unwrap_or(b'?'))
        .collect();
    // A length with the top bit set would mean an extended message.
    let length = latin1.len().min(i32::MAX as usize);
    out.extend([6, 0, 0, 0]);
    out.extend((length as u32).to_be_bytes());
    out.extend(&latin1[..length]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_input() -> impl Strategy<Value = InputMessage> {
        prop_oneof![
            (any::<bool>(), any::<u32>())
                .prop_map(|(down, keysym)| InputMessage::Key { down, keysym }),
            (any::<bool>(), any::<u32>(), any::<u32>()).prop_map(|(down, keysym, keycode)| {
                InputMessage::QemuKey {
                    down,
                    keysym,
                    keycode,
                }
            }),
            (any::<u8>(), any::<u16>(), any::<u16>())
                .prop_map(|(mask, x, y)| InputMessage::Pointer { mask, x, y }),
        ]
    }

    proptest! {
        #[test]
        fn input_round_trips(message in any_input()) {
            let mut bytes = Vec::new();
            message.encode(&mut bytes);
            prop_assert_eq!(InputMessage::decode(&bytes), Some(message));
            prop_assert_eq!(InputMessage::decode(&bytes[1..]), None);
        }
    }

    #[test]
    fn requests_have_their_published_layout() {
        let mut out = Vec::new();
        update_request(true, 1, 2, 0x300, 4, &mut out);
        assert_eq!(out, [3, 1, 0, 1, 0, 2, 3, 0, 0, 4]);

        out.clear();
        set_encodings(&[0, -308], &mut out);
        assert_eq!(out, [2, 0, 0, 2, 0, 0, 0, 0, 0xff, 0xff, 0xfe, 0xcc]);

        out.clear();
        set_pixel_format(&PixelFormat::BGRX, &mut out);
        assert_eq!(out.len(), 20);
        assert_eq!(out[..8], [0, 0, 0, 0, 32, 24, 0, 1]);

        out.clear();
        fence(FENCE_REQUEST | FENCE_BLOCK_BEFORE, b"n1", &mut out);
        assert_eq!(out, [248, 0, 0, 0, 0x80, 0, 0, 1, 2, b'n', b'1']);

        out.clear();
        cut_text("a\r\né漢", &mut out);
        assert_eq!(out, [6, 0, 0, 0, 0, 0, 0, 4, b'a', b'\n', 0xe9, b'?']);
    }

    #[test]
    fn a_fence_never_carries_more_than_its_limit() {
        let mut out = Vec::new();
        fence(0, &[7; 200], &mut out);
        assert_eq!(out.len(), 9 + FENCE_PAYLOAD_LIMIT);
    }
}
