//! Who asks a desktop for something, as far as the desktop needs to know.

use handover_control::ControllerId;
use handover_protocol::{Actor, Source};

use super::observation::Observer;
use crate::callers::{Caller, CallerKind, ConnectionId};
use crate::system::users;

/// Who asks.
#[derive(Debug, Clone)]
pub struct By {
    /// Whose doing it is, for the record.
    pub source: Source,
    /// The process, for the record.
    pub actor: Actor,
    /// Whose eyes an observation counts for.
    pub observer: Observer,
    /// The caller in words, for those who are told who has control.
    pub name: String,
    /// The connection: a lease's controller.
    pub connection: ControllerId,
}

impl By {
    /// The connection that notices go to.
    pub fn outlet(&self) -> ConnectionId {
        ConnectionId(self.connection.0)
    }
}

impl From<&Caller> for By {
    fn from(caller: &Caller) -> Self {
        let actor = caller.actor();
        let observer = match &caller.kind {
            CallerKind::Agent { id: Some(id) } => id.to_string(),
            _ => "user".to_owned(),
        };
        let via = if caller.via.is_empty() {
            "socket"
        } else {
            &caller.via
        };
        Self {
            source: caller.source(),
            name: format!("{} (pid {}, {via})", users::name(caller.uid), caller.pid),
            actor,
            observer,
            connection: ControllerId(caller.connection.0),
        }
    }
}
