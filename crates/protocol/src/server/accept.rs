//! The accept loop of an attach socket, and the end of all connections.

use std::time::Duration;

use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::turn_away::Leaving;
use crate::Refusal;

/// How long to wait before accepting again when the process is out of descriptors or memory.
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);

/// What becomes of a client that has connected.
#[derive(Debug)]
pub enum Admission<F> {
    /// It is served until this ends.
    Serve(F),
    /// It is told why it is not served.
    TurnAway(UnixStream, Refusal),
}

/// Accepts clients until `stopping` says that the server ends, then waits for those that are served.
/// `admit` decides on each; it is told how many are served. Given up, it ends every connection at once.
pub async fn accept<F>(
    listener: UnixListener,
    mut stopping: watch::Receiver<bool>,
    mut admit: impl FnMut(UnixStream, usize) -> Admission<F>,
) where
    F: Future<Output = ()> + Send + 'static,
{
    let mut connections = JoinSet::new();
    let mut leaving = Leaving::default();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(ended) = connections.join_next() => {
                if let Err(error) = ended {
                    tracing::error!(%error, "a connection failed");
                }
                continue;
            }
            () = stopped(&mut stopping) => break,
        };
        match accepted {
            Ok((stream, _)) => match admit(stream, connections.len()) {
                Admission::Serve(served) => {
                    connections.spawn(served);
                }
                Admission::TurnAway(stream, refusal) => leaving.turn_away(stream, refusal),
            },
            Err(error) => {
                tracing::warn!(%error, "could not accept a connection");
                tokio::time::sleep(ACCEPT_AGAIN).await;
            }
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// Waits until the server ends.
pub async fn stopped(stopping: &mut watch::Receiver<bool>) {
    // An error means that the server is dropped, which ends it as well.
    let _ = stopping.wait_for(|stop| *stop).await;
}
