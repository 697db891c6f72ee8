//! `handover desktop destroy`.

use handover_protocol::{DesktopDestroyParams, DesktopDestroyResult, DesktopId, Method};

use super::super::context::{Context, block_on};
use super::super::failure::Failure;
use super::super::session::Session;

/// Arguments of `handover desktop destroy`.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
pub struct Args {
    /// The desktop, such as d1
    #[arg(id = "DESKTOP")]
    named: Option<DesktopId>,
    /// The same, as an option
    #[arg(long, value_name = "DESKTOP")]
    desktop: Option<DesktopId>,
}

/// Runs `handover desktop destroy`.
pub fn run(args: Args, context: &Context) -> Result<(), Failure> {
    let Some(desktop) = args.named.or(args.desktop) else {
        return Err(Failure::usage("name the desktop to end"));
    };
    let params = DesktopDestroyParams { desktop };
    block_on(async {
        let session = Session::open(context).await?;
        let result: DesktopDestroyResult = session
            .call_patiently(Method::DesktopDestroy, &params)
            .await?;
        context.print(&result, |result| {
            format!("desktop {} has ended\n", result.id)
        })
    })
}
