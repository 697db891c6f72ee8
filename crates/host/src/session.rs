//! A session's directories, its lock, and the small file that says what it is.

use std::cmp::Reverse;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use handover_protocol::{AgentId, DesktopId, SessionId, Timestamp, ViewerName};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::sweep;
use crate::system::dirs::{self, DirError, Roots};
use crate::system::lock::{FileLock, LockError};
use crate::system::{atomic_file, clock};

/// Why a session could not be made or opened.
#[derive(Debug, Error)]
pub enum SessionError {
    /// No directory of that name, or the name is no session's.
    #[error("there is no session {0}; `handover sessions` lists those there are")]
    Unknown(SessionId),
    /// A host already serves it.
    #[error("session {id} is already served by a running host{}", holder.map(|pid| format!(" (pid {pid})")).unwrap_or_default())]
    Held {
        /// The session.
        id: SessionId,
        /// The host's pid as it wrote it.
        holder: Option<u32>,
    },
    /// `session.json` is missing or cannot be understood.
    #[error("{} cannot be read ({reason}); restore it or remove the session's directory", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A directory is not to be trusted.
    #[error(transparent)]
    Directory(#[from] DirError),
    /// The lock could not be taken for another reason than a holder.
    #[error(transparent)]
    Lock(LockError),
    /// The kernel refused.
    #[error("cannot use {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
}

/// What is known of a session while no host serves it: `session.json`, version 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionInfo {
    /// Version of this file.
    pub version: u32,
    /// The session.
    pub id: SessionId,
    /// Its name for people.
    pub name: String,
    /// The project directory, absolute.
    pub project_dir: String,
    /// When it was first made.
    pub created_at: Timestamp,
    /// When it was ended in order; absent while it is served and after a crash.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
}

/// How a stored session stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionState {
    /// A host holds its lock.
    Live,
    /// It was ended in order.
    Ended,
    /// Its host went without ending it.
    Crashed,
    /// No host holds its lock, and its file cannot be read.
    Damaged,
}

/// One line of the list of sessions.
#[derive(Debug)]
pub struct SessionSummary {
    /// The session: its directory is called after it.
    pub id: SessionId,
    /// What its file says, or why it cannot be read.
    pub info: Result<SessionInfo, SessionError>,
    /// How it stands.
    pub state: SessionState,
    /// Its state directory.
    pub state_dir: PathBuf,
}

impl SessionSummary {
    /// Whether `text` is its id or its name for people.
    pub fn is_called(&self, text: &str) -> bool {
        let is_name = |info: &SessionInfo| info.name == text;
        self.id.as_str() == text || self.info.as_ref().is_ok_and(is_name)
    }
}

/// A session that this process serves: the lock is held until this is dropped.
#[derive(Debug)]
pub struct Session {
    info: SessionInfo,
    paths: SessionPaths,
    _lock: FileLock,
}

/// Where a session's files are. Making one checks nothing and creates nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionPaths {
    /// Durable: lock, database, evidence, logs.
    pub state_dir: PathBuf,
    /// Gone with the session: sockets, manifest, desktops' files.
    pub runtime_dir: PathBuf,
}

