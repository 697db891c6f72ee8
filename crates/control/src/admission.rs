//! Admission of input at the instant of its delivery.
//!
//! A pass proves that one write is allowed now. It borrows the arbiter, so
//! nothing can change while it lives, and it is neither `Send` nor `Clone`, so
//! it can cross no await of a task and no channel: the check and the write
//! cannot drift apart.
//!
//! ```compile_fail
//! fn assert_send<T: Send>() {}
//! assert_send::<handover_control::HumanPass<'static>>();
//! ```
//! ```compile_fail
//! fn assert_clone<T: Clone>() {}
//! assert_clone::<handover_control::AgentPass<'static>>();
//! ```

use std::marker::PhantomData;

use crate::{
    arbiter::{Arbiter, State},
    control::Base,
    ids::{LeaseId, PermitId, ViewerId},
    refusal::Denied,
    time::Moment,
};

/// By which way a person's input came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InputSource {
    /// Through a viewer.
    Viewer(ViewerId),
    /// In a call that presented the lease.
    Lease(LeaseId),
}

/// The right to deliver one piece of a person's input now.
#[derive(Debug)]
#[must_use = "input is admitted only while the pass is held"]
pub struct HumanPass<'a>(PhantomData<(&'a mut Arbiter, *const ())>);

/// The right to deliver one piece of an agent's input now.
#[derive(Debug)]
#[must_use = "input is admitted only while the pass is held"]
pub struct AgentPass<'a>(PhantomData<(&'a mut Arbiter, *const ())>);

impl Arbiter {
    /// Admits one piece of a person's input, and counts as activity.
    ///
    /// # Errors
    /// Refuses unless a lease is live now, is not parked, and is the one that
    /// `source` belongs to. The input is to be dropped.
    pub fn human_input(
        &mut self,
        now: Moment,
        source: InputSource,
    ) -> Result<HumanPass<'_>, Denied> {
        let now = self.advance(now);
        let State::Human { lease, parked } = self.state else {
            return Err(Denied::NoLease);
        };
        let holder = match source {
            InputSource::Viewer(viewer) => lease.terms.viewer == Some(viewer),
            InputSource::Lease(id) => lease.id() == id,
        };
        if !holder {
            return Err(Denied::NotHolder);
        }
        if parked {
            return Err(Denied::Parked);
        }
        self.set_idle(&lease.terms, now);
        Ok(HumanPass(PhantomData))
    }

    /// Admits one piece of an agent's input.
    ///
    /// # Errors
    /// Refuses unless the permit is out, valid, and control is with the agents
    /// and not about to leave them. The input is to be dropped.
    pub fn agent_input(&mut self, now: Moment, permit: PermitId) -> Result<AgentPass<'_>, Denied> {
        self.advance(now);
        match self.permits.is_valid(permit) {
            None => Err(Denied::UnknownPermit),
            Some(true) if self.state == State::Steady && self.base == Base::Agent => {
                Ok(AgentPass(PhantomData))
            }
            // A permit is made void whenever control leaves the agents; the
            // state is asked as well so that one mistake alone admits nothing.
            Some(_) => Err(Denied::Interrupted),
        }
    }
}
