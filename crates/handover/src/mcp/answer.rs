//! What a tool call answers: results, pictures and refusals in the form that MCP wants.
//!
//! Every result comes twice, as structured content for programs and as text for models. A refusal
//! is a tool error (not a protocol error, which many clients hide from the model).

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use handover_protocol::{ErrorCode, Refusal};
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Map, Value};

/// Largest picture that is passed on, in bytes. A PNG of the largest desktop stays below it.
const PICTURE_LIMIT: u64 = 64 * 1024 * 1024;

/// A result with its text, and the picture of the hand-back that rides along with it, if any.
pub(super) async fn success(result: Value) -> CallToolResult {
    let mut content = vec![ContentBlock::text(result.to_string())];
    for name in ["handBack", "lastHandBack"] {
        if let Some(picture) = hand_back_picture(&result[name]).await {
            content.push(ContentBlock::text("The desktop when control came back:"));
            content.push(picture);
        }
    }
    let mut answer = CallToolResult::success(content);
    answer.structured_content = Some(result);
    answer
}

/// A screenshot: the picture itself, and its facts.
///
/// The host puts the PNG into the member `png`, in base64, and may leave the path out (a picture
/// of human time is not kept).
pub(super) async fn screenshot(mut result: Value) -> CallToolResult {
    let png = result
        .as_object_mut()
        .and_then(|members| members.remove("png"));
    let mut answer = success(result).await;
    if let Some(Value::String(png)) = png {
        answer
            .content
            .insert(0, ContentBlock::image(png, "image/png"));
    }
    answer
}

/// A refusal: its code, what it means, and what to do.
pub(super) fn refused(refusal: &Refusal) -> CallToolResult {
    let todo = if refusal
        .data
        .get("remedy")
        .is_some_and(|remedy| remedy == "takeover")
    {
        "Call request_human with a reason and no question: a person then takes over the desktop and \
         does it there."
    } else {
        todo(refusal.code)
    };
    let mut told = Map::new();
    told.insert("code".to_owned(), refusal.code.as_str().into());
    told.insert("message".to_owned(), refusal.message.clone().into());
    told.insert("todo".to_owned(), todo.into());
    for (name, value) in &refusal.data {
        // A fact never takes the place of the members above.
        told.entry(name.clone()).or_insert_with(|| value.clone());
    }
    let text = format!(
        "{} ({}). {todo}",
        refusal.message.trim_end_matches('.'),
        refusal.code
    );
    let mut answer = CallToolResult::error(vec![ContentBlock::text(text)]);
    answer.structured_content = Some(Value::Object(told));
    answer
}

/// The picture of a hand-back, read from where the host put it. A picture that cannot be read is
/// left out: its path is in the result all the same.
async fn hand_back_picture(hand_back: &Value) -> Option<ContentBlock> {
    let path = Path::new(hand_back["screenshot"].as_str()?);
    let size = tokio::fs::metadata(path).await.ok()?.len();
    if size > PICTURE_LIMIT {
        return None;
    }
    let png = tokio::fs::read(path).await.ok()?;
    Some(ContentBlock::image(BASE64.encode(png), "image/png"))
}

