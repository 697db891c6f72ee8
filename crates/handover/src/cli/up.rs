//! `handover up`: starts a host of its own, and tells when it is ready.

use std::fs::File;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use handover_host::session::SessionState;
use handover_protocol::{
    DesktopNewParams, DesktopNewResult, ErrorCode, ListParams, ListResult, Method, SessionId, Size,
    StopParams, StopResult,
};
use rustix::fs::{FlockOperation, flock};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};
use tokio::process::{Child, Command};

use super::context::{Context, block_on};
use super::discover;
use super::failure::Failure;
use super::ready::Ready;
use super::session::Session;
use super::text::plain_lines;

/// How long a host may take to be ready; adopting desktops takes its time.
const START: Duration = Duration::from_secs(30);

/// The most that is shown of what a host said before it failed, in bytes.
const LAST_WORDS: u64 = 4096;

/// Arguments of `handover up`. With `--session` it brings that session back.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A name for people [default: that of the directory]
    #[arg(long)]
    name: Option<String>,
    /// Start another session although this directory has one
    #[arg(long, conflicts_with = "session")]
    new: bool,
    /// Make a desktop if there is none
    #[arg(long)]
    desktop: bool,
    /// The desktop's size in pixels [default: 1280x800]
    #[arg(long, value_name = "WxH", requires = "desktop")]
    size: Option<Size>,
}

/// Runs `handover up`.
pub fn run(args: Args, context: &Context) -> Result<(), Failure> {
    let project = discover::working_directory();
    // Two that start at once must not both find that there is no session yet.
    let lock = lock(&project)?;
    let stopped = match &context.explicit_session {
        Some(wanted) => Some(stopped(wanted)?),
        None => {
            if !args.new {
                refuse_second(&project)?;
            }
            None
        }
    };
    block_on(async {
        let mut ready = start(&args, stopped.as_ref()).await?;
        drop(lock);
        let session = Session::at(&ready.socket_path, context).await?;
        if args.desktop {
            let made = make_desktop(&args, &session).await;
            if let (Err(_), None) = (&made, &stopped) {
                // What was asked for is a session with a desktop; half of it is in the way of the
                // next attempt. The first failure is the one to tell.
                let params = StopParams { force: None };
                let _ = session.call::<_, StopResult>(Method::Stop, &params).await;
            }
            made?;
        }
        let list: ListResult = session.call(Method::List, &ListParams {}).await?;
        ready.desktops = list.desktops;
        context.print(&ready, Ready::render)
    })
}

/// Holds the project directory until it is dropped. A directory that cannot be locked is none
/// that two could fight over often; it is let pass.
fn lock(project: &Path) -> Result<Option<File>, Failure> {
    let Ok(directory) = File::open(project) else {
        return Ok(None);
    };
    let deadline = Instant::now() + START;
    loop {
        match flock(&directory, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(Some(directory)),
            Err(rustix::io::Errno::WOULDBLOCK) if Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(10));
            }
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let message = "another `handover up` in this directory does not come to an end";
                return Err(Failure::new(ErrorCode::Timeout, message));
            }
            Err(_) => return Ok(None),
        }
    }
}

/// Refuses if the project has a live session.
fn refuse_second(project: &Path) -> Result<(), Failure> {
    let live = discover::live();
    let Some(session) = live
        .iter()
        .find(|session| Path::new(&session.project_dir) == project)
    else {
        return Ok(());
    };
    let id = &session.session_id;
    Err(already_running(
        id,
        "use it, end it with `handover down`, or start another with --new",
    ))
}

fn already_running(id: &SessionId, remedy: &str) -> Failure {
    let message = format!("session {id} is already running; {remedy}");
    Failure::new(ErrorCode::AlreadyRunning, message).with("sessionId", id)
}

/// The session to bring back.
fn stopped(wanted: &str) -> Result<SessionId, Failure> {
    let found = discover::stored()?
        .into_iter()
        .find(|session| session.info.id.as_str() == wanted || session.info.name == wanted);
    match found {
        Some(session) if session.state == SessionState::Live => Err(already_running(
            &session.info.id,
            "there is nothing to bring back",
        )),
        Some(session) => Ok(session.info.id),
        None => Err(discover::unknown(Some(wanted))),
    }
}

/// Starts the host and waits until it is ready.
async fn start(args: &Args, stopped: Option<&SessionId>) -> Result<Ready, Failure> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["host", "--detached", "--json"]);
    if let Some(name) = &args.name {
        command.arg(format!("--name={name}"));
    }
    if let Some(id) = stopped {
        command.arg(format!("--session={id}"));
    }
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

/// Makes a desktop unless there is one.
async fn make_desktop(args: &Args, session: &Session) -> Result<(), Failure> {
    let list: ListResult = session.call(Method::List, &ListParams {}).await?;
    if list.desktops.is_empty() {
        let params = DesktopNewParams {
            size: args.size,
            ..Default::default()
        };
        let _: DesktopNewResult = session.call_patiently(Method::DesktopNew, &params).await?;
    }
    Ok(())
}
