//! What a host costs while nothing happens.

use std::{
    thread,
    time::{Duration, Instant},
};

use crate::{
    Outcome,
    figures::Row,
    place::eventually,
    processor::{RunTimes, resident},
    session::Session,
};

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
        let before = RunTimes::of(host).ok()?;
        thread::sleep(Duration::from_millis(500));
        let spent = before.since().ok()?;
        (spent < Duration::from_millis(1)).then_some(())
    })?;
    let (before, started) = (RunTimes::of(host)?, Instant::now());
    thread::sleep(IDLE);
    let spent = before.since()?;
    let share = 1000.0 * spent.as_secs_f64() / started.elapsed().as_secs_f64();
    Ok(vec![
        Row::number("idle host, resident memory", resident(host)? / 1e6, "MB").less_than(30.0),
        Row::number("idle host, thousandths of a core", share, "").less_than(1.0),
    ])
}
