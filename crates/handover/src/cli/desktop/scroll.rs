//! `handover desktop scroll`.

use handover_protocol::{DesktopScrollParams, Method};

use super::super::context::Context;
use super::super::failure::Failure;
use super::{Which, act};

/// Arguments of `handover desktop scroll`.
#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("steps").args(["dx", "dy"]).required(true).multiple(true)))]
pub struct Args {
    /// Pixels from the left [default: where the pointer is]
    #[arg(allow_negative_numbers = true, requires = "y")]
    x: Option<i64>,
    /// Pixels from the top
    #[arg(allow_negative_numbers = true)]
    y: Option<i64>,
    /// Wheel steps to the right; negative to the left
    #[arg(long, value_name = "STEPS", allow_negative_numbers = true)]
    dx: Option<i32>,
    /// Wheel steps down; negative up
    #[arg(long, value_name = "STEPS", allow_negative_numbers = true)]
    dy: Option<i32>,
    #[command(flatten)]
    which: Which,
}

/// Runs `handover desktop scroll`.
pub fn run(args: Args, context: &Context) -> Result<(), Failure> {
    let params = DesktopScrollParams {
        desktop: args.which.desktop,
        x: args.x,
        y: args.y,
        dx: args.dx,
        dy: args.dy,
    };
    act(Method::DesktopScroll, &params, context)
}
