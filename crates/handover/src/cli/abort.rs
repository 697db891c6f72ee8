//! `handover abort ID`.

use handover_protocol::{
    AbortParams, AbortResult, AgentId, ErrorCode, ListParams, ListResult, Method,
};

use super::context::{Context, block_on};
use super::failure::Failure;
use super::text::plain;
use super::{agent, confirm};

/// Arguments of `handover abort`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The agent
    id: AgentId,
    /// Do not ask first
    #[arg(long)]
    yes: bool,
}

/// Runs `handover abort`.
pub fn run(args: Args, context: &Context) -> Result<(), Failure> {
    let Args { id, yes } = args;
    block_on(async {
        // What is ended is shown before it is asked for; if it cannot be learnt, nothing ends.
        let (session, found) = agent::on_its_host(context, async |session| {
            let list: ListResult = session.call(Method::List, &ListParams {}).await?;
            let found = list.agents.iter().find(|agent| agent.id == id).cloned();
            let message = format!(
                "there is no agent {}; `handover list` shows them",
                plain(id.as_str())
            );
            let found = found.ok_or_else(|| Failure::new(ErrorCode::AgentUnknown, message))?;
            let children = list
                .agents
                .iter()
                .filter(|agent| agent.parent.as_ref() == Some(&id));
            Ok((found, children.count()))
        })
        .await?;
        if !yes {
            let (found, children) = found;
            let question = format!(
                "abort {} ({}), which has {children} children?",
                plain(id.as_str()),
                plain(&found.name)
            );
            confirm::ask(&question, "--yes")?;
        }
        let params = AbortParams { id };
        // It answers when the process tree is empty.
        let result: AbortResult = session.call_patiently(Method::Abort, &params).await?;
        context.print(&result, render)
    })
}

fn render(result: &AbortResult) -> String {
    let mut text = format!("aborted {}", plain(result.id.as_str()));
    for descendant in &result.descendants {
        text.push_str(&format!(", {}", plain(descendant.id.as_str())));
    }
    text.push('\n');
    for pid in &result.survivors {
        text.push_str(&format!("  process {pid} could not be ended\n"));
    }
    text
}
