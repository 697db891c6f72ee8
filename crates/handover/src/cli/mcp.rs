//! `handover mcp`: the tools of one agent, served by [`crate::mcp`].

use handover_protocol::{AgentId, DesktopId, ErrorCode, Refusal};

use super::context::{Context, block_on};
use super::discover;
use super::failure::Failure;

/// Arguments of `handover mcp`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The desktop that calls mean which name none
    #[arg(long, value_name = "DESKTOP")]
    desktop: Option<DesktopId>,
}

/// Runs `handover mcp`, until its input ends.
pub fn run(args: Args, context: &Context) -> Result<(), Failure> {
    let context = context.clone();
    let locate = move |session: Option<&handover_protocol::SessionId>| {
        let context = match session {
            Some(id) => Context {
                session: Some(id.0.clone()),
                ..context.clone()
            },
            None => context.clone(),
        };
        discover::socket(&context).map_err(Refusal::from)
    };
    // Only what is shown depends on it: what the agent may do, the host decides by its process.
    let own = std::env::var("HANDOVER_AGENT").ok();
    let own = own.filter(|id| !id.is_empty()).map(AgentId::from);
    block_on(async {
        let served = crate::mcp::run(locate, args.desktop.map(|desktop| desktop.0), own).await;
        served.map_err(|error| Failure::new(ErrorCode::Internal, error.to_string()))
    })
}
