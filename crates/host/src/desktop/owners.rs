//! The owners of permits that clients hold for what they do by themselves. A permit ends with the
//! process that asked for it: whoever was killed in the middle of an act holds up no takeover.

use std::io;

use handover_control::OwnerId;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::mpsc::WeakSender;
use tokio::task::JoinSet;

use super::command::Command;
use crate::system::process::ProcessIdentity;

/// Tells the desktop when `process` has ended, until the set is dropped. Must be called within a
/// tokio runtime.
pub(super) fn watch(
    process: ProcessIdentity,
    owner: OwnerId,
    commands: WeakSender<Command>,
) -> JoinSet<()> {
    let mut watching = JoinSet::new();
    watching.spawn(async move {
        if let Err(error) = ended(process).await {
            // Then its permits last until they are completed, or the drain's budget is over.
            tracing::warn!(pid = process.pid, %error, "the owner of a permit cannot be watched");
            return;
        }
        // The desktop may have ended before.
        if let Some(commands) = commands.upgrade() {
            let _ = commands.send(Command::OwnerGone(owner)).await;
        }
    });
    watching
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
