//! One Xvnc below a keeper: its files, its flags, its start, and its log of connections.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use tokio::net::UnixStream;

use crate::keeper::client::{Keeper, KeeperError};
use crate::system::process::ProcessIdentity;

/// Where a desktop's files are: in the session's runtime directory, except the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DesktopFiles {
    /// `<runtime>/d1/`, 0700.
    pub dir: PathBuf,
    /// `<runtime>/d1.rfb`, the RFB socket.
    pub rfb_socket: PathBuf,
    /// `<runtime>/keeper-d1.sock`.
    pub keeper_socket: PathBuf,
    /// `<state>/logs/d1-xvnc.log`.
    pub log: PathBuf,
}

impl DesktopFiles {
    /// The files of `desktop` in this session.
    pub fn new(
        paths: &crate::session::SessionPaths,
        desktop: &handover_protocol::DesktopId,
    ) -> Self {
        Self {
            dir: paths.desktop_dir(desktop),
            rfb_socket: paths.rfb_socket(desktop),
            keeper_socket: paths.keeper_socket(desktop),
            log: paths.logs().join(format!("{desktop}-xvnc.log")),
        }
    }
    /// The X cookie.
    pub fn xauthority(&self) -> PathBuf {
        self.dir.join("Xauthority")
    }
    /// Both passwords as Xvnc reads them.
    pub fn password_file(&self) -> PathBuf {
        self.dir.join("passwd")
    }
    /// The view-only password alone, as a viewer reads it.
    pub fn view_password_file(&self) -> PathBuf {
        self.dir.join("passwd-view")
    }
    /// Removes all of them but the log.
    pub fn remove(&self) -> io::Result<()> {
        unimplemented!()
    }
}

/// The two passwords of an Xvnc, eight characters each. Never shown by `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct Passwords {
    /// Full control.
    pub full: String,
    /// View only.
    pub view_only: String,
}

impl Passwords {
    /// Reads them back from a desktop's password file, for adoption.
    pub fn read(_files: &DesktopFiles) -> io::Result<Self> {
        unimplemented!()
    }
}

impl std::fmt::Debug for Passwords {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Passwords(..)")
    }
}

/// What a new Xvnc is asked to be.
#[derive(Debug, Clone)]
pub struct XvncOptions {
    /// Width in pixels.
    pub width: u16,
    /// Height in pixels.
    pub height: u16,
    /// Most updates a second to each client.
    pub frame_rate: u32,
    /// The desktop's name as viewers show it.
    pub title: String,
    /// How long it may take to come up.
    pub deadline: Duration,
}

/// Whether Xvnc is cut off from the network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Network {
    /// In an empty network namespace.
    Isolated,
    /// The kernel refused one; why.
    Shared(String),
}

/// What is stored for adoption by a later host. Version 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredDesktop {
    /// Version of this structure.
    pub version: u32,
    /// The boot in which the processes below run.
    pub boot_id: String,
    /// The keeper.
    pub keeper: ProcessIdentity,
    /// Xvnc.
    pub server: ProcessIdentity,
    /// The display's number, `DISPLAY` is `:N`.
    pub display: u32,
    /// Width in pixels.
    pub width: u16,
    /// Height in pixels.
    pub height: u16,
    /// Whether it is cut off from the network.
    pub network: Network,
}

/// A running Xvnc.
#[derive(Debug)]
pub struct Started {
    /// What to store for adoption.
    pub stored: StoredDesktop,
    /// Its passwords.
    pub passwords: Passwords,
    /// The first connection to its RFB socket, by which it was seen to be ready; nothing has been read
    /// or written. It counts in the [`ConnectionLog`].
    pub connection: UnixStream,
    /// The log, read from its start.
    pub connections: ConnectionLog,
}

/// Why no Xvnc came up, or none could be adopted.
#[derive(Debug, Error)]
pub enum XvncError {
    /// The program is not installed.
    #[error("Xtigervnc is not installed; install the package tigervnc-standalone-server")]
    NotInstalled,
    /// The keeper failed.
    #[error(transparent)]
    Keeper(#[from] KeeperError),
    /// It ended before it was ready.
    #[error("Xvnc ended during its start; its log {} ends with:\n{tail}", log.display())]
    Exited {
        /// Its log.
        log: PathBuf,
        /// The last lines of it.
        tail: String,
    },
    /// It was not ready in time.
    #[error("Xvnc was not ready within {} s; its log {} ends with:\n{tail}", deadline.as_secs(), log.display())]
    NotReady {
        /// How long we waited.
        deadline: Duration,
        /// Its log.
        log: PathBuf,
        /// The last lines of it.
        tail: String,
    },
    /// What is stored does not describe a living Xvnc.
    #[error("the stored desktop cannot be adopted: {0}")]
    NotAdoptable(String),
    /// A file could not be made or read.
    #[error("cannot use {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
}

/// Starts an Xvnc below `keeper` on a free display and waits until it takes connections.
pub async fn start(
    _keeper: &Keeper,
    _files: &DesktopFiles,
    _options: &XvncOptions,
) -> Result<Started, XvncError> {
    unimplemented!()
}

/// Takes over a living Xvnc from an earlier host: keeper and server are the processes on record, in
/// this boot, and its socket takes a connection.
pub async fn adopt(
    _keeper: &Keeper,
    _files: &DesktopFiles,
    _stored: &StoredDesktop,
) -> Result<Started, XvncError> {
    unimplemented!()
}

/// The environment for programs on a desktop: `base` with `DISPLAY` and `XAUTHORITY`, without Wayland.
pub fn application_env(
    _files: &DesktopFiles,
    _display: u32,
    _base: impl IntoIterator<Item = (String, String)>,
) -> BTreeMap<String, String> {
    unimplemented!()
}

/// One line of Xvnc's log about connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionEvent {
    /// One was accepted.
    Accepted,
    /// One was closed.
    Closed,
}

/// Follows Xvnc's log. Every connection to its RFB socket appears as one event, whoever made it.
#[derive(Debug)]
pub struct ConnectionLog {}

impl ConnectionLog {
    /// Follows `log` from its start.
    pub fn open(_log: &Path) -> io::Result<Self> {
        unimplemented!()
    }

    /// The next event; waits for one. Dropping the future loses nothing.
    pub async fn next(&mut self) -> io::Result<ConnectionEvent> {
        unimplemented!()
    }
}
