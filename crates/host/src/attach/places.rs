//! The places for connections, shared out so that nobody can take them all.
//!
//! One process has a quota. Of all places, half are open to programs; people can have every one that
//! is free, so that no agent and no program on a desktop can lock them out.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use handover_protocol::{ErrorCode, Refusal};

/// How many connections may be open at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// All together.
    pub(super) all: usize,
    /// Those of callers that are no people.
    pub(super) by_programs: usize,
    /// Those of one process.
    pub(super) by_process: usize,
}

/// Open files with which all connections are possible that a host ever takes; agents, desktops and
/// viewers have the other half.
pub const OPEN_FILES: u64 = 8192;

impl ConnectionLimits {
    /// As many as a process can have that may open so many files, at most 4,096.
    pub fn within(open_files: u64) -> Self {
        let all = open_files.min(OPEN_FILES) / 2;
        let all = usize::try_from(all).unwrap_or(usize::MAX);
        Self {
            all,
            by_programs: all / 2,
            by_process: all / 4,
        }
    }
}

/// Counts the places that are taken. Clones count together.
#[derive(Clone, Debug)]
pub(super) struct Places {
    limits: ConnectionLimits,
    taken: Arc<Mutex<Taken>>,
}

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
    /// With all places free.
    pub(super) fn new(limits: ConnectionLimits) -> Self {
        Self {
            limits,
            taken: Arc::default(),
        }
    }

    /// A place for a connection that process `pid` made; `person` is what it was taken for then.
    ///
    /// # Errors
    /// `queue_full`.
    pub(super) fn take(&self, pid: u32, person: bool) -> Result<Place, Refusal> {
        let limits = self.limits;
        let mut taken = self.taken();
        let own = taken.by_process.get(&pid).copied().unwrap_or(0);
        if own >= limits.by_process {
            return Err(full(format!(
                "this program has {} connections open already: close one of them",
                limits.by_process
            )));
        }
        if !person && taken.by_programs >= limits.by_programs {
            return Err(full(format!(
                "agents and programs have {} connections open already, and the rest \
                 is kept for people: close one of them",
                limits.by_programs
            )));
        }
        if taken.all >= limits.all {
            return Err(full(format!(
                "{} clients are connected already: close one of them",
                limits.all
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
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
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

    const LIMITS: ConnectionLimits = ConnectionLimits {
        all: 40,
        by_programs: 20,
        by_process: 10,
    };

    fn fill(places: &Places, person: bool) -> Vec<Place> {
        (0..)
            .map_while(|n| places.take(1 + n / 4, person).ok())
            .collect()
    }

    #[test]
    fn they_follow_from_the_files_that_may_be_open() {
        let usual = ConnectionLimits {
            all: 4096,
            by_programs: 2048,
            by_process: 1024,
        };
        assert_eq!(ConnectionLimits::within(OPEN_FILES), usual);
        assert_eq!(ConnectionLimits::within(u64::MAX), usual);
        let few = ConnectionLimits {
            all: 512,
            by_programs: 256,
            by_process: 128,
        };
        assert_eq!(ConnectionLimits::within(1024), few);
    }

    #[test]
    fn programs_leave_half_to_people_and_people_may_have_all() {
        let places = Places::new(LIMITS);
        let programs = fill(&places, false);
        assert_eq!(programs.len(), LIMITS.by_programs);
        let people = fill(&places, true);
        assert_eq!(programs.len() + people.len(), LIMITS.all);
        drop((programs, people));
        assert_eq!(fill(&places, true).len(), LIMITS.all);
    }

    #[test]
    fn a_process_has_a_quota_and_gets_back_what_it_gives_up() {
        let places = Places::new(LIMITS);
        let mut own: Vec<_> = (0..LIMITS.by_process)
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
