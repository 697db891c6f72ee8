//! The relay's own standard streams. Whatever they are, and whoever shares them, they are left as they
//! were found: threads read and write them, and no flag is set.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use tokio::sync::{Notify, mpsc, oneshot};

/// Bytes read at once.
const CHUNK: usize = 128 << 10;
/// A pipe of this many bytes takes large records in few pieces. The kernel may allow less.
pub(super) const PIPE: usize = 1 << 20;
/// Chunks read ahead.
const AHEAD: usize = 2;

/// Starts to read standard input; the channel closes at its end.
///
/// # Errors
/// If there is no thread to be had.
pub(super) fn input() -> io::Result<mpsc::Receiver<Vec<u8>>> {
    let (chunks, arriving) = mpsc::channel(AHEAD);
    // If it is no pipe, or the kernel does not allow it, records only take more pieces.
    let _ = rustix::pipe::fcntl_setpipe_size(rustix::stdio::stdin(), PIPE);
    let read = move || {
        loop {
            let mut chunk = Vec::with_capacity(CHUNK);
            match rustix::io::read(rustix::stdio::stdin(), spare_capacity(&mut chunk)) {
                Ok(0) => return,
                Ok(_) => {
                    if chunks.blocking_send(chunk).is_err() {
                        return;
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => wait(rustix::stdio::stdin(), PollFlags::IN),
                Err(_) => return,
            }
        }
    };
    std::thread::Builder::new()
        .name("input".to_owned())
        .spawn(read)?;
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
                waiting.fetch_sub(record.len(), Ordering::AcqRel);
                written.notify_one();
            }
            let _ = finish.send(());
        };
        let name = |name: &str| std::thread::Builder::new().name(name.to_owned());
        name("output").spawn(write)?;
        // An error is reported though nothing is asked for.
        name("hang-up").spawn(move || {
            wait(rustix::stdio::stdout(), PollFlags::empty());
            gone.notify_one();
        })?;
        Ok(output)
    }

    /// Queues a record.
    pub(super) fn send(&self, record: Vec<u8>) {
        self.waiting.fetch_add(record.len(), Ordering::AcqRel);
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
    while !bytes.is_empty() {
        match rustix::io::write(rustix::stdio::stdout(), bytes) {
            Ok(length) => bytes = &bytes[length..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => wait(rustix::stdio::stdout(), PollFlags::OUT),
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

/// Waits until a stream is ready for `events`, has an error, or its other end is gone.
fn wait(stream: impl AsFd, events: PollFlags) {
    loop {
        let mut fds = [PollFd::new(&stream, events)];
        if poll(&mut fds, None) != Err(Errno::INTR) {
            return;
        }
    }
}
