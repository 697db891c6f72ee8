//! The methods about agents, as long as this host runs none: each answers what is true of that.

use handover_protocol::{AgentId, ErrorCode, Method, Refusal, SpawnParams, envelope};

use super::greeting::Greeting;

/// `steer`, `abort` and `result`: there is no such agent.
pub(super) fn unknown(id: &AgentId) -> Refusal {
    Refusal::new(
        ErrorCode::AgentUnknown,
        format!(
            "there is no agent {:?}; `list` shows those there are",
            id.as_str()
        ),
    )
    .with("id", id)
}

/// `spawn`: who asks is checked as always; then no driver of any name is there.
pub(super) fn no_driver(greeting: &Greeting, params: &SpawnParams) -> Refusal {
    if let Err(refusal) = greeting.check_spawner(&params.caller) {
        return refusal;
    }
    envelope::bad_params(
        Method::Spawn,
        "this host has no driver of that name, since it has none at all: start the agent yourself \
         and give it `handover mcp`",
    )
    .with("drivers", [(); 0])
}
