//! Judges an arbiter by what can be seen of it from outside.
//!
//! The referee is told of each call and of each effect, keeps its own account
//! of what they add up to, and holds the arbiter to it: calls here, effects in
//! [`super::effects`], and who is admitted after each step in [`super::audit`].

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use super::inputs::Input;
use crate::{
    AcquireRequest, Control, ControllerId, End, Epoch, FlushId, InputSource, LeaseId, Moment,
    OnDisconnect, PauseReason, PermitId, Refusal, TimeoutCause, ViewerId,
};

/// The invariants of the crate's description.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rule {
    C1,
    C2,
    C3,
    C4,
    C5,
    C6,
}

/// An invariant that was broken, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Violation {
    pub(super) rule: Rule,
    pub(super) what: String,
}

pub(super) fn rule(rule: Rule, holds: bool, what: &str) -> Result<(), Violation> {
    if holds {
        Ok(())
    } else {
        Err(Violation {
            rule,
            what: what.to_owned(),
        })
    }
}

/// A lease that was granted and whose input is not closed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Live {
    pub(super) terms: AcquireRequest,
    pub(super) granted: Moment,
    pub(super) renewed: Moment,
    pub(super) active: Moment,
    pub(super) parked: Option<Moment>,
}

impl Live {
    /// Every deadline of the lease and what passing it means.
    pub(super) fn deadlines(&self) -> impl Iterator<Item = (Moment, TimeoutCause)> {
        let AcquireRequest {
            ttl,
            idle,
            max,
            on_disconnect,
            ..
        } = self.terms;
        let alive = match (self.parked, on_disconnect) {
            (Some(parked), OnDisconnect::Linger(linger)) => {
                (parked + linger, TimeoutCause::LingerOver)
            }
            _ => (self.renewed + ttl, TimeoutCause::NoRenewal),
        };
        let idle = idle.map(|idle| (self.active + idle, TimeoutCause::Idle));
        let max = max.map(|max| (self.granted + max, TimeoutCause::Maximum));
        [Some(alive), idle, max].into_iter().flatten()
    }

    pub(super) fn is_over(&self, now: Moment) -> bool {
        self.deadlines().any(|(at, _)| at <= now)
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Stage {
    Nobody,
    Draining {
        terms: AcquireRequest,
        since: Moment,
    },
    Starting {
        terms: AcquireRequest,
        stored: Option<bool>,
    },
    Live(Live),
    Closed(Closed),
    Ended(LeaseId),
}

/// A lease whose input was closed and whose end is not being stored yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Closed {
    pub(super) lease: LeaseId,
    pub(super) fence: Option<FlushId>,
    pub(super) since: Moment,
    pub(super) overdue: bool,
    /// What its end may be recorded as; empty if it was never granted.
    pub(super) ends: [Option<(End, Option<TimeoutCause>)>; 2],
    pub(super) held: Duration,
}

#[derive(Clone, Debug)]
pub(super) struct Referee {
    /// The latest moment that the arbiter was told.
    pub(super) now: Moment,
    /// The step that is being judged.
    pub(super) input: Input,
    pub(super) stage: Stage,
    pub(super) epoch: Epoch,
    pub(super) control: Control,
    /// The weightiest pause asked for since the last resume.
    pub(super) pause: Option<PauseReason>,
    /// The permits that are out and whether they were not interrupted.
    pub(super) permits: BTreeMap<PermitId, bool>,
    /// Those of them that were interrupted at once, while the effects of one step are read.
    pub(super) interrupted: BTreeSet<PermitId>,
    /// The fence after the agents' last releases, unless it has answered.
    pub(super) agent_fence: Option<FlushId>,
    /// Whom the holder has to answer.
    pub(super) asker: Option<AcquireRequest>,
    /// Whom the holder gave control to.
    pub(super) next: Option<AcquireRequest>,
    /// A lease that was never granted although its start is stored.
    pub(super) ungranted: Option<LeaseId>,
    /// The takeover that the agents are to be told of.
    pub(super) untold: Option<LeaseId>,
    /// The acquire that was accepted in this step.
    pub(super) incoming: Option<AcquireRequest>,
    /// The connection that went in this step.
    pub(super) gone: Option<(Option<ControllerId>, Option<ViewerId>)>,
    /// Whether the fence that was awaited answered in this step.
    pub(super) answered: bool,
    /// Whether the end of a takeover was stored in this step, so that control
    /// has to go somewhere.
    pub(super) ended: bool,
    /// Whether the keys that the person holds have to be released in this step.
    pub(super) must_release: bool,
    /// The deadlines that had passed when this step began, the first first.
    pub(super) due: Vec<(Moment, TimeoutCause)>,
}

impl Referee {
    pub(super) fn new(epoch: Epoch) -> Self {
        Self {
            now: Moment::default(),
            input: Input::Tick,
            stage: Stage::Nobody,
            epoch,
            control: Control::Agent,
            pause: None,
            permits: BTreeMap::new(),
            interrupted: BTreeSet::new(),
            agent_fence: None,
            asker: None,
            next: None,
            ungranted: None,
            untold: None,
            incoming: None,
            gone: None,
            answered: false,
            ended: false,
            must_release: false,
            due: Vec::new(),
        }
    }

    /// A step is about to be taken, and the arbiter to be told this moment.
    pub(super) fn begin(&mut self, now: Moment, input: Input) {
        self.now = self.now.max(now);
        let now = self.now;
        self.input = input;
        self.incoming = None;
        self.gone = None;
        self.answered = false;
        self.ended = false;
        self.must_release = false;
        self.due.clear();
        if let Stage::Live(live) = &self.stage {
            self.due
                .extend(live.deadlines().filter(|(at, _)| *at <= now));
            self.due.sort_by_key(|(at, _)| *at);
        }
    }

