//! One Xvnc below a keeper: its files, its flags, its start and adoption, and its log of connections.

mod applications;
mod connections;
mod display;
mod files;
mod flags;
mod locale;
mod network;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use tokio::time::Instant;

use crate::keeper::client::{Keeper, KeeperError};
use crate::keeper::wire::Launch;
use crate::system::process::{self, ProcessIdentity};
use crate::system::socket::{self, BindError};

pub use applications::{
    NOT_FOR_PROGRAMS, NoWindowManager, WindowManager, application_env, find_program,
};
pub use connections::{ConnectionEvent, ConnectionLog};
pub(crate) use display::tail as log_tail;
pub(crate) use files::read_cookie;
pub use files::{DesktopFiles, Passwords};
pub use locale::utf8_unless_set;
pub use network::Network;

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
    /// How long it may take to come up, all attempts together.
    pub deadline: Duration,
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
    /// The display's number; `DISPLAY` is `:N`.
    pub display: u32,
    /// Width in pixels.
    pub width: u16,
    /// Height in pixels.
    pub height: u16,
    /// Whether it is cut off from the network.
    pub network: Network,
    /// Where in its log this Xvnc begins, in bytes.
    pub log_start: u64,
}

/// The version of [`StoredDesktop`] that this host writes and understands.
pub const STORED_VERSION: u32 = 1;

/// A running Xvnc.
#[derive(Debug)]
pub struct Started {
    /// What to store for adoption.
    pub stored: StoredDesktop,
    /// Its passwords.
    pub passwords: Passwords,
    /// Its log of connections, from its start and not read yet.
    pub connections: ConnectionLog,
}

