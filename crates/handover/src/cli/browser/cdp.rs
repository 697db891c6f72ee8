//! `handover browser cdp`.

use handover_protocol::DesktopId;
use serde_json::json;

use super::super::context::{Context, block_on};
use super::super::failure::Failure;
use super::failed;
use crate::browser::endpoint::Endpoint;
use crate::browser::stdio;

/// Arguments of `handover browser cdp`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The desktop; may be left out if the session has one
    #[arg(long, value_name = "DESKTOP")]
    desktop: Option<DesktopId>,
    /// Print the address of a WebSocket for one connection, instead of speaking on standard input and
    /// output, one message a line
    #[arg(long)]
    ws: bool,
}

/// Runs `handover browser cdp`, until either side ends.
pub fn run(args: Args, context: &Context) -> Result<(), Failure> {
    block_on(async {
        let host = super::connect(args.desktop, context).await?;
        if !args.ws {
            return stdio::bridge(host).await.map_err(failed);
        }
        let endpoint = Endpoint::open().await.map_err(failed)?;
        let said =
            json!({"webSocketDebuggerUrl": endpoint.websocket(), "httpUrl": endpoint.http()});
        context.print(&said, |_| format!("{}\n", endpoint.websocket()))?;
        endpoint.serve(host).await.map_err(failed)
    })
}
