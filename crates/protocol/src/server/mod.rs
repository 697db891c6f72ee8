//! Serving an attach socket.
//!
//! [`AttachServer`] is all that a program needs to offer its own agents to `handover list`, `steer`,
//! `abort`, `result` and `follow`: it implements [`AgentControl`], and tells through [`Events`] what
//! happens. `examples/embedded_agents.rs` is a whole program.
//!
//! Below it are the parts that every server of an attach socket needs, the host's too: a private place
//! ([`dirs`]), the lock that says whose it is ([`lock`]), a socket that nobody else can reach
//! ([`socket`]), files that are whole for every reader ([`atomic_file`]), a manifest that keeps up
//! ([`manifest`]), the loop that accepts clients ([`accept`]), the calls ([`calls`]) and a bounded queue
//! ([`outlet`]) of each, and a word to those who are not served ([`turn_away`]).

pub mod accept;
pub mod atomic_file;
mod attach;
pub mod calls;
mod connection;
mod control;
pub mod dirs;
mod events;
pub mod lock;
pub mod manifest;
pub mod outlet;
pub mod socket;
pub mod turn_away;

pub use attach::{AttachServer, Identity, LOCK, MAX_CONNECTIONS, ServeError};
pub use connection::SUPPORTED;
pub use control::AgentControl;
pub use events::{Events, NewEvent};
