//! What goes to a program's standard input: a bounded queue, so that a program that does not read
//! holds nobody up.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

/// Bytes that may wait for a program. A first prompt always fits.
const MAX_WAITING: usize = 8 << 20;
/// Above this no further message is taken.
const FULL: usize = 4 << 20;

/// The way to a program's standard input. Dropped, the input is closed once everything is written.
#[derive(Debug)]
pub(super) struct Input {
    queue: mpsc::UnboundedSender<Vec<u8>>,
    /// Bounds the queue, which its length cannot.
    waiting: Arc<AtomicUsize>,
}

impl Input {
    pub fn new(mut stdin: Box<dyn AsyncWrite + Send + Unpin>) -> Self {
        let (queue, mut queued) = mpsc::unbounded_channel::<Vec<u8>>();
        let waiting = Arc::new(AtomicUsize::new(0));
        let left = waiting.clone();
        tokio::spawn(async move {
            while let Some(bytes) = queued.recv().await {
                let written = stdin.write_all(&bytes).await;
                left.fetch_sub(bytes.len(), Ordering::Relaxed);
                if written.is_err() || stdin.flush().await.is_err() {
                    return;
                }
            }
        });
        Self { queue, waiting }
    }

    /// Whether too much waits for another message to be taken.
    pub fn is_full(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > FULL
    }

    /// Queues bytes; false if the program takes nothing any more, or far too much waits.
    pub fn write(&mut self, bytes: Vec<u8>) -> bool {
        let length = bytes.len();
        if self.waiting.load(Ordering::Relaxed) + length > MAX_WAITING {
            return false;
        }
        self.waiting.fetch_add(length, Ordering::Relaxed);
        self.queue.send(bytes).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt;

    #[tokio::test]
    async fn what_waits_is_bounded_and_what_was_taken_is_written_in_order() {
        let (ours, mut theirs) = tokio::io::duplex(1024);
        let mut input = Input::new(Box::new(ours));
        let mut written = 0usize;
        while input.write(vec![(written % 251) as u8; 1 << 20]) {
            written += 1;
        }
        assert!(input.is_full());
        assert!(written <= MAX_WAITING >> 20);
        drop(input);
        let mut all = Vec::new();
        theirs.read_to_end(&mut all).await.unwrap();
        assert_eq!(all.len(), written << 20);
        for (place, part) in all.chunks(1 << 20).enumerate() {
            assert!(part.iter().all(|&byte| byte == (place % 251) as u8));
        }
    }

    #[tokio::test]
    async fn a_program_that_has_closed_its_input_is_noticed() {
        let (ours, theirs) = tokio::io::duplex(64);
        drop(theirs);
        let mut input = Input::new(Box::new(ours));
        while input.write(b"x".to_vec()) {
            tokio::task::yield_now().await;
        }
    }
}
