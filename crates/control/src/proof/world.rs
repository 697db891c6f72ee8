//! Two people, two agents and a shell around one arbiter.

use std::time::Duration;

use super::{
    faults::Fault,
    inputs::{AgentNo, Input, PersonNo},
    referee::{Referee, Violation},
};
use crate::{
    AcquireRequest, Arbiter, ControllerId, Effect, Epoch, FlushId, InputSource, LeaseId, Moment,
    OnDisconnect, OwnerId, PauseReason, PermitId, TokenHash, ViewerId,
};

/// What the people of a world ask for, and how much may go on in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    pub(super) ttl: Duration,
    pub(super) drain: Duration,
    pub(super) idle: [Option<Duration>; 2],
    pub(super) max: [Option<Duration>; 2],
    pub(super) linger: [Option<Duration>; 2],
    pub(super) permits_each: usize,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Person {
    /// The lease asked for or held.
    pub(super) lease: Option<LeaseId>,
    /// The lease that was lost last.
    pub(super) old: Option<LeaseId>,
    pub(super) controller: Option<ControllerId>,
    /// A controller whose end the host has not noticed.
    pub(super) old_controller: Option<ControllerId>,
    pub(super) viewer: Option<ViewerId>,
}

/// What the shell has been asked to do and has not reported.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Shell {
    pub(super) fence: Option<FlushId>,
    pub(super) old_fence: Option<FlushId>,
    pub(super) start: Option<LeaseId>,
    pub(super) end: Option<LeaseId>,
}

#[derive(Clone, Debug)]
pub(super) struct World {
    pub(super) arbiter: Arbiter,
    pub(super) referee: Referee,
    pub(super) now: Moment,
    pub(super) people: [Person; 2],
    pub(super) agents: [Vec<PermitId>; 2],
    pub(super) shell: Shell,
    terms: Terms,
    /// The rule that the arbiter of this world breaks, if any.
    pub(super) fault: Option<Fault>,
    ids: u64,
}

pub(super) fn token(lease: LeaseId) -> TokenHash {
    let mut hash = [0; 32];
    hash[..8].copy_from_slice(&lease.0.to_le_bytes());
    TokenHash(hash)
}

pub(super) fn owner(agent: AgentNo) -> OwnerId {
    OwnerId(agent as u64)
}

impl World {
    pub(super) fn new(terms: Terms) -> Self {
        // Far from zero, so that a clock can step back.
        let now = Moment::default() + Duration::from_secs(1_000_000);
        let mut arbiter = Arbiter::new(Epoch(1), None);
        arbiter.tick(now);
        Self {
            arbiter,
            referee: Referee::new(Epoch(1)),
            now,
            people: Default::default(),
            agents: Default::default(),
            shell: Shell::default(),
            terms,
            fault: None,
            ids: 0,
        }
    }

    fn new_id(&mut self) -> u64 {
        self.ids += 1;
        self.ids
    }

    /// Takes one step and lets the referee judge it.
    pub(super) fn step(&mut self, input: Input) -> Result<(), Violation> {
        if let Input::Wait(time) = input {
            self.now = self.now + time;
            return self.referee.probe(self);
        }
        self.referee.begin(self.told(input), input);
        if self.has_nothing_for(input) {
            self.arbiter.tick(self.now);
        } else {
            self.call(input)?;
        }
        if let Some(fault) = self.fault {
            fault.strike(&mut self.arbiter);
        }
        while let Some(effect) = self.arbiter.poll_effect() {
            self.referee.effect(effect)?;
            self.carry_out(effect);
        }
        self.referee.probe(self)?;
        self.referee.end(&self.arbiter.status())
    }

    /// What the arbiter is told of the time.
    fn told(&self, input: Input) -> Moment {
        match input {
            Input::TickInThePast(back) => {
                Moment::default() + self.now.since(Moment::default() + back)
            }
            _ => self.now,
        }
    }

    /// A request by a person whose controller and viewer are fresh.
    fn new_request(&mut self, no: PersonNo) -> AcquireRequest {
        let lease = LeaseId(self.new_id());
        let controller = ControllerId(self.new_id());
        let viewer = Some(ViewerId(self.new_id()));
        AcquireRequest {
            lease,
            token: token(lease),
            controller,
            viewer,
            ttl: self.terms.ttl,
            drain: self.terms.drain,
            idle: self.terms.idle[no],
            max: self.terms.max[no],
            on_disconnect: self.terms.linger[no].map_or(OnDisconnect::End, OnDisconnect::Linger),
            private: no == 1,
        }
    }

