//! What goes out on a connection: one ordered, bounded queue with a single writer.
//!
//! Nothing that fills the queue ever waits for its client. Answers and notices that no longer fit end
//! the connection; a subscription asks for room first and skips what its client is too slow for.
//!
//! What goes to many clients is one line in memory that all their queues share, and what waits for one
//! client is written in few calls.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use tokio::net::UnixStream;
use tokio::sync::Notify;
use tokio::task::consume_budget;

use crate::envelope::notification_line;

/// Bytes that may wait for a client: the longest answer, and some small ones.
const MAX_BYTES: usize = crate::MAX_ANSWER + (1 << 20);
/// Lines that may wait for a client.
const MAX_LINES: usize = 65_536;
/// Below this a subscription may add to the queue.
const ROOM_BYTES: usize = 256 << 10;
const ROOM_LINES: usize = 128;
/// Bytes that may wait for all clients of one server together, however many there are. Beyond them a
/// client may have as much waiting as its share, and a subscription less.
const MAX_TOGETHER: usize = 256 << 20;
const SHARE_BYTES: usize = 64 << 10;
const SHARE_ROOM_BYTES: usize = SHARE_BYTES / 4;
/// Lines that are taken out of the queue and written at once; more bytes than these only as one line.
const WRITE_LINES: usize = 64;
const WRITE_BYTES: usize = 64 << 10;

/// A line, newline included, that several queues may share.
pub type SharedLine = Arc<Vec<u8>>;

/// What waits for all clients of one server together. Clones are the same.
#[derive(Debug, Clone)]
pub struct Together(Arc<AtomicUsize>, usize);

impl Together {
    fn limited(bytes: usize) -> Self {
        Self(Arc::default(), bytes)
    }

    /// Whether each has to do with its share.
    fn is_much(&self) -> bool {
        self.0.load(Ordering::Relaxed) > self.1
    }

