//! `handover desktop key`.

use handover_protocol::{DesktopKeyParams, Method};

use super::super::context::Context;
use super::super::failure::Failure;
use super::{Which, act};

/// Arguments of `handover desktop key`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A key or a chord, such as Enter or ctrl+shift+t
    keys: String,
    #[command(flatten)]
    which: Which,
}

/// Runs `handover desktop key`.
pub fn run(args: Args, context: &Context) -> Result<(), Failure> {
    let params = DesktopKeyParams {
        desktop: args.which.desktop,
        keys: args.keys,
    };
    act(Method::DesktopKey, &params, context)
}
