//! Chromium's DevTools pipe: JSON messages, each ended by a zero byte.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use handover_cdp::Records;
use rustix::pipe::fcntl_setpipe_size;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::sync::mpsc;

use crate::keeper::pipes::Channel;

/// The longest message of the browser, in bytes. Chromium's own limit for what it reads is 100 MB; what
/// it writes are mostly pictures.
const MAX_MESSAGE: usize = 256 << 20;

/// Bytes read at once.
const READ_BYTES: usize = 256 << 10;

/// Bytes that a pipe holds, if the kernel allows.
const PIPE_BYTES: usize = 1 << 20;

/// The host's ends.
pub(super) struct Pipe {
    answers: pipe::Receiver,
    records: Records,
    buffer: Vec<u8>,
    writer: mpsc::UnboundedSender<Vec<u8>>,
    backlog: Arc<AtomicUsize>,
}

impl Pipe {
    /// Needs a tokio runtime: a task does the writing.
    pub(super) fn new(channel: Channel) -> Self {
        let Channel { commands, answers } = channel;
        // Smaller ones only cost time.
        let _ = fcntl_setpipe_size(&commands, PIPE_BYTES);
        let _ = fcntl_setpipe_size(&answers, PIPE_BYTES);
        let (writer, written) = mpsc::unbounded_channel();
        let backlog = Arc::new(AtomicUsize::new(0));
        tokio::spawn(write(commands, written, Arc::clone(&backlog)));
        Self {
            answers,
            records: Records::new(MAX_MESSAGE),
            buffer: vec![0; READ_BYTES],
            writer,
            backlog,
        }
    }

    /// Queues a message. A browser that has ended is noticed by reading.
    pub(super) fn send(&self, mut message: Vec<u8>) {
        message.push(0);
        self.backlog.fetch_add(message.len(), Ordering::Relaxed);
        let _ = self.writer.send(message);
    }

    /// Bytes that are queued.
    pub(super) fn backlog(&self) -> usize {
        self.backlog.load(Ordering::Relaxed)
    }

    /// The next message. May be dropped before it is done: nothing is lost.
    pub(super) async fn receive(&mut self) -> io::Result<Vec<u8>> {
        loop {
            let record = self.records.next_record();
            if let Some(record) = record.map_err(io::Error::other)? {
                return Ok(record);
            }
            let read = self.answers.read(&mut self.buffer).await?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.records.push(&self.buffer[..read]);
        }
    }
}

/// Writes until the pipe is dropped or the browser reads no more.
async fn write(
    mut commands: pipe::Sender,
    mut messages: mpsc::UnboundedReceiver<Vec<u8>>,
    backlog: Arc<AtomicUsize>,
) {
    while let Some(message) = messages.recv().await {
        let written = commands.write_all(&message).await;
        backlog.fetch_sub(message.len(), Ordering::Relaxed);
        if let Err(error) = written {
            tracing::debug!(%error, "the browser reads no more");
            return;
        }
    }
}
