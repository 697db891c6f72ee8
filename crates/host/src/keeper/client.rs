//! The host's side of a keeper.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use thiserror::Error;
use tokio::sync::mpsc;

use super::wire::{Exit, KeeperStatus, Launch};
use crate::system::process::ProcessIdentity;
use crate::system::socket::BindError;

/// The program that is the keeper, and the arguments that make it one.
#[derive(Debug, Clone)]
pub struct KeeperProgram {
    /// The executable.
    pub exe: PathBuf,
    /// What precedes the keeper's own arguments.
    pub args: Vec<OsString>,
}

impl KeeperProgram {
    /// This very executable, also when its file was replaced meanwhile: `handover keeper …`.
    pub fn own() -> Self {
        Self {
            exe: PathBuf::from("/proc/self/exe"),
            args: vec!["keeper".into()],
        }
    }
}

/// What a new desktop keeper is told.
#[derive(Debug, Clone)]
pub struct KeeperOptions {
    /// The session, for `ps` and for callers' lineage.
    pub session: String,
    /// The desktop.
    pub desktop: String,
    /// Where it listens.
    pub socket: PathBuf,
    /// Its own log, appended.
    pub log: PathBuf,
    /// How long it goes on with no host connected.
    pub orphan_timeout: Duration,
}

/// Why a keeper did not do what was asked.
#[derive(Debug, Error)]
pub enum KeeperError {
    /// Its socket's path is too long.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// It could not be started.
    #[error("cannot start the keeper: {0}")]
    Start(io::Error),
    /// It did not answer within its deadline.
    #[error("the keeper did not answer within {} ms", .0.as_millis())]
    Timeout(Duration),
    /// It is gone, or closed the connection.
    #[error("the keeper is gone")]
    Gone,
    /// Whoever listens on the socket is not the process that was expected.
    #[error("{} is not served by the keeper on record", path.display())]
    NotTheOne {
        /// The socket.
        path: PathBuf,
    },
    /// It refused.
    #[error("{0}")]
    Refused(String),
    /// The connection broke.
    #[error("cannot speak with the keeper: {0}")]
    Io(#[from] io::Error),
}

/// News from a keeper.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeeperEvent {
    /// The display server has ended.
    ServerExited(Exit),
    /// A launched program has ended; what it started may go on.
    ChildExited {
        /// Its pid.
        pid: u32,
        /// How.
        exit: Exit,
    },
    /// The keeper has ended or closed the connection; the last event. What was below it is killed by
    /// [`Keeper::kill_leftovers`].
    Gone,
}

/// A connection to one keeper. Clones share it. When the last is dropped, the keeper goes on without
/// a host.
#[derive(Debug, Clone)]
pub struct Keeper {}

impl Keeper {
    /// Starts a keeper and connects to it.
    pub async fn start(
        _program: &KeeperProgram,
        _options: &KeeperOptions,
    ) -> Result<(Self, mpsc::UnboundedReceiver<KeeperEvent>), KeeperError> {
        unimplemented!()
    }

    /// Connects to a keeper that a former host has started; `expected` and the boot were stored then.
    /// Refuses any other process.
    pub async fn adopt(
        _socket: &Path,
        _expected: ProcessIdentity,
        _boot_id: &str,
    ) -> Result<(Self, mpsc::UnboundedReceiver<KeeperEvent>), KeeperError> {
        unimplemented!()
    }

    /// The keeper's process.
    pub fn process(&self) -> ProcessIdentity {
        unimplemented!()
    }

    /// Starts the display server: like [`Keeper::launch`], but it dies with the keeper, and its end is
    /// reported as [`KeeperEvent::ServerExited`]. A second call is refused while the first server lives.
    pub async fn start_server(&self, _launch: &Launch) -> Result<ProcessIdentity, KeeperError> {
        unimplemented!()
    }

    /// Starts a program in a session of its own.
    pub async fn launch(&self, _launch: &Launch) -> Result<ProcessIdentity, KeeperError> {
        unimplemented!()
    }

    /// What it keeps.
    pub async fn status(&self) -> Result<KeeperStatus, KeeperError> {
        unimplemented!()
    }

    /// Ends everything below the keeper (TERM, then after `grace` KILL until nothing is left) and the
    /// keeper itself. Answers what could not be killed, which is empty unless a process hangs in the
    /// kernel.
    pub async fn end(&self, _grace: Duration) -> Result<Vec<ProcessIdentity>, KeeperError> {
        unimplemented!()
    }

    /// After the keeper itself has died: kills what was below it, known from the last looks and from
    /// the marker in the environment, each verified by its start time. Answers what is left.
    pub async fn kill_leftovers(&self) -> Vec<ProcessIdentity> {
        unimplemented!()
    }
}
