//! The host's side of a keeper.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::de::DeserializeOwned;
use thiserror::Error;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::process::{Child, Command};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;

use super::leftovers;
use super::pipes::{Channel, ChannelPipes, Piped, Pipes};
use super::wire::{
    Exit, KeeperLine, KeeperStatus, Launch, MARKER, MAX_LINE, Request, RequestLine, ServerAccess,
};
use super::{Arguments, Owner, SUBCOMMAND};
use crate::system::cgroup::Cgroup;
use crate::system::creds;
use crate::system::descriptors;
use crate::system::process::{self, ProcessIdentity, Stat};
use crate::system::socket::{self, BindError};

/// How long a keeper may take to start and to answer.
const DEADLINE: Duration = Duration::from_secs(5);

/// How often the host looks at what is below a keeper, for the case that it dies.
const LOOK: Duration = Duration::from_secs(5);

/// The program that is the keeper, and the arguments that make it one.
#[derive(Debug, Clone)]
pub struct KeeperProgram {
    /// The executable.
    pub exe: PathBuf,
    /// What precedes the keeper's own arguments.
    pub args: Vec<OsString>,
}

impl KeeperProgram {
    /// This very executable, also when its file was replaced meanwhile: `handover keeper …`.
    pub fn own() -> Self {
        Self {
            exe: PathBuf::from("/proc/self/exe"),
            args: vec![SUBCOMMAND.into()],
        }
    }
}

/// What a new keeper is told.
#[derive(Debug, Clone)]
pub struct KeeperOptions {
    /// The session, for `ps` and for callers' lineage.
    pub session: String,
    /// Whose tree it keeps.
    pub owner: Owner,
    /// Where it listens, in a directory that was checked.
    pub socket: PathBuf,
    /// Its own log, appended.
    pub log: PathBuf,
    /// How long it goes on with no host connected; zero ends it with the host.
    pub orphan_timeout: Duration,
}

/// Why a keeper did not do what was asked.
#[derive(Debug, Error)]
pub enum KeeperError {
    /// Its socket's path is too long.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// It could not be started.
    #[error("cannot start the keeper: {0}")]
    Start(io::Error),
    /// It did not answer within its deadline.
    #[error("the keeper did not answer within {} ms", .0.as_millis())]
    Timeout(Duration),
    /// It is gone, or closed the connection.
    #[error("the keeper is gone")]
    Gone,
    /// Whoever listens on the socket is not the process that was expected.
    #[error("{} is not served by the keeper on record", path.display())]
    NotTheOne {
        /// The socket.
        path: PathBuf,
    },
    /// It refused, or could not do it; its own words.
    #[error("{0}")]
    Refused(String),
    /// The connection broke.
    #[error("cannot speak with the keeper: {0}")]
    Io(#[from] io::Error),
}

/// News from a keeper.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeeperEvent {
    /// A display server has ended: the one that serves, or one that did not come up before it.
    ServerExited {
        /// Its pid.
        pid: u32,
        /// How.
        exit: Exit,
    },
    /// A launched program has ended; what it started may go on.
    ChildExited {
        /// Its pid.
        pid: u32,
        /// How.
        exit: Exit,
    },
    /// The keeper has ended or closed the connection; the last event. What was below it is killed by
    /// [`Keeper::kill_leftovers`].
    Gone,
}

/// A connection to one keeper. Clones share it. When the last is dropped, the connection closes and
/// the keeper goes on without a host.
#[derive(Debug, Clone)]
pub struct Keeper {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    process: ProcessIdentity,
    writer: tokio::sync::Mutex<OwnedWriteHalf>,
    shared: Arc<Shared>,
    /// That of its tree, where there is one.
    group: Option<Cgroup>,
    /// Held so that the reader ends when the last handle is dropped.
    _alive: watch::Sender<()>,
}

/// What the reading task and the handles share.
#[derive(Debug)]
struct Shared {
    calls: Mutex<Calls>,
    /// What was below the keeper at the last looks, living or not.
    seen: Mutex<HashSet<ProcessIdentity>>,
}

#[derive(Debug, Default)]
struct Calls {
    last: u64,
    /// Set when the connection has closed: no answer will come any more.
    closed: bool,
    waiting: HashMap<u64, oneshot::Sender<Result<serde_json::Value, String>>>,
}

