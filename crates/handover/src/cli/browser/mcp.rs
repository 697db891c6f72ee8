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
        // Without a browser it does not start; later on it waits for one.
        let mut first = Some(super::connect(args.desktop.clone(), context).await?);
        let endpoint = Endpoint::open().await.map_err(failed)?;
        let address = endpoint.websocket();
        let serving = async {
            // The server connects when its first tool is called, and again after it has failed to look around,
            // as while a person is in control.
            let connect = async || match first.take() {
                Some(host) => Ok(host),
                None => {
                    let host = super::connect(args.desktop.clone(), context).await;
                    host.map_err(|failure| std::io::Error::other(failure.message().to_owned()))
                }
            };
            endpoint.serve_each(connect).await
        };
        let running = devtools_mcp::run(&program, &address, &args.options);
        let ended = tokio::select! {
            ended = running => ended.map_err(failed)?,
            served = serving => return served.map_err(failed),
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
