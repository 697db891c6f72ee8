//! `control.*`: leases, permits and their status.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::desktop::Window;
use crate::ids::{DesktopId, Hidden, LeaseName, PermitName, ViewerName};
use crate::requests::RequestView;
use crate::time::Timestamp;

/// Who may act on a desktop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Control {
    /// The agents.
    Agent,
    /// One person.
    Human,
    /// Nobody.
    Paused,
}

/// What is under way between two kinds of control.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Nothing.
    Steady,
    /// A person asked for control; the agents' actions are coming to their end.
    Draining,
    /// A person's control has ended; held keys are released and the display is flushed.
    Returning,
}

/// Why nobody may act on a desktop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PauseReason {
    /// A person asked for it.
    Requested,
    /// A program connected to the display past the gate.
    ForeignConnection,
    /// The display did not show that it took what was sent.
    DisplayUnavailable,
    /// The display has ended.
    DesktopGone,
}

/// How a takeover ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// The person gave control back, or closed the viewer.
    Return,
    /// The person interrupted the controlling program, or hung up.
    Cancelled,
    /// The lease was not renewed, or a limit was reached.
    Timeout,
    /// Somebody else, a pause, a stop or a foreign connection ended it.
    Revoked,
    /// The controlling program or the host died.
    Recovered,
}

/// What happens to a lease when its controlling connection closes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnDisconnect {
    /// It ends.
    #[default]
    End,
    /// Input stops; for `lingerMs` whoever presents the token takes it up again.
    Linger,
}

/// A live lease, as others see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LeaseView {
    /// Its name.
    pub lease_id: LeaseName,
    /// Who holds it, in words.
    pub holder: String,
    /// Since when.
    pub since: Timestamp,
    /// Until it ends unless renewed, in milliseconds.
    pub expires_in_ms: u64,
    /// The viewer that is bound to it, if any.
    pub viewer: Option<ViewerName>,
    /// Whether a client is connected to that viewer's socket.
    #[serde(default)]
    pub viewer_connected: bool,
    /// Whether observers get no pictures while it lasts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub private: bool,
}

/// What the agents receive when control returns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HandBack {
    /// How the takeover ended.
    pub end: End,
    /// Who had control, in words.
    pub holder: String,
    /// For how long, in milliseconds.
    pub held_ms: u64,
    /// What the person left in writing.
    pub note: Option<String>,
    /// The fencing number since then; what was seen before is stale.
    pub epoch: u64,
    /// A picture taken when control had returned; none if it failed.
    pub screenshot: Option<String>,
    /// Windows that were not there before.
    pub windows_opened: Vec<Window>,
    /// Windows that are no longer there.
    pub windows_closed: Vec<Window>,
}

/// Parameters of `control.acquire`; times in milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ControlAcquireParams {
    /// The desktop; may be left out if the session has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desktop: Option<DesktopId>,
    /// The viewer whose input becomes live.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub viewer: Option<ViewerName>,
    /// How long the lease lives without a renewal; 30,000 if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
    /// How long the agents' actions may take to end; 5,000 if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain_ms: Option<u64>,
    /// Ends the lease after so long without input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_ms: Option<u64>,
    /// Ends the lease after so long in any case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_ms: Option<u64>,
    /// What happens when the controlling connection closes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_disconnect: Option<OnDisconnect>,
    /// For how long the lease can be reclaimed then; the TTL if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub linger_ms: Option<u64>,
    /// Refuses screenshots to observers while it lasts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub private: Option<bool>,
    /// Why, in words; stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// An X client that the host did not start, still connected while a person is in control.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ForeignClient {
    /// Its process, where the display knows it.
    pub pid: Option<u32>,
    /// Its program, where it can be read.
    pub command: Option<String>,
}

