//! `handover desktop drag`.

use handover_protocol::{DesktopDragParams, Method};

use super::super::context::Context;
use super::super::failure::Failure;
use super::point::WithButton;
use super::{Which, act};

/// Arguments of `handover desktop drag`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Where the button is pressed, pixels from the left
    #[arg(allow_negative_numbers = true)]
    from_x: i64,
    /// Where the button is pressed, pixels from the top
    #[arg(allow_negative_numbers = true)]
    from_y: i64,
    /// Where it is released, pixels from the left
    #[arg(allow_negative_numbers = true)]
    to_x: i64,
    /// Where it is released, pixels from the top
    #[arg(allow_negative_numbers = true)]
    to_y: i64,
    #[command(flatten)]
    with: WithButton,
    #[command(flatten)]
    which: Which,
}

/// Runs `handover desktop drag`.
pub fn run(args: Args, context: &Context) -> Result<(), Failure> {
    let params = DesktopDragParams {
        desktop: args.which.desktop,
        from: [args.from_x, args.from_y],
        to: [args.to_x, args.to_y],
        button: args.with.button,
    };
    act(Method::DesktopDrag, &params, context)
}
