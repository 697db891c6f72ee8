//! The arbiter of one desktop: who may act on it, now.
//!
//! Agents act with permits, a person with a lease, never both. The arbiter is
//! a state machine without a clock, without I/O and without tasks, in the
//! shape of a sans-IO protocol: the shell passes in what happened and when,
//! then polls [`Effect`]s until there are none, then sleeps until
//! [`Arbiter::next_deadline`]. Every entry point first lets pass what is due,
//! so a shell that was stopped and woke late admits nothing that has expired.
//!
//! ```text
//!            acquire                drained           stored
//!   agent ────────────> draining ───────────> starting ─────> human
//!     ^  ^                  │                                   │ return, cancelled,
//!     │  └──────────────────┘ over budget, gone, revoked        │ timeout, revoked,
//!     │                                                         v recovered
//!     └───────────────── end recorded <──── flushed ─────── returning
//! ```
//!
//! The same with `paused` in the place of `agent`. What must never happen:
//!
//! - C1: human input is admitted while its lease is not live.
//! - C2: agent input is admitted between a takeover's beginning and the return
//!   of control to the agents under a new epoch.
//! - C3: two leases are live, or one lives again.
//! - C4: control is granted while a permit is outstanding, or an agent's input
//!   has not been shown to be through.
//! - C5: control leaves a person without its input closed, released and shown
//!   to be through.
//! - C6: a transition is not told of, or out of order, or without its epoch.
#![forbid(unsafe_code)]

mod admission;
mod arbiter;
mod control;
mod effect;
mod ending;
mod exchange;
mod ids;
mod lease;
mod pause;
mod permits;
#[cfg(test)]
mod proof;
mod refusal;
mod takeover;
mod time;
mod timer;

pub use crate::{
    admission::{AgentPass, HumanPass, InputSource},
    arbiter::Arbiter,
    control::{Control, End, GiveBack, PauseReason, Phase, Status, TimeoutCause},
    effect::{Effect, Limit},
    ending::FLUSH_BUDGET,
    ids::{ControllerId, Epoch, FlushId, LeaseId, OwnerId, PermitId, TokenHash, ViewerId},
    lease::{AcquireRequest, LeaseStage, LeaseView, OnDisconnect, Renewed},
    permits::MAX_OUTSTANDING,
    refusal::{AcquireFailure, Denied, Refusal},
    time::Moment,
};
