//! `handover desktop new`.

use handover_protocol::{BrowserStart, DesktopNewParams, DesktopNewResult, Method, Size};

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
    /// Start a Chromium on it that agents drive through `handover browser`, at this address
    #[arg(long, value_name = "URL", num_args = 0..=1, default_missing_value = "", conflicts_with = "attach")]
    browser: Option<String>,
}

/// Runs `handover desktop new`.
pub fn run(args: Args, context: &Context) -> Result<(), Failure> {
    let params = DesktopNewParams {
        size: args.size,
        wm: args.wm,
        attach: args.attach,
        browser: args.browser.map(BrowserStart::At),
    };
    block_on(async {
        let session = Session::open(context).await?;
        let result: DesktopNewResult = session.call_patiently(Method::DesktopNew, &params).await?;
        context.print(&result, |result| {
            format!("desktop {} of {}\n", result.id, result.size)
        })
    })
}
