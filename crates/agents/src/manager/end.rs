//! The end of an agent: its status, its result, and what its open steers came to.

use std::future::Future;
use std::sync::Arc;

use handover_protocol::{AgentId, AgentStatus, SteerState};

use super::receipt::is_final;
use super::steer::receipt_entry;
use super::table::{Ending, Left};
use super::task::{Outcome, StoredReceipt, json, receipt_key, result_key};
use super::{Manager, status_entry};
use crate::environment::{Change, Pending};

/// How an agent ends.
#[derive(Debug)]
pub(crate) struct Finish {
    /// How it stands from now on.
    pub status: AgentStatus,
    /// What it came to; `None` leaves what was stored before.
    pub outcome: Option<Outcome>,
    /// Pids that could not be ended.
    pub survivors: Vec<u32>,
}

impl Manager {
    /// An agent has ended, and nothing of it is left to run. Answers when that is stored, or kept
    /// until the disk takes it again. Its program's own subagents end with it.
    pub(crate) fn end(
        &self,
        id: &AgentId,
        finish: Finish,
        why: Option<&str>,
    ) -> impl Future<Output = ()> + use<> {
        let stored = self.end_in_table(id, finish, why);
        self.start_next();
        self.inner.env.changed();
        let inner = Arc::clone(&self.inner);
        async move {
            let Some((ended, stored)) = stored else {
                return;
            };
            // While the disk takes nothing, memory is all there is.
            if !stored.await {
                return;
            }
            let mut table = inner.table();
            for id in ended {
                if let Some(entry) = table.get_mut(&id) {
                    entry.left = None;
                }
            }
        }
    }

    /// Those that end, and their way into the record.
    fn end_in_table(
        &self,
        id: &AgentId,
        finish: Finish,
        why: Option<&str>,
    ) -> Option<(Vec<AgentId>, Pending<bool>)> {
        let mut table = self.inner.table();
        table.unqueue(id);
        let mut change = Change::default();
        let mut endings = Vec::new();
        let natives: Vec<AgentId> = table
            .unfinished()
            .filter(|entry| {
                let native = entry.work.as_ref().and_then(|work| work.native.as_ref());
                native.is_some_and(|native| native.root == *id)
            })
            .map(|entry| entry.task.id.clone())
            .collect();
        let error = finish.outcome.as_ref().and_then(|o| o.error.clone());
        for ended in natives.iter().chain([id]) {
            let Some(mut work) = table.end(ended, finish.status, self.inner.env.now()) else {
                continue;
            };
            for (steer, receipt) in work.steers.unfinished() {
                let (state, reason) = match receipt.known().state {
                    SteerState::Accepted => (
                        SteerState::Dropped,
                        "the agent ended before it was handed over",
                    ),
                    _ => (SteerState::Unknown, "the agent ended"),
                };
                debug_assert!(is_final(state));
                receipt.advance(state, Some(reason));
                work.steers.close(&steer);
                let stored = StoredReceipt {
                    state,
                    reason: Some(reason.to_owned()),
                };
                change
                    .entries
                    .push(receipt_entry(ended, &steer, state, Some(reason)));
                change
                    .state
                    .push((receipt_key(ended, &steer), json(&stored)));
            }
            let shown = (ended == id).then_some(error.as_deref().or(why)).flatten();
            change
                .entries
                .push(status_entry(ended, finish.status, shown, None));
            if let Some(entry) = table.get_mut(ended) {
                change.state.push(entry.task.put());
                entry.left = Some(Box::new(Left {
                    outcome: (ended == id).then(|| finish.outcome.clone()).flatten(),
                    steers: work.steers,
                }));
            }
            endings.push((ended.clone(), work.ended));
        }
        if endings.is_empty() {
            return None;
        }
        if let Some(outcome) = &finish.outcome {
            change.state.push((result_key(id), json(outcome)));
        }
        let stored = self.inner.env.record_spooled(change);
        let mut all = Vec::new();
        for (one, ended) in endings {
            let survivors = if one == *id {
                finish.survivors.clone()
            } else {
                Vec::new()
            };
            ended.send_replace(Some(Ending {
                status: finish.status,
                survivors,
            }));
            all.push(one);
        }
        Some((all, stored))
    }

    /// Stores what an agent that goes on has said last.
    pub(crate) fn said(&self, id: &AgentId, text: &str) {
        let outcome = Outcome {
            text: text.to_owned(),
            error: None,
        };
        self.inner.env.record_soon(Change {
            entries: Vec::new(),
            state: vec![(result_key(id), json(&outcome))],
        });
    }
}
