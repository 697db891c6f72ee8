//! What a host tells a connection unasked: `interrupt`, `lease_warning`, `lease_request`,
//! `lease_request_ended` and `lease_ended`. (`event` and `gap` are with the record.)

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::control::End;
use crate::ids::{AgentId, DesktopId, LeaseName, PermitName, RequestId};

/// Notification `interrupt`: a person asked for control, so the act must end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Interrupt {
    /// The permit that is interrupted; `control.complete` is due.
    pub permit: PermitName,
}

/// A limit that a lease is about to reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// The time without input.
    Idle,
    /// The time in control.
    Maximum,
}

/// Notification `lease_warning` to the controlling connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LeaseWarning {
    /// The lease.
    pub lease_id: LeaseName,
    /// What is about to end it.
    pub limit: Limit,
    /// Until then, in milliseconds.
    pub left_ms: u64,
}

/// Notification `lease_request` to the controlling connection: answer with `control.give` or
/// `control.refuse`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LeaseRequest {
    /// The lease that is asked for.
    pub lease_id: LeaseName,
    /// Who asks, in words.
    pub from: String,
    /// Why, in words.
    pub note: Option<String>,
}

/// Notification `lease_request_ended` to the controlling connection: what `lease_request` told of
/// is over. It was answered, its time ran out, or whoever asked has gone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LeaseRequestEnded {
    /// The lease that was asked for.
    pub lease_id: LeaseName,
    /// Who asked, in words.
    pub from: String,
}

/// Notification `lease_ended` to the controlling connection, when control has returned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LeaseEnded {
    /// The lease.
    pub lease_id: LeaseName,
    /// The desktop.
    pub desktop: DesktopId,
    /// How it ended.
    pub end: End,
    /// The agents that are told of it.
    #[serde(default)]
    pub agents: Vec<AgentId>,
    /// Open requests that it dealt with.
    #[serde(default)]
    pub requests: Vec<RequestId>,
}