impl Keeper {
    /// Starts a keeper and connects to it. Its own environment is empty. It stays our child until it
    /// ends, and is then collected.
    pub async fn start(
        program: &KeeperProgram,
        options: &KeeperOptions,
    ) -> Result<(Self, mpsc::UnboundedReceiver<KeeperEvent>), KeeperError> {
        socket::check_path(&options.socket)?;
        let log = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(&options.log)
            .map_err(KeeperError::Start)?;
        let arguments = Arguments {
            session: options.session.clone(),
            owner: options.owner.clone(),
            socket: options.socket.clone(),
            orphan_timeout: options.orphan_timeout,
        };
        let mut command = Command::new(&program.exe);
        command
            .arg0("handover")
            .args(&program.args)
            .args(arguments.to_args())
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log);
        let (mut child, process) =
            leftovers::start_keeper(|| command.spawn()).map_err(KeeperError::Start)?;
        // Before anything is started below it.
        if let Err(error) = descriptors::restore_for(process.pid) {
            tracing::warn!(%error, pid = process.pid, "a keeper goes on with the host's limit of open files");
        }
        match Self::connect_to_child(&mut child, process, options).await {
            Ok((opened, reader)) => opened.run(reader, Some(child)).await,
            Err(error) => {
                // It keeps nothing yet.
                let _ = child.start_kill();
                let _ = child.wait().await;
                Err(error)
            }
        }
    }

    async fn connect_to_child(
        child: &mut Child,
        process: ProcessIdentity,
        options: &KeeperOptions,
    ) -> Result<(Opened, OwnedReadHalf), KeeperError> {
        let mut announced = [0u8; 6];
        let stdout = child.stdout.as_mut().ok_or(KeeperError::Gone)?;
        match timeout(DEADLINE, stdout.read_exact(&mut announced)).await {
            Err(_) => return Err(KeeperError::Timeout(DEADLINE)),
            Ok(Ok(_)) if &announced == b"ready\n" => {}
            Ok(_) => {
                return Err(KeeperError::Start(io::Error::other(format!(
                    "it ended at once; see {}",
                    options.log.display()
                ))));
            }
        }
        Opened::connect(&options.socket, process).await
    }

    /// Connects to a keeper that a former host has started; `expected` and the boot were stored then.
    /// Refuses any other process.
    pub async fn adopt(
        socket: &Path,
        expected: ProcessIdentity,
        boot_id: &str,
    ) -> Result<(Self, mpsc::UnboundedReceiver<KeeperEvent>), KeeperError> {
        if process::boot_id()? != boot_id || !expected.is_alive() {
            return Err(KeeperError::Gone);
        }
        let (opened, reader) = Opened::connect(socket, expected).await?;
        opened.run(reader, None).await
    }

    /// The keeper's process.
    pub fn process(&self) -> ProcessIdentity {
        self.inner.process
    }

    /// The entry that the keeper adds to the environment of all it starts.
    pub fn marker(&self) -> (&'static str, String) {
        (MARKER, super::wire::marker(self.inner.process))
    }

    /// Starts the display server: like [`Keeper::launch`], but it dies with the keeper, and its end is
    /// reported as [`KeeperEvent::ServerExited`]. Refused while an earlier server lives.
    ///
    /// With `access`, the keeper lets go of the mouse buttons that a host holds when it dies.
    pub async fn start_server(
        &self,
        launch: &Launch,
        access: Option<&ServerAccess>,
    ) -> Result<ProcessIdentity, KeeperError> {
        let request = Request::StartServer {
            launch: launch.clone(),
            access: access.cloned(),
        };
        self.call(&request, DEADLINE).await
    }

    /// Starts a program in a session of its own. That it was started says nothing about how it goes:
    /// its end is reported as [`KeeperEvent::ChildExited`].
    pub async fn launch(&self, launch: &Launch) -> Result<ProcessIdentity, KeeperError> {
        let launch = launch.clone();
        let started = self.call(&Request::Launch { launch }, DEADLINE).await?;
        self.inner.shared.saw([started]);
        Ok(started)
    }

    /// Like [`Keeper::launch`], with the program's standard streams in the host's hands instead of its
    /// log: `launch.stdio` is replaced by those of `pipes`. If it fails, the pipes are gone.
    pub async fn launch_piped(
        &self,
        launch: &Launch,
        pipes: Pipes,
    ) -> Result<(ProcessIdentity, Piped), KeeperError> {
        let launch = Launch {
            stdio: Some(pipes.fifos().clone()),
            ..launch.clone()
        };
        let started = self.launch(&launch).await?;
        // By now the program has opened its ends.
        Ok((started, pipes.into_piped()))
    }

    /// Like [`Keeper::launch`], with two more pipes by which the host drives the program: `launch.channel`
    /// is replaced by those of `pipes`. If it fails, the pipes are gone.
    pub async fn launch_driven(
        &self,
        launch: &Launch,
        pipes: ChannelPipes,
    ) -> Result<(ProcessIdentity, Channel), KeeperError> {
        let launch = Launch {
            channel: Some(pipes.fifos().clone()),
            ..launch.clone()
        };
        let started = self.launch(&launch).await?;
        // By now the program has opened its ends.
        Ok((started, pipes.into_channel()))
    }

    /// What it keeps.
    pub async fn status(&self) -> Result<KeeperStatus, KeeperError> {
        let status: KeeperStatus = self.call(&Request::Status, DEADLINE).await?;
        self.inner.shared.saw(status.descendants.iter().copied());
        Ok(status)
    }

    /// Ends everything below the keeper and the keeper itself: TERM, after `grace` KILL until nothing
    /// is left; the display server last, with as much grace of its own. A keeper that does not answer
    /// is killed and what was below it too. Answers what could not be killed: empty unless a process
    /// hangs in the kernel.
    pub async fn end(&self, grace: Duration) -> Vec<ProcessIdentity> {
        let request = Request::End {
            grace_ms: u64::try_from(grace.as_millis()).unwrap_or(u64::MAX),
        };
        // Twice the grace and twice the keeper's own patience with what does not die.
        let deadline = grace * 2 + DEADLINE * 3;
        // What it keeps may have stopped it. One that has ended needs no waking.
        let _ = self.inner.process.signal(rustix::process::Signal::CONT);
        match self.call(&request, deadline).await {
            Ok(survivors) => survivors,
            Err(error) => {
                tracing::warn!(%error, pid = self.inner.process.pid, "killing a keeper that did not end");
                let _ = self.inner.process.signal(rustix::process::Signal::KILL);
                let gone = async {
                    while self.inner.process.is_alive() {
                        tokio::time::sleep(Duration::from_millis(5)).await;
                    }
                };
                if timeout(DEADLINE, gone).await.is_err() {
                    return vec![self.inner.process];
                }
                self.kill_leftovers().await
            }
        }
    }

    /// After the keeper itself has died: kills what was below it, known by its control group where it has
    /// one, from the last looks, from the marker in the environment, and from having become a child of
    /// ours, each verified by its start time. Answers what is left after five seconds. Does nothing while the keeper lives.
    pub async fn kill_leftovers(&self) -> Vec<ProcessIdentity> {
        let seen = self.inner.shared.seen();
        leftovers::kill(self.inner.process, seen, self.inner.group.as_ref()).await
    }

    /// The same for a keeper that a former host has started, `expected` and the boot as stored then, and
    /// that has ended while there was no host: without the last looks.
    pub async fn kill_leftovers_of(
        expected: ProcessIdentity,
        boot_id: &str,
    ) -> Vec<ProcessIdentity> {
        if process::boot_id().is_ok_and(|boot| boot == boot_id) {
            let group = Cgroup::of_ended(expected);
            leftovers::kill(expected, HashSet::new(), group.as_ref()).await
        } else {
            Vec::new()
        }
    }

    /// The same for a keeper of this boot that another program has started; `seen` is what was below it at
    /// the last looks.
    pub async fn kill_leftovers_seen(
        ended: ProcessIdentity,
        seen: HashSet<ProcessIdentity>,
    ) -> Vec<ProcessIdentity> {
        let group = Cgroup::of_ended(ended);
        leftovers::kill(ended, seen, group.as_ref()).await
    }

    /// Ends what is below a living keeper that another program has started, and then the keeper, without
    /// asking either of them: TERM, after `grace` KILL. Each is verified by its start time.
    pub async fn end_of_another(keeper: ProcessIdentity, grace: Duration) {
        let ending = tokio::task::spawn_blocking(move || super::tree::end_of(keeper, grace));
        if let Err(error) = ending.await {
            tracing::error!(%error, keeper = keeper.pid, "a keeper's tree was not ended");
        }
    }

    async fn call<T: DeserializeOwned>(
        &self,
        request: &Request,
        deadline: Duration,
    ) -> Result<T, KeeperError> {
        let answer = async {
            let (id, receiver) = self.inner.shared.register()?;
            let line = RequestLine {
                id,
                request: serde_json::to_value(request).map_err(io::Error::other)?,
            };
            let mut bytes = serde_json::to_vec(&line).map_err(io::Error::other)?;
            bytes.push(b'\n');
            if bytes.len() > MAX_LINE {
                return Err(KeeperError::Refused(
                    "the command and its environment are too long".to_owned(),
                ));
            }
            self.inner.writer.lock().await.write_all(&bytes).await?;
            let value = receiver
                .await
                .map_err(|_| KeeperError::Gone)?
                .map_err(KeeperError::Refused)?;
            serde_json::from_value(value).map_err(|error| io::Error::other(error).into())
        };
        timeout(deadline, answer)
            .await
            .map_err(|_| KeeperError::Timeout(deadline))?
    }
}

