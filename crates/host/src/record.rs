//! How callers appear in the record.

use handover_protocol::{Actor, CallerView, Refusal};
use handover_store::{NewEvent, Source, StoreError};

use crate::callers::{Caller, CallerKind};

impl Caller {
    /// Whose doing its acts are.
    pub fn source(&self) -> Source {
        match self.kind {
            CallerKind::Human { .. } => Source::Human,
            CallerKind::Agent { .. } => Source::Agent,
            CallerKind::App { .. } => Source::App,
        }
    }

    /// The process behind its acts.
    pub fn actor(&self) -> Actor {
        let (agent, evidence) = match &self.kind {
            CallerKind::Human { evidence } => (None, Some(evidence.as_str().to_owned())),
            CallerKind::Agent { id } => (id.clone(), None),
            CallerKind::App { .. } => (None, None),
        };
        Actor {
            uid: self.uid,
            pid: self.pid,
            agent,
            via: self.via.clone(),
            evidence,
        }
    }

    /// An event of this caller's doing.
    pub fn event(&self, kind: &'static str) -> NewEvent {
        NewEvent::new(kind, self.source()).actor(self.actor())
    }

    /// What the host takes it for, as `hello` tells it.
    pub fn view(&self) -> CallerView {
        use handover_protocol::CallerKind as Kind;
        let (kind, agent) = match &self.kind {
            CallerKind::Human { .. } => (Kind::Human, None),
            CallerKind::Agent { id } => (Kind::Agent, id.clone()),
            CallerKind::App { .. } => (Kind::App, None),
        };
        CallerView {
            kind,
            agent,
            pid: self.pid,
            uid: self.uid,
            marked: self.marked.clone(),
        }
    }
}

/// The refusal of an act that the record does not take.
///
/// An event that is too large is the caller's doing and not a fault of the disk.
pub fn not_recorded(error: &StoreError) -> Refusal {
    use handover_protocol::ErrorCode;
    let code = match error {
        StoreError::EventTooLarge { .. } => ErrorCode::BadParams,
        _ => ErrorCode::StorageFailed,
    };
    Refusal::new(code, error.to_string())
}
