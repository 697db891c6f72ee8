//! The relayed server: a process below a keeper of its own, with its standard streams in our hands.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use handover_host::keeper::Owner;
use handover_host::keeper::client::{Keeper, KeeperEvent, KeeperOptions, KeeperProgram};
use handover_host::keeper::pipes::{Piped, Pipes};
use handover_host::keeper::wire::{Exit, Launch};
use handover_host::system::dirs::Roots;
use handover_protocol::{ErrorCode, Refusal};
use tokio::net::unix::pipe;
use tokio::sync::mpsc;

use super::complaints::{self, Complaints};
use super::redact::Redactor;
use super::stdio::PIPE;

/// A server that runs.
#[derive(Debug)]
pub(super) struct Upstream {
    keeper: Keeper,
    events: mpsc::UnboundedReceiver<KeeperEvent>,
    /// The server's own process.
    pid: u32,
    socket: PathBuf,
    /// What it writes to its standard error.
    complaints: Option<Complaints>,
}

/// What is said to it and by it.
#[derive(Debug)]
pub(super) struct Streams {
    /// What it reads.
    pub(super) stdin: pipe::Sender,
    /// What it writes.
    pub(super) stdout: pipe::Receiver,
}

/// What is started, and started again.
#[derive(Clone, Debug)]
pub(super) struct Program {
    /// The server and its arguments.
    pub(super) command: Vec<String>,
    /// Takes secrets out of what it complains.
    pub(super) redactor: Redactor,
}

impl Upstream {
    /// Starts a server in the present directory with the present environment.
    ///
    /// # Errors
    /// If it cannot be started.
    pub(super) async fn start(program: Program) -> Result<(Self, Streams), Refusal> {
        let failed = |error: &dyn std::fmt::Display| {
            Refusal::new(
                ErrorCode::Internal,
                format!("the server cannot be started: {error}"),
            )
        };
        let runtime = Roots::from_env()
            .runtime()
            .map_err(|error| failed(&error))?;
        let id = id().map_err(|error| failed(&error))?;
        let options = KeeperOptions {
            session: "relay".to_owned(),
            owner: Owner::Relay(id.clone()),
            socket: runtime.join(format!(".relay.{id}")),
            // It tells what it could not end, which we find out too.
            log: PathBuf::from("/dev/null"),
            orphan_timeout: Duration::ZERO,
        };
        let started = Keeper::start(&KeeperProgram::own(), &options).await;
        let (keeper, events) = started.map_err(|error| failed(&error))?;
        let mut upstream = Self {
            keeper,
            events,
            pid: 0,
            socket: options.socket,
            complaints: None,
        };
        match upstream.launch(program, &runtime).await {
            Ok(streams) => Ok((upstream, streams)),
            Err(refusal) => {
                upstream.end(Duration::ZERO).await;
                Err(refusal)
            }
        }
    }

    async fn launch(&mut self, program: Program, runtime: &Path) -> Result<Streams, Refusal> {
        let failed =
            |error: &dyn std::fmt::Display| Refusal::new(ErrorCode::Internal, error.to_string());
        let pipes = Pipes::make(runtime).map_err(|error| failed(&error))?;
        let launch = Launch {
            command: program.command,
            cwd: std::env::current_dir().map_err(|error| failed(&error))?,
            env: environment(),
            log: PathBuf::from("/dev/null"),
            stdio: None,
            channel: None,
        };
        let (
            process,
            Piped {
                stdin,
                stdout,
                stderr,
            },
        ) = self
            .keeper
            .launch_piped(&launch, pipes)
            .await
            .map_err(|error| failed(&error))?;
        self.pid = process.pid;
        // Where the kernel does not allow it, records only take more pieces.
        let _ = rustix::pipe::fcntl_setpipe_size(&stdin, PIPE);
        let _ = rustix::pipe::fcntl_setpipe_size(&stdout, PIPE);
        let complaints = complaints::pass_on(stderr, program.redactor);
        self.complaints = Some(complaints.map_err(|error| failed(&error))?);
        Ok(Streams { stdin, stdout })
    }

    /// The pid of its keeper.
    pub(super) fn keeper(&self) -> u32 {
        self.keeper.process().pid
    }

    /// Waits for the end of the server's own process, and tells how it was.
    pub(super) async fn ended(&mut self) -> String {
        loop {
            match self.events.recv().await {
                Some(
                    KeeperEvent::ChildExited { pid, exit }
                    | KeeperEvent::ServerExited { pid, exit },
                ) if pid == self.pid => {
                    return match exit {
                        Exit::Code(code) => format!("the server ended with exit status {code}"),
                        Exit::Signal(signal) => format!("signal {signal} ended the server"),
                    };
                }
                Some(KeeperEvent::ChildExited { .. } | KeeperEvent::ServerExited { .. }) => {}
                Some(KeeperEvent::Gone) | None => {
                    return "the server's keeper has ended".to_owned();
                }
            }
        }
    }

    /// Ends everything below the keeper: TERM, and KILL after `grace`.
    pub(super) async fn end(self, grace: Duration) {
        let mut left = self.keeper.end(grace).await;
        left.extend(self.keeper.kill_leftovers().await);
        for process in left {
            tracing::warn!(
                pid = process.pid,
                "a process of the server cannot be killed"
            );
        }
        if let Some(complaints) = self.complaints {
            complaints.finish().await;
        }
        // Gone already, unless the keeper was killed.
        let _ = std::fs::remove_file(self.socket);
    }
}

/// Our own environment: the server is to run as if there were no relay. What is not UTF-8 is left out.
fn environment() -> BTreeMap<String, String> {
    let own = std::env::vars_os();
    let texts =
        own.filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    texts.collect()
}

fn id() -> Result<String, getrandom::Error> {
    let mut random = [0u8; 6];
    getrandom::fill(&mut random)?;
    Ok(hex::encode(random))
}
