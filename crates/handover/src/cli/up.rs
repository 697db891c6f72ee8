//! `handover up`: starts a host of its own, and tells when it is ready.

use std::process::Stdio;
use std::time::Duration;

use handover_protocol::{ErrorCode, ListParams, ListResult, Method};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};
use tokio::process::{Child, Command};

use super::config;
use super::context::{Context, block_on};
use super::discover;
use super::failure::Failure;
use super::host::Options;
use super::ready::Ready;
use super::session::Session;
use super::text::plain_lines;

/// How long a host may take to be ready; adopting desktops takes its time.
const START: Duration = Duration::from_secs(60);

/// The most that is shown of what a host said before it failed, in bytes.
const LAST_WORDS: u64 = 4096;

/// Runs `handover up`.
pub fn run(options: &Options, context: &Context) -> Result<(), Failure> {
    let mut arguments = vec!["--detached".to_owned(), "--json".to_owned()];
    if let Some(wanted) = &context.explicit_session {
        arguments.push(format!("--session={}", discover::stopped(wanted)?));
    }
    arguments.extend(options.name.as_ref().map(|name| format!("--name={name}")));
    arguments.extend(options.size.map(|size| format!("--size={size}")));
    arguments.push(format!("--max-agents={}", options.max_agents));
    arguments.push(format!(
        "--orphan-timeout={}ms",
        options.orphan_timeout.as_millis()
    ));
    let flags = [
        (options.new, "--new"),
        (options.desktop, "--desktop"),
        (options.no_observe_guard, "--no-observe-guard"),
    ];
    arguments.extend(
        flags
            .iter()
            .filter(|(set, _)| *set)
            .map(|(_, flag)| (*flag).to_owned()),
    );
    // The host finds out for itself, but who starts it reads it here.
    config::or_default();
    block_on(async {
        let mut ready = start(&arguments).await?;
        let session = Session::at(&ready.socket_path, context).await?;
        let list: ListResult = session.call(Method::List, &ListParams {}).await?;
        ready.desktops = list.desktops;
        context.print(&ready, Ready::render)
    })
}

/// Starts the host and waits until it is ready.
async fn start(arguments: &[String]) -> Result<Ready, Failure> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("host").args(arguments);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut host = command.spawn()?;
    match tokio::time::timeout(START, first_line(&mut host)).await {
        Ok(line) => Ready::parse(&line?),
        Err(_) => {
            host.kill().await?;
            let message = format!("the host was not ready within {} s", START.as_secs());
            Err(Failure::new(ErrorCode::Timeout, message))
        }
    }
}

/// What the host says on its standard output, or why it says nothing.
async fn first_line(host: &mut Child) -> Result<String, Failure> {
    let mut line = String::new();
    if let Some(stdout) = host.stdout.take() {
        BufReader::new(stdout).read_line(&mut line).await?;
    }
    if !line.is_empty() {
        return Ok(line);
    }
    let last_words = match host.stderr.take() {
        Some(stderr) => last_words(stderr).await?,
        None => String::new(),
    };
    let status = host.wait().await?;
    let message = format!("the host ended at its start ({status}): {last_words}");
    Err(Failure::new(ErrorCode::Internal, message))
}

async fn last_words(stderr: impl AsyncRead + Unpin) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    stderr.take(LAST_WORDS).read_to_end(&mut bytes).await?;
    Ok(plain_lines(String::from_utf8_lossy(&bytes).trim()))
}
