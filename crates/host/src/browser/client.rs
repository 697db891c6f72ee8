//! One client of a browser: its socket, from its birth until the client has left.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use handover_cdp::{ClientId, Records};
use handover_protocol::Refusal;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::AdmitClient;
use super::task::Event;
use crate::callers::Caller;
use crate::system::clock;
use crate::system::creds::Sender;
use crate::system::hang_up::is_gone;
use crate::system::socket::BindError;

/// How long a socket waits for its client.
const UNUSED: Duration = Duration::from_secs(60);

/// The longest message of a client, in bytes.
pub(super) const MAX_MESSAGE: usize = 64 << 20;

/// Bytes that may wait for a client to read them.
const MAX_BACKLOG: usize = 256 << 20;

/// How long a client that has stopped writing may take for the answers that are due to it.
const LAST_ANSWERS: Duration = Duration::from_secs(10);

/// Bytes read at once.
const READ_BYTES: usize = 64 << 10;

/// A bound socket without a client, which goes away with this.
pub(super) struct Waiting {
    listener: UnixListener,
    path: PathBuf,
}

impl Waiting {
    /// Takes over a bound socket and its file.
    pub(super) fn new(
        listener: std::os::unix::net::UnixListener,
        path: PathBuf,
    ) -> Result<Self, BindError> {
        let listening = || {
            listener.set_nonblocking(true)?;
            UnixListener::from_std(listener)
        };
        match listening() {
            Ok(listener) => Ok(Self { listener, path }),
            Err(source) => Err(BindError::Io { path, source }),
        }
    }

    /// The first process that connects and may.
    async fn client(&self, admit: &AdmitClient, within: Duration) -> Option<(UnixStream, Caller)> {
        let until = Instant::now() + within;
        loop {
            let accepted = tokio::time::timeout_at(until, self.listener.accept());
            let (stream, _) = accepted.await.ok()?.ok()?;
            match admitted(&stream, admit) {
                Ok(caller) => return Some((stream, caller)),
                Err(refusal) => tracing::warn!(%refusal, "a browser's client was turned away"),
            }
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        // It may be gone already, with the desktop.
        let _ = std::fs::remove_file(&self.path);
    }
}

fn admitted(stream: &UnixStream, admit: &AdmitClient) -> Result<Caller, Refusal> {
    let unknown = |error: io::Error| {
        Refusal::new(
            handover_protocol::ErrorCode::CallerRefused,
            format!("the kernel does not say who connects: {error}"),
        )
    };
    let credentials = stream.peer_cred().map_err(unknown)?;
    let pid = credentials.pid().and_then(|pid| u32::try_from(pid).ok());
    let sender = Sender {
        pid: pid.unwrap_or(0),
        uid: credentials.uid(),
        gid: credentials.gid(),
    };
    admit(sender, clock::now())
}

/// Where messages for a client go.
#[derive(Debug)]
pub(super) struct Outbox {
    messages: mpsc::UnboundedSender<Vec<u8>>,
    backlog: Arc<AtomicUsize>,
}

impl Outbox {
    /// Queues a message. False if too much is waiting already, or the client has left: then its
    /// connection is to be closed, by dropping this.
    pub(super) fn send(&self, mut message: Vec<u8>) -> bool {
        message.push(b'\n');
        let waiting = self.backlog.fetch_add(message.len(), Ordering::Relaxed);
        waiting < MAX_BACKLOG && self.messages.send(message).is_ok()
    }
}

/// Waits for the client of a socket and moves its messages, until one side ends.
pub(super) async fn serve(
    id: ClientId,
    waiting: Waiting,
    admit: Arc<AdmitClient>,
    events: mpsc::Sender<Event>,
) {
    let client = tokio::select! {
        client = waiting.client(&*admit, UNUSED) => client,
        () = events.closed() => None,
    };
    let Some((stream, caller)) = client else {
        return;
    };
    // One client, one socket.
    drop(waiting);
    tracing::info!(client = id.0, pid = caller.pid, "drives a browser");
    let (mut reader, writer) = stream.into_split();
    let (messages, written) = mpsc::unbounded_channel();
    let backlog = Arc::new(AtomicUsize::new(0));
    let outbox = Outbox {
        messages,
        backlog: Arc::clone(&backlog),
    };
    let (ready, is_ready) = oneshot::channel();
    let connected = Event::Connected {
        client: id,
        caller: Box::new(caller),
        outbox,
        ready,
    };
    if events.send(connected).await.is_err() {
        return;
    }
    let reading = async {
        // Dropped if the browser does not take it.
        if is_ready.await.is_err() || !read(id, &mut reader, &events).await {
            return;
        }
        // Whoever is gone has no use for answers, and nothing of theirs is to go on.
        if !is_gone(reader.as_ref()) && events.send(Event::Finished(id)).await.is_ok() {
            tokio::time::sleep(LAST_ANSWERS).await;
        }
    };
    tokio::select! {
        () = reading => {}
        () = write(writer, written, backlog) => {}
    }
    // A browser that has ended knows no clients.
    let _ = events.send(Event::Left(id)).await;
    tracing::info!(client = id.0, "drives the browser no more");
}

/// Reads until there is nothing more to be read. Whether that is because the client writes no more.
async fn read(id: ClientId, reader: &mut OwnedReadHalf, events: &mpsc::Sender<Event>) -> bool {
    let mut records = Records::new(MAX_MESSAGE);
    let mut buffer = vec![0; READ_BYTES];
    loop {
        match reader.read(&mut buffer).await {
            Ok(0) => return true,
            Err(_) => return false,
            Ok(read) => records.push(&buffer[..read]),
        }
        loop {
            match records.next_record() {
                Ok(Some(message)) => {
                    if events.send(Event::Message(id, message)).await.is_err() {
                        return false;
                    }
                }
                Ok(None) => break,
                Err(error) => {
                    let _ = events.send(Event::TooLong(id, error)).await;
                    return false;
                }
            }
        }
    }
}

/// Writes until the outbox is dropped or the client reads no more.
async fn write(
    mut writer: OwnedWriteHalf,
    mut messages: mpsc::UnboundedReceiver<Vec<u8>>,
    backlog: Arc<AtomicUsize>,
) {
    while let Some(message) = messages.recv().await {
        let written = writer.write_all(&message).await;
        backlog.fetch_sub(message.len(), Ordering::Relaxed);
        if written.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_socket_that_nobody_may_use_or_uses_goes_away() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("cdp.sock");
        let listener = std::os::unix::net::UnixListener::bind(&path).expect("a socket");
        let waiting = Waiting::new(listener, path.clone()).expect("it listens");
        let refuses = |_, _| {
            Err(Refusal::new(
                handover_protocol::ErrorCode::CallerRefused,
                "not you",
            ))
        };
        let _turned_away = UnixStream::connect(&path).await.expect("it is there");
        let client = waiting.client(&refuses, Duration::from_millis(50)).await;
        assert!(client.is_none());
        drop(waiting);
        assert!(!path.exists());
    }
}
