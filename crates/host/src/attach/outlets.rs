//! What goes out on each connection: one ordered, bounded queue with a single writer.
//!
//! Nothing that fills a queue ever waits for its client. Answers and notices that no longer fit end
//! the connection; a subscription asks for room first and skips what its client is too slow for.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use handover_protocol::envelope::notification_line;
use handover_protocol::{Interrupt, LeaseEnded, LeaseRequest, LeaseWarning};
use serde::Serialize;
use tokio::net::UnixStream;
use tokio::sync::Notify;

use crate::callers::ConnectionId;

/// Bytes that may wait for a client: the longest answer, and some small ones.
const MAX_BYTES: usize = handover_protocol::MAX_ANSWER + (1 << 20);
/// Lines that may wait for a client.
const MAX_LINES: usize = 65_536;
/// Below this a subscription may add to the queue.
const ROOM_BYTES: usize = 256 << 10;
const ROOM_LINES: usize = 128;

/// News for one connection from a desktop.
#[derive(Debug, Clone, PartialEq)]
pub enum Notice {
    /// A permit is interrupted.
    Interrupt(Interrupt),
    /// A lease is about to reach a limit.
    LeaseWarning(LeaseWarning),
    /// Somebody asks the holder for control.
    LeaseRequest(LeaseRequest),
    /// A lease has ended.
    LeaseEnded(LeaseEnded),
}

/// The connections that are open, by number, for whoever has news for one of them.
#[derive(Debug, Clone, Default)]
pub struct Outlets {
    open: Arc<Mutex<HashMap<ConnectionId, Outlet>>>,
}

impl Outlets {
    /// Without any connection.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sends news to a connection, in order with its answers. Does not wait; a connection that has
    /// closed gets nothing.
    pub fn notify(&self, connection: ConnectionId, notice: &Notice) {
        let outlet = self.open().get(&connection).cloned();
        if let Some(outlet) = outlet {
            match notice {
                Notice::Interrupt(params) => outlet.notify("interrupt", params),
                Notice::LeaseWarning(params) => outlet.notify("lease_warning", params),
                Notice::LeaseRequest(params) => outlet.notify("lease_request", params),
                Notice::LeaseEnded(params) => outlet.notify("lease_ended", params),
            }
        }
    }

    pub(super) fn add(&self, connection: ConnectionId) -> Outlet {
        let outlet = Outlet::new();
        self.open().insert(connection, outlet.clone());
        outlet
    }

    pub(super) fn remove(&self, connection: ConnectionId) {
        self.open().remove(&connection);
    }

    fn open(&self) -> MutexGuard<'_, HashMap<ConnectionId, Outlet>> {
        // Nothing panics while it holds this lock.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The queue of one connection.
#[derive(Debug, Clone)]
pub(super) struct Outlet {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    queue: Mutex<Queue>,
    /// Something was added, or the queue was closed.
    filled: Notify,
    /// Something was written, or the queue was closed.
    emptied: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    lines: VecDeque<Vec<u8>>,
    bytes: usize,
    end: End,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum End {
    /// Lines may be added.
    #[default]
    Open,
    /// What is queued is still written, nothing is added.
    Finishing,
    /// Nothing is written any more.
    Closed,
}

impl Outlet {
    fn new() -> Self {
        Self {
            shared: Arc::new(Shared {
                queue: Mutex::default(),
                filled: Notify::new(),
                emptied: Notify::new(),
            }),
        }
    }

    /// Queues one line, newline included. If it does not fit, the connection ends.
    pub(super) fn push(&self, line: Vec<u8>) {
        let mut queue = self.queue();
        if queue.end != End::Open {
            return;
        }
        queue.bytes += line.len();
        queue.lines.push_back(line);
        if queue.bytes > MAX_BYTES || queue.lines.len() > MAX_LINES {
            drop(queue);
            tracing::info!("a client that does not read its answers is disconnected");
            self.close();
            return;
        }
        drop(queue);
        self.shared.filled.notify_one();
    }

    /// Queues a notification.
    pub(super) fn notify(&self, method: &str, params: &impl Serialize) {
        match notification_line(method, params) {
            Ok(line) => self.push(line),
            Err(error) => {
                tracing::error!(method, %error, "a notification cannot be written as JSON")
            }
        }
    }

    /// Waits until a subscription may add to the queue; `false` once it is closed. The first answer
    /// says whether there was room at once.
    pub(super) async fn room(&self) -> Room {
        let mut at_once = true;
        loop {
            let emptied = self.shared.emptied.notified();
            tokio::pin!(emptied);
            // Registered before the look, so that no change between the two is missed.
            emptied.as_mut().enable();
            {
                let queue = self.queue();
                if queue.end != End::Open {
                    return Room::Closed;
                }
                if queue.bytes < ROOM_BYTES && queue.lines.len() < ROOM_LINES {
                    return if at_once { Room::AtOnce } else { Room::Later };
                }
            }
            at_once = false;
            emptied.await;
        }
    }

    /// Lets the writer end once everything queued is written.
    pub(super) fn finish(&self) {
        let mut queue = self.queue();
        if queue.end == End::Open {
            queue.end = End::Finishing;
        }
        drop(queue);
        self.wake_all();
    }

    /// Drops what is queued and ends the writer.
    pub(super) fn close(&self) {
        let mut queue = self.queue();
        queue.end = End::Closed;
        queue.lines.clear();
        queue.bytes = 0;
        drop(queue);
        self.wake_all();
    }

    /// Waits until the queue is closed.
    pub(super) async fn closed(&self) {
        loop {
            let emptied = self.shared.emptied.notified();
            tokio::pin!(emptied);
            emptied.as_mut().enable();
            if self.queue().end == End::Closed {
                return;
            }
            emptied.await;
        }
    }

    /// Writes what is queued until the queue ends or the other side is gone. The one writer.
    pub(super) async fn write(&self, stream: &UnixStream) -> io::Result<()> {
        while let Some(line) = self.next().await {
            let mut rest = line.as_slice();
            while !rest.is_empty() {
                match stream.try_write(rest) {
                    Ok(written) => rest = &rest[written..],
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        tokio::select! {
                            writable = stream.writable() => writable?,
                            () = self.closed() => return Ok(()),
                        }
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    async fn next(&self) -> Option<Vec<u8>> {
        loop {
            {
                let mut queue = self.queue();
                if let Some(line) = queue.lines.pop_front() {
                    queue.bytes -= line.len();
                    drop(queue);
                    self.shared.emptied.notify_waiters();
                    return Some(line);
                }
                if queue.end != End::Open {
                    return None;
                }
            }
            // One permit is kept if something is added between the look and the wait.
            self.shared.filled.notified().await;
        }
    }

    fn wake_all(&self) {
        self.shared.filled.notify_one();
        self.shared.emptied.notify_waiters();
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        // Nothing panics while it holds this lock.
        self.shared
            .queue
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a subscription may add to the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Room {
    /// There was room.
    AtOnce,
    /// There is room now, but the client had to be waited for.
    Later,
    /// The connection has ended.
    Closed,
}
