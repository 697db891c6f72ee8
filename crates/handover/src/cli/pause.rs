//! `handover pause` and `handover resume`.

use handover_protocol::{ControlChangeParams, ControlStatusResult, DesktopId, Method};

use super::context::{Context, block_on};
use super::failure::Failure;
use super::session::Session;
use super::takeover;

/// Arguments of `handover pause` and `handover resume`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The desktop, such as d1; not needed if the session has one
    desktop: Option<DesktopId>,
}

/// Runs `handover pause` or `handover resume`, as `method` says.
pub fn run(args: Args, method: Method, context: &Context) -> Result<(), Failure> {
    let params = ControlChangeParams {
        desktop: args.desktop,
        force: None,
    };
    block_on(async {
        let session = Session::open(context).await?;
        let status: ControlStatusResult = session.call(method, &params).await?;
        context.print(&status, takeover::render_status)
    })
}
