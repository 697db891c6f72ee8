//! What a desktop's task works with beside its display's input.

use std::sync::Arc;

use handover_protocol::{AgentId, DesktopId, HandBack, LeaseWarning, RequestId, RequestView};
use handover_store::Store;

use super::former::RelayedServers;
use crate::attach::Outlets;
use crate::display::{Screen, X11};

/// What a hand-back came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HandedBack {
    /// The requests for a person that it dealt with.
    pub requests: Vec<RequestId>,
    /// The agents that are told of it.
    pub agents: Vec<AgentId>,
}

/// What the rest of the host wants to hear from a desktop. Called by the
/// desktop's task, so none of it may wait.
pub trait Hooks: Send + Sync {
    /// Who has control changed.
    fn changed(&self, desktop: &DesktopId);
    /// The display has ended.
    fn gone(&self, desktop: &DesktopId);
    /// A person has taken control; `holder` is who, in words.
    fn taken(&self, desktop: &DesktopId, holder: &str);
    /// Control is back.
    fn handed_back(&self, desktop: &DesktopId, hand_back: &HandBack) -> HandedBack;
    /// A person's control is about to end by a limit; `holder` is who, in words.
    fn ending(&self, desktop: &DesktopId, holder: &str, warning: &LeaseWarning);
    /// Requests for a person at this desktop that nobody has dealt with.
    fn requests(&self, desktop: &DesktopId) -> Vec<RequestView>;
}

/// What a desktop's task works with.
pub struct Links {
    /// The record.
    pub store: Store,
    /// Pictures of the display.
    pub screen: Screen,
    /// The X side of the display; none of a server that the desktop is only
    /// attached to.
    pub x11: Option<X11>,
    /// Reaches the clients of the host.
    pub outlets: Outlets,
    /// The relayed servers whose calls are permitted.
    pub relayed: Arc<RelayedServers>,
    /// The rest of the host.
    pub hooks: Arc<dyn Hooks>,
}
