//! `handover result ID`: from the host, or from the record of a session that has none.

use std::io::Write;

use handover_protocol::{AgentId, AgentStatus, Method, ResultParams, ResultResult};

use super::context::{Context, block_on};
use super::failure::Failure;
use super::text::{plain, plain_lines};
use super::{ended, list, locate};

/// Arguments of `handover result`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The agent, by its id or the beginning of it
    #[arg(value_parser = locate::id)]
    id: AgentId,
}

/// Runs `handover result`.
pub fn run(args: Args, context: &Context) -> Result<(), Failure> {
    block_on(async {
        let locate::Found { session, id } = match locate::search(context, &args.id).await? {
            Ok(found) => found,
            Err(nowhere) => {
                let result = ended::result(context, &args.id)?.ok_or(nowhere)?;
                return print(&result, context);
            }
        };
        let params = ResultParams { id };
        let result: ResultResult = session.call(Method::Result, &params).await?;
        print(&result, context)
    })
}

/// Prints a result: its text on standard output, and on standard error how the agent stands if it is
/// not done.
pub fn print(result: &ResultResult, context: &Context) -> Result<(), Failure> {
    context.print(result, |result| plain_lines(&result.text))?;
    if let Some(remark) = remark(result).filter(|_| !context.json) {
        writeln!(std::io::stderr().lock(), "{remark}")?;
    }
    Ok(())
}

fn remark(result: &ResultResult) -> Option<String> {
    let id = plain(result.id.as_str());
    let status = list::status(result.status);
    match (&result.error, result.status) {
        (Some(error), _) => Some(format!("agent {id} {status}: {}", plain_lines(error))),
        (None, AgentStatus::Done) => None,
        (None, ended) if ended.has_ended() => Some(format!("agent {id} is {status}")),
        (None, _) if result.text.is_empty() => {
            Some(format!("agent {id} is {status}; it has said nothing yet"))
        }
        (None, _) => Some(format!("agent {id} is {status}; this is what it said last")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remark_of(status: AgentStatus, text: &str, error: Option<&str>) -> String {
        let result = ResultResult {
            id: "a1".into(),
            status,
            text: text.to_owned(),
            error: error.map(str::to_owned),
            finished_at: None,
        };
        remark(&result).unwrap_or_default()
    }

    #[test]
    fn remarks() {
        assert_eq!(remark_of(AgentStatus::Done, "", None), "");
        let failed = remark_of(AgentStatus::Failed, "", Some("exit status 3\u{1b}[2J"));
        assert_eq!(failed, r"agent a1 failed: exit status 3\u{1b}[2J");
        let aborted = remark_of(AgentStatus::Aborted, "half", None);
        assert_eq!(aborted, "agent a1 is aborted");
        let silent = remark_of(AgentStatus::Running, "", None);
        assert_eq!(silent, "agent a1 is running; it has said nothing yet");
    }
}
