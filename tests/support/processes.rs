//! Looking at processes and sending them signals, by pid only.

use std::fs;

use rustix::process::{Pid, kill_process};

use super::clock::{SHORT, eventually};

pub use rustix::process::Signal;

/// Sends `signal` to one process; one that has gone is left alone.
pub fn signal(pid: i32, signal: Signal) {
    let Some(pid) = Pid::from_raw(pid) else {
        return;
    };
    let _ = kill_process(pid, signal);
}

/// Stops processes, and waits until no thread of theirs runs: of several, each stands still only when it gets its turn.
pub fn stop(pids: &[i32]) {
    for &pid in pids {
        signal(pid, Signal::STOP);
    }
    for &pid in pids {
        eventually("it is stopped", SHORT, || {
            let mut threads = threads(pid)?;
            threads
                .all(|thread| state(thread) == Some('T'))
                .then_some(())
        });
    }
}

/// The threads of a process, by their numbers.
fn threads(pid: i32) -> Option<impl Iterator<Item = i32>> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    Some(
        threads
            .flatten()
            .filter_map(|thread| thread.file_name().to_str()?.parse().ok()),
    )
}

/// The state letter of a process in `/proc` (`Z` for a zombie), or `None` when there is none.
pub fn state(pid: i32) -> Option<char> {
    stat(pid).map(|(state, _)| state)
}

/// Whether any thread of the process runs; a zombie has none. The first thread of one that is killed may have ended
/// while others still do, with its files open.
pub fn alive(pid: i32) -> bool {
    threads(pid).is_some_and(|mut threads| {
        threads.any(|thread| state(thread).is_some_and(|state| !matches!(state, 'Z' | 'X')))
    })
}

/// The processes whose parent is `pid`.
pub fn children(pid: i32) -> Vec<i32> {
    all()
        .into_iter()
        .filter(|&other| stat(other).is_some_and(|(_, parent)| parent == pid))
        .collect()
}

/// All processes below `pid`, parents before children.
pub fn descendants(pid: i32) -> Vec<i32> {
    let mut found = children(pid);
    let mut next = 0;
    while let Some(&pid) = found.get(next) {
        found.extend(children(pid));
        next += 1;
    }
    found
}

/// The command line of a process, its arguments separated by spaces; empty when it has gone.
pub fn command_line(pid: i32) -> String {
    let raw = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&raw).replace('\0', " ")
}

/// Whether a process catches (`SigCgt`) or ignores (`SigIgn`) a signal, or does whatever else with it that a line of this
/// name in its status tells.
pub fn minds(pid: i32, line: &str, signal: Signal) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let mask = status
        .lines()
        .find_map(|text| text.strip_prefix(line)?.strip_prefix(':'))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal.as_raw() - 1) & 1 == 1)
}

/// Whether `text` occurs in the command line or environment with which `pid` was started.
pub fn mentions(pid: i32, text: &str) -> bool {
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    command_line(pid).contains(text) || String::from_utf8_lossy(&environment).contains(text)
}

/// All process ids.
pub fn all() -> Vec<i32> {
    let entries = fs::read_dir("/proc").expect("/proc");
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

fn stat(pid: i32) -> Option<(char, i32)> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may hold spaces and parentheses; the fields follow its last parenthesis.
    let mut fields = text.get(text.rfind(')')? + 1..)?.split_ascii_whitespace();
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}
