//! Which desktop a lease is of: callers name a lease alone, and its name is unique for ever.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use handover_protocol::{DesktopId, LeaseName};

/// Leases that are remembered; far more than can be live.
const REMEMBERED: usize = 1024;

/// The leases that were granted through this host, the newest of them.
#[derive(Debug, Default)]
pub(super) struct Leases {
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    desktops: HashMap<LeaseName, DesktopId>,
    order: VecDeque<LeaseName>,
}

impl Leases {
    /// Remembers a lease that was granted.
    pub(super) fn granted(&self, lease: LeaseName, desktop: DesktopId) {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        if table.desktops.insert(lease.clone(), desktop).is_none() {
            table.order.push_back(lease);
        }
        if table.order.len() > REMEMBERED
            && let Some(oldest) = table.order.pop_front()
        {
            table.desktops.remove(&oldest);
        }
    }

    /// The desktop of a lease, live or not.
    pub(super) fn desktop_of(&self, lease: &LeaseName) -> Option<DesktopId> {
        let table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        table.desktops.get(lease).cloned()
    }
}