/// Result of `control.acquire`, `control.reclaim` and a granted `control.request`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ControlAcquireResult {
    /// The lease.
    pub lease_id: LeaseName,
    /// Its secret.
    pub token: Hidden,
    /// The fencing number of this takeover.
    pub epoch: u64,
    /// How long the lease lives without a renewal, in milliseconds.
    pub ttl_ms: u64,
    /// How often it should be renewed, in milliseconds.
    pub heartbeat_ms: u64,
    /// Until it ends unless renewed, in milliseconds.
    pub expires_in_ms: u64,
    /// Programs that can watch the display meanwhile.
    pub foreign_clients: Vec<ForeignClient>,
}

/// Parameters of `control.renew`, `control.give` and `control.refuse`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LeaseParams {
    /// The lease.
    pub lease_id: LeaseName,
    /// Its secret.
    pub token: Hidden,
}

/// Parameters of `control.renew`.
pub type ControlRenewParams = LeaseParams;
/// Parameters of `control.give`.
pub type ControlGiveParams = LeaseParams;
/// Parameters of `control.refuse`.
pub type ControlRefuseParams = LeaseParams;

/// Result of `control.renew`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ControlRenewResult {
    /// Until the lease ends unless renewed, in milliseconds.
    pub expires_in_ms: u64,
    /// The fencing number of this takeover.
    pub epoch: u64,
}

/// Parameters of `control.reclaim`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ControlReclaimParams {
    /// The lease.
    pub lease_id: LeaseName,
    /// Its secret.
    pub token: Hidden,
    /// The viewer whose input becomes live.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub viewer: Option<ViewerName>,
}

/// Result of `control.reclaim`.
pub type ControlReclaimResult = ControlAcquireResult;

/// The ends that a holder can ask for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReturnReason {
    /// The step is done.
    #[default]
    Return,
    /// The person broke it off.
    Cancelled,
}

/// Parameters of `control.return`. A person of this session may leave out lease and token.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ControlReturnParams {
    /// The lease.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_id: Option<LeaseName>,
    /// Its secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<Hidden>,
    /// The desktop; may be left out if the session has one or the lease is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desktop: Option<DesktopId>,
    /// How it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<ReturnReason>,
    /// What the agents should know; stored and handed to them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Result of `control.return`, when control has returned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ControlReturnResult {
    /// How the takeover ended.
    pub reason: End,
    /// For how long the person had control, in milliseconds.
    pub held_ms: u64,
    /// A picture taken when control had returned; none if it failed.
    pub screenshot: Option<String>,
    /// The fencing number since then.
    pub epoch: u64,
}

/// Parameters of `control.status`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ControlStatusParams {
    /// The desktop; may be left out if the session has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desktop: Option<DesktopId>,
}

/// Result of `control.status`, `control.revoke`, `control.pause` and `control.resume`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ControlStatusResult {
    /// The desktop.
    pub desktop: DesktopId,
    /// Who may act on it.
    pub control: Control,
    /// What is under way.
    pub phase: Phase,
    /// Its fencing number.
    pub epoch: u64,
    /// The live lease, if a person is in control.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<LeaseView>,
    /// Why nobody may act, if nobody may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause_reason: Option<PauseReason>,
    /// What the latest takeover came to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_hand_back: Option<HandBack>,
    /// Requests for a person at this desktop that nobody has dealt with: the agents waiting.
    #[serde(default)]
    pub requests: Vec<RequestView>,
}

/// Parameters of `control.revoke`, `control.pause` and `control.resume`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ControlChangeParams {
    /// The desktop; may be left out if the session has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desktop: Option<DesktopId>,
    /// `control.revoke`: goes ahead although another person is in control. A pause always does, and
    /// a resume finds nobody in control.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub force: Option<bool>,
}

/// Parameters of `control.revoke`.
pub type ControlRevokeParams = ControlChangeParams;
/// Parameters of `control.pause`.
pub type ControlPauseParams = ControlChangeParams;
/// Parameters of `control.resume`.
pub type ControlResumeParams = ControlChangeParams;

