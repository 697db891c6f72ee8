//! `handover down`: ends a session and everything it started.

use std::io;
use std::time::Duration;

use handover_host::system::process::ProcessIdentity;
use handover_protocol::{ErrorCode, Manifest, Method, StopParams, StopResult};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Serialize;

use super::context::{Context, block_on};
use super::discover;
use super::failure::Failure;
use super::session::Session;
use super::text::count;

/// Arguments of `handover down`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Every live session of this user
    #[arg(long, conflicts_with_all = ["session", "socket"])]
    all: bool,
    /// Even while a person is in control of a desktop
    #[arg(long)]
    force: bool,
}

#[derive(Debug, Serialize)]
struct Down {
    sessions: Vec<StopResult>,
}

/// How long a host may take to end its desktops.
const ENDING: Duration = Duration::from_secs(30);

/// Runs `handover down`.
pub fn run(args: Args, context: &Context) -> Result<(), Failure> {
    let params = StopParams {
        force: args.force.then_some(true),
    };
    block_on(async {
        if !args.all {
            let result = match &context.socket {
                // Without a manifest the end of the connection has to do as the end of the host.
                Some(socket) => {
                    let mut session = Session::at(socket, context).await?;
                    let result: StopResult = session.call_patiently(Method::Stop, &params).await?;
                    let closed = async { while session.notifications.recv().await.is_some() {} };
                    let _ = tokio::time::timeout(ENDING, closed).await;
                    result
                }
                None => stop(&discover::manifest(context)?, &params, context).await?,
            };
            return context.print(&result, |result| {
                format!("session {} has ended\n", result.session_id)
            });
        }
        let mut sessions = Vec::new();
        let mut failure = None;
        for manifest in discover::live() {
            // One that cannot be ended does not save the others.
            match stop(&manifest, &params, context).await {
                Ok(result) => sessions.push(result),
                // A program with agents of its own is ended as it was started.
                Err(error) if error.code() == ErrorCode::MethodUnknown => {}
                Err(error) => failure = Some(error),
            }
        }
        match failure {
            None => context.print(&Down { sessions }, |down| {
                let ended = count(down.sessions.len() as u64, "session");
                let have = if down.sessions.len() == 1 {
                    "has"
                } else {
                    "have"
                };
                format!("{ended} {have} ended\n")
            }),
            Some(failure) => {
                let ended = serde_json::to_value(Down { sessions }).unwrap_or_default();
                Err(failure.beside(ended))
            }
        }
    })
}

/// Ends one session and waits until its host is gone.
async fn stop(
    manifest: &Manifest,
    params: &StopParams,
    context: &Context,
) -> Result<StopResult, Failure> {
    let session = Session::at(manifest.socket_path.as_ref(), context).await?;
    let result: StopResult = session.call_patiently(Method::Stop, params).await?;
    let host = ProcessIdentity {
        pid: manifest.pid,
        start_ticks: manifest.start_ticks,
    };
    if !has_ended(host, ENDING)? {
        let message = format!(
            "session {} was told to end, but its host (pid {}) still runs; see its log",
            manifest.session_id, manifest.pid
        );
        return Err(Failure::new(ErrorCode::Timeout, message));
    }
    Ok(result)
}

/// Waits until `process` has ended, at most as long as `limit`.
fn has_ended(process: ProcessIdentity, limit: Duration) -> io::Result<bool> {
    let process = match process.open() {
        Ok(process) => process,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(error),
    };
    let limit = Timespec::try_from(limit).map_err(io::Error::other)?;
    // Nothing else goes on meanwhile, so the thread may wait.
    let ended = poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&limit))?;
    Ok(ended > 0)
}