impl SessionPaths {
    /// The exclusive lock.
    pub fn lock(&self) -> PathBuf {
        self.state_dir.join("host.lock")
    }
    /// [`SessionInfo`].
    pub fn info(&self) -> PathBuf {
        self.state_dir.join(INFO)
    }
    /// Pictures and the like.
    pub fn evidence(&self) -> PathBuf {
        self.state_dir.join("evidence")
    }
    /// Logs of the host and of everything it starts.
    pub fn logs(&self) -> PathBuf {
        self.state_dir.join("logs")
    }
    /// What agents' programs write.
    pub fn agents(&self) -> PathBuf {
        self.state_dir.join("agents")
    }
    /// What an agent's program writes to its standard output.
    pub fn agent_output(&self, agent: &AgentId) -> PathBuf {
        self.agents().join(format!("{agent}.out"))
    }
    /// What an agent's program writes to its standard error.
    pub fn agent_log(&self, agent: &AgentId) -> PathBuf {
        self.logs().join(format!("agent-{agent}.log"))
    }
    /// The log of all agents' keepers, which have little to say.
    pub fn agent_keepers_log(&self) -> PathBuf {
        self.logs().join("agent-keepers.log")
    }
    /// The socket of an agent's keeper.
    pub fn agent_keeper_socket(&self, agent: &AgentId) -> PathBuf {
        self.runtime_dir.join(format!("agent-{agent}.sock"))
    }
    /// The attach socket.
    pub fn attach_socket(&self) -> PathBuf {
        self.runtime_dir.join("attach.sock")
    }
    /// The manifest.
    pub fn manifest(&self) -> PathBuf {
        self.runtime_dir.join("attach.json")
    }
    /// The socket of a desktop's keeper.
    pub fn keeper_socket(&self, desktop: &DesktopId) -> PathBuf {
        self.runtime_dir.join(format!("keeper-{desktop}.sock"))
    }
    /// The RFB socket of a desktop's Xvnc.
    pub fn rfb_socket(&self, desktop: &DesktopId) -> PathBuf {
        self.runtime_dir.join(format!("{desktop}.rfb"))
    }
    /// The directory for a desktop's cookie and passwords.
    pub fn desktop_dir(&self, desktop: &DesktopId) -> PathBuf {
        self.runtime_dir.join(desktop.as_str())
    }
    /// The socket of a viewer.
    pub fn viewer_socket(&self, viewer: &ViewerName) -> PathBuf {
        self.runtime_dir.join(format!("view-{viewer}.sock"))
    }
}

/// The file that holds [`SessionInfo`].
const INFO: &str = "session.json";

const VERSION: u32 = 1;

impl Session {
    /// Makes a new session for `project_dir` and takes its lock. Without a `name` it is called after
    /// the project directory.
    pub fn create(
        roots: &Roots,
        project_dir: &Path,
        name: Option<&str>,
    ) -> Result<Self, SessionError> {
        let state_root = roots.state()?;
        let runtime_root = roots.runtime()?;
        let id = new_id()?;
        let paths = SessionPaths {
            state_dir: state_root.join(id.as_str()),
            runtime_dir: runtime_root.join(id.as_str()),
        };
        dirs::private_dir(&paths.state_dir, "XDG_STATE_HOME")?;
        let lock = take_lock(&id, &paths)?;
        let fallback = project_dir.file_name().map_or_else(
            || id.to_string(),
            |name| name.to_string_lossy().into_owned(),
        );
        let session = Self {
            info: SessionInfo {
                version: VERSION,
                id,
                name: name.map_or(fallback, str::to_owned),
                project_dir: project_dir.to_string_lossy().into_owned(),
                created_at: clock::wall(),
                ended_at: None,
            },
            paths,
            _lock: lock,
        };
        session.store_info()?;
        session.make_directories()?;
        Ok(session)
    }

    /// Takes over a session that was ended or whose host died: its lock first, then what the
    /// predecessor left in the runtime directory is swept, but for desktops that may be adopted. Where
    /// there are such, their directory stays the session's, even if a new one would lie elsewhere.
    pub fn reopen(roots: &Roots, id: &SessionId) -> Result<Self, SessionError> {
        if !is_session_id(id.as_str()) {
            return Err(SessionError::Unknown(id.clone()));
        }
        let mut paths = SessionPaths {
            state_dir: roots.state()?.join(id.as_str()),
            runtime_dir: roots.runtime()?.join(id.as_str()),
        };
        if !paths.state_dir.is_dir() {
            return Err(SessionError::Unknown(id.clone()));
        }
        dirs::check_private(&paths.state_dir, "XDG_STATE_HOME")?;
        let lock = take_lock_from_sweepers(id, &paths)?;
        for root in roots.runtime_candidates() {
            let left = root.join(id.as_str());
            let is_trusted = dirs::check_private(&root, "XDG_RUNTIME_DIR")
                .and_then(|()| dirs::check_private(&left, "XDG_RUNTIME_DIR"))
                .is_ok();
            if !is_trusted {
                continue;
            }
            sweep::sweep_directory(&left).map_err(io_error(&left))?;
            if sweep::has_living_keeper(&left) {
                paths.runtime_dir = left;
                break;
            }
        }
        let info = SessionInfo {
            ended_at: None,
            ..read_info(&paths.info())?
        };
        let session = Self {
            info,
            paths,
            _lock: lock,
        };
        session.store_info()?;
        session.make_directories()?;
        Ok(session)
    }

    /// What the session is.
    pub fn info(&self) -> &SessionInfo {
        &self.info
    }

