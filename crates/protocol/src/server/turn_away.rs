//! Telling a client why it is not served, so that it arrives.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, copy, sink};
use tokio::net::UnixStream;
use tokio::task::JoinSet;

use crate::envelope::{Id, error_line};
use crate::{MAX_REQUEST, Refusal};

/// Clients that may be told at once. Those beyond are told as far as that goes without waiting.
const MAX_LEAVING: usize = 64;
/// How long one of them may take to read why, and to close.
const LEAVING: Duration = Duration::from_secs(2);

/// The clients that are turned away just now. Dropping it ends their connections.
#[derive(Debug, Default)]
pub struct Leaving(JoinSet<()>);

impl Leaving {
    /// Tells the client behind `stream` that it is not served, without keeping the caller waiting.
    pub fn turn_away(&mut self, stream: UnixStream, refusal: Refusal) {
        while self.0.try_join_next().is_some() {}
        // Its request is not read, so that there is none to answer under its id.
        let line = error_line(&Id::Null, refusal.into());
        if self.0.len() < MAX_LEAVING {
            self.0.spawn(async move {
                // What it does not read in time is lost to it.
                let _ = tokio::time::timeout(LEAVING, tell(stream, line)).await;
            });
        } else if let Err(error) = stream.try_write(&line) {
            tracing::debug!(%error, "a client that was turned away was not told why");
        }
    }
}

/// Writes the line and waits until the client closes. What it has written is taken from the socket
/// first, since closing over unread bytes resets the connection, by which the client could miss why.
async fn tell(mut stream: UnixStream, line: Vec<u8>) {
    let told = async {
        stream.write_all(&line).await?;
        stream.shutdown().await?;
        copy(&mut stream.take(MAX_REQUEST as u64), &mut sink()).await
    };
    if let Err(error) = told.await {
        tracing::debug!(%error, "a client that was turned away was not told why");
    }
}
