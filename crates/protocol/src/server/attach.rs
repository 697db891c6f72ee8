//! The attach socket of a program that runs agents of its own.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use thiserror::Error;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::accept::{Admission, accept};
use super::connection::serve;
use super::control::AgentControl;
use super::dirs::{DirError, private_dir};
use super::events::Events;
use super::lock::{FileLock, LockError};
use super::manifest::ManifestWriter;
use super::outlet::Together;
use super::socket::{self, BindError};
use crate::{
    AgentView, CallerKind, CallerView, ErrorCode, Manifest, ManifestAgent, PROTOCOL_VERSION,
    Refusal, SessionId, Timestamp,
};

/// The lock that guards the directory, beside the socket in it.
pub const LOCK: &str = "attach.lock";
/// Connections that may be open at once.
pub const MAX_CONNECTIONS: usize = 256;
/// How long what is under way may take to be answered when the server closes.
const GRACE: Duration = Duration::from_secs(2);

/// Why the socket is not served. Every message says what to do.
#[derive(Debug, Error)]
pub enum ServeError {
    /// The directory is not ours alone.
    #[error(transparent)]
    Dir(#[from] DirError),
    /// Another program serves in the directory, or the lock cannot be taken.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// Another program that knows nothing of the lock serves the socket.
    #[error("{} is served by another program; choose another directory", .0.display())]
    Taken(PathBuf),
    /// The socket cannot be bound.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The directory's name is no name for a session.
    #[error("{} has no name that a session could have: 1 to 64 letters, digits, `-` or `_`", .0.display())]
    NoSession(PathBuf),
    /// The system refused something else.
    #[error("cannot serve in {}: {source}", dir.display())]
    Io {
        /// The directory.
        dir: PathBuf,
        /// What it said.
        source: io::Error,
    },
}

/// How clients see the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Its session; different for every program that is up.
    pub session_id: SessionId,
    /// The session's name for people.
    pub name: String,
    /// The directory that its agents work in, absolute.
    pub project_dir: PathBuf,
}

impl Identity {
    /// The session is called after the directory that the socket is in, and the agents work in the
    /// current one.
    ///
    /// # Errors
    /// If the directory's name cannot be a session's, or there is no current directory.
    pub fn of(dir: &Path) -> Result<Self, ServeError> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        let name = dir
            .file_name()
            .and_then(|name| name.to_str())
            .filter(|name| name.len() <= 64 && name.chars().all(allowed))
            .ok_or_else(|| ServeError::NoSession(dir.to_owned()))?;
        Ok(Self {
            session_id: name.into(),
            name: name.to_owned(),
            project_dir: std::env::current_dir().map_err(failed(dir))?,
        })
    }
}

/// Serves the agents of this program on `attach.sock`, and keeps `attach.json` beside it, by which
/// `handover list`, `steer`, `abort`, `result` and `follow` find them.
///
/// Clients search the directories below
/// [`Roots::runtime`](super::dirs::Roots::runtime), so a directory in there, called after the session,
/// is the place to serve in:
///
/// ```no_run
/// # use handover_protocol::server::{AgentControl, AttachServer, dirs::Roots};
/// # async fn serve(agents: impl AgentControl) -> Result<(), Box<dyn std::error::Error>> {
/// let dir = Roots::from_env().runtime()?.join("my-session");
/// let server = AttachServer::bind(&dir, agents).await?;
/// // Tell what happens: server.events().agent_status(…)
/// server.close().await;
/// # Ok(())
/// # }
/// ```
///
/// Only processes of the same user are served. A client that stops reading, writing or living holds up
/// nobody. Dropping the server ends every connection at once and removes what it made.
#[derive(Debug)]
pub struct AttachServer {
    events: Events,
    manifest: ManifestWriter,
    stopping: watch::Sender<bool>,
    accepting: JoinHandle<()>,
    following: JoinHandle<()>,
    /// Last, so that it is given up when nothing of ours is in it any more.
    place: Place,
}

