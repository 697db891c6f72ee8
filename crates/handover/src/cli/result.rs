//! `handover result ID`.

use handover_protocol::{AgentId, Method, ResultParams, ResultResult};

use super::agent;
use super::context::{Context, block_on};
use super::failure::Failure;
use super::text::{plain, plain_lines};

/// Arguments of `handover result`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The agent
    id: AgentId,
}

/// Runs `handover result`.
pub fn run(args: Args, context: &Context) -> Result<(), Failure> {
    let params = ResultParams { id: args.id };
    block_on(async {
        let (_, result): (_, ResultResult) = agent::on_its_host(context, async |session| {
            session.call(Method::Result, &params).await
        })
        .await?;
        context.print(&result, |result| match &result.error {
            Some(error) => format!("failed: {}\n", plain(error)),
            None => plain_lines(&result.text),
        })
    })
}
