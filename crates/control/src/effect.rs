//! What the arbiter asks the shell to do.

use std::time::Duration;

use crate::{
    control::{End, PauseReason, TimeoutCause},
    ids::{ControllerId, Epoch, FlushId, LeaseId, PermitId},
    refusal::AcquireFailure,
};

/// One thing for the shell to do, in the order polled.
///
/// The epoch in an effect is the one that the transition it tells of begins.
/// An acquire or request that was accepted is answered by exactly one of
/// [`Granted`](Self::Granted) and [`AcquireFailed`](Self::AcquireFailed).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Tell the owner of this permit to stop. Its input is already refused; it
    /// is waited for until it is completed or its owner is gone.
    Interrupt(PermitId),
    /// Answer any later request for a paste that an agent offered with empty
    /// text.
    WithdrawPaste,
    /// Release the keys and buttons that agents hold, then fence; when the
    /// fence answers, call [`flushed`](crate::Arbiter::flushed).
    ReleaseAgent {
        /// To be handed back to `flushed`.
        flush: FlushId,
    },
    /// Store the start of the takeover, then call
    /// [`start_recorded`](crate::Arbiter::start_recorded). No grant before.
    RecordStart {
        /// The lease to be granted.
        lease: LeaseId,
        /// The epoch that its grant will begin.
        epoch: Epoch,
    },
    /// Tell the asker that control is theirs.
    Granted {
        /// The lease, now live.
        lease: LeaseId,
        /// The epoch that began.
        epoch: Epoch,
    },
    /// Tell the asker that they will not get control. Nothing of this lease is
    /// left behind.
    AcquireFailed {
        /// The lease that was asked for.
        lease: LeaseId,
        /// Why.
        reason: AcquireFailure,
    },
    /// Release the keys and buttons that the person holds; the lease lives on.
    ReleaseHuman {
        /// The lease, parked or moved to another viewer.
        lease: LeaseId,
    },
    /// Release the keys and buttons that the person holds, clear the
    /// clipboard, then fence; when the fence answers, call
    /// [`flushed`](crate::Arbiter::flushed). Input is already closed.
    Flush {
        /// The lease that ended.
        lease: LeaseId,
        /// To be handed back to `flushed`.
        flush: FlushId,
    },
    /// Store, or spool, the end of the takeover, then call
    /// [`end_recorded`](crate::Arbiter::end_recorded). Control moves then.
    RecordEnd {
        /// The lease that ended.
        lease: LeaseId,
        /// How.
        end: End,
        /// Which deadline, if `end` is [`End::Timeout`].
        cause: Option<TimeoutCause>,
        /// The epoch that will begin when control moves.
        epoch: Epoch,
        /// From the grant to the close of input.
        held: Duration,
    },
    /// Control is with the agents again: deliver the hand-back.
    ControlReturned {
        /// The epoch that began.
        epoch: Epoch,
        /// The last takeover since the agents had control; `None` when there
        /// was none, as after a pause, so that there is nothing to tell of.
        after: Option<LeaseId>,
    },
    /// Record that nobody may act.
    RecordPaused {
        /// Why.
        reason: PauseReason,
        /// The epoch that began, or the present one if the desktop was paused
        /// already and only the reason is new.
        epoch: Epoch,
    },
    /// Record that a pause is over.
    RecordResumed {
        /// The epoch that began.
        epoch: Epoch,
    },
    /// Tell the holder that a limit is near.
    Warn {
        /// The lease it will end.
        lease: LeaseId,
        /// Which limit.
        limit: Limit,
        /// The time left.
        left: Duration,
    },
    /// Tell the holder that another person asks for control.
    RequestPending {
        /// The holder's lease.
        holder: LeaseId,
        /// The lease asked for.
        asker: LeaseId,
        /// The connection that asks.
        controller: ControllerId,
    },
}

/// A limit that is warned of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Limit {
    /// The person has been doing nothing.
    Idle,
    /// The takeover has been going on.
    Maximum,
}
