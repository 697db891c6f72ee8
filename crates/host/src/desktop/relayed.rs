//! The trees of relayed servers: each has a keeper that its relay has started and named with a permit.
//!
//! A keeper ends with its tree and with its relay. But if both are killed at once nobody else is left to end
//! what the server had started, so the host follows each keeper that it was told of, whether permits are open or
//! not, and kills what one leaves behind. Its orphans go to pid 1 and not to the host, so what has cleared its
//! environment is found by the last look only.

use std::collections::HashSet;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

use crate::keeper::client::Keeper;
use crate::system::process::{self, ProcessIdentity, Stat};

/// How often what is below a living keeper is looked at.
const LOOK: Duration = Duration::from_secs(2);
/// How long until what is left of a tree whose keeper was killed is looked at again.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Whether nothing of a tree is left. The other end is gone if that cannot be found out.
type Empty = watch::Receiver<bool>;

/// The keepers that are followed.
static FOLLOWED: Mutex<Vec<(ProcessIdentity, Empty)>> = Mutex::new(Vec::new());

/// Follows a keeper until nothing of its tree is left, if that is not done already. Must be called within a
/// tokio runtime.
pub(super) fn follow(keeper: ProcessIdentity) -> Empty {
    let mut followed = FOLLOWED.lock().unwrap_or_else(PoisonError::into_inner);
    // What is over, or was followed by a runtime that has ended.
    followed.retain(|(_, empty)| empty.has_changed().is_ok());
    if let Some((_, empty)) = followed.iter().find(|(known, _)| *known == keeper) {
        return empty.clone();
    }
    let (emptied, empty) = watch::channel(false);
    followed.push((keeper, empty.clone()));
    tokio::spawn(async move {
        match end(keeper).await {
            Ok(()) => drop(emptied.send(true)),
            Err(error) => {
                tracing::warn!(keeper = keeper.pid, %error, "the tree of a relayed server cannot be watched");
            }
        }
    });
    empty
}

/// Waits until nothing of a followed tree is left.
///
/// # Errors
/// If that cannot be found out.
pub(super) async fn empty(mut empty: Empty) -> io::Result<()> {
    let known = empty.wait_for(|empty| *empty).await;
    known.map(drop).map_err(io::Error::other)
}

/// Waits for the keeper's end, and kills what it leaves.
async fn end(keeper: ProcessIdentity) -> io::Result<()> {
    let mut seen = HashSet::new();
    let mut look = interval(LOOK);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let ended = ended(keeper);
    tokio::pin!(ended);
    loop {
        tokio::select! {
            ended = &mut ended => break ended?,
            _ = look.tick() => {
                seen.retain(ProcessIdentity::is_alive);
                let below = process::descendants_by_children(keeper.pid);
                seen.extend(below.iter().map(Stat::identity));
            }
        }
    }
    // A keeper ends when its tree is empty, unless it is killed.
    loop {
        let left = Keeper::kill_leftovers_seen(keeper, seen.clone()).await;
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

/// Waits for the end of a process.
///
/// # Errors
/// If it cannot be watched.
pub(super) async fn ended(process: ProcessIdentity) -> io::Result<()> {
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
