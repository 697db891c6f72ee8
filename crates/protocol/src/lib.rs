//! The wire of Handover: types, error codes and line codec of the attach socket.
//!
//! The attach socket speaks JSON-RPC 2.0, one message a line, UTF-8. For each method `x.y` there
//! is a struct `XYParams` and, where it is not shared, a struct `XYResult`. The crate is pure: no
//! clock, no socket, no global. The feature `client` adds an async client ([`client`]), the feature `server`
//! what serves the socket, so that any program can offer its own agents on it ([`server`]).
//!
//! Times on the wire are RFC 3339 in UTC with milliseconds ([`Timestamp`]); durations are
//! milliseconds in members that end in `Ms`.
#![forbid(unsafe_code)]

mod agents;
#[cfg(feature = "client")]
pub mod client;
pub mod codec;
mod control;
mod desktop;
pub mod envelope;
mod error;
mod event;
mod ids;
mod manifest;
mod method;
mod notices;
mod params;
pub mod question;
mod requests;
pub mod schema;
#[cfg(feature = "server")]
pub mod server;
mod session;
mod time;

pub use agents::*;
pub use control::*;
pub use desktop::*;
pub use error::{ErrorCode, ErrorObject, Refusal, UnknownCode};
pub use event::*;
pub use ids::*;
pub use manifest::*;
pub use method::{Gate, Method, UnknownMethod};
pub use notices::*;
pub use requests::*;
pub use session::*;
pub use time::{BadTime, Timestamp};

/// The version of the protocol that this crate speaks.
pub const PROTOCOL_VERSION: u32 = 1;

/// The longest request line in bytes, its newline not counted.
pub const MAX_REQUEST: usize = 1 << 20;

/// The longest answer or notification line in bytes, its newline not counted.
pub const MAX_ANSWER: usize = 16 << 20;
