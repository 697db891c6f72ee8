//! `handover agent run`: starts an agent, and may wait for what it comes to.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use handover_protocol::{
    AgentId, AgentState, AgentStatus, DesktopId, ErrorCode, Hidden, Method, ResultResult,
    SpawnCaller, SpawnParams,
};

use super::super::context::{Context, block_on};
use super::super::failure::Failure;
use super::super::session::{CLIENT, Session};
use super::super::text::plain;
use super::super::{list, locate, outcome, result, steer};

/// The drivers that this version has, for messages; the host decides.
const DRIVERS: &str = "pi, codex, claude, acp, command";

/// What the help does not fit into a line.
const MORE: &str = "\
The words of PROMPT are the task; `--` before them ends the options. For the command driver they are \
the program and its arguments, and --prompt is its input; unless --arg gives the program and its \
arguments, and then they are its input.

Examples:
  handover agent run --driver pi -- fix the failing test
  handover agent run --driver codex --desktop d1 --name shop -- order the milk
  handover agent run --driver command --wait -- make test
  handover agent run --driver acp --arg gemini --arg --acp -- fix the failing test
  git diff | handover agent run --driver claude --prompt - --wait";

/// Arguments of `handover agent run`.
#[derive(Debug, clap::Args)]
#[command(after_help = MORE)]
pub struct Args {
    /// The adapter to the agent's program: pi, codex, claude, acp or command
    #[arg(
        long,
        short,
        value_name = "DRIVER",
        env = "HANDOVER_DRIVER",
        hide_env_values = true
    )]
    driver: Option<String>,
    /// A name for people
    #[arg(long)]
    name: Option<String>,
    /// The desktop that it uses
    #[arg(long, value_name = "DESKTOP")]
    desktop: Option<DesktopId>,
    /// Give it DISPLAY and XAUTHORITY of that desktop
    #[arg(long)]
    display: bool,
    /// Where it runs [default: the project directory]
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// A further environment variable; may be given several times
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    env: Vec<(String, String)>,
    /// A further argument of its program; for the drivers command and acp, the program first
    #[arg(long = "arg", value_name = "ARGUMENT", allow_hyphen_values = true)]
    args: Vec<String>,
    /// The agent that it works for, by its id or the beginning of it
    #[arg(long, value_name = "ID", value_parser = locate::id)]
    parent: Option<AgentId>,
    /// The task, or for the command driver its input; `-` reads it from standard input
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    prompt: Option<String>,
    /// Wait for the agent's end, and print what it came to
    #[arg(long)]
    wait: bool,
    /// The task; for the command driver, the program and its arguments
    #[arg(value_name = "PROMPT")]
    words: Vec<String>,
}

fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        // The text is not repeated: it may be the value alone.
        _ => Err("it must look like NAME=VALUE".to_owned()),
    }
}

/// What the driver is given.
#[derive(Debug, PartialEq)]
struct Task {
    prompt: String,
    args: Vec<String>,
}

/// Reads the task from the words after `--`, `--prompt` and `--arg`.
fn task(
    driver: &str,
    words: Vec<String>,
    prompt: Option<String>,
    args: Vec<String>,
) -> Result<Task, Failure> {
    if driver == "command" && args.is_empty() {
        if words.is_empty() {
            let message = "the command driver needs the program to run, after `--`";
            return Err(Failure::usage(message));
        }
        let prompt = prompt.unwrap_or_default();
        return Ok(Task {
            prompt,
            args: words,
        });
    }
    let prompt = match prompt {
        Some(_) if !words.is_empty() => {
            let message = "the task is given twice; give it after `--`, or with --prompt";
            return Err(Failure::usage(message));
        }
        Some(prompt) => prompt,
        None => words.join(" "),
    };
    if prompt.trim().is_empty() && driver != "command" {
        return Err(Failure::usage("there is no task; give it after `--`"));
    }
    Ok(Task { prompt, args })
}

