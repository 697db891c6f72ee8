//! What agents take of memory.

use std::fs;

use super::{running, session, stored::session_with};
use crate::{
    Outcome,
    figures::{Row, median},
    processor::{memory, resident},
};

/// Agents that run.
const LIVE: usize = 200;
/// Agents on record.
const STORED: u64 = 10_000;

/// The host with both, what one of each adds, and a keeper.
pub fn measure() -> Outcome<Vec<Row>> {
    let empty = session(4)?;
    let without = resident(empty.host()?)?;
    drop(empty);
    let session = session_with(STORED, 256)?;
    let host = session.host()?;
    let wire = session.wire()?;
    let with_stored = resident(host)?;
    running(&wire, LIVE)?;
    let all = resident(host)?;
    let keepers = keepers(host)?;
    let own: Vec<f64> = keepers
        .iter()
        .map(|&pid| memory(pid, "RssAnon"))
        .collect::<Outcome<_>>()?;
    if keepers.len() != LIVE {
        return Err(format!("{} keepers of {LIVE} agents", keepers.len()).into());
    }
    Ok(vec![
        Row::number("host, 200 agents run, 10,000 on record", all / 1e6, "MB").less_than(60.0),
        Row::number("  without agents", without / 1e6, "MB"),
        Row::number(
            "  added by one on record",
            (with_stored - without) / STORED as f64 / 1e3,
            "kB",
        ),
        Row::number(
            "  added by one that runs",
            (all - with_stored) / LIVE as f64 / 1e3,
            "kB",
        ),
        Row::number(
            "  its keeper, without what it shares with others",
            median(own) / 1e3,
            "kB",
        ),
    ])
}

/// The keepers that a host has started.
fn keepers(host: u64) -> Outcome<Vec<u64>> {
    let children = fs::read_dir(format!("/proc/{host}/task"))?.flatten();
    let children: String = children
        .filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok())
        .collect();
    let pids = children
        .split_whitespace()
        .filter_map(|pid| pid.parse().ok());
    let is_keeper = |pid: &u64| {
        let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        command
            .split(|&byte| byte == 0)
            .any(|word| word == b"keeper")
    };
    Ok(pids.filter(is_keeper).collect())
}
