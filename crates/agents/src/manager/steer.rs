//! Steering: a message into a running agent, and its receipt.

use std::sync::Arc;
use std::time::Duration;

use handover_protocol::{
    AgentId, AgentStatus, ErrorCode, Refusal, Source, SteerId, SteerParams, SteerResult,
    SteerState, SteerWhen,
};
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::sync::mpsc::error::TrySendError;

use super::limits::{MAX_STEER_ID, MAX_TEXT, OPEN_STEERS, OPEN_STEERS_BYTES};
use super::receipt::{Receipt, is_final};
use super::table::Table;
use super::task::{StoredReceipt, json, receipt_key};
use super::{Inner, Manager, ids, refuse};
use crate::driver::Steer;
use crate::environment::{By, Change, Entry as RecordEntry, NotRecorded};
use crate::run::Order;

/// How long `wait` waits if nothing is said.
const WAIT: Duration = Duration::from_secs(30);
/// The longest wait.
const MAX_WAIT: Duration = Duration::from_secs(600);

impl Manager {
    /// Sends a message into a running agent. Durable when it answers; the same `steerId` again is the
    /// same steer. With `wait` it answers when that state is reached, no longer can be, or the time is
    /// over: what it answers is what is known then.
    ///
    /// # Errors
    /// `bad_params`, `agent_unknown`, `agent_not_running`, `not_steerable`, `queue_full`,
    /// `storage_failed`.
    pub async fn steer(&self, by: &By, params: SteerParams) -> Result<SteerResult, Refusal> {
        let inner = &self.inner;
        check(&params)?;
        let steer_id = match params.steer_id {
            Some(id) => id,
            None => ids::fresh_steer().map_err(|error| {
                Refusal::new(ErrorCode::Internal, format!("no random bytes: {error}"))
            })?,
        };
        let text = params.text.into_inner();
        if inner.may_be_only_stored(&params.id, &steer_id)
            && let Some(result) = inner.closed_receipt(&params.id, &steer_id).await?
        {
            return Ok(result);
        }
        let accepted = self.accept(by, &params.id, &steer_id, text.clone(), params.when);
        let (receipt, new) = match accepted {
            Ok(Accepted::New(receipt)) => (receipt, true),
            Ok(Accepted::Known(receipt)) => (receipt, false),
            // One that ended may have had this very steer before.
            Err(refusal) => {
                let closed = inner.closed_receipt(&params.id, &steer_id).await?;
                return closed.ok_or(refusal);
            }
        };
        let mut known = receipt.watch();
        // Nobody forgets a receipt before the record has answered, which it always does.
        let stored = known.wait_for(|known| known.stored.is_some()).await;
        if stored.is_ok_and(|known| known.stored != Some(true)) {
            return Err(refuse::storage(&NotRecorded(
                "the record did not take the message, which was not sent".to_owned(),
            )));
        }
        if new && by.source == Source::Human {
            self.tell_parent(&params.id, &format!("sent it this message: {text}"));
        }
        let Some(until) = params.wait else {
            // Only what was asked for: the program may have it already.
            let state = if new {
                SteerState::Accepted
            } else {
                receipt.known().state
            };
            let reason = (!new).then(|| receipt.known().reason).flatten();
            return Ok(SteerResult {
                steer_id,
                state,
                reason,
            });
        };
        let wait = params.timeout_ms.map_or(WAIT, Duration::from_millis);
        let reached = known.wait_for(|known| known.is_past(until));
        // What is known when the time is over is an answer too.
        let _ = tokio::time::timeout(wait.min(MAX_WAIT), reached).await;
        Ok(receipt.known().result(steer_id))
    }

