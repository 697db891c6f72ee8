//! `handover follow [ID]`: events as they happen.

use handover_protocol::{
    AgentId, ErrorCode, Event, Gap, Method, ResultParams, ResultResult, SubscribeParams,
    SubscribeResult,
};

use super::agent;
use super::context::{Context, block_on, print_json};
use super::failure::Failure;
use super::log;
use super::session::Session;

/// Arguments of `handover follow`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only what is about this agent
    id: Option<AgentId>,
}

/// Runs `handover follow`, until it is interrupted or the host ends.
pub fn run(args: Args, context: &Context) -> Result<(), Failure> {
    block_on(async {
        let mut session = match &args.id {
            None => Session::open(context).await?,
            Some(id) => {
                // Only the agent's own host knows it.
                let params = ResultParams { id: id.clone() };
                let known = agent::on_its_host(context, async |session| {
                    session
                        .call::<_, ResultResult>(Method::Result, &params)
                        .await
                });
                known.await?.0
            }
        };
        let params = SubscribeParams {
            since: None,
            kinds: None,
            agent: args.id,
        };
        stream(&mut session, &params, context).await
    })
}

/// Prints the events that `params` choose, as they come.
pub async fn stream(
    session: &mut Session,
    params: &SubscribeParams,
    context: &Context,
) -> Result<(), Failure> {
    let SubscribeResult { .. } = session.call(Method::Subscribe, params).await?;
    loop {
        let news = tokio::select! {
            news = session.notifications.recv() => news,
            _ = tokio::signal::ctrl_c() => return Err(Failure::interrupted()),
        };
        let Some(news) = news else {
            let message = "the host has ended, or the connection to it was lost";
            return Err(Failure::new(ErrorCode::SessionUnknown, message));
        };
        match news.method.as_str() {
            "event" if context.json => print_json(&news.params)?,
            "event" => {
                if let Ok(event) = serde_json::from_value::<Event>(news.params) {
                    context.print(&event, log::line)?;
                }
            }
            "gap" => {
                if let Ok(gap) = serde_json::from_value::<Gap>(news.params) {
                    let json = serde_json::json!({ "kind": "gap", "from": gap.from, "to": gap.to });
                    context.print(&json, |_| {
                        format!(
                            "… events {} to {} were left out; see `handover log`",
                            gap.from, gap.to
                        )
                    })?;
                }
            }
            _ => {}
        }
    }
}
