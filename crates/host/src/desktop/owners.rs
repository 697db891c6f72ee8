//! The owners of permits that clients hold for what they do by themselves. A permit ends with the
//! process that asked for it: whoever was killed in the middle of an act holds up no takeover. One for a
//! relayed server ends with that server's process tree instead, since the server goes on for a while
//! after its relay was killed.

use handover_control::OwnerId;
use handover_protocol::Refusal;
use tokio::sync::mpsc::WeakSender;
use tokio::task::JoinSet;

use super::command::Command;
use super::relayed;
use crate::callers::ConnectionId;
use crate::keeper::{self, Owner};
use crate::system::process::{ProcessIdentity, Stat};

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

    /// The keeper, if it is one's tree.
    pub(super) fn keeper(self) -> Option<ProcessIdentity> {
        match self {
            Self::Process(_) => None,
            Self::Below(keeper) => Some(keeper),
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
                Refusal::bad_param(
                    "keeper",
                    format!("process {pid} is not the keeper of a server that the caller relays"),
                )
            })
    }
}

/// Tells the desktop when nothing of `holder` is left, until the set is dropped. Must be called within
/// a tokio runtime.
pub(super) fn watch(holder: Holder, owner: OwnerId, commands: WeakSender<Command>) -> JoinSet<()> {
    if let Holder::Below(keeper) = holder {
        relayed::follow(keeper);
    }
    let mut watching = JoinSet::new();
    watching.spawn(async move {
        let gone = match holder {
            Holder::Process(process) => relayed::ended(process).await,
            Holder::Below(keeper) => relayed::empty(relayed::follow(keeper)).await,
        };
        if let Err(error) = gone {
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
