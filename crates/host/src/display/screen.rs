//! Pictures of a desktop, taken over a connection of their own.
//!
//! One task keeps a view-only connection to the desktop's RFB server and asks for the whole
//! frame when a picture is wanted. Everything that asked before the question was sent gets the
//! same answer; whoever asks later gets a later frame.

use std::future::pending;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use handover_rfb::PixelFormat;
use handover_rfb::frame::{ENCODINGS, Frame, FrameDecoder, FrameError};
use handover_rfb::handshake::Credentials;
use handover_rfb::input;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;

use super::connect::{ConnectError, Connected, connect};
use super::picture::Screenshot;
use super::upstream::{Stream, Upstream};

/// How long a picture may take, from the question to its answer.
pub const CAPTURE_WITHIN: Duration = Duration::from_secs(5);
/// Questions that may wait; callers beyond wait for room within their own deadline.
const QUEUE: usize = 64;
/// Bytes read at once; a frame of 1280x800 has 4 MiB.
const READ_BYTES: usize = 256 * 1024;

/// Width and height of a desktop in pixels.
pub type Size = (u16, u16);

/// When a change of the desktop's size becomes known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SizeChanges {
    /// At once, by a standing request for one pixel. For servers that heed the rectangle of a
    /// request, as Xvnc does.
    Follow,
    /// With the next picture. For the others, which would answer with every change on the screen.
    AtCapture,
}

