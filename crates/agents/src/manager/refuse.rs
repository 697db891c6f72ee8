//! Refusals about agents.

use handover_protocol::{AgentId, AgentStatus, ErrorCode, Refusal, RequestId};

use super::task::json;
use crate::environment::NotRecorded;

/// There is no such agent. `named` are agents with that name, and `newest` those there are besides `more`.
/// Names are told and not taken: several agents may have the same.
pub(crate) fn unknown(
    id: &AgentId,
    named: &[&AgentId],
    newest: &[&AgentId],
    more: usize,
) -> Refusal {
    let listed = |ids: &[&AgentId]| {
        let ids: Vec<&str> = ids.iter().map(|id| id.as_str()).collect();
        ids.join(", ")
    };
    let remedy = match (named, newest, more) {
        ([], [], _) => "the session has none".to_owned(),
        ([], newest, 0) => format!("the session has {}", listed(newest)),
        ([], newest, more) => format!("the session has {} and {more} more", listed(newest)),
        ([only], ..) => format!("that is the name of {only}; give its id"),
        (several, ..) => format!(
            "that is the name of {}; give the id of one",
            listed(several)
        ),
    };
    let refusal = Refusal::new(
        ErrorCode::AgentUnknown,
        format!("there is no agent {:?}: {remedy}", id.as_str()),
    );
    let refusal = refusal.with("id", id).with("agents", newest);
    if named.is_empty() {
        return refusal;
    }
    refusal.with("named", named)
}

/// The agent does not run.
pub(crate) fn not_running(id: &AgentId, status: AgentStatus) -> Refusal {
    let word = status_word(status);
    let remedy = match status {
        AgentStatus::Queued => "wait until it has begun, or abort it",
        _ => "`result` tells what it came to; start another agent for more work",
    };
    Refusal::new(
        ErrorCode::AgentNotRunning,
        format!("agent {id} is {word}: {remedy}"),
    )
    .with("id", id)
    .with("status", status)
}

/// Nothing can be steered into the agent.
pub(crate) fn not_steerable(id: &AgentId, reason: &str) -> Refusal {
    Refusal::new(
        ErrorCode::NotSteerable,
        format!("nothing can be steered into agent {id}: {reason}"),
    )
    .with("id", id)
    .with("reason", reason)
}

/// The agent's program asks for permission: what is written now would land in its question.
pub(crate) fn asks_permission(id: &AgentId, request: &RequestId) -> Refusal {
    Refusal::new(
        ErrorCode::NotSteerable,
        format!(
            "agent {id} asks for permission and takes no message until that is answered: \
             `handover answer {request} yes` or `no`"
        ),
    )
    .with("id", id)
    .with("reason", "it asks for permission")
    .with("requestId", request)
    .with("status", AgentStatus::Waiting)
}

/// Too much waits.
pub(crate) fn queue_full(message: impl Into<String>) -> Refusal {
    Refusal::new(ErrorCode::QueueFull, message)
}

/// The record takes nothing.
pub(crate) fn storage(error: &NotRecorded) -> Refusal {
    Refusal::new(
        ErrorCode::StorageFailed,
        format!("{error}; make room on the disk and try again"),
    )
}

/// A parameter is wrong.
pub(crate) fn bad(parameter: &str, message: impl Into<String>) -> Refusal {
    Refusal::bad_param(parameter, message)
}

/// The status as it stands on the wire.
pub(crate) fn status_word(status: AgentStatus) -> String {
    let word = json(&status).unwrap_or_default();
    word.as_str().unwrap_or_default().to_owned()
}
