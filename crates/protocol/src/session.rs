//! `hello`, `ping`, `list`, `stop` and `stop_all_input`.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::agents::{AgentState, AgentStatus};
use crate::control::{Control, LeaseView, Phase};
use crate::ids::{AgentId, DesktopId, Hidden, SessionId};
use crate::requests::RequestView;
use crate::time::Timestamp;

/// What the host takes a caller for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallerKind {
    /// A person.
    Human,
    /// An agent, or a program that acts for one.
    Agent,
    /// A program that runs on a desktop.
    App,
}

/// The kinds that a caller may ask to be taken for: it can only give up power.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ActAs {
    /// Treated as an agent from now on, whoever the sender is.
    Agent,
}

/// Parameters of `hello`. Unknown members are allowed, so that a newer client gets
/// `protocol_mismatch` and not `bad_params`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HelloParams {
    /// The program's name and version, for the record.
    pub client: String,
    /// The version of the protocol it speaks, [`crate::PROTOCOL_VERSION`].
    pub protocol: u32,
    /// Asks for less power than the caller has.
    #[serde(rename = "as", default, skip_serializing_if = "Option::is_none")]
    pub act_as: Option<ActAs>,
}

/// Who the host takes the caller for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CallerView {
    /// Person, agent or application.
    pub kind: CallerKind,
    /// The agent, if it is one that the host knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// Process id of the sender.
    pub pid: u32,
    /// User id of the sender.
    pub uid: u32,
    /// What marks an agent program above a person's client, such as `CLAUDECODE`. Then the first act of
    /// the connection that only a person may do is asked for on the caller's terminal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub marked: Option<String>,
}

/// Result of `hello`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HelloResult {
    /// The version of the protocol that the host speaks.
    pub protocol: u32,
    /// The session that the host owns.
    pub session_id: SessionId,
    /// The host's version.
    pub version: String,
    /// Who the host takes the caller for.
    pub caller: CallerView,
    /// Proves to `spawn` that the caller is the one greeted here.
    pub caller_token: Hidden,
}

/// Parameters of `ping`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PingParams {}

/// Result of `ping`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PingResult {
    /// The version of the protocol that the host speaks.
    pub protocol: u32,
    /// The host's version.
    pub version: String,
}

/// Parameters of `list`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ListParams {}

/// Result of `list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListResult {
    /// The session that the host owns.
    pub session: SessionId,
    /// Its desktops, oldest first.
    pub desktops: Vec<DesktopView>,
    /// Its agents, oldest first.
    pub agents: Vec<AgentView>,
    /// Requests for a person that nobody has dealt with.
    #[serde(default)]
    pub requests: Vec<RequestView>,
}

/// One desktop in a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DesktopView {
    /// Its name.
    pub id: DesktopId,
    /// Its size in pixels.
    pub size: Size,
    /// Who may act on it.
    pub control: Control,
    /// What is under way.
    pub phase: Phase,
    /// Its fencing number.
    pub epoch: u64,
    /// The live lease, if a person is in control.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<LeaseView>,
}

/// How many tokens an agent's model took in and gave out so far, as far as the agent's program counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Tokens {
    /// Taken in, those from a cache among them.
    pub input: u64,
    /// Given out.
    pub output: u64,
}

/// One agent in a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentView {
    /// Its name on the wire.
    pub id: AgentId,
    /// Its name for people.
    pub name: String,
    /// The driver that runs it.
    #[serde(rename = "type")]
    pub kind: String,
    /// How it stands.
    pub status: AgentStatus,
    /// The agent that started it.
    pub parent: Option<AgentId>,
    /// Steps down from an agent without a parent, which has 0.
    pub depth: u32,
    /// The beginning of its prompt.
    pub task: String,
    /// When it began.
    pub started_at: Option<Timestamp>,
    /// Where its output is written.
    pub output_file: Option<String>,
    /// Steers that it has not read yet.
    pub pending: u32,
    /// Why nothing can be steered into it, if nothing can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_steerable: Option<String>,
    /// What its model took in and gave out so far. Not there where its program does not say, nor after
    /// its host was started anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Tokens>,
}

/// Parameters of `stop`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StopParams {
    /// Ends the session even while a person is in control of a desktop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub force: Option<bool>,
}

/// Result of `stop`, sent before the host ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StopResult {
    /// The session that ends.
    pub session_id: SessionId,
}

/// Parameters of `stop_all_input`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StopAllInputParams {}

/// Result of `stop_all_input`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StopAllInputResult {
    /// Every desktop as it stands now.
    pub desktops: Vec<DesktopView>,
    /// Every agent that was ended.
    pub agents: Vec<AgentState>,
}

/// A size in pixels, written `1280x800`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Size {
    /// Pixels from left to right.
    pub width: u16,
    /// Pixels from top to bottom.
    pub height: u16,
}

impl Size {
    /// The smallest width and height.
    pub const MIN: u16 = 64;
    /// The largest width and height.
    pub const MAX: u16 = 8192;
}

impl Default for Size {
    fn default() -> Self {
        Self {
            width: 1280,
            height: 800,
        }
    }
}

/// A text that is no [`Size`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a size must look like 1280x800, each side from 64 to 8192 pixels")]
pub struct BadSize;

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.width, self.height)
    }
}

impl FromStr for Size {
    type Err = BadSize;

    fn from_str(text: &str) -> Result<Self, BadSize> {
        let (width, height) = text.split_once('x').ok_or(BadSize)?;
        let side = |digits: &str| {
            // `parse` alone would take a sign.
            let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
            let side = digits.parse().ok().filter(|_| plain)?;
            (Self::MIN..=Self::MAX).contains(&side).then_some(side)
        };
        match (side(width), side(height)) {
            (Some(width), Some(height)) => Ok(Self { width, height }),
            _ => Err(BadSize),
        }
    }
}

impl TryFrom<String> for Size {
    type Error = BadSize;

    fn try_from(text: String) -> Result<Self, BadSize> {
        text.parse()
    }
}

impl From<Size> for String {
    fn from(size: Size) -> Self {
        size.to_string()
    }
}

impl JsonSchema for Size {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Size".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": "^[0-9]+x[0-9]+$" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!("1280x800".parse(), Ok(Size::default()));
        for text in [
            "",
            "x",
            "1280",
            "1280x",
            "+1280x800",
            "63x800",
            "1280x8193",
            "1280X800",
        ] {
            assert_eq!(text.parse::<Size>(), Err(BadSize), "{text}");
        }
    }
}
