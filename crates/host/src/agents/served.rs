//! The agents as the attach socket sees them.

use handover_agents::{By, Manager};
use handover_protocol::{
    AbortParams, AbortResult, AgentId, AgentState, AgentView, DesktopId, Refusal, ResultParams,
    ResultResult, SpawnParams, SteerParams, SteerResult,
};

use crate::attach;
use crate::callers::Caller;

/// The agents behind the attach socket.
pub struct Agents(Manager);

impl Agents {
    /// Those of this manager.
    pub fn new(manager: Manager) -> Self {
        Self(manager)
    }
}

impl From<&Caller> for By {
    fn from(caller: &Caller) -> Self {
        Self {
            actor: caller.actor(),
            source: caller.source(),
        }
    }
}

impl attach::Agents for Agents {
    fn list(&self) -> Vec<AgentView> {
        self.0.list()
    }

    fn is_below(&self, id: &AgentId, ancestor: &AgentId) -> bool {
        self.0.is_below(id, ancestor)
    }

    fn used(&self, agent: &AgentId, desktop: &DesktopId) {
        self.0.uses(agent, desktop);
    }

    async fn spawn(&self, caller: &Caller, params: SpawnParams) -> Result<AgentState, Refusal> {
        self.0.spawn(&caller.into(), params).await
    }

    async fn steer(&self, caller: &Caller, params: SteerParams) -> Result<SteerResult, Refusal> {
        self.0.steer(&caller.into(), params).await
    }

    async fn abort(&self, caller: &Caller, params: AbortParams) -> Result<AbortResult, Refusal> {
        self.0.abort(&caller.into(), params).await
    }

    async fn result(&self, params: ResultParams) -> Result<ResultResult, Refusal> {
        self.0.result(params).await
    }

    async fn abort_all(&self, caller: &Caller) -> Vec<AgentState> {
        self.0.abort_all(&caller.into()).await
    }
}
