//! `handover abort ID`.

use handover_protocol::{
    AbortParams, AbortResult, AgentId, AgentView, ErrorCode, ListParams, ListResult, Method,
};

use super::context::{Context, block_on};
use super::failure::Failure;
use super::style::Style;
use super::text::plain;
use super::{confirm, list, locate};
use crate::lineage;

/// Arguments of `handover abort`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The agent, by its id or the beginning of it
    #[arg(value_parser = locate::id)]
    id: AgentId,
    /// Do not ask first, and do not look what would end
    #[arg(long, short)]
    yes: bool,
}

/// Runs `handover abort`.
pub fn run(args: Args, context: &Context) -> Result<(), Failure> {
    if !args.yes {
        confirm::can_ask("--yes")?;
    }
    block_on(async {
        let locate::Found { session, id } = locate::agent(context, &args.id).await?;
        if !args.yes {
            // What is ended is shown before it is asked for; if it cannot be learnt, nothing ends.
            let list: ListResult = session.call(Method::List, &ListParams {}).await?;
            if let Some(question) = question(&list.agents, &id)? {
                confirm::ask(&question, "--yes").await?;
            }
        }
        let params = AbortParams { id };
        // It answers when the process tree is empty.
        let result: AbortResult = session.call_patiently(Method::Abort, &params).await?;
        context.print(&result, render)
    })
}

/// What to ask: nothing if the agent has ended, which the host says better.
///
/// # Errors
/// `agent_unknown` if the host does not list the agent, so that nobody could say what would end.
fn question(agents: &[AgentView], id: &AgentId) -> Result<Option<String>, Failure> {
    let Some(agent) = agents.iter().find(|agent| agent.id == *id) else {
        let message = format!(
            "what agent {} does cannot be learnt, so nothing was ended; give --yes to end it all the same",
            plain(id.as_str())
        );
        return Err(Failure::new(ErrorCode::AgentUnknown, message));
    };
    if agent.status.has_ended() {
        return Ok(None);
    }
    let below = lineage::below(agents, std::slice::from_ref(id));
    let mut ending = vec![agent.clone()];
    ending.extend(
        below
            .into_iter()
            .filter(|agent| !agent.status.has_ended())
            .cloned(),
    );
    let table = list::agents(&ending, Style::default(), list::now());
    let what = match ending.len() {
        1 => "this agent".to_owned(),
        count => format!("these {count} agents"),
    };
    Ok(Some(format!("{table}abort {what}?")))
}

fn render(result: &AbortResult) -> String {
    let id = plain(result.id.as_str());
    let mut text = format!("{id}: {}\n", list::status(result.status));
    for descendant in &result.descendants {
        let id = plain(descendant.id.as_str());
        text.push_str(&format!("  {id}: {}\n", list::status(descendant.status)));
    }
    for pid in &result.survivors {
        text.push_str(&format!("  process {pid} could not be ended\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::lineage::tests::agent;

    #[test]
    fn what_ends_is_shown() {
        let mut over = agent("a3", Some("a1"));
        over.status = handover_protocol::AgentStatus::Done;
        let agents = [
            agent("a1", None),
            agent("a2", Some("a1")),
            over,
            agent("a4", Some("a2")),
            agent("b1", None),
        ];
        insta::assert_snapshot!(question(&agents, &"a1".into()).unwrap().unwrap(), @"
          AGENT     NAME  TYPE     STATUS   AGE  PENDING  TASK
          a1        a1    command  running  -    0        t
          └─ a2     a2    command  running  -    0        t
             └─ a4  a4    command  running  -    0        t
        abort these 3 agents?
        ");
        insta::assert_snapshot!(question(&agents, &"b1".into()).unwrap().unwrap(), @"
          AGENT  NAME  TYPE     STATUS   AGE  PENDING  TASK
          b1     b1    command  running  -    0        t
        abort this agent?
        ");
        assert!(question(&agents, &"a3".into()).unwrap().is_none());
        let unknown = question(&agents, &"c".into()).unwrap_err();
        assert_eq!(unknown.code(), ErrorCode::AgentUnknown);
    }

    #[test]
    fn what_ended_as_a_person_sees_it() {
        let result = serde_json::from_value(json!({
            "id": "a1", "status": "aborted",
            "descendants": [{"id": "a2", "status": "cancelled-before-start"}], "survivors": [42]
        }))
        .unwrap();
        insta::assert_snapshot!(render(&result), @"
        a1: aborted
          a2: cancelled-before-start
          process 42 could not be ended
        ");
    }
}
