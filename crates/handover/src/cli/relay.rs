//! `handover relay`: a tool server behind the gate, served by [`crate::relay`].

use std::sync::Arc;

use handover_protocol::{DesktopId, Refusal, SessionId};

use super::context::{Context, block_on};
use super::discover;
use super::failure::Failure;
use crate::relay::Left;

/// Arguments of `handover relay`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The desktop that the server's tools act on
    #[arg(long, value_name = "DESKTOP")]
    desktop: Option<DesktopId>,
    /// Tools that only look, and so may be called while a person is in control; * stands for any text
    #[arg(long, value_name = "TOOL,…", value_delimiter = ',')]
    allow: Vec<String>,
    /// The same for tools that the server calls read-only, but for those that show the screen
    #[arg(long)]
    allow_readonly: bool,
    /// The MCP server and its arguments, behind --
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Runs `handover relay`, until its client or its server ends.
pub fn run(args: Args, context: &Context) -> Result<(), Failure> {
    let context = context.clone();
    let locate = move |session: Option<&SessionId>| {
        let context = match session {
            Some(id) => Context {
                session: Some(id.0.clone()),
                ..context.clone()
            },
            None => context.clone(),
        };
        discover::socket(&context).map_err(Refusal::from)
    };
    let options = crate::relay::Options {
        command: args.command,
        desktop: args.desktop,
        allow: args.allow,
        allow_readonly: args.allow_readonly,
    };
    match block_on(async { Ok(crate::relay::run(options, Arc::new(locate)).await?) })? {
        Left::Client => Ok(()),
        Left::Interrupted => Err(Failure::interrupted()),
    }
}
