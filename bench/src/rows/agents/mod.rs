//! What agents cost.

pub mod abort;
pub mod events;
pub mod list;
pub mod memory;
pub mod spawn;
pub mod steer;
mod stored;

use std::time::Duration;

use handover_protocol::Method;
use serde_json::{Value, json};

use crate::{
    Outcome,
    place::{Place, eventually},
    session::Session,
    wire::Wire,
};

/// The bound of every wait.
const LIMIT: Duration = Duration::from_secs(30);

/// A session without a desktop, in which so many agents may run at once.
fn session(agents: usize) -> Outcome<Session> {
    Session::with(Place::new()?, &["--max-agents", &agents.to_string()])
}

/// Starts so many agents that can be steered, and waits until each has answered its task.
fn steerable(wire: &Wire, count: usize) -> Outcome<Vec<String>> {
    let mut agents = Vec::new();
    for _ in 0..count {
        agents.push(wire.spawn("pi", "wait for messages", &[])?);
    }
    for agent in &agents {
        eventually("an agent can be steered", LIMIT, || {
            let params = json!({"id": agent, "text": "are you there?", "wait": "answered"});
            wire.call(Method::Steer, params).ok()
        })?;
    }
    Ok(agents)
}

/// Starts so many agents that do nothing, and waits until all of them run.
fn running(wire: &Wire, count: usize) -> Outcome<()> {
    for _ in 0..count {
        wire.spawn("command", "", &["sleep", "1000"])?;
    }
    eventually("all agents run", LIMIT, || {
        let list = wire.call(Method::List, json!({})).ok()?;
        let agents = list["agents"].as_array()?.iter();
        let running = agents.filter(|agent| agent["status"] == "running");
        (running.count() == count).then_some(())
    })
}

/// How an agent stands.
fn status(wire: &Wire, agent: &str) -> Outcome<Value> {
    let list = wire.call(Method::List, json!({}))?;
    let mut agents = list["agents"].as_array().into_iter().flatten();
    let found = agents.find(|listed| listed["id"] == agent);
    Ok(found.ok_or("an agent is not listed")?["status"].clone())
}
