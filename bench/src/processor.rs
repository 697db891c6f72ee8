//! How long processes have run, and what they hold in memory.

use std::{collections::HashMap, ffi::OsString, fs, time::Duration};

use crate::Outcome;

/// The time that each thread of a process had run at one instant.
pub struct RunTimes {
    pid: u64,
    threads: HashMap<OsString, Duration>,
}

impl RunTimes {
    /// Reads them.
    pub fn of(pid: u64) -> Outcome<Self> {
        let mut threads = HashMap::new();
        for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
            let thread = thread?;
            // A thread may have ended since it was listed.
            let Ok(statistics) = fs::read_to_string(thread.path().join("schedstat")) else {
                continue;
            };
            let nanos = statistics.split_whitespace().next();
            let nanos = nanos.ok_or("the kernel keeps no statistics")?.parse()?;
            threads.insert(thread.file_name(), Duration::from_nanos(nanos));
        }
        Ok(Self { pid, threads })
    }

    /// The time that the threads there are now have run since.
    pub fn since(&self) -> Outcome<Duration> {
        let now = Self::of(self.pid)?;
        let since = now.threads.iter().map(|(thread, now)| {
            let before = self.threads.get(thread).copied().unwrap_or_default();
            now.saturating_sub(before)
        });
        Ok(since.sum())
    }
}

/// Bytes of a process that are in memory.
pub fn resident(pid: u64) -> Outcome<f64> {
    memory(pid, "VmRSS")
}

/// Bytes of a process's memory of one kind, as `/proc/PID/status` names them.
pub fn memory(pid: u64, kind: &str) -> Outcome<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(kind)?.strip_prefix(':'));
    let kilobytes = line.and_then(|line| line.split_whitespace().next());
    let kilobytes = kilobytes.ok_or_else(|| format!("the kernel tells no {kind}"))?;
    Ok(1024.0 * kilobytes.parse::<f64>()?)
}
