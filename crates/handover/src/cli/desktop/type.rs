//! `handover desktop type`.

use std::io::Read;
use std::time::Duration;

use clap::ValueEnum;
use handover_protocol::{DesktopTypeParams, Hidden, Method, TypeMethod};

use super::super::context::Context;
use super::super::failure::Failure;
use super::{Which, act_within};

/// Arguments of `handover desktop type`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The text
    #[arg(required_unless_present = "stdin", conflicts_with = "stdin")]
    text: Option<String>,
    /// Read the text from standard input: other users can see arguments
    #[arg(long)]
    stdin: bool,
    /// How: keys one by one, or a paste [default: by the text]
    #[arg(long, value_enum)]
    method: Option<How>,
    #[command(flatten)]
    which: Which,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum How {
    Auto,
    Keys,
    Paste,
}

/// Far longer than a key takes.
const A_KEY: Duration = Duration::from_millis(50);

/// Runs `handover desktop type`.
pub fn run(args: Args, context: &Context) -> Result<(), Failure> {
    let text = match args.text {
        Some(text) => text,
        None => {
            let mut text = String::new();
            std::io::stdin().lock().read_to_string(&mut text)?;
            text
        }
    };
    let method = args.method.map(|how| match how {
        How::Auto => TypeMethod::Auto,
        How::Keys => TypeMethod::Keys,
        How::Paste => TypeMethod::Paste,
    });
    let text = Hidden::new(text);
    let limit = context.timeout + A_KEY * u32::try_from(text.chars()).unwrap_or(u32::MAX);
    let params = DesktopTypeParams {
        desktop: args.which.desktop,
        text,
        method,
    };
    act_within(limit, Method::DesktopType, &params, context)
}
