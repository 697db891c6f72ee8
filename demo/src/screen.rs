//! A viewer of the desktop without a window: what a person's VNC program does, for the scripted
//! person.

use std::io;
use std::path::Path;
use std::time::Duration;

use handover_rfb::InputMessage;
use handover_rfb::PixelFormat;
use handover_rfb::frame::{ENCODINGS, FrameDecoder, FrameError};
use handover_rfb::handshake::{ClientHandshake, Credentials, HandshakeError, Progress};
use handover_rfb::input::{set_encodings, set_pixel_format, update_request};
use handover_rfb::keys::{Keysym, UnknownKey, keysym_for_char, parse_key};
use thiserror::Error;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use crate::picture::Picture;

/// How long the server may take for an answer.
const ANSWER_TIME: Duration = Duration::from_secs(10);
/// Bytes read at once.
const READ_BYTES: usize = 256 * 1024;

/// Why the desktop cannot be seen or used.
#[derive(Debug, Error)]
pub enum ScreenError {
    /// The connection failed or was closed.
    #[error("the viewer's connection failed: {0}")]
    Io(#[from] io::Error),
    /// The handshake failed.
    #[error("the viewer was turned away: {0}")]
    Handshake(#[from] HandshakeError),
    /// The server's messages cannot be followed.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// A key has no such name.
    #[error(transparent)]
    Key(#[from] UnknownKey),
    /// A character has no key.
    #[error("there is no key for a character of the text")]
    Character,
    /// The server did not answer in time.
    #[error("the desktop did not answer within {ANSWER_TIME:?}")]
    Timeout,
}

/// A connection to a viewer socket.
pub struct Screen {
    stream: UnixStream,
    decoder: FrameDecoder,
    /// Bytes that were read but not yet decoded.
    pending: Vec<u8>,
}

impl Screen {
    /// Connects to a viewer socket, shakes hands and asks for raw pixels.
    ///
    /// # Errors
    /// When the connection or the handshake fails.
    pub async fn connect(path: &Path) -> Result<Self, ScreenError> {
        in_time(async {
            let mut stream = UnixStream::connect(path).await?;
            let mut handshake = ClientHandshake::new(Credentials::None);
            let mut buffer = vec![0; READ_BYTES];
            let mut out = Vec::new();
            let (init, pending) = loop {
                let read = read_some(&mut stream, &mut buffer).await?;
                let progress = handshake.advance(&buffer[..read], &mut out)?;
                stream.write_all(&out).await?;
                out.clear();
                if let Progress::Done { consumed, result } = progress {
                    break (result, buffer[consumed..read].to_vec());
                }
            };
            set_pixel_format(&PixelFormat::BGRX, &mut out);
            set_encodings(&ENCODINGS, &mut out);
            stream.write_all(&out).await?;
            let decoder = FrameDecoder::new(init.width, init.height)?;
            Ok(Self {
                stream,
                decoder,
                pending,
            })
        })
        .await
    }

    /// Takes a picture of the whole desktop.
    ///
    /// # Errors
    /// When the connection fails or no complete picture comes in time.
    pub async fn look(&mut self) -> Result<Picture, ScreenError> {
        in_time(async {
            self.decoder.begin();
            let mut buffer = vec![0; READ_BYTES];
            loop {
                let (width, height) = self.decoder.size();
                let mut request = Vec::new();
                update_request(false, 0, 0, width, height, &mut request);
                self.stream.write_all(&request).await?;
                loop {
                    let mut input = self.pending.as_slice();
                    let updated = self.decoder.feed(&mut input)?;
                    self.pending = input.to_vec();
                    if updated {
                        break;
                    }
                    let read = read_some(&mut self.stream, &mut buffer).await?;
                    self.pending.extend_from_slice(&buffer[..read]);
                }
                if self.decoder.is_complete() {
                    let frame = self.decoder.frame();
                    return Ok(Picture::from_rgb(usize::from(frame.width), frame.rgb));
                }
            }
        })
        .await
    }

    /// Clicks with the left button.
    ///
    /// # Errors
    /// When the connection fails.
    pub async fn click(&mut self, x: u16, y: u16) -> Result<(), ScreenError> {
        let press = [0, 1, 0].map(|mask| InputMessage::Pointer { mask, x, y });
        self.send(&press).await
    }

    /// Types a text of plain characters.
    ///
    /// # Errors
    /// When the connection fails or a character has no key.
    pub async fn type_text(&mut self, text: &str) -> Result<(), ScreenError> {
        for character in text.chars() {
            self.strike(keysym_for_char(character).ok_or(ScreenError::Character)?)
                .await?;
        }
        Ok(())
    }

    /// Presses and releases a key by its name.
    ///
    /// # Errors
    /// When the connection fails or there is no such key.
    pub async fn press(&mut self, key: &str) -> Result<(), ScreenError> {
        self.strike(parse_key(key)?).await
    }

    async fn strike(&mut self, keysym: Keysym) -> Result<(), ScreenError> {
        self.send(&[keysym.message(true), keysym.message(false)])
            .await
    }

    async fn send(&mut self, messages: &[InputMessage]) -> Result<(), ScreenError> {
        let mut bytes = Vec::new();
        for message in messages {
            message.encode(&mut bytes);
        }
        Ok(self.stream.write_all(&bytes).await?)
    }
}

/// Reads at least one byte; the end of the stream is an error here.
async fn read_some(stream: &mut UnixStream, buffer: &mut [u8]) -> Result<usize, ScreenError> {
    match stream.read(buffer).await? {
        0 => Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
        read => Ok(read),
    }
}

async fn in_time<T>(work: impl Future<Output = Result<T, ScreenError>>) -> Result<T, ScreenError> {
    tokio::time::timeout(ANSWER_TIME, work)
        .await
        .map_err(|_| ScreenError::Timeout)?
}
