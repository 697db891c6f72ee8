//! Cookies for clients that are not trusted, from the SECURITY extension.

use std::io::IoSlice;

use x11rb::connection::RequestConnection;
use x11rb::errors::ParseError;
use x11rb::x11_utils::TryParse;

use super::{COOKIE_LENGTH, Session, X11Error};

const EXTENSION: &str = "SECURITY";
const GENERATE_AUTHORIZATION: u8 = 1;
const PROTOCOL: &[u8; 18] = b"MIT-MAGIC-COOKIE-1";
/// Attributes that a request for a cookie gives: how long it lives unused, and its trust.
const TIMEOUT: u32 = 1 << 0;
const TRUST_LEVEL: u32 = 1 << 1;
const UNTRUSTED: u32 = 1;

/// A cookie whose clients are not trusted.
#[derive(Clone, PartialEq, Eq)]
pub struct UntrustedCookie {
    /// Names the authorization to the display.
    pub authorization: u32,
    /// The `MIT-MAGIC-COOKIE-1` itself, a secret.
    pub cookie: [u8; COOKIE_LENGTH],
}

impl std::fmt::Debug for UntrustedCookie {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "UntrustedCookie({})", self.authorization)
    }
}

/// The reply to a request for a cookie.
struct Generated(UntrustedCookie);

impl TryParse for Generated {
    fn try_parse(bytes: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        let (head, rest) = bytes
            .split_first_chunk::<32>()
            .ok_or(ParseError::InsufficientData)?;
        let authorization = u32::from_ne_bytes([head[8], head[9], head[10], head[11]]);
        let length = u16::from_ne_bytes([head[12], head[13]]);
        match rest.split_first_chunk() {
            Some((cookie, rest)) if usize::from(length) == COOKIE_LENGTH => {
                let cookie = UntrustedCookie {
                    authorization,
                    cookie: *cookie,
                };
                Ok((Self(cookie), rest))
            }
            _ => Err(ParseError::InvalidValue),
        }
    }
}

pub(super) fn generate(session: &Session, idle: u32) -> Result<UntrustedCookie, X11Error> {
    let connection = &session.connection;
    let extension = connection
        .extension_information(EXTENSION)?
        .ok_or(X11Error::Unsupported)?;
    let words = 3 + PROTOCOL.len().div_ceil(4) + 2;
    let mut request = vec![extension.major_opcode, GENERATE_AUTHORIZATION];
    request.extend((words as u16).to_ne_bytes());
    request.extend((PROTOCOL.len() as u16).to_ne_bytes());
    // No data: the display makes the cookie up.
    request.extend(0u16.to_ne_bytes());
    request.extend((TIMEOUT | TRUST_LEVEL).to_ne_bytes());
    request.extend(PROTOCOL);
    request.resize(request.len().next_multiple_of(4), 0);
    request.extend(idle.to_ne_bytes());
    request.extend(UNTRUSTED.to_ne_bytes());
    let asked =
        connection.send_request_with_reply::<Generated>(&[IoSlice::new(&request)], Vec::new())?;
    Ok(asked.reply()?.0)
}
