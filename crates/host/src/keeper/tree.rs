//! Ending everything below a process.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::system::process::{self, ProcessIdentity, Stat};

/// How long after KILL a process may take to be gone. Only one that hangs in the kernel takes
/// longer; it is reported as a survivor.
const KILL_PATIENCE: Duration = Duration::from_secs(5);

/// How often the tree is looked at while it ends.
const LOOK: Duration = Duration::from_millis(10);

/// Ends everything below `root`, but for `last`, in order: TERM (and CONT, for the stopped), up to
/// `grace` to comply, then KILL until nothing is left; then `last` and what is below it the same way.
/// `root` must be a subreaper, so that an orphan stays below it, and `pause` must wait a moment and
/// reap.
///
/// A tree can fork faster than one look at it, so every round looks again and takes all it sees; what
/// is new since TERM gets KILL with the rest.
pub(super) fn end_below(
    root: u32,
    last: Option<ProcessIdentity>,
    grace: Duration,
    pause: impl Fn(Duration),
) -> Vec<ProcessIdentity> {
    let everything = || below(root);
    let others = || {
        let mut living = below(root);
        living.retain(|identity| Some(*identity) != last);
        living
    };
    let survivors = end_set(others, grace, &pause);
    if last.is_none() {
        return survivors;
    }
    end_set(everything, grace, &pause)
}

/// Ends everything below another's `keeper` in the same way, be the keeper stopped or not, and then kills
/// the keeper itself. Does nothing if that has ended. Waits without a runtime: at most `grace` and five
/// seconds.
pub(super) fn end_of(keeper: ProcessIdentity, grace: Duration) {
    let look = || {
        let living = below(keeper.pid);
        // Only if it is alive after the look, was the look not at a later process of that number.
        if keeper.is_alive() {
            living
        } else {
            Vec::new()
        }
    };
    end_set(look, grace, &std::thread::sleep);
    // What hangs in the kernel or appears at this moment is left to whoever follows the keeper.
    let _ = keeper.signal(Signal::KILL);
}

fn below(root: u32) -> Vec<ProcessIdentity> {
    let living = process::descendants(root).unwrap_or_default();
    living.iter().map(Stat::identity).collect()
}

fn end_set(
    look: impl Fn() -> Vec<ProcessIdentity>,
    grace: Duration,
    pause: &impl Fn(Duration),
) -> Vec<ProcessIdentity> {
    let mut asked: Vec<ProcessIdentity> = Vec::new();
    let start = Instant::now();
    loop {
        let living = look();
        if living.is_empty() {
            return living;
        }
        if start.elapsed() >= grace {
            break;
        }
        for identity in living {
            if !asked.contains(&identity) {
                // It may have ended meanwhile, which is what we want.
                let _ = identity.signal(Signal::TERM);
                let _ = identity.signal(Signal::CONT);
                asked.push(identity);
            }
        }
        pause(LOOK);
    }
    let start = Instant::now();
    loop {
        let living = look();
        if living.is_empty() || start.elapsed() >= KILL_PATIENCE {
            return living;
        }
        for identity in living {
            let _ = identity.signal(Signal::KILL);
        }
        pause(LOOK);
    }
}
