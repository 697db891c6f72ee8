//! The server of the attach socket: who is admitted, and the end of all connections.

use std::io;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::time::Duration;

use handover_protocol::server::accept::{Admission, accept};
use handover_store::Store;
use tokio::net::UnixStream;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::boundary::Session;
use super::connection::serve;
use super::dispatch::Shared;
use super::leases::Leases;
use super::outlets::Outlets;
use super::places::{ConnectionLimits, Places};
use crate::callers::{CallerKind, ConnectionId};
use crate::requests::Requests;
use crate::system::clock;
use crate::system::creds::{self, Sender};

/// What the server serves.
#[derive(Debug)]
pub struct Parts<S> {
    /// The session behind the socket.
    pub session: Arc<S>,
    /// Its record.
    pub store: Store,
    /// Its requests for a person.
    pub requests: Arc<Requests>,
    /// Its connections, for those who have news for one of them.
    pub outlets: Outlets,
    /// How many there may be.
    pub limits: ConnectionLimits,
}

/// The server of the attach socket. Dropping it ends every connection at once.
#[derive(Debug)]
pub struct Server {
    stopping: watch::Sender<bool>,
    accepting: JoinHandle<()>,
}

impl Server {
    /// Serves `listener`, which must be non-blocking, from now on. Must be called within a tokio
    /// runtime.
    ///
    /// # Errors
    /// When the runtime cannot watch the socket.
    pub fn start<S: Session>(listener: UnixListener, parts: Parts<S>) -> io::Result<Self> {
        let listener = tokio::net::UnixListener::from_std(listener)?;
        let (stopping, stop) = watch::channel(false);
        let shared = Arc::new(Shared {
            session: parts.session,
            store: parts.store,
            requests: parts.requests,
            outlets: parts.outlets,
            leases: Leases::default(),
        });
        let (places, mut last) = (Places::new(parts.limits), 0);
        Ok(Self {
            stopping,
            accepting: tokio::spawn(accept(listener, stop.clone(), move |stream, _| {
                last += 1;
                admit(&shared, &places, &stop, stream, ConnectionId(last))
            })),
        })
    }

    /// Accepts nothing any more, lets what is under way be answered within `grace`, and closes every
    /// connection, however it behaves.
    pub async fn close(mut self, grace: Duration) {
        self.stopping.send_replace(true);
        if tokio::time::timeout(grace, &mut self.accepting)
            .await
            .is_err()
        {
            self.accepting.abort();
            // Returns when the task, and with it every connection's, is dropped.
            let _ = (&mut self.accepting).await;
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Serves the client behind `stream` as connection `id`, if there is a place for it.
fn admit<S: Session>(
    shared: &Arc<Shared<S>>,
    places: &Places,
    stop: &watch::Receiver<bool>,
    stream: UnixStream,
    id: ConnectionId,
) -> Admission<impl Future<Output = ()> + use<S>> {
    let peer = peer(&stream);
    match places.take(peer.pid, is_person(&*shared.session, peer, id)) {
        Ok(place) => {
            let served = serve(Arc::clone(shared), stream, id, stop.clone());
            Admission::Serve(async move {
                let _place = place;
                served.await;
            })
        }
        Err(refusal) => Admission::TurnAway(stream, refusal),
    }
}

/// Who connected, as far as the kernel says.
fn peer(stream: &UnixStream) -> Sender {
    creds::peer(stream).unwrap_or_else(|error| {
        tracing::debug!(%error, "a client's process is not known");
        Sender {
            pid: 0,
            uid: u32::MAX,
            gid: u32::MAX,
        }
    })
}

/// Whether a person connected. It only decides which places are open to the connection: who is
/// calling is found out anew for every line.
fn is_person<S: Session>(session: &S, peer: Sender, id: ConnectionId) -> bool {
    session
        .identify(peer, id, clock::now())
        .is_ok_and(|caller| matches!(caller.kind, CallerKind::Human { .. }))
}
