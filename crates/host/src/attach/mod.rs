//! The attach socket: JSON-RPC 2.0 for every client of the host.
//!
//! A connection from accept to close: [`server`] accepts it if there is a place for it
//! ([`places`]), or turns it away; [`connection`] reads its lines, each with the kernel's word on who wrote it, and answers through one bounded queue
//! ([`Outlet`](handover_protocol::server::outlet::Outlet)); [`power`] says whether this caller may make this call, before anything else is
//! looked up; [`dispatch`] reads the parameters, finds the desktop and calls it across [`boundary`].
//!
//! Invariants:
//! - a client that stops reading, writing or living holds up nobody but itself;
//! - no process takes every place, and programs leave half of them to people;
//! - calls of one connection reach a desktop in the order of their lines;
//! - a human-only call of somebody else is refused before its parameters are looked at;
//! - refused calls are recorded, without their arguments.

mod agents;
mod boundary;
mod connection;
mod dispatch;
mod greeting;
mod leases;
mod outlets;
mod places;
mod power;
mod refused;
mod server;
mod subscribe;
#[cfg(test)]
mod tests;

pub use boundary::{Agents, Answer, Desktop, LIMIT, Session};
pub use outlets::{Notice, Outlets};
pub use places::{ConnectionLimits, OPEN_FILES};
pub use server::{Parts, Server};
