//! The referee's account of what the arbiter asks for.

use std::time::Duration;

use super::{
    inputs::Input,
    referee::{Closed, Live, Referee, Rule, Stage, Violation, rule},
};
use crate::{
    AcquireFailure, AcquireRequest, Control, Effect, End, Epoch, FLUSH_BUDGET, FlushId, LeaseId,
    Moment, PauseReason, TimeoutCause,
};

impl Referee {
    pub(super) fn effect(&mut self, effect: Effect) -> Result<(), Violation> {
        match effect {
            Effect::Interrupt(permit) => {
                let out = self.permits.insert(permit, false).is_some();
                rule(Rule::C2, out, "interrupted a permit that is not out")?;
                let once = self.interrupted.insert(permit);
                rule(Rule::C2, once, "interrupted a permit twice at once")
            }
            Effect::WithdrawPaste => {
                // Those of an earlier drain that came to nothing too.
                let interrupted = std::mem::take(&mut self.interrupted);
                let all = self.permits.keys().all(|it| interrupted.contains(it));
                rule(Rule::C2, all, "a permit outlived the agents' control")?;
                if let Some(terms) = self.incoming.take() {
                    let nobody = matches!(self.stage, Stage::Nobody);
                    rule(Rule::C3, nobody, "a takeover began during another")?;
                    self.stage = Stage::Draining {
                        terms,
                        since: self.now,
                    };
                }
                Ok(())
            }
            Effect::ReleaseAgent { flush } => {
                self.agent_fence = Some(flush);
                Ok(())
            }
            Effect::RecordStart { lease, epoch } => self.start(lease, epoch),
            Effect::Granted { lease, epoch } => self.granted(lease, epoch),
            Effect::AcquireFailed { lease, reason } => self.failed(lease, reason),
            Effect::ReleaseHuman { lease } => {
                self.must_release = false;
                rule(
                    Rule::C5,
                    self.live(lease).is_some(),
                    "released for a lease that is over",
                )
            }
            Effect::Flush { lease, flush } => self.closed(lease, flush),
            Effect::RecordEnd {
                lease,
                end,
                cause,
                epoch,
                held,
            } => {
                let Stage::Closed(closed) = self.stage else {
                    return rule(Rule::C5, false, "an end without a close of input");
                };
                rule(Rule::C6, closed.lease == lease, "the end of another lease")?;
                let gone = self.pause == Some(PauseReason::DesktopGone);
                rule(
                    Rule::C5,
                    closed.fence.is_none() || gone,
                    "an end before the flush",
                )?;
                rule(
                    Rule::C6,
                    epoch == self.epoch.next(),
                    "an end with a wrong epoch",
                )?;
                let known = self.ungranted.is_some()
                    || closed.ends.contains(&Some((end, cause))) && closed.held == held;
                rule(Rule::C6, known, "an end that does not tell what happened")?;
                self.stage = Stage::Ended(lease);
                Ok(())
            }
            Effect::ControlReturned { epoch, after } => {
                let nobody = matches!(self.stage, Stage::Nobody) && self.pause.is_none();
                rule(
                    Rule::C5,
                    nobody,
                    "control returned from a person who has it",
                )?;
                rule(
                    Rule::C6,
                    epoch == self.epoch,
                    "control returned with a wrong epoch",
                )?;
                rule(
                    Rule::C6,
                    after == self.untold.take(),
                    "the wrong takeover is handed back",
                )?;
                self.control = Control::Agent;
                Ok(())
            }
            Effect::RecordPaused { reason, epoch } => self.record_paused(reason, epoch),
            Effect::RecordResumed { epoch } => {
                let paused = matches!(self.stage, Stage::Nobody) && self.control == Control::Paused;
                rule(Rule::C5, paused, "resumed what is not paused")?;
                rule(
                    Rule::C6,
                    epoch == self.epoch.next(),
                    "resumed with a wrong epoch",
                )?;
                self.epoch = epoch;
                self.control = Control::Agent;
                Ok(())
            }
            Effect::Warn { lease, left, .. } => {
                let live = matches!(&self.stage, Stage::Live(live) if live.terms.lease == lease);
                rule(
                    Rule::C6,
                    live && !left.is_zero(),
                    "warned of what has passed",
                )
            }
            Effect::RequestPending { holder, asker, .. } => {
                let asked = self.asker.is_some_and(|request| request.lease == asker);
                rule(
                    Rule::C6,
                    asked && self.live(holder).is_some(),
                    "told of no request",
                )
            }
        }
    }

    fn start(&mut self, lease: LeaseId, epoch: Epoch) -> Result<(), Violation> {
        let drained = self.permits.is_empty() && self.agent_fence.is_none();
        rule(Rule::C4, drained, "a start before the drain")?;
        let terms = match self.stage {
            Stage::Draining { terms, since } => {
                let in_time = self.now < since + terms.drain;
                rule(Rule::C4, in_time, "a start after the drain time")?;
                Some(terms)
            }
            Stage::Nobody => {
                self.control = if self.pause.is_some() {
                    Control::Paused
                } else {
                    Control::Agent
                };
                self.next.take()
            }
            _ => None,
        };
        let Some(terms) = terms.filter(|terms| terms.lease == lease) else {
            return rule(Rule::C3, false, "a start of another lease than asked for");
        };
        rule(
            Rule::C6,
            epoch == self.epoch.next(),
            "a start with a wrong epoch",
        )?;
        self.stage = Stage::Starting {
            terms,
            stored: None,
        };
        Ok(())
    }

