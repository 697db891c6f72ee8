//! The console's own socket, by which the command line asks it for links: in a private directory, and
//! only for whom a host would take for a person.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use handover_host::callers::{CallerKind, Callers, ConnectionId};
use handover_host::system::clock;
use handover_host::system::creds::{CredentialReader, Sender};
use handover_host::system::dirs::{DirError, Roots, check_private, private_dir};
use handover_protocol::server::socket;
use handover_protocol::{DesktopId, ErrorCode, ErrorObject, Refusal, SessionId, Timestamp};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;

use super::auth::{LINK_TIMES, Secret};
use super::grant::Until;
use super::routes::OPEN;
use super::scope::Scope;
use super::state::Console;

/// The directory of such sockets, below that of the hosts. No session is called so.
const DIRECTORY: &str = "console";
/// The longest request or answer, in bytes.
const MAX_LINE: usize = 4 << 10;
/// Requests that are heard at once.
const MAX_CALLERS: usize = 8;
/// How long a caller may take to ask, and a console to answer.
const WITHIN: Duration = Duration::from_secs(5);
/// How long a person has to confirm on the terminal.
const CONFIRM: Duration = Duration::from_secs(60);
/// How long a link is good for if nothing else is said.
const GOOD_FOR: Duration = Duration::from_secs(600);

/// What is asked for: a link to one desktop, or to everything.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Ask {
    /// The session of the desktop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// The desktop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desktop: Option<DesktopId>,
    /// How long it is to be good for, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub for_ms: Option<u64>,
}

/// A link that was made.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Link {
    /// The address to open, once.
    pub url: String,
    /// The desktop that it opens; everything if none.
    pub desktop: Option<DesktopId>,
    /// The session of the desktop.
    pub session: Option<SessionId>,
    /// Until when it is good; a desktop's session ends then, too.
    pub expires_at: Timestamp,
}

/// The answer.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Answer {
    Link(Link),
    Error(ErrorObject),
}

/// A socket that listens; gone when dropped.
#[derive(Debug)]
pub struct Door {
    listener: UnixListener,
    path: PathBuf,
    base: String,
    callers: Callers,
    connections: AtomicU64,
}

impl Drop for Door {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// The private directory of the sockets.
///
/// # Errors
/// It cannot be trusted, or not be made.
pub fn directory(roots: &Roots) -> Result<PathBuf, DirError> {
    let directory = roots.runtime()?.join(DIRECTORY);
    private_dir(&directory, "XDG_RUNTIME_DIR")?;
    Ok(directory)
}

impl Door {
    /// Listens in `directory`, for links that begin with `base`. What dead consoles left is removed.
    ///
    /// # Errors
    /// The socket cannot be made.
    pub fn open(directory: &Path, base: String) -> io::Result<Self> {
        for (_, left) in sockets(directory) {
            let dead = std::os::unix::net::UnixStream::connect(&left);
            if dead.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused) {
                let _ = std::fs::remove_file(left);
            }
        }
        let path = directory.join(format!("{}.sock", std::process::id()));
        let listener = socket::bind_private(&path).map_err(io::Error::other)?;
        Ok(Self {
            listener: UnixListener::from_std(listener)?,
            path,
            base,
            callers: Callers::new(),
            connections: AtomicU64::new(1),
        })
    }

