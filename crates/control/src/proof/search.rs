//! Breadth-first search through every world that can be reached.

use std::{
    collections::{BTreeSet, HashSet, VecDeque},
    fmt::Write as _,
};

use super::{
    inputs::Input,
    key::{Key, key},
    referee::Violation,
    world::World,
};
use crate::{Control, LeaseStage, PauseReason, Phase};

/// What a search found.
#[derive(Debug)]
pub(super) struct Found {
    /// Worlds that differ.
    pub(super) worlds: usize,
    /// Steps taken, most of them into worlds known already.
    pub(super) steps: usize,
    /// The situations that some world was in.
    pub(super) situations: BTreeSet<Situation>,
    /// The shortest way to a broken invariant.
    pub(super) broken: Option<Broken>,
}

/// A broken invariant and the steps that lead to it.
#[derive(Debug)]
pub(super) struct Broken {
    pub(super) violation: Violation,
    pub(super) steps: Vec<Input>,
}

impl Broken {
    /// The steps, one a line, and what they broke.
    pub(super) fn story(&self) -> String {
        let mut story = String::new();
        for (no, input) in self.steps.iter().enumerate() {
            let _ = writeln!(story, "{:3}. {input:?}", no + 1);
        }
        let Violation { rule, what } = &self.violation;
        let _ = write!(story, "     {rule:?} is broken: {what}");
        story
    }
}

/// What a world may be like, to show that the search came by there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Situation {
    AgentSteady,
    Draining,
    DrainingPaused,
    Starting,
    Live,
    Parked,
    AskedFor,
    Returning,
    FlushOverdue,
    EndBeingStored,
    PausedByRequest,
    PausedByForeignConnection,
    DesktopGone,
}

fn situation(world: &World) -> Situation {
    let status = world.arbiter.status();
    let stage = status.lease.map(|lease| lease.stage);
    match (status.control, status.phase) {
        (_, Phase::Draining) if world.shell.start.is_some() => Situation::Starting,
        (Control::Paused, Phase::Draining) => Situation::DrainingPaused,
        (_, Phase::Draining) => Situation::Draining,
        (_, Phase::Returning) if world.shell.end.is_some() => Situation::EndBeingStored,
        (Control::Paused, Phase::Returning) => Situation::FlushOverdue,
        (_, Phase::Returning) => Situation::Returning,
        (Control::Human, _) if status.request.is_some() => Situation::AskedFor,
        (Control::Human, _) if stage == Some(LeaseStage::Parked) => Situation::Parked,
        (Control::Human, _) => Situation::Live,
        (Control::Agent, _) => Situation::AgentSteady,
        (Control::Paused, _) => match status.pause {
            Some(PauseReason::ForeignConnection) => Situation::PausedByForeignConnection,
            Some(PauseReason::DesktopGone) => Situation::DesktopGone,
            _ => Situation::PausedByRequest,
        },
    }
}

/// Where a world was first come to from, and by which step.
struct Origin {
    from: usize,
    by: Input,
}

struct Search<'a> {
    inputs: &'a [Input],
    seen: HashSet<Key>,
    origins: Vec<Origin>,
    queue: VecDeque<(usize, World)>,
    found: Found,
}

/// Takes every step from every world that can be reached from `start`, and
/// stops at the first broken invariant.
pub(super) fn search(start: World, inputs: &[Input]) -> Found {
    let found = Found {
        worlds: 0,
        steps: 0,
        situations: BTreeSet::new(),
        broken: None,
    };
    let mut search = Search {
        inputs,
        seen: HashSet::new(),
        origins: Vec::new(),
        queue: VecDeque::new(),
        found,
    };
    search.arrive(
        start,
        Origin {
            from: 0,
            by: Input::Tick,
        },
    );
    while let Some((no, world)) = search.queue.pop_front() {
        if let Err(broken) = search.expand(no, &world) {
            search.found.broken = Some(broken);
            break;
        }
    }
    search.found.worlds = search.seen.len();
    search.found
}

impl Search<'_> {
    fn expand(&mut self, no: usize, world: &World) -> Result<(), Broken> {
        // Only what the shell has not looked at yet is late; one who has not
        // looked once is as late as one who has not looked twice.
        let late = world
            .arbiter
            .next_deadline()
            .is_some_and(|at| at <= world.now);
        for &by in self.inputs {
            if late && matches!(by, Input::Wait(_)) || world.has_nothing_for(by) {
                continue;
            }
            let mut next = world.clone();
            self.found.steps += 1;
            next.step(by)
                .map_err(|violation| self.broken(no, Some(by), violation))?;
            self.arrive(next, Origin { from: no, by });
        }
        self.come_to_rest(no, world)
    }

    /// Wherever a world is, it must be able to come to rest.
    fn come_to_rest(&self, no: usize, world: &World) -> Result<(), Broken> {
        let is_at_rest = |world: &World| {
            let status = world.arbiter.status();
            status.phase == Phase::Steady && status.lease.is_none()
        };
        if !is_at_rest(world) {
            let mut rest = world.clone();
            rest.settle()
                .map_err(|violation| self.broken(no, None, violation))?;
            assert!(
                is_at_rest(&rest),
                "no rest is found after\n{:#?}",
                self.way(no)
            );
        }
        Ok(())
    }

    fn arrive(&mut self, world: World, origin: Origin) {
        if self.seen.insert(key(&world)) {
            self.found.situations.insert(situation(&world));
            self.queue.push_back((self.origins.len(), world));
            self.origins.push(origin);
        }
    }

    /// The steps from the start to a world.
    fn way(&self, mut no: usize) -> Vec<Input> {
        let mut steps = Vec::new();
        while no != 0 {
            steps.push(self.origins[no].by);
            no = self.origins[no].from;
        }
        steps.reverse();
        steps
    }

    fn broken(&self, no: usize, by: Option<Input>, violation: Violation) -> Broken {
        let mut steps = self.way(no);
        steps.extend(by);
        Broken { violation, steps }
    }
}
