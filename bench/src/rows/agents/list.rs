//! Lists of many agents.

use std::time::{Duration, Instant};

use handover_protocol::Method;
use serde_json::json;

use super::{running, session, stored::session_with};
use crate::{
    Outcome,
    figures::{Row, Samples},
    place::finish,
};

/// Agents that run while the program lists them.
const RUNNING: usize = 100;

/// How long one list may take.
const LISTED: Duration = Duration::from_secs(5);

/// Over the socket with 1,000 agents that have ended, and as a process with 100 that run.
pub fn measure() -> Outcome<Vec<Row>> {
    let many = session_with(1000, 4)?;
    let wire = many.wire()?;
    let socket = Samples::take(200, || {
        let started = Instant::now();
        let list = wire.call(Method::List, json!({}))?;
        let took = started.elapsed();
        match list["agents"].as_array().map(Vec::len) {
            Some(1000) => Ok::<_, crate::Failure>(took),
            other => Err(format!("{other:?} agents are listed").into()),
        }
    })?;
    drop((wire, many));
    let few = session(RUNNING)?;
    let wire = few.wire()?;
    running(&wire, RUNNING)?;
    let process = Samples::take(200, || {
        let started = Instant::now();
        let output = finish(few.place().handover()?.arg("list"), LISTED)?;
        let took = started.elapsed();
        match output.stdout.split(|&byte| byte == b'\n').count() {
            RUNNING.. => Ok::<_, crate::Failure>(took),
            lines => Err(format!("the list has {lines} lines").into()),
        }
    })?;
    Ok(vec![
        Row::times("list over the socket, 1,000 agents", socket),
        Row::times(
            "`handover list` as a process, 100 agents run, start to exit",
            process,
        )
        .below(Duration::from_millis(15)),
    ])
}
