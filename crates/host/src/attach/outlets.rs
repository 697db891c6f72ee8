//! The open connections, for whoever has news for one of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use handover_protocol::server::outlet::{Outlet, Together};
use handover_protocol::{Interrupt, LeaseEnded, LeaseRequest, LeaseRequestEnded, LeaseWarning};

use crate::callers::ConnectionId;

/// News for one connection from a desktop.
#[derive(Debug, Clone, PartialEq)]
pub enum Notice {
    /// A permit is interrupted.
    Interrupt(Interrupt),
    /// A lease is about to reach a limit.
    LeaseWarning(LeaseWarning),
    /// Somebody asks the holder for control.
    LeaseRequest(LeaseRequest),
    /// Nobody asks the holder any more.
    LeaseRequestEnded(LeaseRequestEnded),
    /// A lease has ended.
    LeaseEnded(LeaseEnded),
}

/// The connections that are open, by number, for whoever has news for one of them.
#[derive(Debug, Clone, Default)]
pub struct Outlets {
    open: Arc<Mutex<HashMap<ConnectionId, Outlet>>>,
    together: Together,
}

impl Outlets {
    /// Without any connection.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sends news to a connection, in order with its answers. Does not wait; a connection that has
    /// closed gets nothing.
    pub fn notify(&self, connection: ConnectionId, notice: &Notice) {
        let outlet = self.open().get(&connection).cloned();
        if let Some(outlet) = outlet {
            match notice {
                Notice::Interrupt(params) => outlet.notify("interrupt", params),
                Notice::LeaseWarning(params) => outlet.notify("lease_warning", params),
                Notice::LeaseRequest(params) => outlet.notify("lease_request", params),
                Notice::LeaseRequestEnded(params) => outlet.notify("lease_request_ended", params),
                Notice::LeaseEnded(params) => outlet.notify("lease_ended", params),
            }
        }
    }

    pub(super) fn add(&self, connection: ConnectionId) -> Outlet {
        let outlet = Outlet::beside(&self.together);
        self.open().insert(connection, outlet.clone());
        outlet
    }

    pub(super) fn remove(&self, connection: ConnectionId) {
        self.open().remove(&connection);
    }

    fn open(&self) -> MutexGuard<'_, HashMap<ConnectionId, Outlet>> {
        // Nothing panics while it holds this lock.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
