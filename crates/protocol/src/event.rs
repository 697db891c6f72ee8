//! The record: events, `subscribe` and `journal`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::envelope::bad_params;
use crate::error::Refusal;
use crate::ids::{AgentId, DesktopId};
use crate::method::Method;
use crate::time::Timestamp;

/// Whose doing an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// A person's.
    Human,
    /// An agent's.
    Agent,
    /// That of a program on a desktop.
    App,
    /// The host's own.
    Host,
}

/// Who caused an event, and why the host believes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Actor {
    /// User id.
    pub uid: u32,
    /// Process id.
    pub pid: u32,
    /// The agent, if it is one that the host knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// The client it used, as it introduced itself.
    #[serde(default)]
    pub via: String,
    /// `tty`, `logind` or `lineage` for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
}

/// One row of the record, flat on the wire: the members below, and by kind those in `fields`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// Its place in the session's record, from 1.
    pub seq: u64,
    /// When it was stored.
    pub at: Timestamp,
    /// What happened.
    pub kind: String,
    /// Whose doing it is.
    pub source: Source,
    /// Who caused it.
    pub actor: Actor,
    /// The actor's user id.
    pub uid: u32,
    /// The actor's process id.
    pub pid: u32,
    /// The desktop that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desktop: Option<DesktopId>,
    /// That desktop's fencing number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<u64>,
    /// The agent that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// What else there is to say, by kind. Flattened, since readers must keep what they do not
    /// know: only a host writes events, so bad messages about bad input do not matter here.
    #[serde(flatten)]
    pub fields: Map<String, Value>,
}

/// Parameters of `subscribe`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SubscribeParams {
    /// Begins with the event after this one; with the next new one if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<u64>,
    /// Only these kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kinds: Option<Vec<String>>,
    /// Only what is about this agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
}

/// Most kinds in the filter of one `subscribe` or `journal`.
pub const MAX_KINDS: usize = 64;

/// Refuses a filter of more than [`MAX_KINDS`].
///
/// # Errors
/// `bad_params`.
pub fn check_kinds(method: Method, kinds: &[String]) -> Result<(), Refusal> {
    if kinds.len() > MAX_KINDS {
        let problem = format!("`kinds` has more than {MAX_KINDS} entries");
        return Err(bad_params(method, &problem));
    }
    Ok(())
}

/// Result of `subscribe`; notifications `event` (an [`Event`]) and `gap` (a [`Gap`]) follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SubscribeResult {
    /// The place after which the notifications begin.
    pub cursor: u64,
}

/// Notification `gap`: the subscriber was too slow and these were left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Gap {
    /// The first place that was left out.
    pub from: u64,
    /// The last place that was left out.
    pub to: u64,
}

/// Parameters of `journal`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct JournalParams {
    /// Begins with the event after this one; with the first if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<u64>,
    /// At most so many events, up to [`JournalParams::MAX_LIMIT`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Only these kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kinds: Option<Vec<String>>,
}

impl JournalParams {
    /// The most events in one answer.
    pub const MAX_LIMIT: u32 = 10_000;
    /// Events in one answer if not said otherwise.
    pub const DEFAULT_LIMIT: u32 = 1000;
}

/// Result of `journal`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JournalResult {
    /// The events, oldest first.
    pub events: Vec<Event>,
    /// `since` for the next page.
    pub next: u64,
    /// The hash of the newest event of the whole record, in hexadecimal digits.
    pub head: String,
}
