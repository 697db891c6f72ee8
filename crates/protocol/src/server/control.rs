//! What a program has to offer so that its agents can be reached.

use std::sync::Arc;

use crate::{
    AbortParams, AbortResult, AgentView, CallerView, Refusal, ResultParams, ResultResult,
    SteerParams, SteerResult,
};

/// The agents of a program, as clients of its attach socket reach them.
///
/// Calls of one connection arrive in the order of their lines and may then go on beside each other. A
/// call is not given up when its client goes away, only when the server is closed. Refusals have the
/// codes of the wire: `agent_unknown` for an id that names nobody, `agent_not_running` (with `status`)
/// for one that has ended, `not_steerable` with the reason.
///
/// `caller` is who the kernel says has connected, a process of the same user. It counts as a person
/// unless it said in `hello` that it is an agent; whoever must keep its own agents' processes from
/// acting as a person compares `caller.pid` with them.
pub trait AgentControl: Send + Sync + 'static {
    /// Every agent, oldest first, also those that have ended but whose result can be asked for.
    fn list(&self) -> impl Future<Output = Vec<AgentView>> + Send;

    /// Puts a message to a running agent. Answers when the steer is `accepted`, or with
    /// `params.wait` when that state is reached or no longer can be, within `params.timeout_ms`.
    /// No state is answered that is not known: what is learnt later is told by
    /// [`Events::steer`](super::events::Events::steer).
    fn steer(
        &self,
        caller: &CallerView,
        params: SteerParams,
    ) -> impl Future<Output = Result<SteerResult, Refusal>> + Send;

    /// Ends an agent and those below it, and answers when they have ended.
    fn abort(
        &self,
        caller: &CallerView,
        params: AbortParams,
    ) -> impl Future<Output = Result<AbortResult, Refusal>> + Send;

    /// What an agent came to; of one that still runs, its status and what it said last.
    fn result(
        &self,
        params: ResultParams,
    ) -> impl Future<Output = Result<ResultResult, Refusal>> + Send;
}

impl<C: AgentControl> AgentControl for Arc<C> {
    async fn list(&self) -> Vec<AgentView> {
        C::list(self).await
    }

    async fn steer(
        &self,
        caller: &CallerView,
        params: SteerParams,
    ) -> Result<SteerResult, Refusal> {
        C::steer(self, caller, params).await
    }

    async fn abort(
        &self,
        caller: &CallerView,
        params: AbortParams,
    ) -> Result<AbortResult, Refusal> {
        C::abort(self, caller, params).await
    }

    async fn result(&self, params: ResultParams) -> Result<ResultResult, Refusal> {
        C::result(self, params).await
    }
}
