//! Desktops that outlived their host.

use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::Duration;

use handover_protocol::{DesktopId, Refusal};
use handover_store::StoreError;
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;

use super::DesktopSet;
use super::assemble::{Running, unavailable};
use super::recover::recover;
use super::stored::{self, Row};
use crate::desktop::DesktopHandle;
use crate::keeper::client::Keeper;
use crate::system::process::{self, ProcessIdentity};
use crate::xvnc::{self, ConnectionLog, DesktopFiles, StoredDesktop};

/// Time between TERM and KILL for what cannot be adopted.
const END_GRACE: Duration = Duration::from_millis(200);

/// Bytes of what an RFB server says first: `RFB 003.008` and a newline.
const VERSION_LENGTH: usize = 12;

/// How long the display may take to answer a connection.
const ANSWERED_WITHIN: Duration = Duration::from_secs(10);

/// How long the connections of the former host may take to be closed, once the display has answered.
const CLOSED_WITHIN: Duration = Duration::from_secs(10);

impl DesktopSet {
    /// Takes over what a former host left: the displays that still run, and the
    /// takeovers that its end ended.
    ///
    /// # Errors
    /// The record cannot be read.
    pub async fn adopt_all(&self) -> Result<(), StoreError> {
        let last = stored::last_number(&self.shared.store).await?;
        self.places.go_on_after(last);
        for (id, row) in stored::rows(&self.shared.store).await? {
            let adopted = match row {
                Row::Running { display } => self.adopt(&id, display).await,
                Row::Attached { target } => {
                    let beginning = recover(&self.shared.store, &id).await?;
                    self.attach(&id, &target, beginning).await
                }
                Row::Starting => {
                    self.sweep(&id).await;
                    Err(unavailable(&id, "its host ended before it was up"))
                }
            };
            match adopted {
                Ok(_) => tracing::info!(desktop = %id, "adopted"),
                Err(refusal) => {
                    tracing::warn!(desktop = %id, %refusal, "not adopted");
                    // A takeover of it has ended all the same.
                    recover(&self.shared.store, &id).await?;
                    stored::forget(&self.shared.store, &id).await;
                }
            }
        }
        Ok(())
    }

    async fn adopt(
        &self,
        id: &DesktopId,
        display: StoredDesktop,
    ) -> Result<DesktopHandle, Refusal> {
        let shared = &self.shared;
        let files = DesktopFiles::new(&shared.paths, id);
        let kept = Keeper::adopt(&files.keeper_socket, display.keeper, &display.boot_id).await;
        let (keeper, events) = match kept {
            Ok(kept) => kept,
            Err(error) => {
                let left = Keeper::kill_leftovers_of(display.keeper, &display.boot_id).await;
                if !left.is_empty() {
                    tracing::error!(desktop = %id, ?left, "processes could not be killed");
                }
                let _ = xvnc::clean_up(&files, Some(&display));
                return Err(unavailable(id, error));
            }
        };
        let adopted = async {
            let mut started = xvnc::adopt(&keeper, &files, &display)
                .await
                .map_err(|error| unavailable(id, error))?;
            all_accepted(&files.rfb_socket)
                .await
                .map_err(|error| unavailable(id, error))?;
            let foreign = open_connections(&mut started.connections)
                .await
                .map_err(|error| unavailable(id, error))?;
            let mut beginning = recover(&shared.store, id)
                .await
                .map_err(|error| crate::record::not_recorded(&error))?;
            if foreign > 0 {
                tracing::error!(desktop = %id, foreign, "connections that no host made");
                beginning.paused = Some(handover_control::PauseReason::ForeignConnection);
            }
            let running = Running {
                id: id.clone(),
                keeper: keeper.clone(),
                events,
                files: files.clone(),
                started,
            };
            self.assemble(running, beginning).await
        };
        match adopted.await {
            Ok(handle) => Ok(handle),
            Err(refusal) => {
                keeper.end(END_GRACE).await;
                let _ = xvnc::clean_up(&files, Some(&display));
                Err(refusal)
            }
        }
    }

    /// Ends what a desktop that never came up left behind.
    async fn sweep(&self, id: &DesktopId) {
        let files = DesktopFiles::new(&self.shared.paths, id);
        if let Some(process) = find_keeper(&files.keeper_socket)
            && let Ok(boot_id) = process::boot_id()
            && let Ok((keeper, _events)) =
                Keeper::adopt(&files.keeper_socket, process, boot_id).await
        {
            keeper.end(END_GRACE).await;
        }
        let _ = xvnc::clean_up(&files, None);
    }
}

/// A keeper of this user that was told to listen there.
fn find_keeper(socket: &Path) -> Option<ProcessIdentity> {
    let socket = socket.to_str()?;
    process::all()
        .ok()?
        .into_iter()
        .filter(|stat| stat.is_living())
        .find(|stat| {
            process::command_line(stat.pid).is_ok_and(|words| {
                words.get(1).is_some_and(|word| word == "keeper")
                    && words.iter().any(|word| word == socket)
            })
        })
        .map(|stat| stat.identity())
}

/// Waits until the display has accepted whatever was connected before, by the former host or by its keeper for it: it
/// accepts in order, and says something to each. A busy display may have been about to, and what it accepts later counts
/// as a stranger's.
///
/// # Errors
/// The display does not answer.
async fn all_accepted(socket: &Path) -> io::Result<()> {
    let answered = async {
        let mut last = UnixStream::connect(socket).await?;
        last.read_exact(&mut [0; VERSION_LENGTH]).await
    };
    match tokio::time::timeout(ANSWERED_WITHIN, answered).await {
        Ok(answered) => answered.map(drop),
        Err(_) => Err(io::Error::new(
            ErrorKind::TimedOut,
            format!("it does not answer within {} s", ANSWERED_WITHIN.as_secs()),
        )),
    }
}

/// Reads the log up to now, and waits a little for the connections of the former host, and our last, to be closed.
/// Answers how many stay open.
async fn open_connections(log: &mut ConnectionLog) -> io::Result<u64> {
    let closing = async {
        loop {
            while log.try_next()?.is_some() {}
            if log.open_connections() == 0 {
                return Ok(());
            }
            log.next().await?;
        }
    };
    match tokio::time::timeout(CLOSED_WITHIN, closing).await {
        Ok(Err(error)) => Err(error),
        Ok(Ok(())) | Err(_) => Ok(log.open_connections()),
    }
}
