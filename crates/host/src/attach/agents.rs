//! The methods about agents.

use handover_protocol::envelope::read_params;
use handover_protocol::{AgentState, Refusal, SpawnCaller, SpawnParams, SteerParams, SteerResult};
use serde::Deserialize;
use serde_json::Value;

use super::boundary::{Agents, Session};
use super::dispatch::{Call, Shared};

/// `spawn`: who asks proves that it is the one that was greeted, before anything else is looked at.
pub(super) async fn spawn<S: Session>(
    shared: &Shared<S>,
    call: &mut Call,
) -> Result<AgentState, Refusal> {
    let params = call.params.take();
    if let Some(Value::Object(params)) = &params {
        let spawner = params.get("caller").map(SpawnCaller::deserialize);
        call.greeting
            .check_spawner(spawner.and_then(Result::ok).as_ref())?;
    }
    let params: SpawnParams = read_params(call.method, params)?;
    shared.session.agents().spawn(&call.caller, params).await
}

/// `steer`. What was accepted is on its way whether or not somebody waits for more.
pub(super) async fn steer<S: Session>(
    shared: &Shared<S>,
    call: &Call,
    params: SteerParams,
) -> Result<SteerResult, Refusal> {
    let agents = shared.session.agents();
    let at_once = SteerParams {
        wait: None,
        ..params.clone()
    };
    let accepted = agents.steer(&call.caller, at_once).await?;
    if params.wait.is_none() {
        return Ok(accepted);
    }
    // The same steer once more, which is now known, and only waited for.
    let again = SteerParams {
        steer_id: Some(accepted.steer_id.clone()),
        ..params
    };
    tokio::select! {
        known = agents.steer(&call.caller, again) => known,
        // Nobody is left to be told, so the wait ends.
        () = call.outlet.closed() => Ok(accepted),
    }
}