/// What all connections share.
#[derive(Debug)]
pub(super) struct Shared<C> {
    pub(super) control: C,
    pub(super) session_id: SessionId,
    pub(super) events: Events,
    /// What waits for them.
    pub(super) together: Together,
}

impl AttachServer {
    /// Serves `control` in `dir` as [`Identity::of`] it. Must be called within a tokio runtime.
    ///
    /// `dir` is made, mode 0700, if it is absent. A socket that a program has left there when it died
    /// is replaced; one that is served never is.
    ///
    /// # Errors
    /// If the directory cannot be trusted, is another program's, or the socket cannot be bound.
    pub async fn bind(
        dir: impl AsRef<Path>,
        control: impl AgentControl,
    ) -> Result<Self, ServeError> {
        let identity = Identity::of(dir.as_ref())?;
        Self::bind_as(dir, identity, control).await
    }

    /// [`AttachServer::bind`] under another name than the directory's.
    ///
    /// # Errors
    /// The same.
    pub async fn bind_as(
        dir: impl AsRef<Path>,
        identity: Identity,
        control: impl AgentControl,
    ) -> Result<Self, ServeError> {
        let dir = dir.as_ref();
        let place = Place::take(&std::path::absolute(dir).map_err(failed(dir))?)?;
        let listener = socket::bind_private(&place.socket())?;
        let listener = UnixListener::from_std(listener).map_err(failed(dir))?;
        let manifest = place.manifest(&identity, control.list().await);
        let manifest = manifest
            .and_then(|manifest| ManifestWriter::start(place.dir.join("attach.json"), manifest))
            .map_err(failed(dir))?;
        let shared = Arc::new(Shared {
            control,
            session_id: identity.session_id,
            events: Events::new(),
            together: Together::default(),
        });
        let (stopping, stop) = watch::channel(false);
        Ok(Self {
            events: shared.events.clone(),
            manifest: manifest.clone(),
            stopping,
            following: tokio::spawn(follow(Arc::clone(&shared), manifest)),
            accepting: tokio::spawn(accept(listener, stop.clone(), move |stream, served| {
                admit(&shared, &stop, stream, served)
            })),
            place,
        })
    }

    /// Where clients connect.
    pub fn socket_path(&self) -> PathBuf {
        self.place.socket()
    }

    /// Through which the program tells what its agents do.
    pub fn events(&self) -> &Events {
        &self.events
    }

    /// Accepts nothing any more, lets what is under way be answered within two seconds, and closes
    /// every connection, however it behaves.
    pub async fn close(mut self) {
        // First of all, so that nobody finds what no longer answers.
        self.manifest.close();
        self.place.clear();
        self.stopping.send_replace(true);
        if tokio::time::timeout(GRACE, &mut self.accepting)
            .await
            .is_err()
        {
            self.accepting.abort();
            // Returns when the task, and with it every connection's, is dropped.
            let _ = (&mut self.accepting).await;
        }
    }
}

impl Drop for AttachServer {
    fn drop(&mut self) {
        self.accepting.abort();
        self.following.abort();
        self.manifest.close();
    }
}

/// The directory that is served in, with its lock.
#[derive(Debug)]
struct Place {
    dir: PathBuf,
    /// Whether it was made for this.
    made: bool,
    lock: FileLock,
}

impl Place {
    fn take(dir: &Path) -> Result<Self, ServeError> {
        let made = !dir.exists();
        private_dir(dir, "XDG_RUNTIME_DIR")?;
        let lock = FileLock::try_acquire(&dir.join(LOCK))?;
        let socket = dir.join("attach.sock");
        // Before it is ours, since what is ours is removed in the end.
        if is_served(&socket).map_err(failed(dir))? {
            return Err(ServeError::Taken(socket));
        }
        Ok(Self {
            dir: dir.to_owned(),
            made,
            lock,
        })
    }

    fn socket(&self) -> PathBuf {
        self.dir.join("attach.sock")
    }

