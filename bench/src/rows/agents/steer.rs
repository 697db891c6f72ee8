//! Messages into running agents, until they are on disk.

use std::{
    path::Path,
    thread,
    time::{Duration, Instant},
};

use handover_protocol::{
    Method, SteerParams, SteerResult,
    client::{ANSWER_TIMEOUT, CONNECT_TIMEOUT, Client},
};
use serde_json::json;
use tokio::{runtime::Builder, task::JoinSet};

use super::{session, steerable};
use crate::{
    Outcome,
    figures::{Row, Samples},
};

/// Clients that send at once, each to an agent of its own.
const CLIENTS: usize = 32;

/// How long they do.
const TOGETHER: Duration = Duration::from_secs(5);

/// The time between one message and the next of a single client, in which the agent takes it up.
const PAUSE: Duration = Duration::from_millis(5);

/// `steer` until it is accepted: one client, and many at once.
pub fn measure() -> Outcome<Vec<Row>> {
    let session = session(CLIENTS)?;
    let wire = session.wire()?;
    let agents = steerable(&wire, CLIENTS)?;
    let alone = Samples::take(500, || {
        thread::sleep(PAUSE);
        let params = json!({"id": agents[0], "text": "go on with the next file"});
        let started = Instant::now();
        wire.call(Method::Steer, params)?;
        Ok::<_, crate::Failure>(started.elapsed())
    })?;
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let socket = session.socket()?;
    let (together, took) = runtime.block_on(all(&socket, &agents))?;
    let rate = together.len() as f64 / took.as_secs_f64();
    let count = format!("  with {CLIENTS} clients at once");
    Ok(vec![
        Row::times("steer, until accepted and on disk", alone).below(Duration::from_millis(5)),
        Row::times(count, together),
        Row::number("  accepted by then in a second", rate, "").at_least(2000.0),
    ])
}

/// A client for each agent, all sending as fast as they are answered.
async fn all(socket: &Path, agents: &[String]) -> Outcome<(Samples, Duration)> {
    let mut clients = Vec::new();
    for agent in agents {
        let (client, notifications) = Client::connect(socket, CONNECT_TIMEOUT).await?;
        client.hello("bench", None).await?;
        clients.push((client, notifications, agent.clone()));
    }
    let started = Instant::now();
    let mut sending = JoinSet::new();
    for (client, notifications, agent) in clients {
        sending.spawn(async move {
            let mut took = Vec::new();
            while started.elapsed() < TOGETHER {
                let params = SteerParams {
                    id: agent.as_str().into(),
                    text: "go on with the next file".into(),
                    steer_id: None,
                    when: None,
                    wait: None,
                    timeout_ms: None,
                };
                let asked = Instant::now();
                let _: SteerResult = client
                    .call(Method::Steer, &params, Some(ANSWER_TIMEOUT))
                    .await?;
                took.push(asked.elapsed());
            }
            drop(notifications);
            Ok::<_, crate::Failure>(took)
        });
    }
    let mut samples = Samples::default();
    while let Some(sent) = sending.join_next().await {
        for took in sent?? {
            samples.push(took);
        }
    }
    Ok((samples, started.elapsed()))
}
