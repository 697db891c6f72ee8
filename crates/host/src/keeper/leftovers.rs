//! What a dead keeper leaves behind, and its end.
//!
//! They are found in three ways: by what was seen while the keeper lived, by the marker in the
//! environment they were started with, and, if the host is a subreaper and has started that keeper, as
//! children of the host, to whom the kernel gives the orphans then. The last finds also what cleared its
//! environment and appeared after the last look. Where another host has started the keeper, its orphans
//! go to pid 1, and only the first two are left. Where the tree has a control group, that comes first, and
//! finds all but what has left it on purpose.

use std::collections::HashSet;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Signal, WaitOptions, waitpid};
use tokio::process::Child;

use super::wire::{MARKER, marker};
use crate::system::cgroup::Cgroup;
use crate::system::process::{self, ProcessIdentity, Stat};

/// How long killing may take before what is left is reported.
const PATIENCE: Duration = Duration::from_secs(5);

/// Looks at our children between two looks at all processes, and the time between them.
const QUICK_LOOKS: u32 = 10;
const QUICK_LOOK: Duration = Duration::from_millis(1);

/// The keepers that are children of this process.
static KEEPERS: Mutex<Vec<ProcessIdentity>> = Mutex::new(Vec::new());

fn keepers() -> MutexGuard<'static, Vec<ProcessIdentity>> {
    KEEPERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a keeper so that it is never taken for an orphan.
pub(super) fn start_keeper(
    start: impl FnOnce() -> io::Result<Child>,
) -> io::Result<(Child, ProcessIdentity)> {
    // Nobody looks for orphans until it is known.
    let mut keepers = keepers();
    let child = start()?;
    let pid = child.id().ok_or(io::ErrorKind::NotFound)?;
    // Even if it has ended, it is not collected yet.
    let keeper = ProcessIdentity::of(pid)?;
    keepers.retain(ProcessIdentity::is_alive);
    keepers.push(keeper);
    Ok((child, keeper))
}

/// Kills everything that `keeper` kept; `seen` is what was below it at the last looks. Does nothing
/// while the keeper itself lives. Answers what could not be killed.
pub(super) async fn kill(
    keeper: ProcessIdentity,
    seen: HashSet<ProcessIdentity>,
    group: Option<&Cgroup>,
) -> Vec<ProcessIdentity> {
    if keeper.is_alive() {
        return Vec::new();
    }
    if let Some(group) = group
        && let Err(error) = group.kill()
    {
        tracing::debug!(%error, "a keeper's control group cannot be killed");
    }
    let marker = marker(keeper);
    let mut known = seen;
    let start = Instant::now();
    let mut empty_before = false;
    loop {
        find(&marker, &mut known);
        known.extend(orphans(keeper));
        known.retain(|identity| {
            let alive = identity.is_alive();
            if !alive {
                reap(identity.pid);
            }
            alive
        });
        // What forks while one looks may be missed by one look.
        let over = known.is_empty() && empty_before;
        if over || start.elapsed() >= PATIENCE {
            if let Some(group) = group {
                group.remove();
            }
            return known.into_iter().collect();
        }
        empty_before = known.is_empty();
        for identity in &known {
            // Gone meanwhile is as good.
            let _ = identity.signal(Signal::KILL);
        }
        if !empty_before {
            // What forks for ever lives for moments only: look at our children more often than one can
            // look at all processes.
            for _ in 0..QUICK_LOOKS {
                for orphan in orphans(keeper) {
                    let _ = orphan.signal(Signal::KILL);
                    known.insert(orphan);
                }
                tokio::time::sleep(QUICK_LOOK).await;
            }
        }
    }
}

/// The children of this process that it has not started, nor its parts: orphans of keepers, among them
/// those of `keeper`. None unless the kernel gives orphans to us.
///
/// A keeper begins a session of its own before it starts anything, and no process can join a session
/// that exists: so what is in our own session was not started below a keeper. What has no more than its
/// number left is collected.
fn orphans(keeper: ProcessIdentity) -> Vec<ProcessIdentity> {
    let own = std::process::id();
    let (Ok(Some(_)), Ok(Stat { session, .. })) =
        (rustix::process::child_subreaper(), Stat::of(own))
    else {
        return Vec::new();
    };
    let keepers = keepers();
    process::children(own)
        .into_iter()
        .filter_map(|child| Stat::of(child).ok())
        .filter(|stat| {
            stat.parent == own
                && stat.session != session
                && stat.start_ticks >= keeper.start_ticks
                && !keepers.contains(&stat.identity())
        })
        .map(|stat| stat.identity())
        .collect()
}

/// Adds the living processes that carry `marker`, and those below what is known.
fn find(marker: &str, known: &mut HashSet<ProcessIdentity>) {
    for stat in process::all().unwrap_or_default() {
        if stat.is_living() && carries(&stat, marker) {
            known.insert(stat.identity());
        }
    }
    let roots: Vec<_> = known.iter().copied().collect();
    for root in roots {
        if root.is_alive() {
            let below = process::descendants(root.pid).unwrap_or_default();
            known.extend(below.iter().map(Stat::identity));
        }
    }
}

fn carries(stat: &Stat, marker: &str) -> bool {
    process::environ(stat.pid).is_ok_and(|environ| {
        environ
            .iter()
            .any(|(name, value)| name == MARKER && value == marker)
    })
}

/// Collects a process if it came to be our child; that of anybody else is not touched.
fn reap(pid: u32) {
    if let Ok(pid) = process::to_raw(pid) {
        let _ = waitpid(Some(pid), WaitOptions::NOHANG);
    }
}
