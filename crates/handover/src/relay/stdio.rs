//! The relay's own standard streams.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::buffer::spare_capacity;
use rustix::event::PollFlags;
use tokio::sync::{Notify, mpsc, oneshot};

use super::records::{MAX_RECORD, weight};
use super::splitter::{Piece, Splitter};
use crate::streams::{patiently, thread, wait};

/// A pipe of this many bytes takes large records in few pieces. The kernel may allow less.
pub(super) const PIPE: usize = 1 << 20;
/// Reads ahead.
const AHEAD: usize = 2;

/// Starts to read standard input, and gives the records of each read; the channel closes at its end. What has no
/// newline then is a record like any other: whether it is whole shows when it is read.
///
/// # Errors
/// If there is no thread to be had.
pub(super) fn input() -> io::Result<mpsc::Receiver<Vec<Piece>>> {
    let (records, arriving) = mpsc::channel(AHEAD);
    // If it is no pipe, or the kernel does not allow it, records only take more reads.
    let _ = rustix::pipe::fcntl_setpipe_size(rustix::stdio::stdin(), PIPE);
    let read = move || {
        let mut splitter = Splitter::new(MAX_RECORD);
        loop {
            let stdin = rustix::stdio::stdin();
            let read = patiently(stdin, PollFlags::IN, || {
                rustix::io::read(stdin, spare_capacity(splitter.room()))
            });
            match read {
                Ok(0) => {
                    if let Some(rest) = splitter.rest() {
                        // If nobody takes it any more, it is over anyway.
                        let _ = records.blocking_send(vec![rest]);
                    }
                    return;
                }
                Ok(_) => {
                    let mut found = Vec::new();
                    splitter.split(|piece| found.push(piece));
                    if !found.is_empty() && records.blocking_send(found).is_err() {
                        return;
                    }
                }
                Err(_) => return,
            }
        }
    };
    thread("input", read)?;
    Ok(arriving)
}

/// The one ordered way to the client.
#[derive(Debug)]
pub(super) struct Output {
    records: mpsc::UnboundedSender<Vec<u8>>,
    written: Arc<Notify>,
    waiting: Arc<AtomicUsize>,
    gone: Arc<Notify>,
    finished: oneshot::Receiver<()>,
}

impl Output {
    /// Starts to write to standard output, and to look whether somebody reads it.
    ///
    /// # Errors
    /// If there is no thread to be had.
    pub(super) fn start() -> io::Result<Self> {
        let (records, mut to_write) = mpsc::unbounded_channel::<Vec<u8>>();
        let (finish, finished) = oneshot::channel();
        let (written, gone) = (Arc::<Notify>::default(), Arc::<Notify>::default());
        let waiting = Arc::<AtomicUsize>::default();
        let output = Self {
            records,
            written: Arc::clone(&written),
            waiting: Arc::clone(&waiting),
            gone: Arc::clone(&gone),
            finished,
        };
        // As for the input.
        let _ = rustix::pipe::fcntl_setpipe_size(rustix::stdio::stdout(), PIPE);
        let nobody_reads = Arc::clone(&gone);
        let write = move || {
            while let Some(record) = to_write.blocking_recv() {
                if write_all(&record).is_err() {
                    nobody_reads.notify_one();
                    break;
                }
                waiting.fetch_sub(weight(&record), Ordering::AcqRel);
                written.notify_one();
            }
            let _ = finish.send(());
        };
        thread("output", write)?;
        thread("hang-up", move || {
            wait(rustix::stdio::stdout(), PollFlags::empty());
            gone.notify_one();
        })?;
        Ok(output)
    }

    /// Queues a record.
    pub(super) fn send(&self, record: Vec<u8>) {
        self.waiting.fetch_add(weight(&record), Ordering::AcqRel);
        // If nobody reads, that is told by `gone`.
        let _ = self.records.send(record);
    }

    /// The bytes that wait to be written.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Acquire)
    }

    /// Waits until less waits to be written.
    pub(super) async fn written(&self) {
        self.written.notified().await;
    }

    /// Waits until nobody reads any more.
    pub(super) async fn gone(&self) {
        self.gone.notified().await;
    }

    /// Waits until everything is written.
    pub(super) async fn finish(self) {
        let Self {
            records, finished, ..
        } = self;
        drop(records);
        // It fails if the thread has panicked: then there is nothing to wait for.
        let _ = finished.await;
    }
}

fn write_all(mut bytes: &[u8]) -> io::Result<()> {
    let stdout = rustix::stdio::stdout();
    while !bytes.is_empty() {
        let length = patiently(stdout, PollFlags::OUT, || rustix::io::write(stdout, bytes))?;
        bytes = &bytes[length..];
    }
    Ok(())
}
