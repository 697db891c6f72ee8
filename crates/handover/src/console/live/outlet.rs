//! What waits to be sent to one browser. When too much waits, its hosts wait, and do what they do for
//! a slow reader: the browser is told of a `gap`.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{Sink, SinkExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Message};

/// Most messages that wait.
const MESSAGES: usize = 256;
/// Most bytes that wait: the longest answer and as much again.
const BYTES: u32 = 32 << 20;
/// How long a browser may take for one message.
const STALLED: Duration = Duration::from_secs(30);
/// How often a browser is asked whether it is there.
pub const PING: Duration = Duration::from_secs(20);
/// How long it may be silent.
pub const SILENT: Duration = Duration::from_secs(60);

/// One message, with its share of the bytes that may wait.
#[derive(Debug)]
struct Waiting {
    message: Message,
    _share: Option<OwnedSemaphorePermit>,
}

/// The way to one browser. Clones share it.
#[derive(Clone, Debug)]
pub struct Outlet {
    messages: mpsc::Sender<Waiting>,
    bytes: Arc<Semaphore>,
}

/// The browser is gone.
#[derive(Clone, Copy, Debug)]
pub struct Gone;

/// The other end of an [`Outlet`].
#[derive(Debug)]
pub struct Queue(mpsc::Receiver<Waiting>);

/// A way to a browser, and what comes out of it.
pub fn outlet() -> (Outlet, Queue) {
    let (messages, queue) = mpsc::channel(MESSAGES);
    let bytes = Arc::new(Semaphore::new(BYTES as usize));
    (Outlet { messages, bytes }, Queue(queue))
}

impl Outlet {
    /// Sends a text; waits while too much waits already.
    ///
    /// # Errors
    /// [`Gone`].
    pub async fn send(&self, text: String) -> Result<(), Gone> {
        let share = u32::try_from(text.len()).unwrap_or(BYTES).min(BYTES);
        let share = Arc::clone(&self.bytes).acquire_many_owned(share).await;
        let share = Some(share.map_err(|_| Gone)?);
        let waiting = Waiting {
            message: Message::text(text),
            _share: share,
        };
        self.messages.send(waiting).await.map_err(|_| Gone)
    }

    /// Sends a goodbye, if there is room for it.
    pub fn close(&self, code: CloseCode, reason: &'static str) {
        let frame = CloseFrame {
            code,
            reason: reason.into(),
        };
        let waiting = Waiting {
            message: Message::Close(Some(frame)),
            _share: None,
        };
        let _ = self.messages.try_send(waiting);
    }
}

impl Queue {
    /// Sends what comes, and asks now and then whether the browser is there, until it is gone or was
    /// told goodbye.
    pub async fn drain<S: Sink<Message> + Unpin>(mut self, mut sink: S) {
        let mut ping = tokio::time::interval_at(tokio::time::Instant::now() + PING, PING);
        loop {
            let waiting = tokio::select! {
                waiting = self.0.recv() => waiting,
                _ = ping.tick() => {
                    let message = Message::Ping(Vec::new().into());
                    Some(Waiting { message, _share: None })
                }
            };
            let Some(waiting) = waiting else { return };
            let last = waiting.message.is_close();
            let sent = tokio::time::timeout(STALLED, sink.send(waiting.message)).await;
            if last || !matches!(sent, Ok(Ok(()))) {
                return;
            }
        }
    }
}
