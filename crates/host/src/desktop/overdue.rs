//! Relayed servers that go on though somebody waits for their calls to end.
//!
//! It is the relay that cancels its calls and ends a server that does not answer, within 3 s. But a relay may
//! be stopped (Ctrl-Z on the agent's program stops it too) or hang; a person's control must not depend on
//! that. So the host ends the server itself, keeper and all, early enough for the takeover that waits. The
//! permits then end as they always do: when nothing of the tree is left.

use std::time::Duration;

use handover_control::{Control, ControllerId, Moment, Phase};
use tokio::sync::watch;

use super::actor::Actor;
use super::command::Report;
use super::former;
use super::terms::DEFAULT_DRAIN_MS;
use crate::keeper::client::Keeper;
use crate::system::process::ProcessIdentity;

/// How long a relay may take to give an interrupted permit back: longer than one that runs needs, and so much
/// less than the default drain that the server is gone before that is over.
pub(super) const GRACE: Duration = Duration::from_millis(3_250);

/// What it gets of that in any case, each time that somebody begins to wait: a relay ends a server only while
/// somebody does.
const ANEW: Duration = Duration::from_millis(500);

/// How long the server's processes get between TERM and KILL.
pub(super) const END: Duration = Duration::from_millis(500);

/// What is left of the default drain for all else, in milliseconds, is more than a second.
const _: () = assert!((GRACE.as_millis() + END.as_millis()) as u64 + 1_000 < DEFAULT_DRAIN_MS);

/// A permit for a call of a relayed server.
#[derive(Debug)]
pub(super) struct Relayed {
    keeper: ProcessIdentity,
    interrupted: Option<Moment>,
    /// It cannot give the permit back, since its connection has ended.
    lost: bool,
    /// The host ends the server.
    ending: bool,
}

impl Relayed {
    /// One that was given just now.
    pub(super) fn new(keeper: ProcessIdentity) -> Self {
        Self {
            keeper,
            interrupted: None,
            lost: false,
            ending: false,
        }
    }

    /// Its relay was told to end the call.
    pub(super) fn interrupted(&mut self, now: Moment) {
        self.interrupted.get_or_insert(now);
    }

    /// From when on the host does not wait for the relay any more, if somebody has waited for the call's end
    /// since `waiting`.
    fn overdue(&self, waiting: Moment) -> Option<Moment> {
        let interrupted = self.interrupted.filter(|_| !self.ending)?;
        // The host itself takes the call to be over, at the latest a moment before.
        let grace = if self.lost { GRACE + ANEW } else { GRACE };
        Some((interrupted + grace).max(waiting + ANEW))
    }
}

impl Actor {
    /// When [`Self::end_overdue`] has something to do.
    pub(super) fn overdue_at(&self) -> Option<Moment> {
        let waiting = self.waiting_since?;
        let relayed = self.outside.values().filter_map(|it| it.relayed.as_ref());
        relayed.filter_map(|it| it.overdue(waiting)).min()
    }

    /// A connection has ended, and with it a relay's way to give back the permits that it got there. A relay that
    /// is still there takes its host to be gone and ends those calls by itself.
    pub(super) fn relay_lost(&mut self, connection: ControllerId) {
        for (&permit, outside) in &mut self.outside {
            let ours = outside.by.connection == connection;
            let Some(relayed) = outside.relayed.as_mut().filter(|_| ours) else {
                continue;
            };
            let Ok(relay) = ProcessIdentity::of(outside.by.actor.pid) else {
                // Its keeper ends what it has started.
                continue;
            };
            relayed.lost = true;
            let keeper = relayed.keeper;
            let reports = self.reports.clone();
            // One that is stopped is seen to by `end_overdue`.
            let (_, not_wanted) = watch::channel(false);
            outside.watching.spawn(async move {
                former::over(keeper, relay, not_wanted).await;
                // The desktop may have ended before.
                let _ = reports.send(Report::CallOver(permit));
            });
        }
    }

    /// Ends the servers whose relays have not given back an interrupted permit in time.
    pub(super) fn end_overdue(&mut self, now: Moment) {
        let status = self.arbiter.status();
        // Who pauses a desktop wants the same of its agents as who takes it over.
        if status.phase != Phase::Draining && status.control != Control::Paused {
            self.waiting_since = None;
            return;
        }
        let waiting = *self.waiting_since.get_or_insert(now);
        let mut keepers = Vec::new();
        for outside in self.outside.values_mut() {
            if let Some(relayed) = &mut outside.relayed
                && relayed.overdue(waiting).is_some_and(|due| due <= now)
            {
                relayed.ending = true;
                if !keepers.contains(&relayed.keeper) {
                    keepers.push(relayed.keeper);
                    let (what, pid) = (&outside.what, outside.by.actor.pid);
                    tracing::warn!(desktop = %self.id, what, relay = pid, "a relay does not end its call; its server is ended");
                }
            }
        }
        for keeper in keepers {
            tokio::spawn(Keeper::end_of_another(keeper, END));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Moment {
        Moment::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn a_relay_has_its_time_and_not_more() {
        let mut relayed = Relayed::new(ProcessIdentity {
            pid: 1,
            start_ticks: 1,
        });
        assert_eq!(relayed.overdue(at(0)), None, "nobody has told it");
        relayed.interrupted(at(1_000));
        assert_eq!(relayed.overdue(at(1_000)), Some(at(4_250)));
        // The next person to wait is not made to wait as long again, but the relay hears of it.
        relayed.interrupted(at(2_000));
        assert_eq!(relayed.overdue(at(2_000)), Some(at(4_250)));
        assert_eq!(relayed.overdue(at(60_000)), Some(at(60_500)));
        relayed.ending = true;
        assert_eq!(relayed.overdue(at(60_000)), None, "once is enough");
    }
}
