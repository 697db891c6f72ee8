//! Why something is not allowed.

use crate::{
    control::PauseReason,
    lease::{LeaseStage, LeaseView},
    permits::MAX_OUTSTANDING,
};

/// A request that was refused and changed nothing.
///
/// The messages are fragments that fit after "failed to acquire: "; the shell
/// adds what it knows of the holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A person who asks for control is told that another has it, is getting
    /// it, or is just losing it.
    #[error("{}", held(.0))]
    Held(LeaseView),
    /// An agent that asks for a permit is told that a person has control, is
    /// getting it, or is just losing it.
    #[error("{}", held(.0))]
    HumanControlActive(LeaseView),
    /// Nobody may act, for this reason.
    #[error("the desktop is paused ({0})")]
    Paused(PauseReason),
    /// The lease is not live, and never will be again.
    #[error("the lease is over, or the token is not its own")]
    LeaseStale,
    /// [`MAX_OUTSTANDING`] permits are out.
    #[error("{MAX_OUTSTANDING} actions are under way on this desktop already")]
    TooManyPermits,
    /// Another person has asked the holder already.
    #[error("another person is waiting for the holder's answer")]
    RequestPending,
    /// The holder answers a request that nobody made or that is over.
    #[error("nobody is asking for control")]
    NoRequest,
}

fn held(lease: &LeaseView) -> String {
    let id = lease.lease;
    let left = lease.expires_in;
    match lease.stage {
        LeaseStage::Pending => format!("a person is taking control (lease {id})"),
        LeaseStage::Live => format!("a person is in control (lease {id}, {left:.1?} left)"),
        LeaseStage::Parked => {
            format!("a person is in control but away (lease {id}, {left:.1?} left to reclaim it)")
        }
        LeaseStage::Ending => format!("a person is handing control back (lease {id})"),
    }
}

/// Input that was not admitted at the instant of its delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// No lease is live.
    #[error("no person is in control")]
    NoLease,
    /// The live lease is bound to another viewer, or is another one.
    #[error("another person is in control")]
    NotHolder,
    /// The lease is live but its holder is away.
    #[error("the lease is parked until it is reclaimed")]
    Parked,
    /// The permit was interrupted; it will never be valid again.
    #[error("the permit was interrupted")]
    Interrupted,
    /// There is no such permit, or it is completed.
    #[error("the permit is not outstanding")]
    UnknownPermit,
}

/// Why an acquire or request that was accepted came to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum AcquireFailure {
    /// The agents' permits or input could not be drained in time.
    #[error("the agents' actions did not end within the drain time")]
    DrainTimeout,
    /// The start of the takeover could not be stored.
    #[error("the start of the takeover could not be stored")]
    StorageFailed,
    /// The connection that asked is gone.
    #[error("the controller is gone")]
    ControllerGone,
    /// The viewer that the lease was for is gone.
    #[error("the viewer is gone")]
    ViewerGone,
    /// The asker withdrew.
    #[error("the request was withdrawn")]
    Withdrawn,
    /// The request was revoked.
    #[error("the request was revoked")]
    Revoked,
    /// The desktop was paused.
    #[error("the desktop was paused ({0})")]
    Paused(PauseReason),
    /// The holder refused.
    #[error("the holder refused")]
    Refused,
    /// The holder's lease ended before the holder answered; acquire again.
    #[error("the holder left without an answer")]
    HolderLeft,
}