/// Why no Xvnc came up, or none could be adopted.
#[derive(Debug, Error)]
pub enum XvncError {
    /// The program is not installed.
    #[error(
        "Xtigervnc is not installed; install the package tigervnc-standalone-server and try again"
    )]
    NotInstalled,
    /// The path of its RFB socket is too long.
    #[error(transparent)]
    Path(#[from] BindError),
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
    #[error("Xvnc was not ready within {} ms; its log {} ends with:\n{tail}", deadline.as_millis(), log.display())]
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
    NotAdoptable(&'static str),
    /// A file could not be made or read.
    #[error("cannot use {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
}

/// How often an Xvnc that starts is looked at.
const LOOK: Duration = Duration::from_millis(2);

/// Starts an Xvnc below `keeper` on a free display and waits until it answers X clients, by when it
/// also listens on its RFB socket. Makes the files anew. Nothing has connected to the RFB socket yet.
///
/// Dropping the future may leave an Xvnc below the keeper: end the keeper then.
pub async fn start(
    keeper: &Keeper,
    files: &DesktopFiles,
    options: &XvncOptions,
) -> Result<Started, XvncError> {
    let program = find_program("Xtigervnc").ok_or(XvncError::NotInstalled)?;
    socket::check_path(&files.rfb_socket)?;
    let passwords = files.create().map_err(io_error(&files.dir))?;
    let network = network::isolation().await;
    let until = Instant::now() + options.deadline;
    let log_start = std::fs::metadata(&files.log).map_or(0, |metadata| metadata.len());
    // Each Xvnc claims its number by a lock file that only one process can make, and ends if it comes
    // too late. `-displayfd` would look for a number by binding sockets, which cannot tell a used one
    // across network namespaces: ten started at once all take number 0, and nine displays are lost.
    loop {
        let number = display::pick_free();
        let launch = Launch {
            command: flags::command(&program, number, files, options, &network),
            cwd: PathBuf::from("/"),
            env: BTreeMap::from([
                (
                    "PATH".to_owned(),
                    std::env::var("PATH").unwrap_or_else(|_| "/usr/bin:/bin".to_owned()),
                ),
                ("LC_CTYPE".to_owned(), locale::UTF8.to_owned()),
            ]),
            log: files.log.clone(),
            stdio: None,
            channel: None,
        };
        let attempt_start = std::fs::metadata(&files.log).map_or(0, |metadata| metadata.len());
        let access = files.access(number);
        let server = keeper.start_server(&launch, Some(&access)).await?;
        match wait_until_ready(server, number, until).await {
            Readiness::Ready => {
                return Ok(Started {
                    stored: StoredDesktop {
                        version: STORED_VERSION,
                        boot_id: process::boot_id()
                            .map_err(io_error(Path::new("/proc")))?
                            .to_owned(),
                        keeper: keeper.process(),
                        server,
                        display: number,
                        width: options.width,
                        height: options.height,
                        network,
                        log_start,
                    },
                    passwords,
                    connections: open_log(files, log_start)?,
                });
            }
            Readiness::Ended
                if display::was_taken(&files.log, attempt_start) && Instant::now() < until =>
            {
                wait_until_reaped(keeper).await?;
            }
            Readiness::Ended => {
                return Err(XvncError::Exited {
                    log: files.log.clone(),
                    tail: display::tail(&files.log, attempt_start),
                });
            }
            Readiness::TooLate => {
                let _ = server.signal(rustix::process::Signal::KILL);
                return Err(XvncError::NotReady {
                    deadline: options.deadline,
                    log: files.log.clone(),
                    tail: display::tail(&files.log, attempt_start),
                });
            }
        }
    }
}

/// Takes over a living Xvnc from an earlier host: keeper and server are the processes on record, in
/// this boot. The log of connections begins at that Xvnc's start, so that connections still open
/// which no living host made are seen.
pub async fn adopt(
    keeper: &Keeper,
    files: &DesktopFiles,
    stored: &StoredDesktop,
) -> Result<Started, XvncError> {
    if stored.version != STORED_VERSION {
        return Err(XvncError::NotAdoptable(
            "it was stored by another version of handover",
        ));
    }
    if process::boot_id().is_ok_and(|boot_id| boot_id != stored.boot_id) {
        return Err(XvncError::NotAdoptable("the machine was restarted"));
    }
    let status = keeper.status().await?;
    let kept = status
        .server
        .filter(|server| server.exit.is_none())
        .map(|server| server.process);
    if status.keeper != stored.keeper || kept != Some(stored.server) || !stored.server.is_alive() {
        return Err(XvncError::NotAdoptable("its Xvnc has ended"));
    }
    Ok(Started {
        stored: stored.clone(),
        passwords: files.read_passwords().map_err(io_error(&files.dir))?,
        connections: open_log(files, stored.log_start)?,
    })
}

/// Removes what an Xvnc leaves when it is killed: the display's lock and socket, if they are of this
/// very process, and the desktop's files but for the log. Call when it has ended.
pub fn clean_up(files: &DesktopFiles, stored: Option<&StoredDesktop>) -> io::Result<()> {
    if let Some(stored) = stored {
        display::remove_traces(stored.display, stored.server.pid)?;
    }
    files.remove()
}

enum Readiness {
    Ready,
    Ended,
    TooLate,
}

async fn wait_until_ready(server: ProcessIdentity, number: u32, until: Instant) -> Readiness {
    loop {
        if !server.is_alive() {
            return Readiness::Ended;
        }
        // Asked in this order: an answer from a server that has meanwhile lost its number to another
        // is told apart by its pid.
        if let Ok(true) = tokio::time::timeout_at(until, display::answers(number, server.pid)).await
        {
            return Readiness::Ready;
        }
        if Instant::now() >= until {
            return Readiness::TooLate;
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// The keeper refuses a second server until it has collected the first.
async fn wait_until_reaped(keeper: &Keeper) -> Result<(), XvncError> {
    while keeper
        .status()
        .await?
        .server
        .is_some_and(|server| server.exit.is_none())
    {
        tokio::time::sleep(LOOK).await;
    }
    Ok(())
}

fn open_log(files: &DesktopFiles, start: u64) -> Result<ConnectionLog, XvncError> {
    ConnectionLog::open(&files.log, start).map_err(io_error(&files.log))
}

fn io_error(path: &Path) -> impl Fn(io::Error) -> XvncError + '_ {
    |source| XvncError::Io {
        path: path.to_owned(),
        source,
    }
}