    /// Answers whoever asks. Does not end.
    pub async fn serve(self, console: &Arc<Console>) {
        let door = Arc::new(self);
        let room = Arc::new(Semaphore::new(MAX_CALLERS));
        let mut running = tokio::task::JoinSet::new();
        loop {
            while running.try_join_next().is_some() {}
            let Ok(room) = Arc::clone(&room).acquire_owned().await else {
                return;
            };
            let Ok((stream, _)) = door.listener.accept().await else {
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            let (door, console) = (Arc::clone(&door), Arc::clone(console));
            running.spawn(async move {
                // A caller that goes away gets no answer.
                let _ = door.talk(stream, &console).await;
                drop(room);
            });
        }
    }

    async fn talk(&self, stream: UnixStream, console: &Console) -> io::Result<()> {
        let accepted = clock::now();
        let stream = Arc::new(stream);
        let mut reader = CredentialReader::new(Arc::clone(&stream))?;
        let (line, sender) = tokio::time::timeout(WITHIN, line(&mut reader)).await??;
        let connection = ConnectionId(self.connections.fetch_add(1, Ordering::Relaxed));
        let answer = match self.callers.identify(sender, connection, accepted) {
            Err(refusal) => Err(refusal),
            Ok(caller) => {
                let act = "make a link to the web console";
                match &caller.kind {
                    CallerKind::Human { .. } => self.callers.confirm(&caller, act, CONFIRM).await,
                    CallerKind::Agent { .. } | CallerKind::App { .. } => Err(Refusal::new(
                        ErrorCode::CallerRefused,
                        "only a person may have a link to the web console",
                    )),
                }
            }
        };
        let answer = match answer {
            Ok(()) => self.link(&line, console).await,
            Err(refusal) => Err(refusal),
        };
        let answer = match answer {
            Ok(link) => Answer::Link(link),
            Err(refusal) => Answer::Error(refusal.into()),
        };
        let mut bytes = serde_json::to_vec(&answer)?;
        bytes.push(b'\n');
        let write = async {
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                stream.writable().await?;
                match stream.try_write(rest) {
                    Ok(written) => rest = &rest[written..],
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(())
        };
        tokio::time::timeout(WITHIN, write).await?
    }

    async fn link(&self, line: &[u8], console: &Console) -> Result<Link, Refusal> {
        let ask: Ask = serde_json::from_slice(line).map_err(|_| {
            let message = "a request is {session?, desktop?, forMs?}";
            Refusal::new(ErrorCode::Malformed, message)
        })?;
        let good_for = ask.for_ms.map_or(GOOD_FOR, Duration::from_millis);
        if good_for < LINK_TIMES.0 || good_for > LINK_TIMES.1 {
            let message = "a link can be good for a second to a day";
            return Err(Refusal::new(ErrorCode::BadParams, message));
        }
        let scope = match (&ask.session, &ask.desktop) {
            (None, None) => Scope::All,
            (Some(session), Some(desktop)) => {
                let live = console
                    .sessions
                    .find(session.as_str())
                    .await
                    .ok_or_else(|| {
                        let message = format!("there is no live session {session}");
                        Refusal::new(ErrorCode::SessionUnknown, message)
                    })?;
                if !live.desktops.iter().any(|known| known.id == *desktop) {
                    let message = format!(
                        "session {session} has no desktop {desktop}; `handover list` shows them"
                    );
                    return Err(Refusal::new(ErrorCode::DesktopUnknown, message));
                }
                Scope::Desktop {
                    session: session.clone(),
                    desktop: desktop.clone(),
                }
            }
            _ => {
                let message = "a desktop is named with its session";
                return Err(Refusal::new(ErrorCode::BadParams, message));
            }
        };
        let internal = |error: &dyn std::error::Error| {
            Refusal::new(
                ErrorCode::Internal,
                format!("cannot make a secret: {error}"),
            )
        };
        let secret = Secret::generate().map_err(|error| internal(&error))?;
        let now = clock::now();
        let ms = u64::try_from(good_for.as_millis()).unwrap_or_default();
        let until = Until {
            moment: now + good_for,
            shown: Timestamp(clock::wall().0.saturating_add(ms)),
        };
        let added = console.access().add_link(&secret, scope, Some(until), now);
        added.map_err(|error| Refusal::new(ErrorCode::QueueFull, error.to_string()))?;
        Ok(Link {
            url: format!("{}{OPEN}{}", self.base, secret.reveal()),
            desktop: ask.desktop,
            session: ask.session,
            expires_at: until.shown,
        })
    }
}

/// One line, which one process must have written.
async fn line(reader: &mut CredentialReader) -> io::Result<(Vec<u8>, Sender)> {
    let mut line = Vec::new();
    let mut writer = None;
    while line.len() <= MAX_LINE {
        let Some((bytes, sender)) = reader.read().await? else {
            break;
        };
        if writer.is_some_and(|writer| writer != sender) {
            break;
        }
        writer = Some(sender);
        let end = bytes.iter().position(|&byte| byte == b'\n');
        line.extend_from_slice(&bytes[..end.unwrap_or(bytes.len())]);
        if end.is_some() && line.len() <= MAX_LINE {
            return Ok((line, sender));
        }
    }
    Err(io::ErrorKind::InvalidData.into())
}

/// The sockets of consoles in a directory, the newest first.
fn sockets(directory: &Path) -> Vec<(std::time::SystemTime, PathBuf)> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    let mut found: Vec<_> = paths
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "sock")
        })
        .filter_map(|path| {
            let began = path
                .symlink_metadata()
                .and_then(|metadata| metadata.modified());
            Some((began.ok()?, path))
        })
        .collect();
    found.sort_by(|one, other| other.cmp(one));
    found
}

/// Asks the newest console of this user that answers for a link.
///
/// # Errors
/// What the console refuses; `session_unknown` if there is no console.
pub async fn ask(roots: &Roots, ask: &Ask) -> Result<Link, Refusal> {
    for root in roots.runtime_candidates() {
        let directory = root.join(DIRECTORY);
        let ours = [&root, &directory];
        if ours
            .iter()
            .any(|path| check_private(path, "XDG_RUNTIME_DIR").is_err())
        {
            continue;
        }
        for (_, path) in sockets(&directory) {
            // What does not answer has ended.
            if let Ok(stream) = UnixStream::connect(&path).await {
                return ask_at(stream, ask).await;
            }
        }
    }
    let message = "no web console is running; `handover console` starts one";
    Err(Refusal::new(ErrorCode::SessionUnknown, message))
}

async fn ask_at(mut stream: UnixStream, ask: &Ask) -> Result<Link, Refusal> {
    let exchange = async {
        let mut line = serde_json::to_vec(ask)?;
        line.push(b'\n');
        stream.write_all(&line).await?;
        let mut answer = Vec::new();
        let mut reader = BufReader::new((&mut stream).take(MAX_LINE as u64));
        reader.read_until(b'\n', &mut answer).await?;
        io::Result::Ok(serde_json::from_slice::<Answer>(&answer)?)
    };
    // A person may be asked first.
    match tokio::time::timeout(CONFIRM + WITHIN, exchange).await {
        Ok(Ok(Answer::Link(link))) => Ok(link),
        Ok(Ok(Answer::Error(error))) => Err(error.into()),
        Ok(Err(_)) => {
            let message = "the web console ended before its answer";
            Err(Refusal::new(ErrorCode::SessionUnknown, message))
        }
        Err(_) => Err(Refusal::new(
            ErrorCode::Timeout,
            "the web console does not answer",
        )),
    }
}
