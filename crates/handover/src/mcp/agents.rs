//! The tools by which an agent has agents of its own: it reaches those below it, and no others.
//!
//! The host decides who may start, steer and end whom. What only looks is open to everybody there, so
//! that it is narrowed here: an agent is not shown what does not work for it.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use handover_protocol::{
    AgentId, AgentState, AgentStatus, ErrorCode, ListResult, Method, Refusal, ResultResult,
};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::arguments;
use super::link::Link;
use crate::lineage;

/// Longest wait of one call.
pub(super) const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// The wait of an `agent_wait` that names none.
const USUAL_WAIT: Duration = Duration::from_secs(30);
/// How long the host may take to answer what it knows.
const CALL_TIME: Duration = Duration::from_secs(15);
/// How long it may take to start or end processes.
const PROCESS_TIME: Duration = Duration::from_secs(60);
/// Time between two looks at an agent that is waited for: at first, and at most.
const LOOKS: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(1)];

/// Most agents started here that are remembered, the latest ones.
const MAX_STARTED: usize = 1000;

/// The agents of one agent. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct Agents {
    link: Link,
    /// The agent itself, where the host cannot tell.
    own: Option<AgentId>,
    /// What was started here: a host does not list for ever what has ended.
    started: Arc<Mutex<VecDeque<AgentId>>>,
}

impl Agents {
    /// The agents below `own`, or whom the host takes `link` for.
    pub(super) fn new(link: Link, own: Option<AgentId>) -> Self {
        Self {
            link,
            own,
            started: Arc::default(),
        }
    }

    /// `agent_spawn`.
    pub(super) async fn spawn(&self, asked: &arguments::AgentSpawn) -> Result<Value, Refusal> {
        let result = self.link.spawn(to_value(asked)?, PROCESS_TIME).await?;
        if let Ok(AgentState { id, .. }) = serde_json::from_value(result.clone()) {
            let mut started = self.started();
            started.push_back(id);
            if started.len() > MAX_STARTED {
                started.pop_front();
            }
        }
        Ok(result)
    }

    /// `agent_list`.
    pub(super) async fn list(&self) -> Result<Value, Refusal> {
        let list = self.listed().await?;
        let below = self.below(&list).await?;
        Ok(json!({ "agents": below }))
    }

    /// `agent_steer`.
    pub(super) async fn steer(&self, mut asked: arguments::AgentSteer) -> Result<Value, Refusal> {
        let mut within = CALL_TIME;
        if asked.wait.is_some() {
            let limit = asked.timeout_ms.map_or(LONGEST_WAIT, Duration::from_millis);
            let limit = limit.min(LONGEST_WAIT);
            asked.timeout_ms = u64::try_from(limit.as_millis()).ok();
            within += limit;
        }
        self.link
            .call(Method::Steer, to_value(&asked)?, within)
            .await
    }

    /// `agent_abort`.
    pub(super) async fn abort(&self, id: &AgentId) -> Result<Value, Refusal> {
        let params = json!({ "id": id });
        self.link.call(Method::Abort, params, PROCESS_TIME).await
    }

    /// `agent_result`.
    pub(super) async fn result(&self, id: &AgentId) -> Result<Value, Refusal> {
        self.check(id).await?;
        self.ask(id).await
    }

    /// How long an `agent_wait` waits.
    pub(super) fn wait_time(asked: &arguments::AgentWait) -> Duration {
        let limit = asked.timeout_ms.map_or(USUAL_WAIT, Duration::from_millis);
        limit.min(LONGEST_WAIT)
    }

    /// `agent_wait`: the result of the agent once it has ended or waits for a person, or as it stands
    /// after `limit`.
    pub(super) async fn wait(&self, id: &AgentId, limit: Duration) -> Result<Value, Refusal> {
        self.check(id).await?;
        let over = Instant::now() + limit;
        let [mut pause, longest] = LOOKS;
        loop {
            let mut result = self.ask(id).await?;
            let read: Result<ResultResult, _> = serde_json::from_value(result.clone());
            let status = read.map_err(|_| not_understood())?.status;
            let ended = status.has_ended();
            let now = Instant::now();
            if ended || status == AgentStatus::Waiting || now >= over {
                result["ended"] = ended.into();
                return Ok(result);
            }
            tokio::time::sleep(pause.min(over - now)).await;
            pause = (pause * 2).min(longest);
        }
    }

    async fn ask(&self, id: &AgentId) -> Result<Value, Refusal> {
        let params = json!({ "id": id });
        self.link.call(Method::Result, params, CALL_TIME).await
    }

    async fn listed(&self) -> Result<ListResult, Refusal> {
        let list = self.link.call(Method::List, json!({}), CALL_TIME).await?;
        serde_json::from_value(list).map_err(|_| not_understood())
    }

    /// Refuses an agent that is not below this one.
    async fn check(&self, id: &AgentId) -> Result<(), Refusal> {
        if self.started().contains(id) {
            return Ok(());
        }
        let list = self.listed().await?;
        if self.below(&list).await?.iter().any(|agent| agent.id == *id) {
            return Ok(());
        }
        let message = "there is no agent of that id below you";
        Err(Refusal::new(ErrorCode::AgentUnknown, message).with("id", id))
    }

    async fn below<'a>(
        &self,
        list: &'a ListResult,
    ) -> Result<Vec<&'a handover_protocol::AgentView>, Refusal> {
        let own = self.link.own_agent().await?.or_else(|| self.own.clone());
        let started = self.started().clone();
        let mut roots: Vec<AgentId> = own.into_iter().collect();
        roots.extend(started.iter().cloned());
        let below = lineage::below(&list.agents, &roots);
        let wanted: BTreeSet<&AgentId> = below
            .iter()
            .map(|agent| &agent.id)
            .chain(&started)
            .collect();
        let agents = list.agents.iter();
        Ok(agents.filter(|agent| wanted.contains(&agent.id)).collect())
    }

    fn started(&self) -> MutexGuard<'_, VecDeque<AgentId>> {
        // The list stays whole whatever panicked while holding it.
        self.started.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn to_value(arguments: &impl Serialize) -> Result<Value, Refusal> {
    serde_json::to_value(arguments)
        .map_err(|_| Refusal::new(ErrorCode::Internal, "the arguments cannot be passed on"))
}

fn not_understood() -> Refusal {
    Refusal::new(
        ErrorCode::ProtocolMismatch,
        "the host's answer is not understood",
    )
}
