//! A session with the record of many agents.

use handover_store::{Mode, Options, Put, Store};
use serde_json::Value;
use tokio::runtime::Builder;

use super::{LIMIT, session, status};
use crate::{Outcome, place::eventually, session::Session};

/// Where tasks and results are stored.
const TASK: &str = "agent/";
const RESULT: &str = "agent-result/";

/// Rows that are written at once.
const CHUNK: u64 = 500;

/// A session, brought back, that has had so many agents, of which up to `running` may run at once. One
/// of them ran; the others are copies of what was stored of it, since starting thousands takes minutes.
pub fn session_with(count: u64, running: usize) -> Outcome<Session> {
    let first = session(running)?;
    let wire = first.wire()?;
    let agent = wire.spawn("command", "say hello and good bye", &["cat"])?;
    eventually("the agent has ended", LIMIT, || {
        (status(&wire, &agent).ok()? == "done").then_some(())
    })?;
    drop(wire);
    let (name, directory, place) = first.down()?;
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let store = Store::open(&directory, Options::new(Mode::Existing))?;
        copy(&store, count).await?;
        store.close().await?;
        Ok::<_, crate::Failure>(())
    })?;
    let running = running.to_string();
    Session::with(place, &["--session", &name, "--max-agents", &running])
}

async fn copy(store: &Store, count: u64) -> Outcome<()> {
    let (_, task) = only(store.list(TASK).await?)?;
    let (_, result) = only(store.list(RESULT).await?)?;
    let mut puts = Vec::new();
    for number in 2..=count {
        let id = format!("copy{number}");
        let mut task = task.clone();
        task["order"] = number.into();
        task["id"] = id.as_str().into();
        puts.push(Put::set(format!("{TASK}{number:010}"), task));
        puts.push(Put::set(format!("{RESULT}{id}"), result.clone()));
        if number % CHUNK == 0 || number == count {
            store
                .append_all(Vec::new(), std::mem::take(&mut puts))
                .await?;
        }
    }
    Ok(())
}

fn only(rows: Vec<(String, Value)>) -> Outcome<(String, Value)> {
    rows.into_iter()
        .next()
        .ok_or_else(|| "nothing is stored of the agent".into())
}
