//! Keeping a lease alive from a thread of its own, with a connection of its own: whatever holds up
//! the rest of the program must not cost the person control.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use handover_protocol::client::ClientError;
use handover_protocol::{ControlRenewResult, ErrorCode, LeaseParams, Method, Refusal};
use tokio::sync::mpsc;

use super::super::context::block_on;
use super::super::failure::Failure;
use super::super::session::Session;

/// News from the heartbeat.
#[derive(Debug)]
pub enum Beat {
    /// The lease lives on.
    Renewed {
        /// Until it ends unless renewed.
        expires_in: Duration,
    },
    /// The lease is lost; nothing follows.
    Lost(Refusal),
}

/// What the heartbeat needs to know.
#[derive(Clone, Debug)]
pub struct Pulse {
    /// The attach socket.
    pub socket: PathBuf,
    /// The lease.
    pub lease: LeaseParams,
    /// How often to renew it.
    pub every: Duration,
    /// How long it lives without.
    pub ttl: Duration,
}

/// Starts the thread. It ends when the receiver is dropped or the lease is lost.
pub fn start(pulse: Pulse) -> std::io::Result<mpsc::UnboundedReceiver<Beat>> {
    let (beats, receiver) = mpsc::unbounded_channel();
    std::thread::Builder::new()
        .name("heartbeat".to_owned())
        .spawn(move || {
            let lost = block_on(beat(&pulse, &beats)).err();
            if let Some(lost) = lost {
                // Nobody listens once the takeover has ended.
                let _ = beats.send(Beat::Lost(lost.into()));
            }
        })?;
    Ok(receiver)
}

/// Renews until nobody listens any more (`Ok`) or the lease is lost (`Err`).
async fn beat(pulse: &Pulse, beats: &mpsc::UnboundedSender<Beat>) -> Result<(), Failure> {
    let mut session = None;
    let mut renewed_at = Instant::now();
    loop {
        tokio::select! {
            () = tokio::time::sleep(pulse.every) => {}
            () = beats.closed() => return Ok(()),
        }
        match renew(pulse, &mut session).await {
            Ok(result) => {
                renewed_at = Instant::now();
                let expires_in = Duration::from_millis(result.expires_in_ms);
                if beats.send(Beat::Renewed { expires_in }).is_err() {
                    return Ok(());
                }
            }
            // A refusal is final: a lost lease never comes back.
            Err(ClientError::Refused(refusal)) => return Err(refusal.into()),
            Err(error) if renewed_at.elapsed() >= pulse.ttl => {
                let message = format!("the lease could not be renewed in time: {error}");
                return Err(Failure::new(ErrorCode::Timeout, message));
            }
            // It may answer the next time; a new connection cannot be worse.
            Err(_) => session = None,
        }
    }
}

async fn renew(
    pulse: &Pulse,
    session: &mut Option<Session>,
) -> Result<ControlRenewResult, ClientError> {
    let session = match session {
        Some(session) => session,
        None => {
            let connected = Session::connect(&pulse.socket, pulse.ttl, pulse.ttl).await?;
            session.insert(connected)
        }
    };
    session
        .client
        .call(Method::ControlRenew, &pulse.lease, Some(pulse.ttl))
        .await
}
