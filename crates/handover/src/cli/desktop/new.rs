//! `handover desktop new`.

use handover_protocol::{DesktopNewParams, DesktopNewResult, Method, Size};

use super::super::context::{Context, block_on};
use super::super::failure::Failure;
use super::super::session::Session;

/// Arguments of `handover desktop new`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Its size in pixels [default: 1280x800]
    #[arg(long, value_name = "WxH")]
    size: Option<Size>,
    /// The window manager, or none [default: openbox where installed]
    #[arg(long, value_name = "NAME")]
    wm: Option<String>,
    /// Front another RFB server: unix:PATH or HOST:PORT
    #[arg(long, value_name = "ADDRESS")]
    attach: Option<String>,
    /// Start a browser on it
    #[arg(long)]
    browser: bool,
}

/// Runs `handover desktop new`.
pub fn run(args: Args, context: &Context) -> Result<(), Failure> {
    let params = DesktopNewParams {
        size: args.size,
        wm: args.wm,
        attach: args.attach,
        browser: args.browser.then_some(true),
    };
    block_on(async {
        let session = Session::open(context).await?;
        let result: DesktopNewResult = session.call_patiently(Method::DesktopNew, &params).await?;
        context.print(&result, |result| {
            format!("desktop {} of {}\n", result.id, result.size)
        })
    })
}
