//! Whether a caller may make a call, before anything else is looked at. Of the
//! parameters only the agent that a call is about counts.

use std::time::Duration;

use handover_protocol::{AgentId, ErrorCode, Method, Refusal};
use serde_json::Value;

use super::boundary::{Agents, Session};
use super::greeting::Greeting;
use crate::callers::{Caller, CallerKind};

/// How long a person has to confirm on the terminal.
const CONFIRM: Duration = Duration::from_secs(60);

/// Lets the call through or refuses it with `caller_refused`.
pub(super) async fn check<S: Session>(
    session: &S,
    greeting: &Greeting,
    caller: &Caller,
    method: Method,
    params: Option<&Value>,
) -> Result<(), Refusal> {
    let for_people = needs_person(method);
    // An agent may answer its own request, and that is then on record as the agent's act; in a
    // person's name it is a person's act like the others.
    let in_persons_name = for_people || method == Method::Answer;
    match &caller.kind {
        CallerKind::Human { .. } if in_persons_name && caller.marked.is_some() => {
            if greeting.is_confirmed(caller) {
                return Ok(());
            }
            session.confirm(caller, act(method), CONFIRM).await?;
            greeting.confirmed(caller);
            Ok(())
        }
        CallerKind::Human { .. } => Ok(()),
        CallerKind::App { .. } if !method.open_to_apps() => Err(refused(format!(
            "a program on a desktop may only look, not call {method}: run this from your own terminal"
        ))),
        CallerKind::Agent { id } if is_about_agent(method) => {
            check_below(session.agents(), id.as_ref(), method, params)
        }
        CallerKind::Agent { .. } if for_people => Err(refused(format!(
            "only a person may call {method}: use `request_human` to ask for one"
        ))),
        CallerKind::App { .. } | CallerKind::Agent { .. } => Ok(()),
    }
}

fn needs_person(method: Method) -> bool {
    method.human_only() || is_about_agent(method)
}

/// `steer` and `abort` are open to an agent for those below it.
fn is_about_agent(method: Method) -> bool {
    matches!(method, Method::Steer | Method::Abort)
}

/// The refusal is the same whether there is such an agent or not: that is not the caller's business.
fn check_below(
    agents: &impl Agents,
    caller: Option<&AgentId>,
    method: Method,
    params: Option<&Value>,
) -> Result<(), Refusal> {
    let target = params.and_then(|params| params.get("id")?.as_str());
    let below = match (caller, target) {
        (Some(caller), Some(target)) => agents.is_below(&AgentId::from(target), caller),
        _ => false,
    };
    if below {
        return Ok(());
    }
    Err(refused(format!(
        "an agent may call {method} only for agents that it has started, and those below them: use \
         `request_human` to ask a person"
    )))
}

fn refused(message: String) -> Refusal {
    Refusal::new(ErrorCode::CallerRefused, message)
}

/// What a person is asked to confirm, in words that fit after "allow this program to".
fn act(method: Method) -> &'static str {
    match method {
        Method::ControlAcquire | Method::ControlReclaim | Method::ControlRequest => {
            "take control of a desktop"
        }
        Method::ControlRenew => "keep control of a desktop",
        Method::ControlReturn => "give control of a desktop back",
        Method::ControlRevoke => "end a person's control of a desktop",
        Method::ControlPause | Method::StopAllInput => "pause a desktop",
        Method::ControlResume => "let the agents act on a desktop again",
        Method::ControlGive | Method::ControlRefuse => "answer another person who asks for control",
        Method::ControlSecret => "type a secret on a desktop",
        Method::Answer => "answer an agent in your name",
        Method::Steer => "send an agent a message in your name",
        Method::Abort => "end an agent",
        Method::Stop => "end the session",
        _ => "act in your name",
    }
}
