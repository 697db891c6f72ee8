//! The host's eyes on a display: connections, screenshots and the X side.

pub mod connect;
pub mod upstream;

pub use connect::{ConnectError, Connected, connect};
pub use upstream::{Address, Stream, Upstream};
