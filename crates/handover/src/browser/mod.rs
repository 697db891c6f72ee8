//! What stands between a tool that drives browsers and the gate of a browser desktop: the host speaks on
//! unix sockets alone, tools want standard streams or a WebSocket.

pub mod devtools_mcp;
pub mod endpoint;
pub mod stdio;

use std::io;

/// The host has closed a connection that its client has not.
fn ended() -> io::Error {
    io::Error::other("the browser has ended, with its desktop or its host")
}
