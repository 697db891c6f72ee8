//! Refusals in words: what is in the way, and what to do.

use handover_control::{AcquireFailure, LeaseStage, PauseReason, Refusal as Refused, Status};
use handover_protocol::{DesktopId, ErrorCode, LeaseView, Refusal};

use super::running::Running;

/// How the wire names a reason to pause.
pub fn pause_reason(reason: PauseReason) -> handover_protocol::PauseReason {
    use handover_protocol::PauseReason as Wire;
    match reason {
        PauseReason::Requested => Wire::Requested,
        PauseReason::ForeignConnection => Wire::ForeignConnection,
        PauseReason::DisplayUnavailable => Wire::DisplayUnavailable,
        PauseReason::DesktopGone => Wire::DesktopGone,
    }
}

/// The display does not show that it takes input.
pub fn unanswering(desktop: &DesktopId) -> Refusal {
    Refusal::new(
        ErrorCode::DisplayUnavailable,
        format!(
            "the display of desktop {desktop} does not answer; it may be stopped or overloaded. Look at it with `handover watch {desktop}`, or end it with `handover desktop destroy {desktop}`"
        ),
    )
}

/// The caller aims at something that may have moved.
pub fn stale(desktop: &DesktopId, status: &Status) -> Refusal {
    Refusal::new(
        ErrorCode::StaleObservation,
        format!(
            "a person has had control of desktop {desktop} since your last screenshot; take a screenshot, then aim again"
        ),
    )
    .with("epoch", status.epoch.0)
}

/// The desktop is paused for this reason.
pub fn paused(desktop: &DesktopId, reason: PauseReason) -> Refusal {
    let (code, message) = match reason {
        PauseReason::Requested => (
            ErrorCode::Paused,
            format!(
                "desktop {desktop} is paused by a person; wait until it is resumed (`handover resume {desktop}`)"
            ),
        ),
        PauseReason::ForeignConnection => (
            ErrorCode::ForeignConnection,
            format!(
                "a program connected to the display of desktop {desktop} past the gate, so nobody may act; find and end it, then `handover resume {desktop}`"
            ),
        ),
        PauseReason::DisplayUnavailable => return unanswering(desktop),
        PauseReason::DesktopGone => (
            ErrorCode::DesktopGone,
            format!(
                "the display of desktop {desktop} has ended; make a new one with `handover desktop new`"
            ),
        ),
    };
    Refusal::new(code, message).with("pauseReason", pause_reason(reason))
}

/// A refusal of the arbiter's; `lease` is the one in the way.
pub fn refused(desktop: &DesktopId, refused: Refused, lease: Option<LeaseView>) -> Refusal {
    let with_lease = |refusal: Refusal| match &lease {
        Some(lease) => refusal.with("lease", lease),
        None => refusal,
    };
    let who = || match &lease {
        Some(lease) => format!(
            "{} has control of desktop {desktop} since {}, for another {} s unless renewed",
            lease.holder,
            lease.since,
            lease.expires_in_ms.div_ceil(1000)
        ),
        None => format!("a person has control of desktop {desktop}"),
    };
    match refused {
        Refused::HumanControlActive(_) => with_lease(Refusal::new(
            ErrorCode::HumanControlActive,
            format!("{}; wait for the hand-back", who()),
        )),
        Refused::Held(view) if view.stage == LeaseStage::Ending => with_lease(Refusal::new(
            ErrorCode::HumanLeaseHeld,
            format!(
                "control of desktop {desktop} is just being handed back; try again in a moment"
            ),
        )),
        Refused::Held(_) => with_lease(Refusal::new(
            ErrorCode::HumanLeaseHeld,
            format!(
                "{}; ask for it with `handover watch {desktop} --control --ask` (`control.request`), or take it away with `handover takeover revoke {desktop} --force`",
                who()
            ),
        )),
        Refused::Paused(reason) => paused(desktop, reason),
        Refused::LeaseStale => Refusal::new(
            ErrorCode::LeaseStale,
            format!(
                "there is no such live lease on desktop {desktop}; take control anew with `handover watch {desktop} --control`"
            ),
        ),
        Refused::TooManyPermits => Refusal::new(
            ErrorCode::QueueFull,
            format!("{refused}; wait for some to end"),
        ),
        Refused::RequestPending => with_lease(Refusal::new(
            ErrorCode::QueueFull,
            "another person is waiting for the holder's answer already; try again later",
        )),
        Refused::NoRequest => Refusal::new(
            ErrorCode::BadParams,
            "nobody is asking for control, so there is nothing to answer",
        ),
    }
}

/// Why control was asked for in vain.
pub fn not_granted(
    desktop: &DesktopId,
    failure: AcquireFailure,
    lease: Option<LeaseView>,
) -> Refusal {
    let refusal = match failure {
        AcquireFailure::DrainTimeout => Refusal::new(
            ErrorCode::DrainTimeout,
            format!(
                "the agents' actions on desktop {desktop} did not end in time, so control stays with them; try again with a longer `drainMs` (`handover watch --control --drain 20s`), or pause with `handover pause {desktop}`"
            ),
        ),
        AcquireFailure::StorageFailed => Refusal::new(
            ErrorCode::StorageFailed,
            "the takeover could not be recorded, so it was not granted; make room on the disk and try again",
        ),
        AcquireFailure::Paused(reason) if reason != PauseReason::Requested => {
            return paused(desktop, reason);
        }
        AcquireFailure::Refused => Refusal::new(
            ErrorCode::HumanLeaseHeld,
            "the person in control keeps it; ask again later",
        )
        .with("refused", true),
        AcquireFailure::ControllerGone
        | AcquireFailure::ViewerGone
        | AcquireFailure::Withdrawn
        | AcquireFailure::Revoked
        | AcquireFailure::HolderLeft
        | AcquireFailure::Paused(_) => Refusal::new(
            ErrorCode::LeaseStale,
            format!("control was not granted: {failure}; ask for it anew"),
        ),
    };
    match lease {
        Some(lease) => refusal.with("lease", lease),
        None => refusal,
    }
}

/// Control moved during an action.
pub fn interrupted(desktop: &DesktopId, status: &Status, running: &Running) -> Refusal {
    let progress = match running.action.chars {
        Some(chars) => format!(" after {} of {chars} characters", running.typed),
        None => String::new(),
    };
    let refusal = Refusal::new(
        ErrorCode::InterruptedByHuman,
        format!(
            "a person took over desktop {desktop}{progress}; nothing is left pressed. Wait for the hand-back, take a screenshot, and go on from what you see"
        ),
    )
    .with("epoch", status.epoch.0);
    match running.action.chars {
        Some(chars) => refusal.with("typed", running.typed).with("chars", chars),
        None => refusal,
    }
}
