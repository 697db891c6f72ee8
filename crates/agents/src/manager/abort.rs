//! Ending agents by force, with everything below them.

use std::time::Duration;

use handover_protocol::{
    AbortParams, AbortResult, AgentId, AgentState, AgentStatus, ErrorCode, Refusal, Source,
};
use serde_json::{Map, Value};
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use super::Finish;
use super::table::{Ending, Native};
use super::{Manager, Outcome, refuse};
use crate::environment::{By, Change, Entry as RecordEntry};
use crate::run::{GRACE, Order, SETTLE};

/// How long the end of an agent may take: its program's own quiet, TERM, KILL, and a slow machine.
const WITHIN: Duration = Duration::from_secs(30);

impl Manager {
    /// Ends an agent and everything below it; answers when their process trees are empty and that is
    /// stored. What waits in the queue never begins.
    ///
    /// # Errors
    /// `agent_unknown`, `agent_not_running`, `not_steerable` for a subagent that its program has no
    /// way to end, `timeout`.
    pub async fn abort(&self, by: &By, params: AbortParams) -> Result<AbortResult, Refusal> {
        let id = params.id;
        let (tree, agent_type, native) = self.mark_aborting(&id)?;
        if let Some(native) = native {
            self.abort_native(&id, &native.root, &native.name).await?;
        }
        // All at once: one that hangs holds up none of the others.
        let waits: Vec<_> = tree.iter().map(|one| self.begin_abort(one)).collect();
        let deadline = Instant::now() + WITHIN;
        let mut states = Vec::new();
        let mut survivors = Vec::new();
        for (one, wait) in tree.into_iter().zip(waits) {
            let ending = match wait {
                Some(ended) => ending(ended, deadline).await,
                None => None,
            };
            let status = match &ending {
                Some(ending) => ending.status,
                None => self.status(&one).unwrap_or(AgentStatus::Aborted),
            };
            survivors.extend(ending.map(|ending| ending.survivors).unwrap_or_default());
            states.push(AgentState { id: one, status });
        }
        let own = states.remove(0);
        if !own.status.has_ended() {
            return Err(Refusal::new(
                ErrorCode::Timeout,
                format!("agent {id} has not ended within {} s", WITHIN.as_secs()),
            )
            .with("id", &id)
            .with("status", own.status));
        }
        self.record_abort(by, &id, &agent_type).await;
        if by.source == Source::Human {
            self.tell_parent(&id, "ended it.");
        }
        Ok(AbortResult {
            id,
            status: own.status,
            descendants: states,
            survivors,
        })
    }

    /// The agent and those below it, none of which starts another from here on; and where a program's
    /// own subagent is found.
    fn mark_aborting(
        &self,
        id: &AgentId,
    ) -> Result<(Vec<AgentId>, String, Option<Native>), Refusal> {
        let mut table = self.inner.table();
        let entry = table.known(id)?;
        let Some(work) = &entry.work else {
            return Err(refuse::not_running(id, entry.task.status));
        };
        let agent_type = entry.task.driver.clone();
        let native = work.native.clone();
        let mut tree = vec![id.clone()];
        tree.extend(table.below(id));
        if native.is_none() {
            for one in &tree {
                if let Some(work) = table.work_mut(one) {
                    work.aborting = true;
                }
            }
        }
        Ok((tree, agent_type, native))
    }

    /// Ends every agent, for `stop_all_input` and the end of the session.
    pub async fn abort_all(&self, by: &By) -> Vec<AgentState> {
        let roots: Vec<AgentId> = {
            let table = self.inner.table();
            table
                .unfinished()
                .filter(|entry| {
                    let parent = entry.task.parent.as_ref();
                    parent.is_none_or(|parent| {
                        table.get(parent).is_none_or(|parent| parent.work.is_none())
                    })
                })
                .map(|entry| entry.task.id.clone())
                .collect()
        };
        let mut running = tokio::task::JoinSet::new();
        for id in roots {
            let (manager, by) = (self.clone(), by.clone());
            running.spawn(async move { manager.abort(&by, AbortParams { id }).await });
        }
        let mut states = Vec::new();
        for aborted in running.join_all().await.into_iter().flatten() {
            states.push(AgentState {
                id: aborted.id,
                status: aborted.status,
            });
            states.extend(aborted.descendants);
        }
        states
    }

    /// Ends every agent and starts none any more.
    pub async fn close(&self, by: &By) {
        self.inner.table().closing = true;
        self.abort_all(by).await;
    }

    /// Begins the end of one agent. What it answers tells of the end.
    fn begin_abort(&self, id: &AgentId) -> Option<watch::Receiver<Option<Ending>>> {
        let mut table = self.inner.table();
        let entry = table.get_mut(id)?;
        let queued = entry.task.status == AgentStatus::Queued;
        let work = entry.work.as_mut()?;
        let ended = work.ended.subscribe();
        if !queued {
            work.abort.send_replace(true);
            return Some(ended);
        }
        // Nothing takes its turn between this look and its end.
        work.launch = None;
        table.unqueue(id);
        drop(table);
        let finish = Finish {
            status: AgentStatus::CancelledBeforeStart,
            outcome: Some(Outcome::default()),
            survivors: Vec::new(),
        };
        tokio::spawn(self.end(id, finish, None));
        Some(ended)
    }

    /// Asks the program to end one of its own subagents.
    async fn abort_native(&self, id: &AgentId, root: &AgentId, name: &str) -> Result<(), Refusal> {
        let inbox = {
            let table = self.inner.table();
            let work = table.get(root).and_then(|entry| entry.work.as_ref());
            work.and_then(|work| work.inbox.clone())
        };
        let (reply, answer) = oneshot::channel();
        let order = Order::InterruptChild {
            name: name.to_owned(),
            reply,
        };
        let sent = match inbox {
            Some(inbox) => inbox.send_timeout(order, SETTLE).await.is_ok(),
            None => false,
        };
        match answer.await {
            Ok(true) if sent => Ok(()),
            _ => Err(refuse::not_steerable(
                id,
                &format!(
                    "it is a subagent of {root}'s own program, which has no way to end it alone: abort {root}"
                ),
            )),
        }
    }

    async fn record_abort(&self, by: &By, id: &AgentId, agent_type: &str) {
        if by.source != Source::Human {
            return;
        }
        let mut fields = Map::new();
        fields.insert("act".to_owned(), Value::from("abort"));
        fields.insert("agentType".to_owned(), Value::from(agent_type));
        let entry = RecordEntry {
            kind: "human_intervention",
            by: Some(by.clone()),
            agent: id.clone(),
            fields,
        };
        let change = Change {
            entries: vec![entry],
            state: Vec::new(),
        };
        self.inner.env.record_spooled(change).await;
    }
}

async fn ending(mut ended: watch::Receiver<Option<Ending>>, deadline: Instant) -> Option<Ending> {
    let waited = tokio::time::timeout_at(deadline, ended.wait_for(Option::is_some)).await;
    match waited {
        Ok(Ok(ending)) => ending.clone(),
        Ok(Err(_)) | Err(_) => None,
    }
}

const _: () = assert!(WITHIN.as_millis() > SETTLE.as_millis() + 2 * GRACE.as_millis());
