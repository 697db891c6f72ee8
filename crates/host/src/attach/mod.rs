//! The attach socket: JSON-RPC 2.0 for every client of the host.

mod boundary;
#[allow(dead_code)] // The server, which follows, fills and empties the queues.
mod outlets;

pub use boundary::{Answer, Desktop, Session};
pub use outlets::{Notice, Outlets};
