//! Finding the host of an agent: commands that name one need not name its session.

use std::path::PathBuf;

use handover_protocol::ErrorCode;

use super::context::Context;
use super::discover;
use super::failure::Failure;
use super::session::Session;

/// Runs `call` against the live hosts of this user, newest first, until one knows the agent. Only
/// one host is asked if the options choose it.
pub async fn on_its_host<R>(
    context: &Context,
    call: impl AsyncFn(&Session) -> Result<R, Failure>,
) -> Result<(Session, R), Failure> {
    let sockets = if context.socket.is_some() || context.session.is_some() {
        vec![discover::socket(context)?]
    } else {
        let live = discover::live().into_iter();
        live.map(|manifest| PathBuf::from(manifest.socket_path))
            .collect()
    };
    let mut latest = None;
    for socket in sockets {
        let answer = match Session::at(&socket, context).await {
            Ok(session) => call(&session).await.map(|result| (session, result)),
            Err(failure) => Err(failure),
        };
        match answer {
            Err(failure) if elsewhere(failure.code()) => latest = prefer(latest, failure),
            answer => return answer,
        }
    }
    Err(latest.unwrap_or_else(|| {
        let message = "no session is running, so there are no agents; `handover up` starts one";
        Failure::new(ErrorCode::SessionUnknown, message)
    }))
}

/// Whether another host may still know the agent.
fn elsewhere(code: ErrorCode) -> bool {
    matches!(code, ErrorCode::AgentUnknown | ErrorCode::SessionUnknown)
}

/// A host that does not know the agent says more than one that went away.
fn prefer(latest: Option<Failure>, failure: Failure) -> Option<Failure> {
    match latest {
        Some(latest) if latest.code() == ErrorCode::AgentUnknown => Some(latest),
        _ => Some(failure),
    }
}