    fn add(&self, bytes: usize) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }

    fn take(&self, bytes: usize) {
        self.0.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Default for Together {
    fn default() -> Self {
        Self::limited(MAX_TOGETHER)
    }
}

/// The queue of one connection.
#[derive(Debug, Clone, Default)]
pub struct Outlet {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    together: Together,
    queue: Mutex<Queue>,
    /// Something was added, or the queue was closed.
    filled: Notify,
    /// Something was written, or the queue was closed.
    emptied: Notify,
    /// The queue was closed. Apart from the others, so that those who wait for the end sleep until
    /// then.
    closed: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    lines: VecDeque<SharedLine>,
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
    /// Empty and open, the only one of its server.
    pub fn new() -> Self {
        Self::default()
    }

    /// Empty and open, one of several.
    pub fn beside(together: &Together) -> Self {
        Self {
            shared: Arc::new(Shared {
                together: together.clone(),
                queue: Mutex::default(),
                filled: Notify::new(),
                emptied: Notify::new(),
                closed: Notify::new(),
            }),
        }
    }

    /// Queues one line, newline included. If it does not fit, the connection ends.
    pub fn push(&self, line: Vec<u8>) {
        self.share(Arc::new(line));
    }

    /// The same for a line that others have too.
    pub fn share(&self, line: SharedLine) {
        let mut queue = self.queue();
        if queue.end != End::Open {
            return;
        }
        let together = &self.shared.together;
        together.add(line.len());
        queue.bytes += line.len();
        queue.lines.push_back(line);
        let most = if together.is_much() {
            SHARE_BYTES
        } else {
            MAX_BYTES
        };
        if queue.bytes > most || queue.lines.len() > MAX_LINES {
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

    /// Waits until a subscription may add to the queue; says whether there was room at once.
    pub async fn room(&self) -> Room {
        if let Some(room) = self.room_now(Room::AtOnce) {
            return room;
        }
        loop {
            let emptied = self.shared.emptied.notified();
            tokio::pin!(emptied);
            // Registered before the look, so that no change between the two is missed.
            emptied.as_mut().enable();
            if let Some(room) = self.room_now(Room::Later) {
                return room;
            }
            emptied.await;
        }
    }

    fn room_now(&self, found: Room) -> Option<Room> {
        let queue = self.queue();
        if queue.end != End::Open {
            return Some(Room::Closed);
        }
        let room = if self.shared.together.is_much() {
            SHARE_ROOM_BYTES
        } else {
            ROOM_BYTES
        };
        (queue.bytes < room && queue.lines.len() < ROOM_LINES).then_some(found)
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
        self.shared.together.take(std::mem::take(&mut queue.bytes));
        drop(queue);
        self.wake_all();
    }

    /// Waits until the queue is closed.
    pub async fn closed(&self) {
        let closed = self.shared.closed.notified();
        tokio::pin!(closed);
        closed.as_mut().enable();
        if self.queue().end != End::Closed {
            closed.await;
        }
    }

    /// [`Outlet::write`] as a task of its own: once the other side is gone, the queue is closed.
    pub async fn write_all(self, stream: Arc<UnixStream>) {
        if let Err(error) = self.write(&stream).await {
            tracing::debug!(%error, "a client is gone");
            self.close();
        }
    }

    /// Writes what is queued until the queue ends or the other side is gone. The one writer.
    pub async fn write(&self, stream: &UnixStream) -> io::Result<()> {
        let mut batch = Batch::default();
        while self.next(&mut batch).await {
            while !batch.lines.is_empty() {
                match batch.write(stream) {
                    Ok(written) => batch.advance(written),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        tokio::select! {
                            writable = stream.writable() => writable?,
                            () = self.closed() => return Ok(()),
                        }
                    }
                    Err(error) => return Err(error),
                }
            }
            // A client that always has something to read must not keep others from theirs.
            consume_budget().await;
        }
        Ok(())
    }

    /// Takes what is to be written next; `false` if nothing comes any more.
    async fn next(&self, batch: &mut Batch) -> bool {
        loop {
            {
                let mut queue = self.queue();
                if !queue.lines.is_empty() {
                    self.shared.together.take(queue.move_to(batch));
                    drop(queue);
                    self.shared.emptied.notify_waiters();
                    return true;
                }
                if queue.end != End::Open {
                    return false;
                }
            }
            // One permit is kept if something is added between the look and the wait.
            self.shared.filled.notified().await;
        }
    }

    fn wake_all(&self) {
        self.shared.filled.notify_one();
        self.shared.emptied.notify_waiters();
        if self.queue().end == End::Closed {
            self.shared.closed.notify_waiters();
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        // Nothing panics while it holds this lock.
        self.shared
            .queue
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // What nobody has written or closed.
        let queue = self.queue.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.together.take(queue.bytes);
    }
}

impl Queue {
    /// Answers how many bytes it has moved.
    fn move_to(&mut self, batch: &mut Batch) -> usize {
        let mut bytes = 0;
        while let Some(line) = self.lines.front() {
            let full = batch.lines.len() == WRITE_LINES;
            if full || (!batch.lines.is_empty() && bytes + line.len() > WRITE_BYTES) {
                break;
            }
            bytes += line.len();
            batch.lines.extend(self.lines.pop_front());
        }
        self.bytes -= bytes;
        bytes
    }
}

/// Lines that are being written.
#[derive(Debug, Default)]
struct Batch {
    lines: VecDeque<SharedLine>,
    /// Bytes of the first line that are written already.
    written: usize,
}

impl Batch {
    /// One call for all of them.
    fn write(&self, stream: &UnixStream) -> io::Result<usize> {
        let mut parts = [IoSlice::new(&[]); WRITE_LINES];
        let mut skip = self.written;
        for (part, line) in parts.iter_mut().zip(&self.lines) {
            *part = IoSlice::new(&line[skip..]);
            skip = 0;
        }
        stream.try_write_vectored(&parts[..self.lines.len()])
    }

    fn advance(&mut self, written: usize) {
        self.written += written;
        while let Some(line) = self.lines.front()
            && self.written >= line.len()
        {
            self.written -= line.len();
            self.lines.pop_front();
        }
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

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    /// What a client gets that reads so many bytes at a time.
    async fn read_by(part: usize, lines: &[SharedLine]) -> Vec<u8> {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let outlet = Outlet::new();
        let writer = tokio::spawn({
            let outlet = outlet.clone();
            async move { outlet.write(&ours).await }
        });
        for line in lines {
            outlet.share(line.clone());
        }
        outlet.finish();
        let (mut all, mut buffer) = (Vec::new(), vec![0; part]);
        while let count @ 1.. = theirs.read(&mut buffer).await.unwrap() {
            all.extend_from_slice(&buffer[..count]);
        }
        writer.await.unwrap().unwrap();
        all
    }

    #[tokio::test]
    async fn every_byte_arrives_once_and_in_order_however_slowly_it_is_read() {
        // Small and large lines, an empty one, and more in all than a socket holds.
        let lengths = [0, 1, 63, 64, 5_000, 65_535, 65_536, 65_537, 300_000];
        let lines: Vec<SharedLine> = (0..200_usize)
            .map(|n| Arc::new(vec![(n % 251) as u8; lengths[n % lengths.len()]]))
            .collect();
        let all: Vec<u8> = lines.iter().flat_map(|line| line.iter().copied()).collect();
        for part in [997, 1 << 20] {
            assert!(
                read_by(part, &lines).await == all,
                "read {part} bytes at a time"
            );
        }
    }

    #[tokio::test]
    async fn what_waits_is_bounded_and_a_shared_line_is_one() {
        let outlet = Outlet::new();
        let line = Arc::new(vec![b'x'; 1 << 20]);
        for _ in 0..17 {
            outlet.share(line.clone());
        }
        assert_eq!(Arc::strong_count(&line), 18);
        assert_eq!(outlet.queue().end, End::Open);
        outlet.share(line.clone());
        // Too much waits: the queue is closed and holds nothing any more.
        outlet.closed().await;
        assert_eq!(Arc::strong_count(&line), 1);
        assert_eq!(outlet.room().await, Room::Closed);
    }

    #[tokio::test]
    async fn once_much_waits_for_all_together_each_has_to_do_with_its_share() {
        let together = Together::limited(1 << 20);
        let waiting = || together.0.load(Ordering::Relaxed);
        let [hog, modest, late, large] = [(); 4].map(|()| Outlet::beside(&together));
        let line = |bytes: usize| vec![b'x'; bytes];
        modest.push(line(SHARE_BYTES - 100));
        assert_eq!(modest.room().await, Room::AtOnce);
        hog.push(line((1 << 20) - SHARE_BYTES + 100));
        // The one that has most is ended by the next line, the others go on within their share.
        modest.push(line(100));
        assert!(modest.room_now(Room::AtOnce).is_none());
        late.push(line(100));
        assert_eq!(late.room().await, Room::AtOnce);
        large.push(line(SHARE_BYTES + 1));
        large.closed().await;
        hog.push(line(1));
        hog.closed().await;
        assert_eq!(waiting(), SHARE_BYTES + 100);
        large.push(line(1));
        drop((modest, hog, large));
        assert_eq!(waiting(), 100);
        late.close();
        assert_eq!(waiting(), 0);
    }

    #[tokio::test]
    async fn a_subscription_has_room_again_once_its_client_has_read() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let outlet = Outlet::new();
        let line = Arc::new(vec![b'x'; 4 << 10]);
        while outlet.room_now(Room::AtOnce).is_some() {
            outlet.share(line.clone());
        }
        let writer = tokio::spawn({
            let outlet = outlet.clone();
            async move { outlet.write(&ours).await }
        });
        let reader = tokio::spawn(async move { theirs.read_to_end(&mut Vec::new()).await });
        assert_eq!(outlet.room().await, Room::Later);
        outlet.finish();
        writer.await.unwrap().unwrap();
        reader.await.unwrap().unwrap();
    }
}