    /// Where its files are.
    pub fn paths(&self) -> &SessionPaths {
        &self.paths
    }

    /// Records that the session was ended in order and removes its runtime directory. The lock is
    /// released when `self` is dropped, at the end of this call.
    pub fn end(mut self) -> Result<(), SessionError> {
        self.info.ended_at = Some(clock::wall());
        self.store_info()?;
        match std::fs::remove_dir_all(&self.paths.runtime_dir) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(io_error(&self.paths.runtime_dir)(error))
            }
            _ => Ok(()),
        }
    }

    fn store_info(&self) -> Result<(), SessionError> {
        let path = self.paths.info();
        let text = serde_json::to_vec_pretty(&self.info)
            .map_err(|error| io_error(&path)(io::Error::other(error)))?;
        atomic_file::replace(&path, &text).map_err(io_error(&path))
    }

    fn make_directories(&self) -> Result<(), SessionError> {
        dirs::private_dir(&self.paths.evidence(), "XDG_STATE_HOME")?;
        dirs::private_dir(&self.paths.logs(), "XDG_STATE_HOME")?;
        dirs::private_dir(&self.paths.agents(), "XDG_STATE_HOME")?;
        dirs::private_dir(&self.paths.runtime_dir, "XDG_RUNTIME_DIR")?;
        Ok(())
    }
}

/// All stored sessions of this user, newest first; at the end those whose file cannot be read.
/// A directory that has neither that file nor a record is no session.
///
/// # Errors
/// When the directory of all sessions cannot be read or is not to be trusted.
pub fn list(roots: &Roots) -> Result<Vec<SessionSummary>, SessionError> {
    let root = roots.state()?;
    let mut found = Vec::new();
    for entry in std::fs::read_dir(&root).map_err(io_error(&root))? {
        let state_dir = entry.map_err(io_error(&root))?.path();
        let name = state_dir.file_name().and_then(|name| name.to_str());
        let Some(name) = name.filter(|name| is_session_id(name)) else {
            continue;
        };
        let file = state_dir.join(INFO);
        if !file.exists() && !state_dir.join(handover_store::DATABASE).exists() {
            continue;
        }
        let id = SessionId::from(name);
        let info = read_info(&file);
        let state = if FileLock::is_held(&state_dir.join("host.lock")) {
            SessionState::Live
        } else {
            match &info {
                Ok(info) if info.ended_at.is_some() => SessionState::Ended,
                Ok(_) => SessionState::Crashed,
                Err(_) => SessionState::Damaged,
            }
        };
        found.push(SessionSummary {
            id,
            info,
            state,
            state_dir,
        });
    }
    found.sort_by_key(|summary| Reverse(summary.info.as_ref().ok().map(|info| info.created_at)));
    Ok(found)
}

/// Whether `text` can be a session's id: what comes from outside becomes part of a path.
pub fn is_session_id(text: &str) -> bool {
    (1..=32).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
}

/// Eight characters, 40 random bits; without letters that read like digits.
fn new_id() -> Result<SessionId, SessionError> {
    const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    let mut random = [0u8; 8];
    getrandom::fill(&mut random)
        .map_err(|error| io_error(Path::new("/dev/urandom"))(io::Error::other(error)))?;
    Ok(SessionId(
        random
            .iter()
            .map(|byte| char::from(ALPHABET[usize::from(byte & 31)]))
            .collect(),
    ))
}

/// A sweep holds a dead session's lock for an instant; that is not worth a refusal.
fn take_lock_from_sweepers(id: &SessionId, paths: &SessionPaths) -> Result<FileLock, SessionError> {
    let until = Instant::now() + Duration::from_millis(300);
    loop {
        match take_lock(id, paths) {
            Err(SessionError::Held { .. }) if Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(10));
            }
            result => return result,
        }
    }
}

fn take_lock(id: &SessionId, paths: &SessionPaths) -> Result<FileLock, SessionError> {
    FileLock::try_acquire(&paths.lock()).map_err(|error| match error {
        LockError::Held { holder, .. } => SessionError::Held {
            id: id.clone(),
            holder,
        },
        other => SessionError::Lock(other),
    })
}

