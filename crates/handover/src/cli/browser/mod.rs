//! `handover browser`: driving the browser of a desktop.

mod cdp;
mod mcp;

use clap::Subcommand;
use handover_protocol::{CdpOpenParams, CdpOpenResult, DesktopId, ErrorCode, Method};
use tokio::net::UnixStream;

use super::context::Context;
use super::failure::Failure;
use super::session::Session;

/// The commands below `handover browser`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Speak the DevTools protocol with a desktop's browser
    Cdp(cdp::Args),
    /// Be chrome-devtools-mcp for a desktop's browser
    Mcp(mcp::Args),
}

/// Runs one of them.
pub fn run(command: Command, context: &Context) -> Result<(), Failure> {
    match command {
        Command::Cdp(args) => cdp::run(args, context),
        Command::Mcp(args) => mcp::run(args, context),
    }
}

/// A connection to the browser, through its gate.
async fn connect(desktop: Option<DesktopId>, context: &Context) -> Result<UnixStream, Failure> {
    let session = Session::open(context).await?;
    let params = CdpOpenParams { desktop };
    let opened: CdpOpenResult = session.call(Method::CdpOpen, &params).await?;
    UnixStream::connect(&opened.socket_path)
        .await
        .map_err(failed)
}

fn failed(error: std::io::Error) -> Failure {
    Failure::new(ErrorCode::Internal, error.to_string())
}