/// Why there is no picture.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CaptureError {
    /// Every pixel is black although the display answers: it shows nothing, not even the
    /// background that desktops get.
    #[error("the display answers but all of its {0}x{1} pixels are black", .size.0, .size.1)]
    AllBlack {
        /// Size of the desktop in pixels.
        size: Size,
    },
    /// The display did not answer in time, as one that is stopped.
    #[error("the display did not send a frame within {} s", CAPTURE_WITHIN.as_secs())]
    Timeout,
    /// The display cannot be reached.
    #[error(transparent)]
    Connect(#[from] Arc<ConnectError>),
    /// The display closed the connection.
    #[error("the display closed the connection: {0}")]
    Closed(String),
    /// The display sent what cannot be followed.
    #[error("the display sent a frame that cannot be read: {0}")]
    Frame(#[from] FrameError),
    /// The frame could not be compressed.
    #[error("failed to compress the frame: {0}")]
    Encode(String),
}

impl From<io::Error> for CaptureError {
    fn from(error: io::Error) -> Self {
        Self::Closed(error.to_string())
    }
}

type Answer = Result<Screenshot, CaptureError>;

/// Takes pictures of one desktop. Clones share the connection, which ends with the last of them.
#[derive(Clone, Debug)]
pub struct Screen {
    questions: mpsc::Sender<oneshot::Sender<Answer>>,
    size: watch::Receiver<Option<Size>>,
}

impl Screen {
    /// Starts the task and connects in the background. A lost connection is made anew when the
    /// next picture is wanted.
    #[must_use]
    pub fn spawn(upstream: Upstream, credentials: Credentials, changes: SizeChanges) -> Self {
        let (questions, received) = mpsc::channel(QUEUE);
        let (size, known) = watch::channel(None);
        let eye = Eye {
            upstream,
            credentials,
            changes,
            link: None,
            size,
        };
        tokio::spawn(eye.run(received));
        Self {
            questions,
            size: known,
        }
    }

    /// A picture of the desktop as it is now or later.
    ///
    /// # Errors
    /// [`CaptureError`], within [`CAPTURE_WITHIN`].
    pub async fn capture(&self) -> Result<Screenshot, CaptureError> {
        let ask = async {
            let (question, answer) = oneshot::channel();
            self.questions.send(question).await.ok()?;
            answer.await.ok()
        };
        match timeout(CAPTURE_WITHIN, ask).await {
            Ok(Some(answer)) => answer,
            Ok(None) => Err(CaptureError::Closed("the host is going away".into())),
            Err(_) => Err(CaptureError::Timeout),
        }
    }

    /// The desktop's size in pixels, taking a picture only if none is known yet.
    ///
    /// # Errors
    /// As for [`capture`](Self::capture).
    pub async fn size(&self) -> Result<Size, CaptureError> {
        if let Some(size) = self.known_size() {
            return Ok(size);
        }
        match self.capture().await {
            Ok(Screenshot { width, height, .. }) => Ok((width, height)),
            Err(CaptureError::AllBlack { size }) => Ok(size),
            Err(error) => Err(error),
        }
    }

    /// The desktop's size in pixels as last heard; `None` before the first connection.
    #[must_use]
    pub fn known_size(&self) -> Option<Size> {
        *self.size.borrow()
    }
}

/// The task behind a [`Screen`].
struct Eye {
    upstream: Upstream,
    credentials: Credentials,
    changes: SizeChanges,
    link: Option<Link>,
    size: watch::Sender<Option<Size>>,
}

impl Eye {
    async fn run(mut self, mut questions: mpsc::Receiver<oneshot::Sender<Answer>>) {
        if let Err(error) = self.link().await {
            tracing::debug!("no connection for pictures yet: {error}");
        }
        loop {
            let first = tokio::select! {
                question = questions.recv() => match question {
                    Some(question) => question,
                    None => return,
                },
                lost = idle(self.link.as_mut(), &self.size) => {
                    tracing::debug!("the connection for pictures ended: {lost}");
                    self.link = None;
                    continue;
                }
            };
            let mut asking = vec![first];
            while let Ok(question) = questions.try_recv() {
                asking.push(question);
            }
            // Who gave up while this task was at another picture needs none.
            asking.retain(|question| !question.is_closed());
            if asking.is_empty() {
                continue;
            }
            let answer = self.picture().await;
            for question in asking {
                // The asker may have given up since.
                let _ = question.send(answer.clone());
            }
        }
    }

    async fn picture(&mut self) -> Answer {
        let frame = match timeout(CAPTURE_WITHIN, self.frame()).await {
            Ok(Ok(frame)) => frame,
            failed => {
                // What is still under way on this connection belongs to no question any more.
                self.link = None;
                return Err(match failed {
                    Ok(Err(error)) => error,
                    _ => CaptureError::Timeout,
                });
            }
        };
        if frame.is_black() {
            return Err(CaptureError::AllBlack {
                size: (frame.width, frame.height),
            });
        }
        match tokio::task::spawn_blocking(move || Screenshot::encode(&frame)).await {
            Ok(encoded) => encoded.map_err(|error| CaptureError::Encode(error.to_string())),
            Err(error) => Err(CaptureError::Encode(error.to_string())),
        }
    }

    /// A whole frame. A connection that turns out to be dead is replaced once.
    async fn frame(&mut self) -> Result<Frame, CaptureError> {
        let kept = self.link.is_some();
        let size = self.size.clone();
        match self.link().await?.frame(&size).await {
            Err(CaptureError::Closed(_)) if kept => {
                self.link = None;
                self.link().await?.frame(&size).await
            }
            outcome => outcome,
        }
    }

    async fn link(&mut self) -> Result<&mut Link, CaptureError> {
        let link = match self.link.take() {
            Some(link) => link,
            None => {
                let connected = connect(&self.upstream, self.credentials.clone())
                    .await
                    .map_err(Arc::new)?;
                let link = Link::open(connected, self.changes).await?;
                announce(&self.size, link.decoder.size());
                link
            }
        };
        Ok(self.link.insert(link))
    }
}

/// Reads what the server sends unasked until the connection ends, and says how.
async fn idle(link: Option<&mut Link>, size: &watch::Sender<Option<Size>>) -> CaptureError {
    let Some(link) = link else {
        return pending().await;
    };
    loop {
        if let Err(error) = link.until_update(size).await {
            return error;
        }
    }
}

fn announce(size: &watch::Sender<Option<Size>>, new: Size) {
    size.send_if_modified(|known| known.replace(new) != Some(new));
}

/// A connection in use.
struct Link {
    stream: Stream,
    decoder: FrameDecoder,
    buffer: Vec<u8>,
    /// The part of `buffer` that was read and not yet decoded.
    unread: std::ops::Range<usize>,
    changes: SizeChanges,
}

impl Link {
    async fn open(connected: Connected, changes: SizeChanges) -> Result<Self, CaptureError> {
        let Connected { stream, init, rest } = connected;
        let mut buffer = vec![0; READ_BYTES.max(rest.len())];
        buffer[..rest.len()].copy_from_slice(&rest);
        let link = Self {
            stream,
            decoder: FrameDecoder::new(init.width, init.height)?,
            buffer,
            unread: 0..rest.len(),
            changes,
        };
        let mut out = Vec::new();
        input::set_pixel_format(&PixelFormat::BGRX, &mut out);
        input::set_encodings(&ENCODINGS, &mut out);
        link.stream.write_all(&out).await?;
        link.watch().await?;
        Ok(link)
    }

    /// Leaves a request with the server that it answers when the desktop's size changes.
    async fn watch(&self) -> io::Result<()> {
        if self.changes == SizeChanges::AtCapture {
            return Ok(());
        }
        let mut out = Vec::new();
        input::update_request(true, 0, 0, 1, 1, &mut out);
        self.stream.write_all(&out).await
    }

    async fn frame(
        &mut self,
        size_known: &watch::Sender<Option<Size>>,
    ) -> Result<Frame, CaptureError> {
        self.decoder.begin();
        let mut asked = None;
        while !self.decoder.is_complete() {
            // Any update uses the question up, even one that only tells a new size. The server
            // still knows what it owes of a whole frame; after a change of size it owes another.
            let size @ (width, height) = self.decoder.size();
            let rest = asked.replace(size) == Some(size);
            let mut out = Vec::new();
            input::update_request(rest, 0, 0, width, height, &mut out);
            self.stream.write_all(&out).await?;
            self.until_update(size_known).await?;
        }
        Ok(self.decoder.frame())
    }

    /// Reads up to the end of the next update. May be dropped between: nothing read is lost.
    async fn until_update(
        &mut self,
        size: &watch::Sender<Option<Size>>,
    ) -> Result<(), CaptureError> {
        loop {
            let mut bytes = &self.buffer[self.unread.clone()];
            let updated = self.decoder.feed(&mut bytes)?;
            self.unread.start = self.unread.end - bytes.len();
            if updated {
                announce(size, self.decoder.size());
                return Ok(self.watch().await?);
            }
            let read = self.stream.read(&mut self.buffer).await?;
            if read == 0 {
                return Err(CaptureError::Closed("end of the stream".into()));
            }
            self.unread = 0..read;
        }
    }
}
