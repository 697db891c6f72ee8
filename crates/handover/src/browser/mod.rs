//! What stands between a tool that drives browsers and the gate of a browser desktop: the host speaks on
//! unix sockets alone, tools want standard streams or a WebSocket.

pub mod devtools_mcp;
pub mod endpoint;
pub mod stdio;