/// What an agent should do about a refusal.
fn todo(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::HumanControlActive => {
            "Wait until the person hands control back: call request_status or takeover_status. \
             Your other tools still work."
        }
        ErrorCode::InterruptedByHuman => {
            "A person took control during the action; nothing was left pressed. Wait for the \
             hand-back, take a screenshot, then see how far it got."
        }
        ErrorCode::StaleObservation => {
            "A person has acted since your last picture. Call desktop_screenshot, then decide \
             anew."
        }
        ErrorCode::Paused => {
            "The desktop is paused by a person or for safety. Do not retry in a loop; call \
             takeover_status now and then, or request_human."
        }
        ErrorCode::Private => {
            "The person in control asked not to be watched. Wait for the hand-back."
        }
        ErrorCode::OutOfBounds => "Use a point inside the desktop's width and height.",
        ErrorCode::UnknownKey => "Use key names like Return, Tab, Page_Down or ctrl+shift+t.",
        ErrorCode::TextUntypable => "Leave out what cannot be typed, or type it another way.",
        ErrorCode::BadParams | ErrorCode::Malformed | ErrorCode::LineTooLong => {
            "Correct the arguments and call again."
        }
        ErrorCode::DesktopUnknown => "Name one of the session's desktops.",
        ErrorCode::DesktopGone => {
            "The desktop or its host has ended. Ask the person to bring the session back with \
             `handover up`; the next call then connects by itself."
        }
        ErrorCode::DisplayUnavailable => {
            "The display does not answer just now. Try again in a moment; if it stays so, call \
             request_human."
        }
        ErrorCode::ForeignConnection => {
            "Another program connected to the display behind Handover's back. Leave the desktop \
             alone and call request_human."
        }
        ErrorCode::SessionUnknown => {
            "No session is running. Ask the person to start one with `handover up --desktop`; the \
             next call then connects by itself."
        }
        ErrorCode::SessionAmbiguous => {
            "Several sessions are running. Ask the person to start this server with --session."
        }
        ErrorCode::CallerRefused => {
            "Only a person, or the agent above, may do this. If you need it done, call request_human."
        }
        ErrorCode::StorageFailed => {
            "The record cannot be written (a full disk?), so nothing new is permitted. Tell the \
             person."
        }
        ErrorCode::QueueFull => "There is too much of this already. Wait, then try again.",
        ErrorCode::Timeout => {
            "There was no answer in time and the action may have happened. Take a screenshot \
             before you try again."
        }
        ErrorCode::ProtocolMismatch | ErrorCode::MethodUnknown => {
            "This server and the host are of different versions. Tell the person."
        }
        ErrorCode::AgentUnknown => "Name an agent of yours; agent_list shows them.",
        ErrorCode::AgentNotRunning => {
            "It takes no messages in this state. If it has ended, call agent_result; if it has not \
             begun, call agent_wait."
        }
        ErrorCode::NotSteerable => {
            "Its program takes no messages now. Wait for it with agent_wait, or end it with \
             agent_abort and start another with a better task."
        }
        ErrorCode::HumanLeaseHeld
        | ErrorCode::LeaseStale
        | ErrorCode::DrainTimeout
        | ErrorCode::AlreadyRunning
        | ErrorCode::Internal => "This was not expected. Take a screenshot, or tell the person.",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn structured(answer: CallToolResult) -> Value {
        answer.structured_content.expect("structured content")
    }

    #[test]
    fn a_refusal_says_who_is_in_control_and_what_to_do() {
        let lease = json!({"holder": "ada", "since": "2026-01-01T00:00:00.000Z", "expiresInMs": 9});
        let refusal = Refusal::new(ErrorCode::HumanControlActive, "ada is in control.")
            .with("lease", &lease)
            .with("code", "something else");
        let answer = refused(&refusal);
        assert_eq!(answer.is_error, Some(true));
        let text = answer.content[0].as_text().expect("a text").text.clone();
        assert!(
            text.starts_with("ada is in control (human_control_active). Wait until"),
            "{text}"
        );
        let told = structured(answer);
        assert_eq!(told["code"], "human_control_active");
        assert_eq!(told["message"], "ada is in control.");
        assert_eq!(told["lease"], lease);
        assert!(
            told["todo"]
                .as_str()
                .is_some_and(|todo| todo.contains("request_status"))
        );
    }

    #[tokio::test]
    async fn a_screenshot_is_an_image_and_its_facts_are_not_repeated_in_base64() {
        let answer = screenshot(json!({"png": "iVBO", "epoch": 3, "width": 2})).await;
        let image = answer.content[0].as_image().expect("an image");
        assert_eq!(
            (image.data.as_str(), image.mime_type.as_str()),
            ("iVBO", "image/png")
        );
        assert_eq!(structured(answer), json!({"epoch": 3, "width": 2}));
    }

    #[tokio::test]
    async fn a_hand_back_brings_its_picture() {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        std::fs::write(file.path(), b"png").expect("a written file");
        let answer = success(json!({"lastHandBack": {"screenshot": file.path()}})).await;
        let image = answer.content[2].as_image().expect("an image");
        assert_eq!(image.data, BASE64.encode(b"png"));

        let gone = success(json!({"lastHandBack": {"screenshot": "/nowhere.png"}})).await;
        assert_eq!(gone.content.len(), 1);
    }
}