    fn ask(&mut self, no: PersonNo, queue: bool) -> Result<(), Violation> {
        let request = self.new_request(no);
        let answer = if queue {
            self.arbiter.request(self.now, request)
        } else {
            self.arbiter.acquire(self.now, request)
        };
        self.referee.asked(request, queue, answer)?;
        if answer.is_ok() {
            let person = &mut self.people[no];
            person.lease = Some(request.lease);
            person.controller = Some(request.controller);
            person.viewer = request.viewer;
        }
        Ok(())
    }

    /// Whether the step makes no sense here, so that it is as good as a tick.
    pub(super) fn has_nothing_for(&self, input: Input) -> bool {
        use Input as I;
        match input {
            I::Acquire(no) | I::Request(no) => self.people[no].lease.is_some(),
            I::Renew(no)
            | I::Reclaim(no)
            | I::ReclaimWithoutViewer(no)
            | I::GiveBack(no, _)
            | I::Give(no)
            | I::Refuse(no) => self.people[no].lease.is_none(),
            I::LateRenew(no) | I::LateReclaim(no) | I::LateGiveBack(no) => {
                self.people[no].old.is_none()
            }
            I::Act(no) | I::ViewerGone(no) => self.people[no].viewer.is_none(),
            I::ControllerGone(no) => self.people[no].controller.is_none(),
            I::OldControllerGone(no) => self.people[no].old_controller.is_none(),
            I::Permit(agent) => self.agents[agent].len() == self.terms.permits_each,
            I::Complete(agent) | I::AgentGone(agent) => self.agents[agent].is_empty(),
            I::StartRecorded(_) => self.shell.start.is_none(),
            I::EndRecorded => self.shell.end.is_none(),
            I::Flushed => self.shell.fence.is_none(),
            I::OldFlushed => self.shell.old_fence.is_none(),
            I::Wait(_)
            | I::Tick
            | I::TickInThePast(_)
            | I::GiveBackWhatever
            | I::Revoke
            | I::Pause(_)
            | I::Resume
            | I::DesktopGone => false,
        }
    }

    /// Makes the call that is the step.
    fn call(&mut self, input: Input) -> Result<(), Violation> {
        let now = self.told(input);
        match input {
            Input::Wait(_) => {}
            Input::Tick | Input::TickInThePast(_) => self.arbiter.tick(now),
            Input::Acquire(no) => return self.ask(no, false),
            Input::Request(no) => return self.ask(no, true),
            Input::Renew(no) => {
                let Some(lease) = self.people[no].lease else {
                    return Ok(());
                };
                let answer = self.arbiter.renew(now, lease, token(lease));
                self.referee.renewed(lease, answer.is_ok())?;
            }
            Input::LateRenew(no) => {
                let Some(lease) = self.people[no].old else {
                    return Ok(());
                };
                let answer = self.arbiter.renew(now, lease, token(lease));
                self.referee.renewed(lease, answer.is_ok())?;
            }
            Input::LateReclaim(no) => return self.reclaim(no, self.people[no].old, true),
            Input::LateGiveBack(no) => {
                let Some(lease) = self.people[no].old else {
                    return Ok(());
                };
                // Answered while the lease is ending; without effect always.
                let named = Some((lease, token(lease)));
                let _ = self.arbiter.give_back(now, crate::GiveBack::Return, named);
            }
            Input::Reclaim(no) => return self.reclaim(no, self.people[no].lease, true),
            Input::ReclaimWithoutViewer(no) => {
                return self.reclaim(no, self.people[no].lease, false);
            }
            Input::GiveBack(no, how) => {
                let Some(lease) = self.people[no].lease else {
                    return Ok(());
                };
                let _ = self
                    .arbiter
                    .give_back(now, how, Some((lease, token(lease))));
            }
            Input::GiveBackWhatever => {
                let _ = self.arbiter.give_back(now, crate::GiveBack::Return, None);
            }
            Input::Give(no) => {
                let Some(lease) = self.people[no].lease else {
                    return Ok(());
                };
                let given = self.arbiter.give(now, lease, token(lease)).is_ok();
                self.referee.given(lease, given)?;
            }
            Input::Refuse(no) => {
                let Some(lease) = self.people[no].lease else {
                    return Ok(());
                };
                let _ = self.arbiter.refuse(now, lease, token(lease));
            }
            Input::Act(no) => {
                let Some(viewer) = self.people[no].viewer else {
                    return Ok(());
                };
                let source = InputSource::Viewer(viewer);
                let admitted = self.arbiter.human_input(now, source).is_ok();
                self.referee.human_input(source, admitted)?;
            }
            Input::ControllerGone(no) => {
                let Some(controller) = self.people[no].controller.take() else {
                    return Ok(());
                };
                self.referee.controller_gone(controller);
                self.arbiter.controller_gone(now, controller);
            }
            Input::OldControllerGone(no) => {
                let Some(controller) = self.people[no].old_controller.take() else {
                    return Ok(());
                };
                self.referee.controller_gone(controller);
                self.arbiter.controller_gone(now, controller);
            }
            Input::ViewerGone(no) => {
                let Some(viewer) = self.people[no].viewer.take() else {
                    return Ok(());
                };
                self.referee.viewer_gone(viewer);
                self.arbiter.viewer_gone(now, viewer);
            }
            Input::Revoke => self.arbiter.revoke(now),
            Input::Pause(reason) => {
                self.referee.paused(reason);
                self.arbiter.pause(now, reason);
            }
            Input::Resume => {
                let answer = self.arbiter.resume(now);
                self.referee.resumed(answer.is_ok())?;
            }
            Input::DesktopGone => {
                self.referee.paused(PauseReason::DesktopGone);
                self.arbiter.desktop_gone(now);
            }
            Input::Permit(agent) => {
                if let Ok(permit) = self.arbiter.permit(now, owner(agent)) {
                    self.referee.permitted(permit);
                    self.agents[agent].push(permit);
                }
            }
            Input::Complete(agent) => {
                let permit = self.agents[agent].remove(0);
                self.referee.completed(permit);
                self.arbiter.complete(now, permit);
            }
            Input::AgentGone(agent) => {
                for permit in self.agents[agent].drain(..) {
                    self.referee.completed(permit);
                }
                self.arbiter.owner_gone(now, owner(agent));
            }
            Input::StartRecorded(stored) => {
                let Some(lease) = self.shell.start.take() else {
                    return Ok(());
                };
                self.referee.start_recorded(stored);
                self.arbiter.start_recorded(now, lease, stored);
            }
            Input::EndRecorded => {
                let Some(lease) = self.shell.end.take() else {
                    return Ok(());
                };
                self.referee.end_recorded();
                self.arbiter.end_recorded(now, lease);
            }
            Input::Flushed => {
                let Some(fence) = self.shell.fence.take() else {
                    return Ok(());
                };
                self.referee.flushed(fence);
                self.arbiter.flushed(now, fence);
            }
            Input::OldFlushed => {
                let Some(fence) = self.shell.old_fence.take() else {
                    return Ok(());
                };
                self.referee.flushed(fence);
                self.arbiter.flushed(now, fence);
            }
        }
        Ok(())
    }

