//! What a dead keeper leaves behind, and its end.
//!
//! The kernel gives the orphans of a keeper to the host, if the host has started that keeper, else to
//! pid 1. So they are found by what was seen while the keeper lived, and by the marker in the
//! environment they were started with. Both name a process by pid and start time.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use rustix::process::{Signal, WaitOptions, waitpid};

use super::wire::{MARKER, marker};
use crate::system::process::{self, ProcessIdentity, Stat};

/// How long killing may take before what is left is reported.
const PATIENCE: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(10);

/// Kills everything that `keeper` kept; `seen` is what was below it at the last looks. Does nothing
/// while the keeper itself lives. Answers what could not be killed.
pub(super) async fn kill(
    keeper: ProcessIdentity,
    seen: HashSet<ProcessIdentity>,
) -> Vec<ProcessIdentity> {
    let marker = marker(keeper);
    let mut known = seen;
    let start = Instant::now();
    loop {
        if keeper.is_alive() {
            return Vec::new();
        }
        find(&marker, &mut known);
        known.retain(ProcessIdentity::is_alive);
        if known.is_empty() || start.elapsed() >= PATIENCE {
            return known.into_iter().collect();
        }
        for identity in &known {
            // Gone meanwhile is as good.
            let _ = identity.signal(Signal::KILL);
        }
        tokio::time::sleep(LOOK).await;
        for identity in &known {
            reap(identity.pid);
        }
    }
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