    /// The lease that is live at this instant, if it is this one.
    pub(super) fn live(&mut self, lease: LeaseId) -> Option<&mut Live> {
        match &mut self.stage {
            Stage::Live(live) if self.due.is_empty() && live.terms.lease == lease => Some(live),
            _ => None,
        }
    }

    pub(super) fn asked(
        &mut self,
        request: AcquireRequest,
        queue: bool,
        answer: Result<(), Refusal>,
    ) -> Result<(), Violation> {
        if answer.is_ok() {
            match self.stage {
                Stage::Live(_) if queue && self.due.is_empty() => {
                    rule(
                        Rule::C3,
                        self.asker.is_none(),
                        "two people wait for one answer",
                    )?;
                    self.asker = Some(request);
                }
                _ => self.incoming = Some(request),
            }
        } else if let Stage::Nobody = self.stage {
            let open = matches!(self.pause, None | Some(PauseReason::Requested));
            rule(Rule::C3, !open, "control that nobody has was refused")?;
        }
        Ok(())
    }

    pub(super) fn renewed(&mut self, lease: LeaseId, renewed: bool) -> Result<(), Violation> {
        let now = self.now;
        let live = self.live(lease);
        rule(
            Rule::C3,
            renewed == live.is_some(),
            "renewed what is not live, or not what is",
        )?;
        if let Some(live) = live {
            live.renewed = now;
        }
        Ok(())
    }

    pub(super) fn reclaimed(
        &mut self,
        lease: LeaseId,
        controller: ControllerId,
        viewer: Option<ViewerId>,
        reclaimed: bool,
    ) -> Result<(), Violation> {
        let now = self.now;
        let live = self.live(lease);
        rule(
            Rule::C3,
            reclaimed == live.is_some(),
            "reclaimed what is not live, or not what is",
        )?;
        if let Some(live) = live {
            live.renewed = now;
            live.terms.controller = controller;
            live.terms.viewer = viewer.or(live.terms.viewer);
            let away = live.parked.take().is_some();
            self.must_release = viewer.is_some() && !away;
        }
        Ok(())
    }

    pub(super) fn given(&mut self, lease: LeaseId, given: bool) -> Result<(), Violation> {
        let may = self.live(lease).is_some() && self.asker.is_some();
        rule(
            Rule::C3,
            given == may,
            "gave what was not to be given, or did not",
        )?;
        if given {
            self.next = self.asker.take();
        }
        Ok(())
    }

    pub(super) fn human_input(
        &mut self,
        source: InputSource,
        admitted: bool,
    ) -> Result<(), Violation> {
        let may = self.may_input(self.now, source);
        rule(
            Rule::C1,
            admitted == may,
            "admitted a person who may not act, or not one who may",
        )?;
        if let Stage::Live(live) = &mut self.stage
            && admitted
        {
            live.active = self.now;
        }
        Ok(())
    }

    pub(super) fn may_input(&self, now: Moment, source: InputSource) -> bool {
        let Stage::Live(live) = &self.stage else {
            return false;
        };
        let holder = match source {
            InputSource::Viewer(viewer) => live.terms.viewer == Some(viewer),
            InputSource::Lease(lease) => live.terms.lease == lease,
        };
        holder && live.parked.is_none() && !live.is_over(now)
    }

    pub(super) fn controller_gone(&mut self, controller: ControllerId) {
        self.gone = Some((Some(controller), None));
        self.park(|terms| terms.controller == controller);
    }

    pub(super) fn viewer_gone(&mut self, viewer: ViewerId) {
        self.gone = Some((None, Some(viewer)));
        self.park(|terms| terms.viewer == Some(viewer));
    }

    fn park(&mut self, bound: impl Fn(&AcquireRequest) -> bool) {
        let viewer_gone = matches!(self.gone, Some((_, Some(_))));
        if let Stage::Live(live) = &mut self.stage
            && self.due.is_empty()
            && let OnDisconnect::Linger(_) = live.terms.on_disconnect
            && bound(&live.terms)
        {
            self.must_release = live.parked.is_none();
            live.parked.get_or_insert(self.now);
            if viewer_gone {
                live.terms.viewer = None;
            }
        }
    }

    pub(super) fn paused(&mut self, reason: PauseReason) {
        self.pause = self.pause.max(Some(reason));
    }

    pub(super) fn resumed(&mut self, resumed: bool) -> Result<(), Violation> {
        if resumed {
            let gone = self.pause == Some(PauseReason::DesktopGone);
            rule(Rule::C5, !gone, "resumed on a display that is gone")?;
            self.pause = None;
        }
        Ok(())
    }

    pub(super) fn permitted(&mut self, permit: PermitId) {
        self.permits.insert(permit, true);
    }

    pub(super) fn completed(&mut self, permit: PermitId) {
        self.permits.remove(&permit);
    }

    pub(super) fn start_recorded(&mut self, is_stored: bool) {
        if let Stage::Starting { stored, .. } = &mut self.stage {
            *stored = Some(is_stored);
            if is_stored {
                self.epoch = self.epoch.next();
            }
        }
    }

    pub(super) fn end_recorded(&mut self) {
        if let Stage::Ended(lease) = self.stage {
            self.epoch = self.epoch.next();
            self.ended = true;
            self.stage = Stage::Nobody;
            if self.ungranted.is_none() {
                self.untold = Some(lease);
            }
        }
    }

    pub(super) fn flushed(&mut self, fence: FlushId) {
        self.agent_fence.take_if(|awaited| *awaited == fence);
        if let Stage::Closed(closed) = &mut self.stage {
            self.answered = closed.fence.take_if(|awaited| *awaited == fence).is_some();
        }
    }
}
