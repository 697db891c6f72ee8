//! What the relay itself says to the client and to the server.

use handover_protocol::{ErrorCode, Refusal};
use serde_json::{Value, json};

use super::records::Problem;

/// The number of every error that says that a call was not made, or did not end, because of who is in
/// control; `data.code` says why.
pub(super) const REFUSED: i64 = -32050;

/// An error under `id`, which is JSON.
fn error(id: &str, number: i64, message: &str, data: &Value) -> String {
    let error = json!({ "code": number, "message": message, "data": data });
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#)
}

/// The call of `tool` under `id` was not passed on.
pub(super) fn refused(id: &str, tool: &str, refusal: Refusal) -> String {
    let Refusal {
        code,
        message,
        data,
    } = refusal;
    let mut data = data;
    data.insert("code".to_owned(), json!(code));
    data.insert("tool".to_owned(), json!(tool));
    let todo = match code {
        ErrorCode::HumanControlActive => {
            "; the tool was not called. Do not work around it; when control is back, look anew before \
             you act"
        }
        _ => "; the tool was not called",
    };
    error(id, REFUSED, &format!("{message}{todo}"), &data.into())
}

/// A person took control before the call was passed on.
pub(super) fn too_late() -> Refusal {
    Refusal::new(
        ErrorCode::HumanControlActive,
        "a person takes control; wait for the hand-back",
    )
}

/// How a call ended that was under way when a person took control.
#[derive(Debug)]
pub(super) enum Interrupted<'a> {
    /// The server answered with this error.
    Said(&'a str),
    /// It did not answer, and was ended.
    Ended,
    /// It did not answer, was ended, and is started again.
    Replaced,
}

/// The call under `id` was under way when a person took control, and has ended.
pub(super) fn interrupted(id: &str, tool: &str, how: &Interrupted<'_>) -> String {
    let mut data = json!({ "code": ErrorCode::InterruptedByHuman, "tool": tool });
    let what = match how {
        Interrupted::Said(said) => {
            if let Ok(said) = serde_json::from_str::<Value>(said) {
                data["server"] = said;
            }
            "so it was cancelled"
        }
        Interrupted::Ended => "and its server did not say that it had stopped, so it was ended",
        Interrupted::Replaced => {
            "and its server did not say that it had stopped, so it was ended and is started again: what it \
             kept in memory is lost"
        }
    };
    let message = format!(
        "a person took control while the tool ran, {what}; some of what the tool does may have happened. \
         Wait for the hand-back, then look anew before you go on"
    );
    error(id, REFUSED, &message, &data)
}

/// A request will have no response, since the server has ended.
pub(super) fn ended(id: &str, why: &str) -> String {
    let data = json!({ "code": ErrorCode::Internal });
    error(id, -32603, &format!("no answer will come: {why}"), &data)
}

/// What the client wrote is not passed on.
pub(super) fn problem(problem: &Problem) -> String {
    let id = problem.id.as_deref().unwrap_or("null");
    let data = json!({ "code": problem.code });
    error(id, problem.number, &problem.message, &data)
}

/// Asks the server for something by ourselves; `params` are JSON.
pub(super) fn request(id: &str, method: &str, params: &str) -> String {
    let (id, method) = (json!(id), json!(method));
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":{method},"params":{params}}}"#)
}

/// Tells the server that the client has taken note of how it greeted.
pub(super) fn initialized() -> String {
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.to_owned()
}

/// Tells the server to give up a call.
pub(super) fn cancel(id: &str) -> String {
    let reason = json!("a person takes control");
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id},"reason":{reason}}}}}"#
    )
}
