//! Everything that can happen to an arbiter.

use std::time::Duration;

use crate::control::{GiveBack, PauseReason};

/// One of the two people.
pub(super) type PersonNo = usize;

/// One of the two agents.
pub(super) type AgentNo = usize;

/// One step of the world. A step that makes no sense where it is taken (an
/// answer that nobody waits for, a lease that its person never had) is passed
/// over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Input {
    /// Time passes without anybody noticing: the next step sees it first.
    Wait(Duration),
    Tick,
    /// The shell reads a clock that stepped back.
    TickInThePast(Duration),
    Acquire(PersonNo),
    Request(PersonNo),
    Renew(PersonNo),
    /// Renews, reclaims and gives back the lease that the person had before.
    LateRenew(PersonNo),
    LateReclaim(PersonNo),
    LateGiveBack(PersonNo),
    /// Comes back over a new connection with a new viewer.
    Reclaim(PersonNo),
    /// Comes back over a new connection and names no viewer.
    ReclaimWithoutViewer(PersonNo),
    GiveBack(PersonNo, GiveBack),
    GiveBackWhatever,
    Give(PersonNo),
    Refuse(PersonNo),
    /// Moves the mouse.
    Act(PersonNo),
    /// The person's controller crashes or hangs up.
    ControllerGone(PersonNo),
    /// The host learns late of the end of the controller before the present.
    OldControllerGone(PersonNo),
    ViewerGone(PersonNo),
    Revoke,
    Pause(PauseReason),
    Resume,
    DesktopGone,
    Permit(AgentNo),
    /// The agent's oldest action ends.
    Complete(AgentNo),
    /// The agent's process tree ends.
    AgentGone(AgentNo),
    StartRecorded(bool),
    EndRecorded,
    /// The fence sent last answers.
    Flushed,
    /// A fence sent before the last one answers.
    OldFlushed,
}
