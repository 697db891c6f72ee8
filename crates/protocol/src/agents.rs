//! `spawn`, `steer`, `abort` and `result`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::{AgentId, DesktopId, Hidden, SteerId};
use crate::time::Timestamp;

/// How an agent stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AgentStatus {
    /// Waits for its turn to start.
    Queued,
    /// Its program is being started.
    Starting,
    /// Works.
    Running,
    /// Its turn ended, but a person's answer or desktop is due.
    Waiting,
    /// Ended by itself with a result.
    Done,
    /// Ended by itself with an error.
    Failed,
    /// Ended by somebody.
    Aborted,
    /// Ended by somebody before it began.
    CancelledBeforeStart,
    /// Its host died.
    Interrupted,
}

impl AgentStatus {
    /// Whether nothing more will come of an agent that stands so.
    pub const fn has_ended(self) -> bool {
        match self {
            Self::Queued | Self::Starting | Self::Running | Self::Waiting => false,
            Self::Done
            | Self::Failed
            | Self::Aborted
            | Self::CancelledBeforeStart
            | Self::Interrupted => true,
        }
    }
}

/// Who asks for an agent, as `hello` told the caller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SpawnCaller {
    /// The caller's name for itself.
    pub name: String,
    /// `callerToken` of its `hello`.
    pub token: Hidden,
}

/// Parameters of `spawn`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SpawnParams {
    /// The adapter to the agent's program.
    pub driver: String,
    /// The task; may be empty where the driver allows.
    pub prompt: Hidden,
    /// A name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Where it runs; the project directory if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The agent that it works for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<AgentId>,
    /// The desktop that it uses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desktop: Option<DesktopId>,
    /// Gives it DISPLAY and XAUTHORITY of that desktop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display: Option<bool>,
    /// Further arguments of its program; for the `command` driver, all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Vec<String>>,
    /// Further environment variables.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env: Option<BTreeMap<String, String>>,
    /// Who asks.
    pub caller: SpawnCaller,
}

/// One agent and how it stands; also the result of `spawn`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentState {
    /// The agent.
    pub id: AgentId,
    /// How it stands.
    pub status: AgentStatus,
}

/// When a steer is put to the agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SteerWhen {
    /// At once, cutting short what it does.
    Now,
    /// Before its next step.
    #[default]
    NextStep,
    /// At the end of its turn.
    TurnEnd,
}

/// What is known about a steer; it only moves forward.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum SteerState {
    /// Stored by the host.
    Accepted,
    /// About to be written to the program.
    Handed,
    /// The program has it.
    Queued,
    /// It is in the agent's history.
    Inserted,
    /// A request to the model held it.
    Sent,
    /// The model answered.
    Answered,
    /// It will not arrive; the reason says why.
    Dropped,
    /// It may or may not have arrived.
    Unknown,
}

/// Parameters of `steer`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SteerParams {
    /// The agent.
    pub id: AgentId,
    /// The message.
    pub text: Hidden,
    /// The same id again is the same steer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steer_id: Option<SteerId>,
    /// When it is put to the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<SteerWhen>,
    /// Answers only when this state is reached, or no longer can be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<SteerState>,
    /// The longest such wait, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// Result of `steer`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SteerResult {
    /// The steer.
    pub steer_id: SteerId,
    /// What is known about it.
    pub state: SteerState,
    /// Why it was dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Parameters of `abort`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AbortParams {
    /// The agent.
    pub id: AgentId,
}

/// Result of `abort`, when the agent's process tree is empty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AbortResult {
    /// The agent.
    pub id: AgentId,
    /// How it stands now.
    pub status: AgentStatus,
    /// Those that ended with it.
    pub descendants: Vec<AgentState>,
    /// Ids of processes that could not be ended.
    pub survivors: Vec<u32>,
}

/// Parameters of `result`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ResultParams {
    /// The agent.
    pub id: AgentId,
}

/// Result of `result`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResultResult {
    /// The agent.
    pub id: AgentId,
    /// How it stands.
    pub status: AgentStatus,
    /// What it said last; empty while there is nothing.
    pub text: String,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
}
