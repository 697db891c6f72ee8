//! The opening of an RFB connection, both as the server of a viewer and as the client of a display server.
//!
//! The gate owns both handshakes so that what follows has a known shape: no security type that adds messages, no
//! exclusive connection, no protocol version but 3.3, 3.7 and 3.8.

mod client;
mod server;

pub use client::{ClientHandshake, Credentials};
pub use server::{ServerHandshake, ViewerInit};

use crate::PixelFormat;

/// Longest desktop name accepted from a server, in bytes.
const NAME_LIMIT: usize = 4096;
/// Longest reason for a refusal accepted from a server, in bytes.
const REASON_LIMIT: usize = 4096;

/// The protocol versions that exist; every other number is answered as one of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProtocolVersion {
    /// 3.3: the server decides the security type.
    V3_3,
    /// 3.7: the client chooses from a list.
    V3_7,
    /// 3.8: as 3.7, and a failure has a reason.
    V3_8,
}

impl ProtocolVersion {
    /// Bytes of a version line.
    pub const WIRE_LEN: usize = 12;

    /// Reads a version line. Unassigned minor versions count as 3.3 below 7 and as 3.8 above, as RFC 6143 asks.
    fn decode(line: &[u8]) -> Result<ProtocolVersion, HandshakeError> {
        let number = |digits: &[u8]| {
            digits.iter().try_fold(0u16, |sum, digit| {
                digit
                    .is_ascii_digit()
                    .then(|| sum * 10 + u16::from(digit - b'0'))
            })
        };
        let parts = match line {
            [b'R', b'F', b'B', b' ', a, b, c, b'.', d, e, f, b'\n'] => {
                number(&[*a, *b, *c]).zip(number(&[*d, *e, *f]))
            }
            _ => None,
        };
        match parts {
            Some((3, 7)) => Ok(ProtocolVersion::V3_7),
            Some((3, minor)) if minor < 7 => Ok(ProtocolVersion::V3_3),
            Some((major, _)) if major >= 3 => Ok(ProtocolVersion::V3_8),
            _ => Err(HandshakeError::NotRfb),
        }
    }

    fn line(self) -> &'static [u8; Self::WIRE_LEN] {
        match self {
            ProtocolVersion::V3_3 => b"RFB 003.003\n",
            ProtocolVersion::V3_7 => b"RFB 003.007\n",
            ProtocolVersion::V3_8 => b"RFB 003.008\n",
        }
    }
}

/// The security types that Handover speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecurityType {
    /// No authentication; the file mode of the socket protects it.
    None,
    /// The classic challenge and response with a password of up to eight bytes.
    VncAuth,
}

impl SecurityType {
    /// The number on the wire.
    pub fn code(self) -> u8 {
        match self {
            SecurityType::None => 1,
            SecurityType::VncAuth => 2,
        }
    }
}

/// What a server says about its desktop at the end of the handshake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerInit {
    /// Width of the framebuffer in pixels.
    pub width: u16,
    /// Height of the framebuffer in pixels.
    pub height: u16,
    /// The pixel format until the client sets another one.
    pub format: PixelFormat,
    /// The desktop's name, shown in the title of the viewer's window.
    pub name: String,
}

impl ServerInit {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.width.to_be_bytes());
        out.extend(self.height.to_be_bytes());
        self.format.encode(out);
        let name = &self.name.as_bytes()[..self.name.floor_char_boundary(NAME_LIMIT)];
        out.extend((name.len() as u32).to_be_bytes());
        out.extend(name);
    }
}

/// How far a handshake is.
#[derive(Debug, PartialEq, Eq)]
pub enum Progress<T> {
    /// All input was taken; more is needed.
    More,
    /// The handshake is over.
    Done {
        /// Bytes of this call's input that belonged to the handshake; the rest is the first of what follows.
        consumed: usize,
        /// What was agreed.
        result: T,
    },
}

/// Why a handshake failed. After an error the connection is of no use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HandshakeError {
    /// The other side did not send an RFB version line.
    #[error("the other side does not speak RFB")]
    NotRfb,
    /// The server turned the connection away, for the reason that it gave.
    #[error("the server refused the connection: {0}")]
    Refused(String),
    /// The server did not accept the password.
    #[error("the server did not accept the password: {0}")]
    AuthenticationFailed(String),
    /// The server offers no security type that we can use with the credentials that we have.
    #[error("no usable security type among those that the server offers: {0:?}")]
    NoCommonSecurity(Vec<u8>),
    /// The viewer chose a security type that was not offered.
    #[error("the viewer chose security type {0}, which was not offered")]
    NotOffered(u8),
    /// The server announced a pixel format of other than 8, 16 or 32 bits.
    #[error("the server's pixel format is unusable")]
    PixelFormat,
    /// A text of the server is longer than any sensible one.
    #[error("the server announced a text of {0} bytes")]
    TooLong(u32),
    /// The handshake was over already.
    #[error("the handshake is already over")]
    Finished,
}

/// Collects input until a step of a handshake has all its bytes.
#[derive(Debug, Default)]
struct Gather {
    bytes: Vec<u8>,
}

impl Gather {
    /// Moves bytes from the front of `input` until `wanted` are there; returns them once they are.
    fn take(&mut self, input: &mut &[u8], wanted: usize) -> Option<Vec<u8>> {
        let missing = wanted.saturating_sub(self.bytes.len()).min(input.len());
        let (now, later) = input.split_at(missing);
        self.bytes.extend_from_slice(now);
        *input = later;
        (self.bytes.len() == wanted).then(|| std::mem::take(&mut self.bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_lines() {
        let read = |line: &[u8]| ProtocolVersion::decode(line);
        assert_eq!(read(b"RFB 003.003\n"), Ok(ProtocolVersion::V3_3));
        assert_eq!(read(b"RFB 003.005\n"), Ok(ProtocolVersion::V3_3));
        assert_eq!(read(b"RFB 003.007\n"), Ok(ProtocolVersion::V3_7));
        assert_eq!(read(b"RFB 003.008\n"), Ok(ProtocolVersion::V3_8));
        assert_eq!(read(b"RFB 003.889\n"), Ok(ProtocolVersion::V3_8));
        assert_eq!(read(b"RFB 004.001\n"), Ok(ProtocolVersion::V3_8));
        for bad in [
            b"RFB 002.002\n",
            b"RFB 003.0 8\n",
            b"GET / HTTP/1",
            b"RFB 003.008 ",
        ] {
            assert_eq!(read(bad), Err(HandshakeError::NotRfb));
        }
    }
}
