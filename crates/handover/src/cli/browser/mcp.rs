//! `handover browser mcp`.

use handover_protocol::{DesktopId, ErrorCode};

use super::super::context::{Context, block_on};
use super::super::failure::Failure;
use super::failed;
use crate::browser::devtools_mcp;
use crate::browser::endpoint::Endpoint;

/// Arguments of `handover browser mcp`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The desktop; may be left out if the session has one
    #[arg(long, value_name = "DESKTOP")]
    desktop: Option<DesktopId>,
    /// Further options of chrome-devtools-mcp
    #[arg(last = true, value_name = "OPTION")]
    options: Vec<String>,
}

/// Runs `handover browser mcp`, until its client or the browser ends.
pub fn run(args: Args, context: &Context) -> Result<(), Failure> {
    block_on(async {
        let program = devtools_mcp::program().await.map_err(failed)?;
        let host = super::connect(args.desktop, context).await?;
        let endpoint = Endpoint::open().await.map_err(failed)?;
        let address = endpoint.websocket();
        let serving = async {
            let served = endpoint.serve(host).await;
            // The server goes on without its browser until its client ends it, as by itself.
            if let Err(error) = served {
                tracing::warn!(%error, "the connection to the browser is lost");
            }
            std::future::pending::<()>().await;
        };
        let running = devtools_mcp::run(&program, &address, &args.options);
        let ended = tokio::select! {
            ended = running => ended.map_err(failed)?,
            () = serving => return Ok(()),
        };
        if ended.success() {
            return Ok(());
        }
        Err(Failure::new(
            ErrorCode::Internal,
            format!("chrome-devtools-mcp ended with {ended}"),
        ))
    })
}
