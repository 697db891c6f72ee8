//! Agents: the drivers of their programs, and the manager that runs them.
//!
//! - [`driver`]: one program's protocol each, without I/O;
//! - `run`: one task per running agent, which owns its driver and its pipes;
//! - [`manager`]: the agents of a session: queue, tree, states, receipts, abort, announcements;
//! - [`ended`]: agents of a session without a host;
//! - [`environment`]: what the manager asks of the host around it.
#![forbid(unsafe_code)]

mod decision;
pub mod driver;
pub mod ended;
pub mod environment;
pub mod manager;
mod run;

pub use decision::decision;
pub use environment::{By, Environment};
pub use manager::{BULK, Limits, Manager, Settings};