    fn manifest(&self, identity: &Identity, agents: Vec<AgentView>) -> io::Result<Manifest> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
        Ok(Manifest {
            protocol: PROTOCOL_VERSION,
            session_id: identity.session_id.clone(),
            name: identity.name.clone(),
            project_dir: identity.project_dir.display().to_string(),
            pid: std::process::id(),
            start_ticks: own_start_ticks()?,
            boot_id: boot_id.trim().to_owned(),
            socket_path: self.socket().display().to_string(),
            herdr_pane_id: std::env::var("HERDR_PANE_ID").ok(),
            updated_at: Timestamp::from_unix(now.unwrap_or_default()),
            agents: agents.into_iter().map(ManifestAgent::from).collect(),
            desktops: Vec::new(),
        })
    }

    /// Removes the socket. It is ours as long as the lock is.
    fn clear(&self) {
        let _ = std::fs::remove_file(self.socket());
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.clear();
        if self.made {
            // The lock's file last, and only with its directory: after it we touch nothing here, and
            // whoever comes meanwhile looks whether the file it locked is still the one in place.
            let _ = std::fs::remove_file(self.lock.path());
            let _ = std::fs::remove_dir(&self.dir);
        }
    }
}

/// Whether somebody listens at `path`.
fn is_served(path: &Path) -> io::Result<bool> {
    // Without waiting for a program that does not accept: it is there all the same.
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    // A path that is too long is refused when it is bound.
    let Ok(address) = SocketAddrUnix::new(path) else {
        return Ok(false);
    };
    match connect(&socket, &address) {
        Ok(()) | Err(rustix::io::Errno::AGAIN) => Ok(true),
        Err(_) => Ok(false),
    }
}

/// When this process began, in clock ticks since boot.
fn own_start_ticks() -> io::Result<u64> {
    let line = std::fs::read_to_string("/proc/self/stat")?;
    // The name stands in parentheses and may hold any of them, and blanks; the state behind it is
    // field 3, the start is field 22.
    let fields = line.rsplit_once(')').map(|(_, fields)| fields);
    fields
        .and_then(|fields| fields.split_ascii_whitespace().nth(22 - 3)?.parse().ok())
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "unreadable /proc/self/stat"))
}

/// Keeps the manifest as the program's agents are.
async fn follow<C: AgentControl>(shared: Arc<Shared<C>>, manifest: ManifestWriter) {
    loop {
        shared.events.wait_for_agents().await;
        let agents = shared.control.list().await;
        manifest.update(|manifest| {
            manifest.agents = agents.into_iter().map(ManifestAgent::from).collect()
        });
    }
}

/// Serves the client behind `stream` beside the `served` others, if there is room and it is of our user.
fn admit<C: AgentControl>(
    shared: &Arc<Shared<C>>,
    stop: &watch::Receiver<bool>,
    stream: UnixStream,
    served: usize,
) -> Admission<impl Future<Output = ()> + use<C>> {
    if served >= MAX_CONNECTIONS {
        let message = format!("{MAX_CONNECTIONS} connections are open: close one first");
        return Admission::TurnAway(stream, Refusal::new(ErrorCode::QueueFull, message));
    }
    match caller(&stream) {
        Ok(caller) => Admission::Serve(serve(Arc::clone(shared), stream, caller, stop.clone())),
        Err(refusal) => Admission::TurnAway(stream, refusal),
    }
}

/// Who has connected, if it is of our own user.
fn caller(stream: &UnixStream) -> Result<CallerView, Refusal> {
    let own = rustix::process::geteuid().as_raw();
    let peer = stream.peer_cred().ok();
    let peer = peer.filter(|peer| peer.uid() == own).ok_or_else(|| {
        Refusal::new(
            ErrorCode::CallerRefused,
            "only processes of the user who runs this program are served",
        )
    })?;
    Ok(CallerView {
        kind: CallerKind::Human,
        agent: None,
        // 0 if it is outside of our pid namespace.
        pid: peer.pid().and_then(|pid| pid.try_into().ok()).unwrap_or(0),
        uid: peer.uid(),
        marked: None,
    })
}

fn failed(dir: &Path) -> impl FnOnce(io::Error) -> ServeError {
    move |source| ServeError::Io {
        dir: dir.to_owned(),
        source,
    }
}
