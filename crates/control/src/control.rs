//! Who may act on a desktop, and why that ends.

use std::fmt;

use crate::{
    ids::{Epoch, LeaseId},
    lease::LeaseView,
};

/// Who may act on a desktop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Control {
    /// The agents, each action with a permit.
    Agent,
    /// The person who holds the lease.
    Human,
    /// Nobody.
    Paused,
}

impl fmt::Display for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Agent => "agent",
            Self::Human => "human",
            Self::Paused => "paused",
        })
    }
}

/// Whether control is about to move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// It is not.
    Steady,
    /// A person is about to get it: no new permits, no agent input.
    Draining,
    /// It is leaving a person: no input at all.
    Returning,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Steady => "steady",
            Self::Draining => "draining",
            Self::Returning => "returning",
        })
    }
}

/// Why nobody may act, the weightiest last: a weightier reason replaces a
/// lighter one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PauseReason {
    /// A person asked for it.
    Requested,
    /// The display accepted a connection that the host did not make.
    ForeignConnection,
    /// The display does not show that it has taken all input.
    DisplayUnavailable,
    /// The display has ended. Final.
    DesktopGone,
}

impl fmt::Display for PauseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Requested => "requested",
            Self::ForeignConnection => "foreign_connection",
            Self::DisplayUnavailable => "display_unavailable",
            Self::DesktopGone => "desktop_gone",
        })
    }
}

/// Who controls the desktop whenever no person does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Base {
    Agent,
    Paused(PauseReason),
}

impl Base {
    /// This, with a reason to pause added.
    pub(crate) fn paused(self, reason: PauseReason) -> Self {
        match self {
            Self::Agent => Self::Paused(reason),
            Self::Paused(present) => Self::Paused(present.max(reason)),
        }
    }

    pub(crate) fn control(self) -> Control {
        match self {
            Self::Agent => Control::Agent,
            Self::Paused(_) => Control::Paused,
        }
    }

    pub(crate) fn reason(self) -> Option<PauseReason> {
        match self {
            Self::Agent => None,
            Self::Paused(reason) => Some(reason),
        }
    }
}

/// How a takeover ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    /// The person gave control back or closed the viewer they had it by.
    Return,
    /// The controller was interrupted or hung up.
    Cancelled,
    /// A deadline passed; see [`TimeoutCause`].
    Timeout,
    /// Taken away: by force, a pause, a stop, a foreign connection, the end of
    /// the display.
    Revoked,
    /// The controller was lost.
    Recovered,
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Return => "return",
            Self::Cancelled => "cancelled",
            Self::Timeout => "timeout",
            Self::Revoked => "revoked",
            Self::Recovered => "recovered",
        })
    }
}

/// The two ends that a holder chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GiveBack {
    /// The person is done.
    Return,
    /// The person broke off.
    Cancelled,
}

impl From<GiveBack> for End {
    fn from(give_back: GiveBack) -> Self {
        match give_back {
            GiveBack::Return => Self::Return,
            GiveBack::Cancelled => Self::Cancelled,
        }
    }
}

/// Which deadline ended a takeover.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TimeoutCause {
    /// The lease was not renewed within its TTL.
    NoRenewal,
    /// The person did nothing for longer than the idle limit.
    Idle,
    /// The lease reached its maximum.
    Maximum,
    /// Nobody reclaimed the parked lease.
    LingerOver,
}

impl fmt::Display for TimeoutCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoRenewal => "no_renewal",
            Self::Idle => "idle",
            Self::Maximum => "maximum",
            Self::LingerOver => "linger_over",
        })
    }
}

/// The state of a desktop as everyone may know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// Who may act.
    pub control: Control,
    /// Whether that is about to change.
    pub phase: Phase,
    /// The present epoch.
    pub epoch: Epoch,
    /// The lease that is pending, live or ending.
    pub lease: Option<LeaseView>,
    /// Why nobody may act, when `control` is [`Control::Paused`].
    pub pause: Option<PauseReason>,
    /// Permits given and not completed.
    pub outstanding: usize,
    /// The lease that another person has asked the holder for.
    pub request: Option<LeaseId>,
}
