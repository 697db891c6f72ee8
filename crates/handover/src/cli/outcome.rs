//! Waiting for what an agent comes to.

use std::time::Duration;

use handover_protocol::{
    AgentId, ErrorCode, Method, ResultParams, ResultResult, SubscribeParams, SubscribeResult,
};
use tokio::signal::unix::{SignalKind, signal};

use super::failure::Failure;
use super::session::Session;

/// How often the host is asked although it said nothing.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// The result of the agent once it has ended. What the connection is told meanwhile is not kept.
///
/// # Errors
/// The host's refusal; an interrupt; `session_unknown` if the host ends first.
pub async fn of(session: &mut Session, id: &AgentId) -> Result<ResultResult, Failure> {
    let params = SubscribeParams {
        since: None,
        kinds: Some(vec!["agent_status".to_owned()]),
        agent: Some(id.clone()),
    };
    // From here on, so that none is missed between two waits.
    let mut interrupt = signal(SignalKind::interrupt())?;
    // First the subscription, then the question, so that no end falls between them.
    let _: SubscribeResult = session.call(Method::Subscribe, &params).await?;
    let params = ResultParams { id: id.clone() };
    loop {
        let result: ResultResult = session.call(Method::Result, &params).await?;
        if result.status.has_ended() {
            return Ok(result);
        }
        tokio::select! {
            news = session.notifications.recv() => if news.is_none() {
                let message = "the host has ended, and what became of the agent is not known; \
                               `handover up --session` brings the session back";
                return Err(Failure::new(ErrorCode::SessionUnknown, message));
            },
            () = tokio::time::sleep(LOOK_AGAIN) => {}
            _ = interrupt.recv() => return Err(Failure::interrupted()),
        }
    }
}