fn read_info(path: &Path) -> Result<SessionInfo, SessionError> {
    let corrupt = |reason: String| SessionError::Corrupt {
        path: path.to_owned(),
        reason,
    };
    let text = std::fs::read(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => corrupt("it is missing".to_owned()),
        _ => io_error(path)(error),
    })?;
    let info: SessionInfo =
        serde_json::from_slice(&text).map_err(|error| corrupt(error.to_string()))?;
    if info.version != VERSION {
        return Err(corrupt(format!("unknown version {}", info.version)));
    }
    Ok(info)
}

fn io_error(path: &Path) -> impl Fn(io::Error) -> SessionError + '_ {
    |source| SessionError::Io {
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lives_once_ends_and_comes_back() {
        let dir = tempfile::tempdir().unwrap();
        let roots = Roots::at(dir.path(), dir.path());
        let project = dir.path().join("my project");
        let session = Session::create(&roots, &project, None).unwrap();
        let id = session.info().id.clone();
        assert_eq!(session.info().name, "my project");
        assert!(is_session_id(id.as_str()) && id.as_str().len() == 8);
        assert!(matches!(
            Session::reopen(&roots, &id),
            Err(SessionError::Held { holder: Some(pid), .. }) if pid == std::process::id()
        ));
        let state = |wanted| {
            let listed = list(&roots).unwrap();
            assert_eq!(listed.len(), 1);
            assert_eq!((&listed[0].id, listed[0].state), (&id, wanted));
        };
        state(SessionState::Live);
        let runtime = session.paths().runtime_dir.clone();
        drop(session);
        state(SessionState::Crashed);
        let session = Session::reopen(&roots, &id).unwrap();
        assert_eq!(session.info().project_dir, project.to_str().unwrap());
        session.end().unwrap();
        state(SessionState::Ended);
        assert!(!runtime.exists());
        let session = Session::reopen(&roots, &id).unwrap();
        assert_eq!(session.info().ended_at, None);
        assert!(runtime.exists());
    }

    #[test]
    fn names_from_outside_do_not_become_paths() {
        let dir = tempfile::tempdir().unwrap();
        let roots = Roots::at(dir.path(), dir.path());
        for name in ["", "..", "../x", "a/b", "A", "nothere", &"a".repeat(33)] {
            assert!(matches!(
                Session::reopen(&roots, &SessionId::from(name)),
                Err(SessionError::Unknown(_))
            ));
        }
    }

    #[test]
    fn a_corrupt_file_is_named_and_its_session_still_listed() {
        let dir = tempfile::tempdir().unwrap();
        let roots = Roots::at(dir.path(), dir.path());
        let good = Session::create(&roots, dir.path(), Some("good")).unwrap();
        let bad = Session::create(&roots, dir.path(), Some("bad")).unwrap();
        let (id, path) = (bad.info().id.clone(), bad.paths().info());
        drop(bad);
        for text in [&b""[..], b"{", b"{\"version\":9}", &[0xff; 99]] {
            std::fs::write(&path, text).unwrap();
            let error = Session::reopen(&roots, &id).unwrap_err();
            assert!(matches!(error, SessionError::Corrupt { .. }));
            assert!(error.to_string().contains(path.to_str().unwrap()));
            let listed = list(&roots).unwrap();
            let states = listed.iter().map(|session| (&session.id, session.state));
            assert_eq!(
                states.collect::<Vec<_>>(),
                [
                    (&good.info().id, SessionState::Live),
                    (&id, SessionState::Damaged)
                ]
            );
            assert!(listed[1].is_called(id.as_str()) && !listed[1].is_called("bad"));
        }
    }

    #[test]
    fn without_its_file_a_session_is_what_has_a_record() {
        let dir = tempfile::tempdir().unwrap();
        let roots = Roots::at(dir.path(), dir.path());
        let session = Session::create(&roots, dir.path(), None).unwrap();
        let (id, paths) = (session.info().id.clone(), session.paths().clone());
        drop(session);
        std::fs::remove_file(paths.info()).unwrap();
        assert_eq!(list(&roots).unwrap().len(), 0);
        std::fs::write(paths.state_dir.join(handover_store::DATABASE), b"").unwrap();
        let listed = list(&roots).unwrap();
        assert_eq!(listed.len(), 1);
        assert_eq!(
            (&listed[0].id, listed[0].state),
            (&id, SessionState::Damaged)
        );
        let error = Session::reopen(&roots, &id).unwrap_err();
        assert!(matches!(error, SessionError::Corrupt { path, .. } if path == paths.info()));
    }
}
