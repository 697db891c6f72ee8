//! One desktop: a task that owns its arbiter and the only connection by which
//! input reaches the display.
//!
//! A call comes in by [`DesktopHandle`], becomes a [`command`](self) to the
//! task, and is done there: agents' actions as scripts of steps ([`acting`]),
//! what people ask ([`requests`]) and ask each other ([`exchange`]), what the
//! arbiter asks for ([`effects`]), a person's own input ([`person`]).

mod acting;
mod action;
mod actor;
mod by;
mod clearing;
mod clipboard;
mod command;
mod effects;
mod exchange;
mod former;
mod handle;
mod input;
mod links;
mod looking;
mod methods;
mod observation;
mod overdue;
mod owners;
mod permits;
mod person;
mod programs;
mod record;
mod refuse;
mod relayed;
mod requests;
mod running;
mod script;
mod start;
mod survey;
mod takeover;
mod terms;
pub mod view;

pub(crate) use by::By;
pub(crate) use permits::Permits;

pub use acting::MAX_QUEUED;
pub use action::MAX_TEXT_CHARS;
pub use former::RelayedServers;
pub use handle::DesktopHandle;
pub use links::{HandedBack, Hooks, Links};
pub use programs::Programs;
pub use record::control_key;
pub use start::{Beginning, Parts, start};
pub(crate) use terms::DEFAULT_DRAIN_MS;