/// Parameters of `control.request`: those of `control.acquire`, and how long to wait.
///
/// The answer is that of `control.acquire` once the holder gives; `human_lease_held` with
/// `data.refused` if the holder refuses; `timeout` if nothing is heard.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ControlRequestParams {
    /// The desktop; may be left out if the session has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desktop: Option<DesktopId>,
    /// The viewer whose input becomes live.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub viewer: Option<ViewerName>,
    /// As for `control.acquire`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
    /// As for `control.acquire`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain_ms: Option<u64>,
    /// As for `control.acquire`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_ms: Option<u64>,
    /// As for `control.acquire`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_ms: Option<u64>,
    /// As for `control.acquire`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_disconnect: Option<OnDisconnect>,
    /// As for `control.acquire`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub linger_ms: Option<u64>,
    /// As for `control.acquire`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub private: Option<bool>,
    /// Why, in words; shown to the holder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// How long to wait for the holder's answer, in milliseconds; 60,000 if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
}

impl ControlRequestParams {
    /// The acquisition that is asked for, and how long to wait for it in milliseconds.
    pub fn split(self) -> (ControlAcquireParams, Option<u64>) {
        let acquire = ControlAcquireParams {
            desktop: self.desktop,
            viewer: self.viewer,
            ttl_ms: self.ttl_ms,
            drain_ms: self.drain_ms,
            idle_ms: self.idle_ms,
            max_ms: self.max_ms,
            on_disconnect: self.on_disconnect,
            linger_ms: self.linger_ms,
            private: self.private,
            note: self.note,
        };
        (acquire, self.wait_ms)
    }
}

impl From<ControlAcquireParams> for ControlRequestParams {
    /// Asks for what `acquire` would take, and waits as long as the host does by itself.
    fn from(acquire: ControlAcquireParams) -> Self {
        Self {
            desktop: acquire.desktop,
            viewer: acquire.viewer,
            ttl_ms: acquire.ttl_ms,
            drain_ms: acquire.drain_ms,
            idle_ms: acquire.idle_ms,
            max_ms: acquire.max_ms,
            on_disconnect: acquire.on_disconnect,
            linger_ms: acquire.linger_ms,
            private: acquire.private,
            note: acquire.note,
            wait_ms: None,
        }
    }
}

/// Result of `control.request`, when the holder gave.
pub type ControlRequestResult = ControlAcquireResult;

/// Result of `control.give` and `control.refuse`: the desktop as it stands then.
pub type ControlAnswerResult = ControlStatusResult;

/// Parameters of `control.permit`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ControlPermitParams {
    /// The desktop; may be left out if the session has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desktop: Option<DesktopId>,
    /// What will be done, in a word, for the host's log: [`RELAYED`] and a tool's name from a relay.
    pub what: String,
    /// The pid of the keeper of a relayed server, a child of the caller. The permit then ends with
    /// `control.complete` or when nothing of that server's process tree is left, however the caller ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keeper: Option<u32>,
}

/// What `what` of [`ControlPermitParams`] begins with for a call of a relayed tool; its refusal is on record as
/// `relay_refused`.
pub const RELAYED: &str = "relay:";

/// Result of `control.permit`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ControlPermitResult {
    /// The permit; it ends with `control.complete` or with the process, or tree of processes, that has it.
    pub permit: PermitName,
    /// The fencing number that it belongs to.
    pub epoch: u64,
}

/// Parameters of `control.complete`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ControlCompleteParams {
    /// The desktop; may be left out if the session has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desktop: Option<DesktopId>,
    /// The permit.
    pub permit: PermitName,
}

/// Result of `control.complete`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ControlCompleteResult {}

/// Parameters of `control.secret`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ControlSecretParams {
    /// The desktop; may be left out if the session has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desktop: Option<DesktopId>,
    /// What is typed; never stored, not even its length.
    pub text: Hidden,
    /// The lease; the caller's own if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_id: Option<LeaseName>,
    /// Its secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<Hidden>,
}

/// Result of `control.secret`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ControlSecretResult {
    /// The fencing number of the takeover.
    pub epoch: u64,
}
