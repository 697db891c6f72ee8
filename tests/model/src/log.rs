//! The record of all requests, in order of arrival.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::request::{Outcome, Request};

/// The record; clones are the same record.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    requests: Mutex<Vec<Request>>,
    changed: Condvar,
}

impl Log {
    /// Puts a request on record under the next number.
    pub(crate) fn add(&self, mut request: Request) -> (Request, Entry) {
        let mut requests = self.lock();
        request.number = requests.len();
        requests.push(request.clone());
        self.shared.changed.notify_all();
        let entry = Entry {
            log: self.clone(),
            number: request.number,
        };
        (request, entry)
    }

    /// All requests so far.
    pub(crate) fn all(&self) -> Vec<Request> {
        self.lock().clone()
    }

    /// Whether a request satisfies `wanted`.
    pub(crate) fn any(&self, wanted: impl FnMut(&Request) -> bool) -> bool {
        self.lock().iter().any(wanted)
    }

    /// The first request that satisfies `wanted`, now or within `bound`.
    pub(crate) fn wait(
        &self,
        mut wanted: impl FnMut(&Request) -> bool,
        bound: Duration,
    ) -> Option<Request> {
        let started = Instant::now();
        let mut requests = self.lock();
        loop {
            if let Some(found) = requests.iter().find(|request| wanted(request)) {
                return Some(found.clone());
            }
            let left = bound.checked_sub(started.elapsed())?;
            let waited = self.shared.changed.wait_timeout(requests, left);
            (requests, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Request>> {
        self.shared
            .requests
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// The answer to one request while it is under way. Dropped without an end, the answer was cut.
#[derive(Debug)]
pub(crate) struct Entry {
    log: Log,
    number: usize,
}

impl Entry {
    /// Notes how the answer went; the first word stands.
    pub(crate) fn end(&self, outcome: Outcome) {
        let mut requests = self.log.lock();
        if let Some(request) = requests.get_mut(self.number)
            && request.outcome == Outcome::Open
        {
            request.outcome = outcome;
            self.log.shared.changed.notify_all();
        }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.end(Outcome::Cut);
    }
}
