//! The places for connections, shared out so that nobody can take them all.
//!
//! One process has a quota. Of all places, half are open to programs; people can have every one that
//! is free, so that no agent and no program on a desktop can lock them out.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use handover_protocol::{ErrorCode, Refusal};

/// Connections that may be open at once.
pub(super) const MAX_CONNECTIONS: usize = 256;
/// How many of them may be those of callers that are no people.
pub(super) const MAX_OF_PROGRAMS: usize = MAX_CONNECTIONS / 2;
/// How many of them may be those of one process.
pub(super) const MAX_OF_PROCESS: usize = 64;

/// Counts the places that are taken. Clones count together.
#[derive(Clone, Debug, Default)]
pub(super) struct Places(Arc<Mutex<Taken>>);

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    by_programs: usize,
    /// By pid; those that the kernel did not name count as one process.
    by_process: HashMap<u32, usize>,
}

/// One connection's place; free again once this is dropped.
#[derive(Debug)]
pub(super) struct Place {
    places: Places,
    pid: u32,
    person: bool,
}

impl Places {
    /// A place for a connection that process `pid` made; `person` is what it was taken for then.
    ///
    /// # Errors
    /// `queue_full`.
    pub(super) fn take(&self, pid: u32, person: bool) -> Result<Place, Refusal> {
        let mut taken = self.taken();
        let own = taken.by_process.get(&pid).copied().unwrap_or(0);
        if own >= MAX_OF_PROCESS {
            return Err(full(format!(
                "this program has {MAX_OF_PROCESS} connections open already: close one of them"
            )));
        }
        if !person && taken.by_programs >= MAX_OF_PROGRAMS {
            return Err(full(format!(
                "agents and programs have {MAX_OF_PROGRAMS} connections open already, and the rest \
                 is kept for people: close one of them"
            )));
        }
        if taken.all >= MAX_CONNECTIONS {
            return Err(full(format!(
                "{MAX_CONNECTIONS} clients are connected already: close one of them"
            )));
        }
        taken.all += 1;
        taken.by_programs += usize::from(!person);
        taken.by_process.insert(pid, own + 1);
        Ok(Place {
            places: self.clone(),
            pid,
            person,
        })
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        // Nothing panics while it holds this lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.taken();
        taken.all -= 1;
        taken.by_programs -= usize::from(!self.person);
        let own = taken.by_process.get(&self.pid).copied().unwrap_or(0);
        if own > 1 {
            taken.by_process.insert(self.pid, own - 1);
        } else {
            taken.by_process.remove(&self.pid);
        }
    }
}

fn full(message: String) -> Refusal {
    Refusal::new(ErrorCode::QueueFull, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(places: &Places, person: bool) -> Vec<Place> {
        (0..)
            .map_while(|n| places.take(1 + n / 8, person).ok())
            .collect()
    }

    #[test]
    fn programs_leave_half_to_people_and_people_may_have_all() {
        let places = Places::default();
        let programs = fill(&places, false);
        assert_eq!(programs.len(), MAX_OF_PROGRAMS);
        let people = fill(&places, true);
        assert_eq!(programs.len() + people.len(), MAX_CONNECTIONS);
        drop((programs, people));
        assert_eq!(fill(&places, true).len(), MAX_CONNECTIONS);
    }

    #[test]
    fn a_process_has_a_quota_and_gets_back_what_it_gives_up() {
        let places = Places::default();
        let mut own: Vec<_> = (0..MAX_OF_PROCESS)
            .map(|_| places.take(7, true).unwrap())
            .collect();
        let refusal = places.take(7, true).unwrap_err();
        assert_eq!(refusal.code, ErrorCode::QueueFull);
        assert!(places.take(8, true).is_ok());
        own.pop();
        own.push(places.take(7, true).unwrap());
        drop(own);
        assert!(places.taken().by_process.is_empty());
    }
}
