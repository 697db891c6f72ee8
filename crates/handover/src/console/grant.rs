//! What one browser has been let in to: its scope, until when, and what it was given since.

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use handover_control::Moment;
use handover_protocol::{LeaseName, Timestamp, ViewerName};

use super::scope::Scope;

/// Viewers' sockets that are remembered: as many as a desktop can have.
const MAX_VIEWS: usize = 64;
/// Leases that are remembered; far more than can be live.
const MAX_LEASES: usize = 256;

/// When a right ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Until {
    /// What decides.
    pub moment: Moment,
    /// What people are shown.
    pub shown: Timestamp,
}

/// One browser's right to use the console.
#[derive(Debug)]
pub struct Grant {
    scope: Scope,
    until: Option<Until>,
    given: Mutex<Given>,
}

#[derive(Debug, Default)]
struct Given {
    /// The sockets of the viewers that were opened for it, by session and name.
    views: HashMap<(String, ViewerName), PathBuf>,
    /// The same, oldest first.
    order: VecDeque<(String, ViewerName)>,
    /// The leases that it was granted, oldest first.
    leases: VecDeque<LeaseName>,
}

impl Grant {
    /// A right to `scope` until then, or for as long as the console runs.
    pub fn new(scope: Scope, until: Option<Until>) -> Self {
        Self {
            scope,
            until,
            given: Mutex::default(),
        }
    }

    /// To what.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Until when.
    pub fn until(&self) -> Option<Until> {
        self.until
    }

    /// Whether it is not over yet.
    pub fn is_live(&self, now: Moment) -> bool {
        self.until.is_none_or(|until| now < until.moment)
    }

    /// Remembers the socket of a viewer that was opened for this browser.
    pub fn add_view(&self, session: &str, viewer: ViewerName, socket: PathBuf) {
        let mut given = self.given();
        let key = (session.to_owned(), viewer);
        if given.views.insert(key.clone(), socket).is_none() {
            given.order.push_back(key);
        }
        if given.order.len() > MAX_VIEWS
            && let Some(oldest) = given.order.pop_front()
        {
            given.views.remove(&oldest);
        }
    }

    /// The socket of such a viewer. It is for one client, so it is given out once.
    pub fn take_view(&self, session: &str, viewer: &str) -> Option<PathBuf> {
        let mut given = self.given();
        let key = (session.to_owned(), ViewerName::from(viewer));
        given.order.retain(|known| *known != key);
        given.views.remove(&key)
    }

    /// Remembers a lease that this browser was granted.
    pub fn add_lease(&self, lease: LeaseName) {
        let mut given = self.given();
        if !given.leases.contains(&lease) {
            given.leases.push_back(lease);
        }
        if given.leases.len() > MAX_LEASES {
            given.leases.pop_front();
        }
    }

    /// Whether this browser was granted the lease.
    pub fn has_lease(&self, lease: &str) -> bool {
        self.given()
            .leases
            .iter()
            .any(|known| known.as_str() == lease)
    }

    fn given(&self) -> MutexGuard<'_, Given> {
        // No code panics while it holds the lock.
        self.given.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_viewers_socket_is_given_out_once() {
        let grant = Grant::new(Scope::All, None);
        grant.add_view("s1", "v1".into(), "/a".into());
        assert_eq!(grant.take_view("s2", "v1"), None);
        assert_eq!(grant.take_view("s1", "v2"), None);
        assert_eq!(grant.take_view("s1", "v1"), Some("/a".into()));
        assert_eq!(grant.take_view("s1", "v1"), None);
    }

    #[test]
    fn the_oldest_is_forgotten() {
        let grant = Grant::new(Scope::All, None);
        for number in 0..=MAX_VIEWS {
            grant.add_view("s1", format!("v{number}").into(), "/a".into());
        }
        assert_eq!(grant.take_view("s1", "v0"), None);
        assert!(grant.take_view("s1", "v1").is_some());
        for number in 0..=MAX_LEASES {
            grant.add_lease(format!("l-{number}").into());
        }
        assert!(!grant.has_lease("l-0"));
        assert!(grant.has_lease("l-1"));
    }
}