/// A connection whose other end is known, not yet read from.
struct Opened {
    process: ProcessIdentity,
    writer: OwnedWriteHalf,
}

impl Opened {
    async fn connect(
        path: &Path,
        expected: ProcessIdentity,
    ) -> Result<(Self, OwnedReadHalf), KeeperError> {
        let stream = timeout(DEADLINE, UnixStream::connect(path))
            .await
            .map_err(|_| KeeperError::Timeout(DEADLINE))??;
        // For who connects, the kernel tells who listens.
        let peer = creds::peer(&stream)?;
        let is_expected = peer.pid == expected.pid
            && peer.uid == rustix::process::geteuid().as_raw()
            && ProcessIdentity::of(peer.pid).is_ok_and(|found| found == expected);
        if !is_expected {
            return Err(KeeperError::NotTheOne {
                path: path.to_owned(),
            });
        }
        let (reader, writer) = stream.into_split();
        Ok((
            Self {
                process: expected,
                writer,
            },
            reader,
        ))
    }

    async fn run(
        self,
        reader: OwnedReadHalf,
        child: Option<Child>,
    ) -> Result<(Keeper, mpsc::UnboundedReceiver<KeeperEvent>), KeeperError> {
        let shared = Arc::new(Shared {
            calls: Mutex::default(),
            seen: Mutex::default(),
        });
        let (events, receiver) = mpsc::unbounded_channel();
        let (alive, handles) = watch::channel(());
        tokio::spawn(follow(
            self.process,
            reader,
            Arc::clone(&shared),
            events,
            handles,
            child,
        ));
        let keeper = Keeper {
            inner: Arc::new(Inner {
                process: self.process,
                writer: tokio::sync::Mutex::new(self.writer),
                shared,
                group: Cgroup::of(self.process),
                _alive: alive,
            }),
        };
        // The first request makes us its host; until then its orphan timeout runs.
        keeper.status().await?;
        Ok((keeper, receiver))
    }
}

