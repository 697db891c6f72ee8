//! `request_human`, `request_status` and `answer`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::control::HandBack;
use crate::ids::{AgentId, DesktopId, Hidden, RequestId};
use crate::time::Timestamp;

/// How a request for a person stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RequestState {
    /// Nobody has dealt with it.
    Open,
    /// A person has taken control of the desktop.
    Taken,
    /// Control has returned.
    HandedBack,
    /// A person answered in text.
    Answered,
    /// It is no longer needed.
    Cancelled,
}

/// A request as others see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RequestView {
    /// The request.
    pub request_id: RequestId,
    /// The desktop that it is about, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desktop: Option<DesktopId>,
    /// Who asks, if it is an agent that the host knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// Why a person is needed; written by an agent, so not to be trusted.
    pub reason: String,
    /// What can be answered in text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// How it stands.
    pub state: RequestState,
    /// When it was made.
    pub since: Timestamp,
}

/// Parameters of `request_human`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RequestHumanParams {
    /// The desktop that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desktop: Option<DesktopId>,
    /// Why a person is needed.
    pub reason: String,
    /// What can be answered in text; never for a password, a code or a key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
}

/// Result of `request_human`, at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RequestHumanResult {
    /// The request.
    pub request_id: RequestId,
}

/// Parameters of `request_status`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RequestStatusParams {
    /// The request.
    pub request_id: RequestId,
    /// Waits so long, in milliseconds and at most 60,000, for the state to change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
}

/// Result of `request_status`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RequestStatusResult {
    /// The request.
    pub request_id: RequestId,
    /// How it stands.
    pub state: RequestState,
    /// The answer in text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// What the takeover came to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hand_back: Option<HandBack>,
}

/// Parameters of `answer`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AnswerParams {
    /// The request.
    pub request_id: RequestId,
    /// The answer.
    pub text: Hidden,
}

/// Result of `answer`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AnswerResult {
    /// The request.
    pub request_id: RequestId,
    /// How it stands now: `answered`.
    pub state: RequestState,
}
