//! `attach.json`, by which clients discover hosts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::agents::AgentStatus;
use crate::control::Control;
use crate::ids::{AgentId, DesktopId, SessionId};
use crate::session::AgentView;
use crate::time::Timestamp;

/// The contents of `attach.json`.
///
/// Live means that `pid` runs with `startTicks` in the boot `bootId`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// The version of the protocol that the host speaks.
    pub protocol: u32,
    /// The session.
    pub session_id: SessionId,
    /// Its name for people.
    pub name: String,
    /// The project directory, absolute.
    pub project_dir: String,
    /// The host's process.
    pub pid: u32,
    /// When that process began, in clock ticks since boot (field 22 of `/proc/PID/stat`).
    pub start_ticks: u64,
    /// `/proc/sys/kernel/random/boot_id`.
    pub boot_id: String,
    /// The attach socket, absolute.
    pub socket_path: String,
    /// `HERDR_PANE_ID` of the host's environment.
    pub herdr_pane_id: Option<String>,
    /// When it was written.
    pub updated_at: Timestamp,
    /// The session's agents.
    pub agents: Vec<ManifestAgent>,
    /// The session's desktops.
    pub desktops: Vec<ManifestDesktop>,
}

/// One agent in a manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManifestAgent {
    /// The agent.
    pub id: AgentId,
    /// Its driver.
    #[serde(rename = "type")]
    pub kind: String,
    /// How it stands.
    pub status: AgentStatus,
    /// The agent that started it.
    pub parent: Option<AgentId>,
    /// Where its output is written.
    pub output_file: Option<String>,
    /// The terminal pane it runs in.
    pub pane_id: Option<String>,
}

impl From<AgentView> for ManifestAgent {
    fn from(agent: AgentView) -> Self {
        Self {
            id: agent.id,
            kind: agent.kind,
            status: agent.status,
            parent: agent.parent,
            output_file: agent.output_file,
            pane_id: None,
        }
    }
}

/// One desktop in a manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManifestDesktop {
    /// The desktop.
    pub id: DesktopId,
    /// Who may act on it.
    pub control: Control,
}