    fn reclaim(
        &mut self,
        no: PersonNo,
        lease: Option<LeaseId>,
        with_viewer: bool,
    ) -> Result<(), Violation> {
        let Some(lease) = lease else { return Ok(()) };
        let controller = ControllerId(self.new_id());
        let viewer = with_viewer.then(|| ViewerId(self.new_id()));
        let answer = self
            .arbiter
            .reclaim(self.now, lease, token(lease), controller, viewer);
        self.referee
            .reclaimed(lease, controller, viewer, answer.is_ok())?;
        if answer.is_ok() {
            let person = &mut self.people[no];
            if let Some(old) = person.controller.replace(controller) {
                person.old_controller = Some(old);
            }
            person.viewer = viewer.or(person.viewer);
        }
        Ok(())
    }

    /// Does what the shell would do, except for the reports, which are steps.
    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::ReleaseAgent { flush } | Effect::Flush { flush, .. } => {
                self.shell.old_fence = self.shell.fence.replace(flush);
            }
            Effect::RecordStart { lease, .. } => self.shell.start = Some(lease),
            Effect::RecordEnd { lease, .. } => self.shell.end = Some(lease),
            _ => {}
        }
        if let Effect::AcquireFailed { lease, .. } | Effect::Flush { lease, .. } = effect {
            for person in &mut self.people {
                person.old = person.lease.take_if(|own| *own == lease).or(person.old);
            }
        }
    }

    /// Steps after which any takeover is over, if the shell does its part.
    pub(super) fn settle(&mut self) -> Result<(), Violation> {
        use Input::{AgentGone, EndRecorded, Flushed, OldFlushed, Revoke, StartRecorded};
        let steps = [
            AgentGone(0),
            AgentGone(1),
            OldFlushed,
            Flushed,
            StartRecorded(true),
            Revoke,
        ];
        // Twice, since a lease may have been given on.
        for input in steps
            .into_iter()
            .chain([Flushed, EndRecorded])
            .cycle()
            .take(16)
        {
            self.step(input)?;
        }
        Ok(())
    }
}
