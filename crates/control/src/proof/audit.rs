//! What the referee looks at after each step.

use super::{
    referee::{Closed, Referee, Rule, Stage, Violation, rule},
    world::{World, owner, token},
};
use crate::{AcquireRequest, Control, FLUSH_BUDGET, InputSource, Phase, Status};

impl Referee {
    /// A step was taken and its effects are known.
    pub(super) fn end(&self, status: &Status) -> Result<(), Violation> {
        rule(
            Rule::C2,
            self.incoming.is_none(),
            "a takeover began and the agents were not told",
        )?;
        rule(Rule::C5, !self.must_release, "held keys were not released")?;
        self.nothing_overdue()?;
        self.nothing_of_the_gone()?;
        let (phase, lease) = match &self.stage {
            Stage::Nobody => (Phase::Steady, None),
            Stage::Draining { terms, .. } | Stage::Starting { terms, .. } => {
                (Phase::Draining, Some(terms.lease))
            }
            Stage::Live(live) => (Phase::Steady, Some(live.terms.lease)),
            Stage::Closed(Closed { lease, .. }) | Stage::Ended(lease) => {
                (Phase::Returning, Some(*lease))
            }
        };
        let paused = status.control == Control::Paused;
        let told = status.epoch == self.epoch
            && status.control == self.control
            && status.phase == phase
            && status.lease.map(|view| view.lease) == lease
            && status.pause.is_some() == paused
            && status.request == self.asker.map(|request| request.lease)
            && status.outstanding == self.permits.len();
        rule(
            Rule::C6,
            told,
            "the status is not what the effects add up to",
        )
    }

    fn nothing_overdue(&self) -> Result<(), Violation> {
        match &self.stage {
            Stage::Draining { terms, since } => {
                let in_time = self.now < *since + terms.drain;
                rule(Rule::C4, in_time, "a drain goes on after its time")
            }
            Stage::Live(live) => rule(Rule::C1, !live.is_over(self.now), "a lease lives too long"),
            Stage::Closed(closed) => {
                let waits = closed.fence.is_some() && !closed.overdue;
                let late = self.now >= closed.since + FLUSH_BUDGET;
                rule(Rule::C5, !(waits && late), "a late fence is not shown")
            }
            _ => Ok(()),
        }
    }

    fn nothing_of_the_gone(&self) -> Result<(), Violation> {
        let Some((controller, viewer)) = self.gone else {
            return Ok(());
        };
        let of_it = |terms: &AcquireRequest| {
            Some(terms.controller) == controller || viewer.is_some() && terms.viewer == viewer
        };
        let left = match &self.stage {
            Stage::Draining { terms, .. } => of_it(terms),
            Stage::Live(live) => live.parked.is_none() && of_it(&live.terms),
            _ => false,
        };
        let asks = self.asker.as_ref().is_some_and(of_it) || self.next.as_ref().is_some_and(of_it);
        rule(
            Rule::C3,
            !left && !asks,
            "something of the gone is left behind",
        )
    }

    /// Tries, on a copy, who is admitted at this instant.
    pub(super) fn probe(&self, world: &World) -> Result<(), Violation> {
        let (now, mut arbiter) = (world.now, world.arbiter.clone());
        let nobody = match &self.stage {
            Stage::Nobody => true,
            // Not noticed yet, but it will be by whoever calls next.
            Stage::Draining { terms, since } => *since + terms.drain <= now,
            _ => false,
        };
        let agents = nobody && self.control == Control::Agent;
        for (&permit, &valid) in &self.permits {
            let admitted = arbiter.agent_input(now, permit).is_ok();
            rule(
                Rule::C2,
                admitted == (valid && agents),
                "the wrong agent's input is admitted",
            )?;
        }
        for person in &world.people {
            if let Some(viewer) = person.viewer {
                let source = InputSource::Viewer(viewer);
                let admitted = arbiter.human_input(now, source).is_ok();
                rule(
                    Rule::C1,
                    admitted == self.may_input(now, source),
                    "the wrong viewer is admitted",
                )?;
            }
            for lease in [person.lease, person.old].into_iter().flatten() {
                let source = InputSource::Lease(lease);
                let admitted = arbiter.human_input(now, source).is_ok();
                rule(
                    Rule::C1,
                    admitted == self.may_input(now, source),
                    "the wrong lease is admitted",
                )?;
                let live = matches!(&self.stage, Stage::Live(live)
                    if live.terms.lease == lease && !live.is_over(now));
                let renewed = arbiter.renew(now, lease, token(lease)).is_ok();
                rule(
                    Rule::C3,
                    renewed == live,
                    "renewed what is not live, or not what is",
                )?;
            }
        }
        let permitted = arbiter.permit(now, owner(0)).is_ok();
        rule(
            Rule::C2,
            permitted == agents,
            "a permit out of the agents' time, or none in it",
        )
    }
}
