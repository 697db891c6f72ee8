//! A connection to an RFB server with the handshake done.

use std::io;
use std::time::Duration;

use handover_rfb::handshake::{ClientHandshake, Credentials, HandshakeError, Progress, ServerInit};

use super::upstream::{Stream, Upstream};

/// How long a handshake may take.
pub const HANDSHAKE_WITHIN: Duration = Duration::from_secs(5);

/// Bytes read at once during the handshake, in which little is sent.
const READ_BYTES: usize = 4096;

/// A connection that is ready for messages.
#[derive(Debug)]
pub struct Connected {
    /// The connection.
    pub stream: Stream,
    /// What the server said of itself.
    pub init: ServerInit,
    /// Bytes that came after the handshake: the first of the server's messages.
    pub rest: Vec<u8>,
}

/// Why there is no connection to a display.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The system refused, or the server closed the connection.
    #[error("failed to connect to the display: {0}")]
    Io(#[from] io::Error),
    /// The server does not answer.
    #[error("the display did not answer within {} s", HANDSHAKE_WITHIN.as_secs())]
    Timeout,
    /// The server is not one that can be spoken to.
    #[error("failed to speak RFB with the display: {0}")]
    Handshake(#[from] HandshakeError),
}

/// Connects and does the handshake.
///
/// # Errors
/// See [`ConnectError`].
pub async fn connect(
    upstream: &Upstream,
    credentials: Credentials,
) -> Result<Connected, ConnectError> {
    let stream = upstream.connect().await?;
    tokio::time::timeout(HANDSHAKE_WITHIN, shake_hands(stream, credentials))
        .await
        .map_err(|_| ConnectError::Timeout)?
}

async fn shake_hands(stream: Stream, credentials: Credentials) -> Result<Connected, ConnectError> {
    let mut handshake = ClientHandshake::new(credentials);
    let mut buffer = [0; READ_BYTES];
    let mut out = Vec::new();
    loop {
        let read = stream.read(&mut buffer).await?;
        if read == 0 {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        let progress = handshake.advance(&buffer[..read], &mut out)?;
        stream.write_all(&out).await?;
        out.clear();
        if let Progress::Done { consumed, result } = progress {
            return Ok(Connected {
                stream,
                init: result,
                rest: buffer[consumed..read].to_vec(),
            });
        }
    }
}
