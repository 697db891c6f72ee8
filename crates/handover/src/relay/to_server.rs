//! The one ordered way to the server.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe;
use tokio::sync::{Notify, mpsc};

use super::records::weight;

/// See the module. When it is dropped, what waits is written, and then the server's input is closed.
pub(super) struct ToServer {
    records: mpsc::UnboundedSender<Vec<u8>>,
    waiting: Arc<AtomicUsize>,
    written: Arc<Notify>,
}

impl ToServer {
    /// Begins to write to its standard input.
    pub(super) fn start(mut stdin: pipe::Sender) -> Self {
        let (records, mut to_write) = mpsc::unbounded_channel::<Vec<u8>>();
        let to_server = Self {
            records,
            waiting: Default::default(),
            written: Default::default(),
        };
        let (waiting, written) = (to_server.waiting.clone(), to_server.written.clone());
        tokio::spawn(async move {
            while let Some(record) = to_write.recv().await {
                // A server that reads no more is about to end, or only writes: what it was to read is
                // dropped, so that nothing waits for it.
                let _ = stdin.write_all(&record).await;
                waiting.fetch_sub(weight(&record), Ordering::AcqRel);
                written.notify_one();
            }
        });
        to_server
    }

    /// Queues a record.
    pub(super) fn send(&self, record: Vec<u8>) {
        self.waiting.fetch_add(weight(&record), Ordering::AcqRel);
        // The writer lives as long as this.
        let _ = self.records.send(record);
    }

    /// The bytes that wait to be written.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Acquire)
    }
}

/// Waits until less waits to be written; for ever if there is no server.
pub(super) async fn written(to_server: Option<&ToServer>) {
    match to_server {
        Some(to_server) => to_server.written.notified().await,
        None => std::future::pending().await,
    }
}
