//! The owners of permits that clients hold for what they do by themselves. A permit ends with the
//! process that asked for it: whoever was killed in the middle of an act holds up no takeover. One for a
//! relayed server ends with that server's process tree instead, since the server goes on for a while
//! after its relay was killed.

use std::io;
use std::time::Duration;

use handover_control::OwnerId;
use handover_protocol::{ErrorCode, Refusal};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::mpsc::WeakSender;
use tokio::task::JoinSet;

use super::command::Command;
use crate::callers::ConnectionId;
use crate::keeper::client::Keeper;
use crate::keeper::{self, Owner};
use crate::system::process::{self, ProcessIdentity, Stat};

/// What has a permit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holder {
    /// A process.
    Process(ProcessIdentity),
    /// What is below the keeper of a relayed server.
    Below(ProcessIdentity),
}

/// Sets owners that are trees apart from those that are connections.
const TREE: u64 = 1 << 63;

impl Holder {
    /// The owner of its permits, got on `connection`: all of them end together.
    pub(super) fn owner(self, connection: ConnectionId) -> OwnerId {
        match self {
            Self::Process(_) => OwnerId(connection.0),
            Self::Below(keeper) => OwnerId(TREE | u64::from(keeper.pid)),
        }
    }

    /// What is below the keeper `pid`, which must be that of a relayed server, and a child of `relay`.
    ///
    /// # Errors
    /// `bad_params` if it is not, or has ended.
    pub(super) fn below(pid: u32, relay: ProcessIdentity) -> Result<Self, Refusal> {
        Stat::of(pid)
            .ok()
            .filter(|stat| stat.parent == relay.pid && stat.start_ticks >= relay.start_ticks)
            .filter(|stat| matches!(keeper::kept_by(stat), Some(Owner::Relay(_))))
            .map(|stat| Self::Below(stat.identity()))
            .ok_or_else(|| {
                Refusal::new(
                    ErrorCode::BadParams,
                    format!("process {pid} is not the keeper of a server that the caller relays"),
                )
            })
    }
}

/// How long until what is left of a tree whose keeper was killed is looked at again.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Tells the desktop when nothing of `holder` is left, until the set is dropped. Must be called within
/// a tokio runtime.
pub(super) fn watch(holder: Holder, owner: OwnerId, commands: WeakSender<Command>) -> JoinSet<()> {
    let mut watching = JoinSet::new();
    watching.spawn(async move {
        if let Err(error) = gone(holder).await {
            // Then its permits last until they are completed, or the drain's budget is over.
            tracing::warn!(?holder, %error, "the owner of a permit cannot be watched");
            return;
        }
        // The desktop may have ended before.
        if let Some(commands) = commands.upgrade() {
            let _ = commands.send(Command::OwnerGone(owner)).await;
        }
    });
    watching
}

async fn gone(holder: Holder) -> io::Result<()> {
    let keeper = match holder {
        Holder::Process(process) => return ended(process).await,
        Holder::Below(keeper) => keeper,
    };
    // A keeper ends when its tree is empty, unless it is killed.
    ended(keeper).await?;
    let boot = process::boot_id()?;
    loop {
        let left = Keeper::kill_leftovers_of(keeper, boot).await;
        if left.is_empty() {
            return Ok(());
        }
        tracing::warn!(
            keeper = keeper.pid,
            left = left.len(),
            "processes of a relayed server cannot be killed"
        );
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

async fn ended(process: ProcessIdentity) -> io::Result<()> {
    let fd = match process.open() {
        Ok(fd) => fd,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    // SAFETY: `OwnedFd` always answers the same descriptor and closes it only when it is dropped,
    // which `AsyncFd` does after it has removed it from the reactor.
    let fd = unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }?;
    fd.readable().await?.retain_ready();
    Ok(())
}
