//! The body of an answer, which knows whether it was sent to its end.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame};
use tokio::sync::mpsc;

use crate::log::Entry;
use crate::request::Outcome;

/// The body of an answer: chunks as the writer makes them.
pub(crate) struct ReplyBody {
    chunks: mpsc::Receiver<Bytes>,
    entry: Entry,
    outcome: Outcome,
}

impl ReplyBody {
    /// A body that takes chunks from `chunks` and notes `outcome` in `entry` when the last was sent.
    pub(crate) fn new(chunks: mpsc::Receiver<Bytes>, entry: Entry, outcome: Outcome) -> Self {
        Self {
            chunks,
            entry,
            outcome,
        }
    }

    /// A body that is there already.
    pub(crate) fn whole(text: String, entry: Entry, outcome: Outcome) -> Self {
        let (sender, chunks) = mpsc::channel(1);
        // There is room for one.
        let _ = sender.try_send(Bytes::from(text));
        Self::new(chunks, entry, outcome)
    }
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let chunk = std::task::ready!(self.chunks.poll_recv(context));
        if chunk.is_none() {
            self.entry.end(self.outcome);
        }
        Poll::Ready(chunk.map(|bytes| Ok(Frame::data(bytes))))
    }
}
