//! What a host costs while nothing happens.

use std::{
    collections::HashMap,
    ffi::OsString,
    fs, thread,
    time::{Duration, Instant},
};

use crate::{Outcome, figures::Row, place::eventually, session::Session};

/// How long nothing happens.
const IDLE: Duration = Duration::from_secs(10);

/// The time that a starting host may take to become quiet.
const QUIET: Duration = Duration::from_secs(10);

/// Resident memory, and processor time in thousandths of one core.
pub fn measure() -> Outcome<Vec<Row>> {
    let session = Session::up("1280x800")?;
    let host = session.host()?;
    // What the start still has to do is not idleness.
    eventually("the host is quiet", QUIET, || {
        let before = run_times(host).ok()?;
        thread::sleep(Duration::from_millis(500));
        let spent = run_since(host, &before).ok()?;
        (spent < Duration::from_millis(1)).then_some(())
    })?;
    let (before, started) = (run_times(host)?, Instant::now());
    thread::sleep(IDLE);
    let spent = run_since(host, &before)?;
    let share = 1000.0 * spent.as_secs_f64() / started.elapsed().as_secs_f64();
    Ok(vec![
        Row::number("idle host, resident memory", resident(host)? / 1e6, "MB").less_than(30.0),
        Row::number("idle host, thousandths of a core", share, "").less_than(1.0),
    ])
}

/// Bytes of a process that are in memory.
fn resident(pid: u64) -> Outcome<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next());
    Ok(1024.0 * kilobytes.ok_or("the host has no memory")?.parse::<f64>()?)
}

/// The time that each thread of a process has run.
fn run_times(pid: u64) -> Outcome<HashMap<OsString, Duration>> {
    let mut times = HashMap::new();
    for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
        let thread = thread?;
        // A thread may have ended since it was listed.
        let Ok(statistics) = fs::read_to_string(thread.path().join("schedstat")) else {
            continue;
        };
        let nanos = statistics.split_whitespace().next();
        let nanos = nanos.ok_or("the kernel keeps no statistics")?.parse()?;
        times.insert(thread.file_name(), Duration::from_nanos(nanos));
    }
    Ok(times)
}

/// The time that the threads there are now have run since `before`.
fn run_since(pid: u64, before: &HashMap<OsString, Duration>) -> Outcome<Duration> {
    let now = run_times(pid)?;
    let since = now.iter().map(|(thread, now)| {
        let before = before.get(thread).copied().unwrap_or_default();
        now.saturating_sub(before)
    });
    Ok(since.sum())
}
