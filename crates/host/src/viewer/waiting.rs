//! A viewer's socket from its birth until a client has shaken hands on it.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use handover_control::ViewerId;
use handover_rfb::handshake::{Progress, ServerHandshake};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use super::{Ended, Settings};
use crate::display::{Connected, connect};
use crate::system::clock;
use crate::system::creds::Sender;
use crate::system::socket::BindError;

/// How long a client may take for its handshake.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);
/// Most clients whose handshakes are under way at once, for one viewer.
const KNOCKING_LIMIT: usize = 8;
/// Bytes read at once in a handshake.
const READ_BYTES: usize = 1024;

/// A bound socket, which goes away with this.
#[derive(Debug)]
pub(super) struct Listener {
    listener: UnixListener,
    path: PathBuf,
}

impl Listener {
    /// Takes over a bound socket and its file.
    pub(super) fn new(
        listener: std::os::unix::net::UnixListener,
        path: PathBuf,
    ) -> Result<Listener, BindError> {
        let listening = || {
            listener.set_nonblocking(true)?;
            UnixListener::from_std(listener)
        };
        match listening() {
            Ok(listener) => Ok(Listener { listener, path }),
            Err(source) => Err(BindError::Io { path, source }),
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // It may be gone already: then nobody can connect either, which is what was wanted.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// A client and the display, both with their handshakes done.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) stream: UnixStream,
    /// What the client sent after its handshake.
    pub(super) rest: Vec<u8>,
    pub(super) display: Connected,
    /// The title that the client was told.
    pub(super) title: String,
}

/// Waits for the one client that this viewer is for: the first that gets through its handshake. Whoever does not get
/// that far, or takes its time, changes nothing for the others.
pub(super) async fn for_client(
    settings: &Settings,
    viewer: ViewerId,
    listener: Listener,
) -> Result<Client, Ended> {
    let mut control = settings.control.clone();
    let mut until = Instant::now() + settings.patience.unused;
    let mut knocking = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.listener.accept(), if knocking.len() < KNOCKING_LIMIT => {
                let (stream, _) = accepted?;
                knocking.spawn(shake_hands(settings.clone(), stream));
            }
            Some(done) = knocking.join_next() => match done {
                Ok(Ok(client)) => return Ok(client),
                Ok(Err(reason)) => tracing::warn!(%viewer, "client turned away: {reason}"),
                Err(panic) => tracing::error!(%viewer, "a handshake failed: {panic}"),
            },
            changed = control.changed() => changed.map_err(|_| Ended::DesktopGone)?,
            () = tokio::time::sleep_until(until) => {
                // Whoever has control and no viewer yet is still to be let in.
                if control.borrow().holder != Some(viewer) {
                    return Err(Ended::Unused);
                }
                until = Instant::now() + settings.patience.unused;
            }
        }
    }
}

/// Admits a client, connects it to the display and does the handshake.
async fn shake_hands(settings: Settings, stream: UnixStream) -> Result<Client, Ended> {
    let credentials = stream.peer_cred()?;
    let sender = Sender {
        pid: credentials
            .pid()
            .and_then(|pid| u32::try_from(pid).ok())
            .unwrap_or(0),
        uid: credentials.uid(),
        gid: credentials.gid(),
    };
    if sender.uid != rustix::process::getuid().as_raw() {
        let refusal = format!("it belongs to uid {}, not to us", sender.uid);
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, refusal).into());
    }
    (settings.admit)(sender, clock::now())
        .map_err(|refusal| io::Error::new(io::ErrorKind::PermissionDenied, refusal.message))?;

    let display = connect(&settings.upstream, settings.credentials.clone()).await?;
    let title = settings.control.borrow().title.clone();
    let mut init = display.init.clone();
    init.name.clone_from(&title);
    let greeted = greet(&stream, init);
    let rest = timeout(HANDSHAKE_WITHIN, greeted)
        .await
        .map_err(io::Error::from)??;
    Ok(Client {
        stream,
        rest,
        display,
        title,
    })
}

/// Does the handshake; returns what the client sent after it.
async fn greet(
    stream: &UnixStream,
    init: handover_rfb::handshake::ServerInit,
) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    let mut handshake = ServerHandshake::new(init, &mut out);
    let mut buffer = [0; READ_BYTES];
    loop {
        write_all(stream, &out).await?;
        out.clear();
        let read = read(stream, &mut buffer).await?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let progress = handshake.advance(&buffer[..read], &mut out);
        if !matches!(progress, Ok(Progress::More)) {
            write_all(stream, &out).await?;
        }
        match progress {
            Ok(Progress::More) => {}
            Ok(Progress::Done { consumed, .. }) => return Ok(buffer[consumed..read].to_vec()),
            Err(error) => return Err(io::Error::new(io::ErrorKind::InvalidData, error)),
        }
    }
}

async fn read(stream: &UnixStream, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        stream.readable().await?;
        match stream.try_read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            outcome => return outcome,
        }
    }
}

async fn write_all(stream: &UnixStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        stream.writable().await?;
        match stream.try_write(bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
