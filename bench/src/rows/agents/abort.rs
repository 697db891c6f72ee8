//! The end of an agent with everything below it.

use std::{
    fs,
    time::{Duration, Instant},
};

use handover_protocol::Method;
use serde_json::json;

use super::{LIMIT, session};
use crate::{
    Outcome,
    figures::{Row, Samples},
    place::eventually,
};

/// Processes of the tree.
const PROCESSES: usize = 50;

/// `abort` until it is answered, which is when nothing of the tree runs any more.
pub fn measure() -> Outcome<Vec<Row>> {
    let session = session(4)?;
    let wire = session.wire()?;
    let ready = session.place().path().join("ready");
    let script = format!(
        "i=1; while [ $i -lt {PROCESSES} ]; do sleep 1000 & i=$((i+1)); done; : >{}; wait",
        ready.display()
    );
    let aborted = Samples::take(20, || {
        let agent = wire.spawn("command", "", &["sh", "-c", &script])?;
        eventually("the tree has grown", LIMIT, || fs::remove_file(&ready).ok())?;
        let started = Instant::now();
        let aborted = wire.call(Method::Abort, json!({"id": agent}))?;
        let took = started.elapsed();
        if aborted["status"] != "aborted" || aborted["survivors"] != json!([]) {
            return Err(format!("the tree has not ended: {aborted}").into());
        }
        Ok::<_, crate::Failure>(took)
    })?;
    let name = format!("abort of an agent with {PROCESSES} processes, until none is left");
    Ok(vec![
        Row::times(name, aborted).below(Duration::from_millis(300)),
    ])
}