    /// Checks, stores and queues a message in one step, so that the order in which messages are
    /// accepted is the order in which they are handed over.
    pub(super) fn accept(
        &self,
        by: &By,
        id: &AgentId,
        steer_id: &SteerId,
        text: String,
        when: Option<SteerWhen>,
    ) -> Result<Accepted, Refusal> {
        let mut table = self.inner.table();
        let entry = table.known(id)?;
        if let Some(receipt) = entry.steers().and_then(|steers| steers.get(steer_id)) {
            return Ok(Accepted::Known(receipt));
        }
        let agent_type = entry.task.driver.clone();
        let (root, child) = self.check_steerable(&table, id)?;
        let when = check_when(&table, &root, when)?;
        let Some(inbox) = table
            .get(&root)
            .and_then(|e| e.work.as_ref()?.inbox.clone())
        else {
            // Its last turn has ended, and so will it in a moment.
            return Err(refuse::not_running(id, AgentStatus::Done));
        };
        if table.has_steer_of_another(&root, id, steer_id) {
            return Err(refuse::bad(
                "steerId",
                format!(
                    "`steerId` {steer_id} is a message to another agent of the same program: choose another"
                ),
            ));
        }
        if !self.inner.env.healthy() {
            return Err(Refusal::new(
                ErrorCode::StorageFailed,
                "the record cannot be written, so nothing is sent that it would miss; make room on the disk and try again",
            ));
        }
        let permit = inbox.try_reserve_owned().map_err(|error| match error {
            TrySendError::Full(_) => refuse::queue_full(format!(
                "agent {id} has too many messages waiting: wait until it has read some"
            )),
            TrySendError::Closed(_) => refuse::not_running(id, AgentStatus::Done),
        })?;
        let receipt = Arc::new(Receipt::new());
        let Some(work) = table.work_mut(id) else {
            return Err(table.unknown(id));
        };
        if work.steers.open() >= OPEN_STEERS {
            return Err(refuse::queue_full(format!(
                "agent {id} has {OPEN_STEERS} messages that it has not answered: wait until it has"
            )));
        }
        if work.steers.open_bytes() + text.len() > OPEN_STEERS_BYTES {
            return Err(refuse::queue_full(format!(
                "the messages that agent {id} has not answered and this one have more than {OPEN_STEERS_BYTES} bytes: wait until it has answered some"
            )));
        }
        work.steers
            .add(steer_id.clone(), receipt.clone(), text.len());
        let stored = self
            .inner
            .env
            .record(acceptance(by, id, &agent_type, steer_id, &text));
        permit.send(Order::Steer {
            agent: id.clone(),
            steer: Steer {
                id: steer_id.clone(),
                text,
                when,
                child,
            },
            receipt: receipt.clone(),
        });
        drop(table);
        // On its own, so that it ends well even if nobody waits for the answer any more.
        let (manager, id, steer_id, told) =
            (self.clone(), id.clone(), steer_id.clone(), receipt.clone());
        tokio::spawn(async move {
            let stored = stored.await.is_ok();
            if !stored && let Some(work) = manager.inner.table().work_mut(&id) {
                work.steers.forget(&steer_id);
            }
            told.stored(stored);
        });
        self.inner.env.changed();
        Ok(Accepted::New(receipt))
    }

    /// The agent whose program takes messages for `id`, and that program's name for it if it is a
    /// subagent of the program.
    fn check_steerable(
        &self,
        table: &Table,
        id: &AgentId,
    ) -> Result<(AgentId, Option<String>), Refusal> {
        let entry = table.known(id)?;
        let status = entry.task.status;
        let Some(work) = &entry.work else {
            return Err(refuse::not_running(id, status));
        };
        if status == AgentStatus::Queued || status.has_ended() {
            return Err(refuse::not_running(id, status));
        }
        if work.aborting {
            return Err(refuse::not_running(id, AgentStatus::Aborted));
        }
        if let Some(reason) = &entry.task.not_steerable {
            return Err(refuse::not_steerable(id, reason));
        }
        let (root, child) = match &work.native {
            Some(native) => (native.root.clone(), Some(native.name.clone())),
            None => (id.clone(), None),
        };
        let asked = table
            .get(&root)
            .and_then(|entry| entry.work.as_ref()?.asked.values().next());
        match asked {
            Some(request) => Err(refuse::asks_permission(id, request)),
            None => Ok((root, child)),
        }
    }

    /// A steer has come so far. Steps back and repeats change nothing.
    pub(crate) fn receipt(
        &self,
        id: &AgentId,
        steer: &SteerId,
        state: SteerState,
        reason: Option<&str>,
    ) {
        let mut table = self.inner.table();
        let Some(work) = table.work_mut(id) else {
            return;
        };
        let Some(receipt) = work.steers.get(steer) else {
            return;
        };
        if receipt.advance(state, reason) {
            if is_final(state) {
                work.steers.close(steer);
            }
            let change = receipt_change(id, steer, state, reason);
            if is_final(state) {
                // Kept whatever the disk does; its way into the record begins with the call.
                drop(self.inner.env.record_spooled(change));
            } else {
                self.inner.env.record_soon(change);
            }
        }
        drop(table);
        if is_final(state) {
            self.inner.env.changed();
        }
    }

    /// Stores that steers are about to be written to the program; answers when that is durable, or
    /// kept until the disk takes it again.
    pub(crate) async fn handed(&self, steers: &[(AgentId, SteerId)]) {
        let stored = {
            let mut table = self.inner.table();
            let mut change = Change::default();
            for (id, steer) in steers {
                let receipt = table.work_mut(id).and_then(|work| work.steers.get(steer));
                if receipt.is_some_and(|receipt| receipt.advance(SteerState::Handed, None)) {
                    let handed = receipt_change(id, steer, SteerState::Handed, None);
                    change.entries.extend(handed.entries);
                    change.state.extend(handed.state);
                }
            }
            if change == Change::default() {
                return;
            }
            self.inner.env.record_spooled(change)
        };
        stored.await;
    }
}

