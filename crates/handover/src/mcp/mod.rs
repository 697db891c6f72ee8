//! `handover mcp`: the desktop, and agents of its own, as tools for one agent, over MCP on standard
//! input and output.
//!
//! The server holds no state worth losing. It is a client of the host like the command line is,
//! greets it as an agent (whoever started it), and turns tool calls into calls of the attach
//! protocol. Standard output carries the protocol alone; diagnostics go to standard error.

#[cfg(test)]
mod agent_tests;
mod agents;
mod answer;
mod arguments;
mod elicit;
mod link;
mod server;
#[cfg(test)]
mod server_tests;
mod tools;

use std::path::PathBuf;

use handover_protocol::{AgentId, Refusal, SessionId};
use rmcp::ServiceExt;
use rmcp::service::{QuitReason, ServerInitializeError};
use rmcp::transport::io::stdio;

use link::Link;
use server::Server;

use crate::streams;

/// Why the server ended other than by the end of its input.
#[derive(Debug, thiserror::Error)]
pub enum McpError {
    /// The client did not begin as MCP wants.
    #[error("the MCP client did not initialize: {0}")]
    Initialize(#[from] Box<ServerInitializeError>),
    /// A fault of our own.
    #[error("the MCP server ended unexpectedly")]
    Broken,
}

/// Serves MCP until standard input ends.
///
/// `locate` finds the attach socket of the session to speak to: that of the session it is given,
/// else of the one that the command line means. It is asked when the host is needed, so the
/// session may start later or come back. `desktop` is meant by calls that name none. `own` is the
/// agent that the server is for, where the host cannot tell.
///
/// # Errors
/// When the client does not keep to MCP.
pub async fn run(
    locate: impl Fn(Option<&SessionId>) -> Result<PathBuf, Refusal> + Send + Sync + 'static,
    desktop: Option<String>,
    own: Option<AgentId>,
) -> Result<(), McpError> {
    // Below warnings, the MCP library logs whole requests, and with them the text that an agent types.
    streams::log_to_stderr("handover=info,rmcp=error");
    let server = Server::new(Link::new(locate), desktop, own);
    let running = match server.serve(stdio()).await {
        Ok(running) => running,
        // A client that is gone before it said anything has ended the input, which is no fault.
        Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(Box::new(error).into()),
    };
    match running.waiting().await {
        Ok(QuitReason::Closed | QuitReason::Cancelled) => Ok(()),
        _ => Err(McpError::Broken),
    }
}
