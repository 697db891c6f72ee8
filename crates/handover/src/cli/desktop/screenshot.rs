//! `handover desktop screenshot`.

use std::path::PathBuf;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use handover_protocol::{
    DesktopId, DesktopScreenshotParams, DesktopScreenshotResult, ErrorCode, Method,
};

use super::super::context::{Context, block_on};
use super::super::failure::Failure;
use super::super::session::Session;
use super::super::takeover;
use super::super::text::plain;

/// Arguments of `handover desktop screenshot`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The desktop, such as d1; not needed if the session has one
    #[arg(id = "DESKTOP", conflicts_with = "desktop")]
    named: Option<DesktopId>,
    /// The same, as an option
    #[arg(long, value_name = "DESKTOP")]
    desktop: Option<DesktopId>,
    /// Write the picture to this file too
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Put the picture into the JSON, in base64
    #[arg(long, requires = "json")]
    inline: bool,
}

/// Runs `handover desktop screenshot`.
pub fn run(args: Args, context: &Context) -> Result<(), Failure> {
    let inline = args.inline || args.output.is_some();
    let params = DesktopScreenshotParams {
        desktop: args.named.or(args.desktop),
        inline: inline.then_some(true),
    };
    let mut result: DesktopScreenshotResult = block_on(async {
        let session = Session::open(context).await?;
        session.call(Method::DesktopScreenshot, &params).await
    })?;
    if let Some(output) = &args.output {
        let png = result.png.as_deref().map(|png| STANDARD.decode(png));
        let Some(Ok(png)) = png else {
            let message = "the host's answer holds no picture; are both of the same version?";
            return Err(Failure::new(ErrorCode::ProtocolMismatch, message));
        };
        std::fs::write(output, png).map_err(|error| {
            let message = format!("cannot write {}: {error}", output.display());
            Failure::new(ErrorCode::StorageFailed, message)
        })?;
        if !args.inline {
            // It was asked for to be written, not to be printed.
            result.png = None;
        }
        if result.path.is_none() {
            result.path = Some(output.to_string_lossy().into_owned());
        }
    }
    context.print(&result, render)
}

fn render(result: &DesktopScreenshotResult) -> String {
    let mut text = match &result.path {
        Some(path) => format!("{}\n", plain(path)),
        None => "a picture of human time is not kept; give --output FILE to write it\n".to_owned(),
    };
    let size = format!(
        "  {}x{}, epoch {}\n",
        result.width, result.height, result.epoch
    );
    text.push_str(&size);
    if let Some(hand_back) = &result.hand_back {
        text.push_str("a person was in control before:\n");
        text.push_str(&takeover::render_hand_back(hand_back, "  "));
    }
    text
}