/// Reads the keeper's lines until it is gone or nobody listens, and looks at its tree meanwhile.
async fn follow(
    keeper: ProcessIdentity,
    reader: OwnedReadHalf,
    shared: Arc<Shared>,
    events: mpsc::UnboundedSender<KeeperEvent>,
    mut handles: watch::Receiver<()>,
    child: Option<Child>,
) {
    let mut lines = BufReader::new(reader).lines();
    let mut look = tokio::time::interval(LOOK);
    look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            line = lines.next_line() => match line {
                Ok(Some(line)) => match serde_json::from_str(&line) {
                    Ok(line) => shared.take(line, &events),
                    Err(error) => tracing::warn!(%error, "unreadable line from a keeper"),
                },
                Ok(None) | Err(_) => break,
            },
            // The only change is that the last handle has gone.
            _ = handles.changed() => return,
            _ = look.tick() => shared.look(keeper),
        }
    }
    shared.close();
    if let Some(mut child) = child {
        // A keeper that only closed the connection is left alone; tokio collects it when it ends.
        let _ = timeout(DEADLINE, child.wait()).await;
    }
    let _ = events.send(KeeperEvent::Gone);
}

impl Shared {
    fn calls(&self) -> std::sync::MutexGuard<'_, Calls> {
        // Nothing panics while it is held.
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn register(
        &self,
    ) -> Result<(u64, oneshot::Receiver<Result<serde_json::Value, String>>), KeeperError> {
        let mut calls = self.calls();
        if calls.closed {
            return Err(KeeperError::Gone);
        }
        calls.last += 1;
        let id = calls.last;
        let (sender, receiver) = oneshot::channel();
        calls.waiting.insert(id, sender);
        Ok((id, receiver))
    }

    fn take(&self, line: KeeperLine, events: &mpsc::UnboundedSender<KeeperEvent>) {
        let (id, result) = match line {
            KeeperLine::Done { id, value } => (id, Ok(value)),
            KeeperLine::Failed { id, reason } => (id, Err(reason)),
            KeeperLine::Exited { pid, server, exit } => {
                let event = if server {
                    KeeperEvent::ServerExited { pid, exit }
                } else {
                    KeeperEvent::ChildExited { pid, exit }
                };
                let _ = events.send(event);
                return;
            }
        };
        // A call that has timed out waits no more.
        if let Some(waiting) = self.calls().waiting.remove(&id) {
            let _ = waiting.send(result);
        }
    }

    fn close(&self) {
        let mut calls = self.calls();
        calls.closed = true;
        calls.waiting.clear();
    }

    fn saw(&self, processes: impl IntoIterator<Item = ProcessIdentity>) {
        self.seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(processes);
    }

    fn seen(&self) -> HashSet<ProcessIdentity> {
        self.seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Notes what is below the keeper now and forgets what has ended.
    fn look(&self, keeper: ProcessIdentity) {
        let below = process::descendants_by_children(keeper.pid);
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.retain(ProcessIdentity::is_alive);
        seen.extend(below.iter().map(Stat::identity));
    }
}
