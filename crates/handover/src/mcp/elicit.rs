//! Putting a question to the person who sits at the MCP client.
//!
//! The person may be nearer to the agent's client than to a terminal with `handover answer`. A
//! client that declares elicitation is asked to show them the question; the first answer, from
//! either side, counts. Up to protocol 2025-11-25 the server sends the client a request of its
//! own; from 2026-07-28 on it instead answers a tool call with `input_required`.

use std::collections::BTreeMap;
use std::time::Duration;

use handover_protocol::{Method, Refusal};
use rmcp::RoleServer;
use rmcp::model::{
    ClientCapabilities, ClientResult, ElicitRequest, ElicitRequestParams, ElicitResult,
    ElicitationAction, ElicitationSchema, InputRequest, InputRequests, InputResponses,
    ServerRequest,
};
use rmcp::service::{Peer, PeerRequestOptions};
use serde_json::json;

use super::link::Link;

/// Name of the one field of the form, and of the input request.
const FIELD: &str = "answer";
/// How long the host is asked to wait at a time for the request to change, in milliseconds.
const WATCH_MS: u64 = 60_000;

/// Whether the client can show a form to a person.
pub(super) fn offered(capabilities: Option<&ClientCapabilities>) -> bool {
    let elicitation = capabilities.and_then(|all| all.elicitation.as_ref());
    // A client that names no mode means forms, the only mode there was at first.
    elicitation.is_some_and(|modes| modes.form.is_some() || modes.url.is_none())
}

/// The question as a form with one text field.
fn form(question: &str) -> Option<ElicitRequest> {
    let schema = ElicitationSchema::builder()
        .required_string_with(FIELD, |field| {
            field
                .title("Answer")
                .description("Never enter a password, a code or a key here.")
        })
        .build()
        .ok()?;
    Some(ElicitRequest::new(
        ElicitRequestParams::FormElicitationParams {
            meta: None,
            message: question.to_owned(),
            requested_schema: schema,
        },
    ))
}

/// The question as the input requests of a tool answer.
pub(super) fn input_requests(question: &str) -> Option<InputRequests> {
    Some(BTreeMap::from([(
        FIELD.to_owned(),
        InputRequest::Elicitation(form(question)?),
    )]))
}

/// The answer among the responses to [`input_requests`], if the person gave one.
pub(super) fn answer_in(responses: &InputResponses) -> Option<String> {
    let result: ElicitResult = serde_json::from_value(responses.get(FIELD)?.clone()).ok()?;
    accepted(&result)
}

fn accepted(result: &ElicitResult) -> Option<String> {
    if result.action != ElicitationAction::Accept {
        return None;
    }
    result.content.as_ref()?[FIELD].as_str().map(str::to_owned)
}

/// Puts the question to the client's person and passes their answer to the host. The question is
/// withdrawn when the request is settled some other way. A person who declines leaves the request
/// open for `handover answer` or a takeover.
pub(super) async fn ask(peer: Peer<RoleServer>, link: Link, request_id: String, question: String) {
    let Some(form) = form(&question) else { return };
    let request = ServerRequest::ElicitRequest(form);
    let options = PeerRequestOptions::no_options();
    let Ok(mut asked) = peer.send_request_with_option(request, options).await else {
        return;
    };
    let settled = settled(&link, &request_id);
    tokio::select! {
        answer = &mut asked.rx => {
            if let Ok(Ok(ClientResult::ElicitResult(result))) = answer
                && let Some(text) = accepted(&result)
                && let Err(refusal) = pass_on(&link, &request_id, &text).await
            {
                tracing::warn!(code = %refusal.code, "the answer did not reach the host");
            }
        }
        () = settled => {
            // The client may be gone; then there is nothing to withdraw.
            let _ = asked.cancel(Some("the request has been settled".to_owned())).await;
        }
    }
}

/// Gives the host the answer to a request that this server made.
///
/// # Errors
/// The host's refusal, for example when the request is no longer open.
pub(super) async fn pass_on(link: &Link, request_id: &str, text: &str) -> Result<(), Refusal> {
    let params = json!({"requestId": request_id, "text": text});
    link.call(Method::Answer, params, Duration::from_secs(10))
        .await
        .map(drop)
}

/// Ends when the request is no longer open, or the host no longer says.
async fn settled(link: &Link, request_id: &str) {
    loop {
        let params = json!({"requestId": request_id, "waitMs": WATCH_MS});
        let within = Duration::from_millis(WATCH_MS) + Duration::from_secs(10);
        match link.call(Method::RequestStatus, params, within).await {
            Ok(status) if status["state"] == "open" => {}
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn only_an_accepted_text_is_an_answer() {
        let responses = |value: Value| BTreeMap::from([(FIELD.to_owned(), value)]);
        let accept = json!({"action": "accept", "content": {"answer": "the blue one"}});
        assert_eq!(
            answer_in(&responses(accept)).as_deref(),
            Some("the blue one")
        );
        assert_eq!(answer_in(&responses(json!({"action": "decline"}))), None);
        assert_eq!(
            answer_in(&responses(json!({"action": "accept", "content": {}}))),
            None
        );
        assert_eq!(answer_in(&responses(json!("nonsense"))), None);
    }

    #[test]
    fn forms_are_assumed_of_clients_that_name_no_mode() {
        let client = |value: Value| {
            serde_json::from_value::<ClientCapabilities>(value).expect("client capabilities")
        };
        assert!(offered(Some(&client(json!({"elicitation": {}})))));
        assert!(offered(Some(&client(
            json!({"elicitation": {"form": {}, "url": {}}})
        ))));
        assert!(!offered(Some(&client(json!({"elicitation": {"url": {}}})))));
        assert!(!offered(Some(&client(json!({})))));
        assert!(!offered(None));
    }
}
