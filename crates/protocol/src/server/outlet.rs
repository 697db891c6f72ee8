//! What goes out on a connection: one ordered, bounded queue with a single writer.
//!
//! Nothing that fills the queue ever waits for its client. Answers and notices that no longer fit end
//! the connection; a subscription asks for room first and skips what its client is too slow for.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use tokio::net::UnixStream;
use tokio::sync::Notify;

use crate::envelope::notification_line;

/// Bytes that may wait for a client: the longest answer, and some small ones.
const MAX_BYTES: usize = crate::MAX_ANSWER + (1 << 20);
/// Lines that may wait for a client.
const MAX_LINES: usize = 65_536;
/// Below this a subscription may add to the queue.
const ROOM_BYTES: usize = 256 << 10;
const ROOM_LINES: usize = 128;

/// The queue of one connection.
#[derive(Debug, Clone, Default)]
pub struct Outlet {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
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
    /// Empty and open.
    pub fn new() -> Self {
        Self::default()
    }

    /// Queues one line, newline included. If it does not fit, the connection ends.
    pub fn push(&self, line: Vec<u8>) {
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
    pub fn notify(&self, method: &str, params: &impl Serialize) {
        match notification_line(method, params) {
            Ok(line) => self.push(line),
            Err(error) => {
                tracing::error!(method, %error, "a notification cannot be written as JSON")
            }
        }
    }

    /// Waits until a subscription may add to the queue; `false` once it is closed. The first answer
    /// says whether there was room at once.
    pub async fn room(&self) -> Room {
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
    pub fn finish(&self) {
        let mut queue = self.queue();
        if queue.end == End::Open {
            queue.end = End::Finishing;
        }
        drop(queue);
        self.wake_all();
    }

    /// Drops what is queued and ends the writer.
    pub fn close(&self) {
        let mut queue = self.queue();
        queue.end = End::Closed;
        queue.lines.clear();
        queue.bytes = 0;
        drop(queue);
        self.wake_all();
    }

    /// Waits until the queue is closed.
    pub async fn closed(&self) {
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
    pub async fn write(&self, stream: &UnixStream) -> io::Result<()> {
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
pub enum Room {
    /// There was room.
    AtOnce,
    /// There is room now, but the client had to be waited for.
    Later,
    /// The connection has ended.
    Closed,
}