    fn granted(&mut self, lease: LeaseId, epoch: Epoch) -> Result<(), Violation> {
        let Stage::Starting {
            terms,
            stored: Some(true),
        } = self.stage
        else {
            return rule(Rule::C6, false, "a grant before its record");
        };
        rule(
            Rule::C3,
            terms.lease == lease,
            "a grant to another than asked",
        )?;
        rule(
            Rule::C4,
            self.permits.is_empty(),
            "a grant while a permit is out",
        )?;
        rule(Rule::C6, epoch == self.epoch, "a grant with a wrong epoch")?;
        let now = self.now;
        self.control = Control::Human;
        self.stage = Stage::Live(Live {
            terms,
            granted: now,
            renewed: now,
            active: now,
            parked: None,
        });
        Ok(())
    }

    fn failed(&mut self, lease: LeaseId, reason: AcquireFailure) -> Result<(), Violation> {
        let is = |request: &AcquireRequest| request.lease == lease;
        match self.stage {
            Stage::Draining { terms, since } if is(&terms) => {
                let over = self.now >= since + terms.drain;
                let late = over || reason != AcquireFailure::DrainTimeout;
                rule(Rule::C4, late, "a drain was given up before its time")?;
                self.stage = Stage::Nobody;
                return Ok(());
            }
            Stage::Starting {
                terms,
                stored: Some(false),
            } if is(&terms) => {
                self.stage = Stage::Nobody;
                return Ok(());
            }
            _ => {}
        }
        let known = self.asker.take_if(|request| is(request)).is_some()
            || self.next.take_if(|request| is(request)).is_some()
            || self
                .ungranted
                .take_if(|ungranted| *ungranted == lease)
                .is_some();
        rule(Rule::C6, known, "a failure of what was not asked for")
    }

    fn closed(&mut self, lease: LeaseId, flush: FlushId) -> Result<(), Violation> {
        let (ends, held) = match self.stage {
            Stage::Live(live) if live.terms.lease == lease => {
                let until = self.due.first().map_or(self.now, |(at, _)| *at);
                (self.expected_ends(), until.since(live.granted))
            }
            Stage::Starting {
                terms,
                stored: Some(true),
            } if terms.lease == lease => {
                self.ungranted = Some(lease);
                self.control = Control::Human;
                ([None; 2], Duration::ZERO)
            }
            _ => return rule(Rule::C5, false, "closed what was not open"),
        };
        let fence = Some(flush);
        let since = self.now;
        self.stage = Stage::Closed(Closed {
            lease,
            fence,
            since,
            overdue: false,
            ends,
            held,
        });
        Ok(())
    }

    /// How a live lease may end in this step: by the deadline that passed
    /// first, by either if two passed at once, or by the step itself.
    fn expected_ends(&self) -> [Option<(End, Option<TimeoutCause>)>; 2] {
        if let Some(&(first, _)) = self.due.first() {
            let timeout = |&(at, cause): &(Moment, TimeoutCause)| {
                (at == first).then_some((End::Timeout, Some(cause)))
            };
            return [
                self.due.first().and_then(timeout),
                self.due.get(1).and_then(timeout),
            ];
        }
        let end = match self.input {
            Input::GiveBack(_, how) => how.into(),
            Input::GiveBackWhatever | Input::Give(_) | Input::ViewerGone(_) => End::Return,
            Input::ControllerGone(_) => End::Recovered,
            Input::Revoke | Input::Pause(_) | Input::DesktopGone => End::Revoked,
            _ => return [None; 2],
        };
        [Some((end, None)), None]
    }

    fn record_paused(&mut self, reason: PauseReason, epoch: Epoch) -> Result<(), Violation> {
        if let Stage::Closed(closed) = &mut self.stage {
            let waits = closed.fence.is_some() || self.answered;
            let late = waits && self.now >= closed.since + FLUSH_BUDGET;
            let late = late && !closed.overdue && reason == PauseReason::DisplayUnavailable;
            rule(Rule::C5, late, "a fence was called late in time")?;
            closed.overdue = true;
        } else {
            let nobody = matches!(self.stage, Stage::Nobody) && self.pause == Some(reason);
            rule(Rule::C6, nobody, "a pause that was not asked for")?;
            if self.control == Control::Paused || self.ended {
                self.control = Control::Paused;
                return rule(Rule::C6, epoch == self.epoch, "a pause with a wrong epoch");
            }
        }
        rule(
            Rule::C6,
            epoch == self.epoch.next(),
            "a pause with a wrong epoch",
        )?;
        self.epoch = epoch;
        self.control = Control::Paused;
        Ok(())
    }
}
