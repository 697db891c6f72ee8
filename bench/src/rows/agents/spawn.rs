//! The start of an agent.

use std::{fs, time::Instant};

use super::{LIMIT, session, status};
use crate::{
    Outcome,
    figures::{Row, Samples},
    place::eventually,
};

/// `spawn` until it is answered, which is when the task is on disk, and until the program runs.
pub fn measure() -> Outcome<Vec<Row>> {
    let session = session(4)?;
    let wire = session.wire()?;
    let ran = session.place().path().join("ran");
    let script = format!(": >{}", ran.display());
    let mut answered = Samples::default();
    let running = Samples::take(100, || {
        let started = Instant::now();
        let agent = wire.spawn("command", "", &["sh", "-c", &script])?;
        answered.push(started.elapsed());
        eventually("the program runs", LIMIT, || fs::remove_file(&ran).ok())?;
        let took = started.elapsed();
        eventually("it has ended", LIMIT, || {
            (status(&wire, &agent).ok()? == "done").then_some(())
        })?;
        Ok::<_, crate::Failure>(took)
    })?;
    Ok(vec![
        Row::times("spawn, until answered", answered),
        Row::times("spawn, until the agent's program runs", running),
    ])
}