/// Runs `handover agent run`.
pub fn run(args: Args, context: &Context) -> Result<(), Failure> {
    let Some(driver) = args.driver.filter(|driver| !driver.is_empty()) else {
        let message = format!(
            "which program the agent runs is not said; give --driver, or set HANDOVER_DRIVER, to one \
             of {DRIVERS}"
        );
        return Err(Failure::usage(message));
    };
    let prompt = match args.prompt.as_deref() {
        Some("-") => Some(steer::from_stdin()?),
        _ => args.prompt,
    };
    let task = task(&driver, args.words, prompt, args.args)?;
    let cwd = args.cwd.as_deref().map(absolute).transpose()?;
    block_on(async {
        let mut session = Session::open(context).await?;
        let parent = match &args.parent {
            Some(parent) => Some(locate::in_session(&session, parent).await?),
            None => None,
        };
        let env: BTreeMap<String, String> = args.env.into_iter().collect();
        let params = SpawnParams {
            driver,
            prompt: Hidden::new(task.prompt),
            name: args.name,
            cwd,
            parent,
            desktop: args.desktop,
            display: args.display.then_some(true),
            args: (!task.args.is_empty()).then_some(task.args),
            env: (!env.is_empty()).then_some(env),
            caller: SpawnCaller {
                name: CLIENT.to_owned(),
                token: session.hello.caller_token.clone(),
            },
        };
        let started: AgentState = session.call_patiently(Method::Spawn, &params).await?;
        if !args.wait {
            return context.print(&started, render);
        }
        if std::io::stderr().is_terminal() {
            let id = plain(started.id.as_str());
            writeln!(
                std::io::stderr(),
                "agent {id}; Ctrl-C stops waiting for it, not the agent"
            )?;
        }
        let ended = outcome::of(&mut session, &started.id).await?;
        if ended.status == AgentStatus::Done {
            return result::print(&ended, context);
        }
        Err(came_to_nothing(ended))
    })
}

fn absolute(path: &Path) -> Result<String, Failure> {
    let full = path.canonicalize().map_err(|error| {
        let path = plain(&path.to_string_lossy());
        Failure::usage(format!("the agent cannot run in {path}: {error}"))
    })?;
    full.into_os_string()
        .into_string()
        .map_err(|_| Failure::usage("the path of --cwd is no text in UTF-8"))
}

fn render(started: &AgentState) -> String {
    format!(
        "agent {} is {}\n",
        plain(started.id.as_str()),
        list::status(started.status)
    )
}

/// The failure of a command whose agent ended without being done.
fn came_to_nothing(ended: ResultResult) -> Failure {
    let (id, status) = (plain(ended.id.as_str()), list::status(ended.status));
    let why = ended
        .error
        .as_deref()
        .map_or_else(String::new, |error| format!(": {}", plain(error)));
    let message = format!("agent {id} {status}{why}");
    let mut beside = serde_json::to_value(&ended).unwrap_or_default();
    // In its place stands why the command failed.
    if let Some(members) = beside.as_object_mut() {
        members.remove("error");
    }
    Failure::new(ErrorCode::AgentNotRunning, message)
        .with("status", ended.status)
        .beside(beside)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn what_stands_after_the_dashes() {
        let prompt = |text: &str| Some(text.to_owned());
        let command = task("command", words("sh -c ls"), prompt("input"), Vec::new()).unwrap();
        assert_eq!(
            (command.prompt.as_str(), command.args),
            ("input", words("sh -c ls"))
        );
        let command = task("command", words("to its input"), None, words("cat -u")).unwrap();
        assert_eq!(
            (command.prompt.as_str(), command.args),
            ("to its input", words("cat -u"))
        );
        assert!(task("command", Vec::new(), None, Vec::new()).is_err());
        assert!(task("command", Vec::new(), None, words("true")).is_ok());

        let pi = task("pi", words("fix the tests"), None, words("--model x")).unwrap();
        assert_eq!(
            (pi.prompt.as_str(), pi.args),
            ("fix the tests", words("--model x"))
        );
        assert!(task("pi", words("one"), prompt("two"), Vec::new()).is_err());
        assert!(task("pi", Vec::new(), None, Vec::new()).is_err());
    }

    #[test]
    fn variables() {
        assert_eq!(variable("A=b=c"), Ok(("A".to_owned(), "b=c".to_owned())));
        assert!(variable("=x").is_err());
        assert!(!variable("hunter2").unwrap_err().contains("hunter2"));
    }

    #[test]
    fn an_agent_that_failed_fails_the_command() {
        let ended = ResultResult {
            id: "k7m2p4".into(),
            status: AgentStatus::Failed,
            text: "half".to_owned(),
            error: Some("exit status 3".to_owned()),
            finished_at: None,
        };
        let json = came_to_nothing(ended).to_json();
        assert_eq!(json["ok"], false);
        assert_eq!(json["text"], "half");
        assert_eq!(
            json["error"]["message"],
            "agent k7m2p4 failed: exit status 3"
        );
        assert_eq!(json["error"]["data"]["status"], "failed");
    }
}