/// What became of a message.
#[derive(Debug)]
pub(super) enum Accepted {
    /// It is on its way.
    New(Arc<Receipt>),
    /// It was sent before.
    Known(Arc<Receipt>),
}

impl Inner {
    /// Whether a steer may be known to the record alone.
    fn may_be_only_stored(&self, id: &AgentId, steer: &SteerId) -> bool {
        let table = self.table();
        let steers = table.get(id).and_then(|entry| entry.steers());
        steers.is_some_and(|steers| steers.has_forgotten() && steers.get(steer).is_none())
    }

    /// The receipt of a steer that is no longer in memory.
    async fn closed_receipt(
        &self,
        id: &AgentId,
        steer: &SteerId,
    ) -> Result<Option<SteerResult>, Refusal> {
        let stored = self.env.stored_at(&receipt_key(id, steer)).await;
        let stored = stored.map_err(|error| refuse::storage(&error))?;
        let receipt = stored.and_then(|stored| StoredReceipt::deserialize(stored).ok());
        Ok(receipt.map(|receipt| SteerResult {
            steer_id: steer.clone(),
            state: receipt.state,
            reason: receipt.reason,
        }))
    }
}

fn check(params: &SteerParams) -> Result<(), Refusal> {
    let text = params.text.expose();
    if text.trim().is_empty() {
        return Err(refuse::bad("text", "`text` must not be empty"));
    }
    if text.len() > MAX_TEXT {
        return Err(refuse::bad(
            "text",
            format!(
                "`text` has {} bytes; at most {MAX_TEXT} are sent: put the rest into a file and name it",
                text.len()
            ),
        ));
    }
    if let Some(id) = &params.steer_id {
        let id = id.as_str();
        let plain = |c: char| c.is_ascii_graphic() && c != '/';
        if id.is_empty() || id.len() > MAX_STEER_ID || !id.chars().all(plain) {
            return Err(refuse::bad(
                "steerId",
                format!(
                    "`steerId` must be 1 to {MAX_STEER_ID} printable ASCII characters without spaces and `/`"
                ),
            ));
        }
    }
    Ok(())
}

/// When the message is put to the program: as wished, or the first that the driver can.
fn check_when(
    table: &Table,
    root: &AgentId,
    wanted: Option<SteerWhen>,
) -> Result<SteerWhen, Refusal> {
    let can = table
        .get(root)
        .and_then(|entry| entry.work.as_ref())
        .map_or(&[][..], |work| work.when);
    match wanted {
        None => Ok(can.first().copied().unwrap_or_default()),
        Some(wanted) if can.contains(&wanted) => Ok(wanted),
        Some(_) => Err(refuse::bad(
            "when",
            "this agent's program cannot take a message then; leave out `when`, or name one of those in `data.supported`",
        )
        .with("supported", can)),
    }
}

/// The acceptance of a message, and the intervention that it is if a person sends it.
fn acceptance(by: &By, id: &AgentId, agent_type: &str, steer: &SteerId, text: &str) -> Change {
    let mut change = receipt_change(id, steer, SteerState::Accepted, None);
    for entry in &mut change.entries {
        entry.by = Some(by.clone());
        // A person's words are in the intervention, once.
        if by.source != Source::Human {
            entry.fields.insert("text".to_owned(), Value::from(text));
        }
    }
    if by.source == Source::Human {
        let mut fields = Map::new();
        fields.insert("act".to_owned(), Value::from("steer"));
        fields.insert("agentType".to_owned(), Value::from(agent_type));
        fields.insert("text".to_owned(), Value::from(text));
        fields.insert("steerId".to_owned(), Value::from(steer.as_str()));
        change.entries.push(RecordEntry {
            kind: "human_intervention",
            by: Some(by.clone()),
            agent: id.clone(),
            fields,
        });
    }
    change
}

fn receipt_change(
    id: &AgentId,
    steer: &SteerId,
    state: SteerState,
    reason: Option<&str>,
) -> Change {
    let stored = StoredReceipt {
        state,
        reason: reason.map(str::to_owned),
    };
    Change {
        entries: vec![receipt_entry(id, steer, state, reason)],
        state: vec![(receipt_key(id, steer), json(&stored))],
    }
}

/// The event of a step of a receipt.
pub(super) fn receipt_entry(
    id: &AgentId,
    steer: &SteerId,
    state: SteerState,
    reason: Option<&str>,
) -> RecordEntry {
    let mut fields = Map::new();
    fields.insert("steerId".to_owned(), Value::from(steer.as_str()));
    fields.insert("state".to_owned(), json(&state).unwrap_or_default());
    if let Some(reason) = reason {
        fields.insert("reason".to_owned(), Value::from(reason));
    }
    RecordEntry {
        kind: "steer",
        by: None,
        agent: id.clone(),
        fields,
    }
}
