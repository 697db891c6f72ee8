//! The host from start to end.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use handover_agents::driver::ToolServer;
use handover_agents::environment::NotRecorded;
use handover_agents::{By, Manager, Settings};
use handover_protocol::{
    DesktopNewParams, ErrorCode, Manifest, PROTOCOL_VERSION, Refusal, SessionId, Size, Source,
};
use handover_store::{Limits, Mode, Options, Store, StoreError};
use serde::Serialize;
use tokio::sync::watch;

use crate::agents::{self, AgentHost, Agents, Newsroom};
use crate::attach::{ConnectionLimits, Desktop, OPEN_FILES, Outlets, Parts, Server};
use crate::callers::{self, Caller, CallerKind, Callers, ConnectionId, Evidence};
use crate::desktop::RelayedServers;
use crate::desktops::{DesktopSet, Shared};
use crate::heads;
use crate::keeper::client::KeeperProgram;
use crate::manifest::{self, ManifestWriter};
use crate::notices::{self, Notices, NotifierProgram};
use crate::requests::Requests;
use crate::served::{Listening, Served, follow, list_in};
use crate::session::{self, Session, SessionError, SessionState};
use crate::sweep;
use crate::system::dirs::{DirError, Roots};
use crate::system::lock::{FileLock, LockError};
use crate::system::process::{self, ProcessIdentity};
use crate::system::signals::StopSignals;
use crate::system::{clock, descriptors, memory, prctl, socket};

/// How long a session that ended without order is kept at least, to be brought back.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(7 * 24 * 3600);

/// How long hosts that start at the same time wait for each other.
const START_WITHIN: Duration = Duration::from_secs(10);

/// How long a host that starts waits before it looks again.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// How long answers that are under way may take when the host ends.
const CLOSE_GRACE: Duration = Duration::from_secs(1);

/// What a host is to be.
#[derive(Debug, Clone)]
pub struct HostOptions {
    /// A stopped or crashed session to bring back; a new one if not given.
    pub session: Option<SessionId>,
    /// The project, absolute.
    pub project_dir: PathBuf,
    /// The session's name for people; the project directory's if not given.
    pub name: Option<String>,
    /// Goes ahead although the project has a live session.
    pub another: bool,
    /// Makes a desktop of this size at once.
    pub desktop: Option<Size>,
    /// How long a desktop goes on without a host.
    pub orphan_timeout: Duration,
    /// The most agents that work at once.
    pub max_agents: usize,
    /// False to let agents aim by what they saw before a takeover.
    pub observe_guard: bool,
    /// What tells people who look at no client; nothing does without it.
    pub notifier: Option<NotifierProgram>,
}

/// What a host that is ready says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Ready {
    /// The session.
    pub session_id: SessionId,
    /// Its name for people.
    pub name: String,
    /// The host's process.
    pub pid: u32,
    /// The attach socket.
    pub socket_path: String,
    /// Sockets and manifest.
    pub runtime_dir: String,
    /// Record, evidence and logs.
    pub state_dir: String,
    /// The desktops, oldest first.
    pub desktops: Vec<ReadyDesktop>,
}

/// A desktop of a host that is ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReadyDesktop {
    /// Its name.
    pub id: handover_protocol::DesktopId,
    /// Its size in pixels.
    pub size: Size,
}

/// Why a host did not start, or did not end in order.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The project has a live session.
    #[error(
        "session {id} ({name}) of this project is running already; use it, end it with `handover down`, or say `--new` for another"
    )]
    AlreadyRunning {
        /// The session.
        id: SessionId,
        /// Its name.
        name: String,
    },
    /// The session cannot be made or opened.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// A directory is not to be trusted.
    #[error(transparent)]
    Directory(#[from] DirError),
    /// The record cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The agents on record cannot be read, or not be closed.
    #[error("the agents on record cannot be used: {0}; make room on the disk and try again")]
    Agents(NotRecorded),
    /// The attach socket cannot be made.
    #[error(transparent)]
    Bind(#[from] socket::BindError),
    /// The host runs below a keeper: an agent would be its own supervisor.
    #[error(
        "a host cannot be started from within an agent or a desktop; start it from a terminal of your own"
    )]
    BelowKeeper,
    /// The desktop that was asked for did not come up.
    #[error(transparent)]
    Desktop(Refusal),
    /// Other hosts are starting and do not come to an end.
    #[error("another host has been starting for {} s; try again", START_WITHIN.as_secs())]
    Starting,
    /// The kernel refused something.
    #[error("the kernel refused {what}: {source}")]
    System {
        /// What.
        what: &'static str,
        /// What it said.
        source: io::Error,
    },
}

impl HostError {
    /// The stable code of the refusal.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::AlreadyRunning { .. } | Self::Session(SessionError::Held { .. }) => {
                ErrorCode::AlreadyRunning
            }
            Self::Session(SessionError::Unknown(_)) => ErrorCode::SessionUnknown,
            Self::Session(_) | Self::Directory(_) | Self::Store(_) | Self::Agents(_) => {
                ErrorCode::StorageFailed
            }
            Self::BelowKeeper => ErrorCode::CallerRefused,
            Self::Desktop(refusal) => refusal.code,
            Self::Starting => ErrorCode::Timeout,
            Self::Bind(_) | Self::System { .. } => ErrorCode::Internal,
        }
    }
}

fn system(what: &'static str) -> impl Fn(io::Error) -> HostError {
    move |source| HostError::System { what, source }
}

/// Runs a host until it is stopped. `ready` is called once, when clients can
/// connect and the desktop that was asked for shows its first frame.
///
/// # Errors
/// See [`HostError`].
pub fn run(options: &HostOptions, ready: impl FnOnce(&Ready)) -> Result<(), HostError> {
    // An agent that starts a host of its own could call itself a person there.
    if callers::is_below_keeper() {
        return Err(HostError::BelowKeeper);
    }
    memory::share();
    prctl::become_subreaper().map_err(system("a subreaper"))?;
    prctl::forbid_dumps().map_err(system("to forbid dumps"))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(system("threads"))?;
    runtime.block_on(serve(options, ready))
}

/// The session, with its lock held, and its manifest to come. Hosts of one user
/// start one after the other, so that two in one project see each other.
async fn open_session(
    options: &HostOptions,
    roots: &Roots,
) -> Result<(Session, FileLock), HostError> {
    let state_root = roots.state()?;
    let starting = tokio::time::timeout(START_WITHIN, async {
        loop {
            match FileLock::try_acquire(&state_root.join("start.lock")) {
                Ok(lock) => return Ok(lock),
                Err(LockError::Held { .. }) => tokio::time::sleep(LOOK_AGAIN).await,
                Err(error) => return Err(SessionError::Lock(error)),
            }
        }
    })
    .await
    .map_err(|_| HostError::Starting)??;
    if let Err(error) = sweep::sweep_dead(roots) {
        tracing::warn!(%error, "failed to sweep");
    }
    if let Some(id) = &options.session {
        return Ok((Session::reopen(roots, id)?, starting));
    }
    let project = options.project_dir.to_string_lossy();
    let live = manifest::discover_in(roots).live.into_iter();
    // A program with agents of its own in this project is no session with desktops.
    let hosts = live.filter(|found| !found.is_embedded());
    let same = hosts
        .map(|found| found.manifest)
        .filter(|manifest| manifest.project_dir == project)
        .map(|manifest| (manifest.session_id, manifest.name))
        .next();
    if let Some((id, name)) = same
        && !options.another
    {
        return Err(HostError::AlreadyRunning { id, name });
    }
    let session = Session::create(roots, &options.project_dir, options.name.as_deref())?;
    Ok((session, starting))
}

async fn serve(options: &HostOptions, ready: impl FnOnce(&Ready)) -> Result<(), HostError> {
    let roots = Roots::from_env();
    let (session, starting) = open_session(options, &roots).await?;
    log_to(&session.paths().logs());
    prune(&roots);
    let mode = if options.session.is_some() {
        Mode::Existing
    } else {
        Mode::Create
    };
    let options_of_store = Options {
        on_disk_only: handover_agents::BULK,
        ..Options::new(mode)
    };
    let store = Store::open(&session.paths().state_dir, options_of_store)?;
    let outlets = Outlets::new();
    let requests = Arc::new(Requests::open(store.clone()).await?);
    let (changes, changed) = watch::channel(0);
    let (newsroom, news) = Newsroom::new();
    requests.tell(newsroom.clone());
    let telling_people = options.notifier.clone().map(|notifier| {
        let info = session.info();
        let (notices, queue) = Notices::new(info.id.clone(), info.name.clone());
        requests.notify(notices.clone());
        let log = session.paths().logs().join("notifier.log");
        (notices, tokio::spawn(notices::feed(notifier, queue, log)))
    });
    let known_agents = Arc::new(OnceLock::new());
    let listening = Arc::new(Listening {
        requests: requests.clone(),
        agents: known_agents.clone(),
        newsroom,
        notices: telling_people.as_ref().map(|(notices, _)| notices.clone()),
        changes: changes.clone(),
    });
    let callers = Arc::new(Callers::new());
    let admit = {
        let callers = callers.clone();
        move |sender, accepted| {
            let caller = callers.identify(sender, ConnectionId(0), accepted)?;
            match caller.kind {
                CallerKind::Human { .. } => Ok(()),
                CallerKind::Agent { .. } | CallerKind::App { .. } => Err(Refusal::new(
                    ErrorCode::CallerRefused,
                    "only a person's viewer may connect here; take a screenshot instead",
                )),
            }
        }
    };
    let admit_to_browser = {
        let callers = callers.clone();
        move |sender, accepted| {
            let mut caller = callers.identify(sender, ConnectionId(0), accepted)?;
            // A person acts in the window; the protocol is for agents, whoever has started their program.
            caller.give_up_power();
            match caller.kind {
                CallerKind::Human { .. } | CallerKind::Agent { .. } => Ok(caller),
                CallerKind::App { .. } => Err(Refusal::new(
                    ErrorCode::CallerRefused,
                    "a program on a desktop may not drive its browser",
                )),
            }
        }
    };
    let desktops = Arc::new(DesktopSet::new(Shared {
        session: session.info().id.to_string(),
        paths: session.paths().clone(),
        project_dir: PathBuf::from(&session.info().project_dir),
        store: store.clone(),
        outlets: outlets.clone(),
        relayed: RelayedServers::open(&store).await?,
        hooks: listening,
        admit: Arc::new(admit),
        admit_to_browser: Arc::new(admit_to_browser),
        orphan_timeout: options.orphan_timeout,
        observe_guard: options.observe_guard,
    }));
    agents::end_leftovers(&store).await?;
    desktops.adopt_all().await?;
    let around = AgentHost::new(agents::Parts {
        session: session.info().id.to_string(),
        paths: session.paths().clone(),
        keeper: KeeperProgram::own(),
        roots,
        store: store.clone(),
        callers: callers.clone(),
        desktops: Arc::downgrade(&desktops),
        requests: requests.clone(),
        changes,
    });
    let manager = open_agents(options, &session, around).await?;
    // Reading the tasks of thousands of agents takes much once.
    memory::give_back();
    // Nobody but this line sets it.
    let _ = known_agents.set(manager.clone());
    let telling_agents = tokio::spawn(agents::tell(
        manager.clone(),
        Arc::downgrade(&desktops),
        requests.clone(),
        news,
    ));

    let listener = socket::bind_private(&session.paths().attach_socket())?;
    let manifest = ManifestWriter::start(session.paths().manifest(), manifest_of(&session)?)
        .map_err(system("the manifest"))?;
    // From here on the others can see this host.
    drop(starting);
    let following = tokio::spawn(follow(
        Arc::downgrade(&desktops),
        manager.clone(),
        manifest.clone(),
        changed,
    ));
    let telling = tokio::spawn(heads::follow(store.clone(), session.info().id.clone()));
    let (stop, mut stopped) = watch::channel(None);
    let served = Arc::new(Served {
        id: session.info().id.clone(),
        callers,
        desktops: desktops.clone(),
        agents: Agents::new(manager.clone()),
        store: store.clone(),
        stop,
    });
    let server = Server::start(
        listener,
        Parts {
            session: served,
            store: store.clone(),
            requests,
            outlets,
            limits: connection_limits(),
        },
    )
    .map_err(system("the attach socket"))?;
    let mut signals = StopSignals::new().map_err(system("signals"))?;

    let begun = first_desktop(options, &desktops).await;
    if begun.is_ok() {
        // Whoever is told that it is ready finds in the manifest what there is.
        list_in(&manifest, &desktops, &manager);
        if let Err(error) = manifest.flush() {
            tracing::warn!(%error, "the manifest is out of date");
        }
        ready(&ready_of(&session, &desktops));
        tracing::info!(session = %session.info().id, "ready");
        tokio::select! {
            signal = signals.recv() => tracing::info!(?signal, "stopping"),
            _ = stopped.wait_for(Option::is_some) => tracing::info!("stopping"),
        }
    }
    let by = stopped.borrow().clone();
    manager
        .close(&by.as_ref().map_or_else(by_itself, By::from))
        .await;
    end_desktops(&desktops, by.as_ref()).await;
    server.close(CLOSE_GRACE).await;
    following.abort();
    telling.abort();
    telling_agents.abort();
    if let Some((_, telling_people)) = telling_people {
        telling_people.abort();
    }
    heads::tell(&store, &session.info().id);
    manifest.close();
    let closed = store.close().await;
    // Also when the disk did not take the last events: nothing of the session is left to run.
    session.end()?;
    closed?;
    begun.map_err(HostError::Desktop)
}

/// The session's agents: those of a former host have ended with it.
async fn open_agents(
    options: &HostOptions,
    session: &Session,
    around: AgentHost,
) -> Result<Manager, HostError> {
    let settings = Settings {
        limits: handover_agents::Limits::new(options.max_agents),
        project_dir: PathBuf::from(&session.info().project_dir),
        tools: tools(session),
        drivers: handover_agents::driver::create,
    };
    Manager::open(Arc::new(around), settings)
        .await
        .map_err(HostError::Agents)
}

async fn first_desktop(options: &HostOptions, desktops: &DesktopSet) -> Result<(), Refusal> {
    let Some(size) = options.desktop else {
        return Ok(());
    };
    // A session that is brought back with a surviving desktop has one.
    if !desktops.all().is_empty() {
        return Ok(());
    }
    let params = DesktopNewParams {
        size: Some(size),
        ..DesktopNewParams::default()
    };
    desktops.new_desktop(&host_itself(), params).await.map(drop)
}

/// As many connections as the files allow that this process may open.
fn connection_limits() -> ConnectionLimits {
    let open_files = descriptors::raise(OPEN_FILES).unwrap_or_else(|error| {
        tracing::warn!(%error, "the limit of open files cannot be raised");
        1024
    });
    let limits = ConnectionLimits::within(open_files);
    if open_files < OPEN_FILES {
        tracing::warn!(
            open_files,
            wanted = OPEN_FILES,
            ?limits,
            "fewer files may be open than usual, so fewer clients may connect; raise the hard limit (`ulimit -Hn`)"
        );
    }
    limits
}

/// Ends control first, everywhere, then the desktops.
async fn end_desktops(desktops: &DesktopSet, by: Option<&Caller>) {
    for desktop in desktops.all() {
        desktop.revoke_for_end(by).await;
    }
    for desktop in desktops.all() {
        desktops.end(&desktop).await;
    }
}

/// The host, where it acts by itself.
fn host_itself() -> Caller {
    let pid = std::process::id();
    Caller {
        kind: CallerKind::Human {
            evidence: Evidence::Lineage,
        },
        uid: rustix::process::getuid().as_raw(),
        pid,
        start_ticks: ProcessIdentity::of(pid).map_or(0, |own| own.start_ticks),
        via: "host".to_owned(),
        connection: ConnectionId(0),
        marked: None,
    }
}

/// The tools that agents' programs are given: this very program, which finds this session whatever
/// environment such a program passes on.
fn tools(session: &Session) -> Option<ToolServer> {
    let own = match std::env::current_exe() {
        Ok(own) => own.display().to_string(),
        Err(error) => {
            tracing::warn!(%error, "agents get no tools: the path of this program is not known");
            return None;
        }
    };
    let mut env = BTreeMap::from([("HANDOVER_SESSION".to_owned(), session.info().id.to_string())]);
    for name in ["XDG_RUNTIME_DIR", "XDG_STATE_HOME"] {
        if let Ok(value) = std::env::var(name) {
            env.insert(name.to_owned(), value);
        }
    }
    Some(ToolServer {
        command: vec![own, "mcp".to_owned()],
        env,
    })
}

/// The host, where it ends agents by itself.
fn by_itself() -> By {
    By {
        source: Source::Host,
        ..By::from(&host_itself())
    }
}

fn manifest_of(session: &Session) -> Result<Manifest, HostError> {
    let own = ProcessIdentity::own().map_err(system("to read /proc"))?;
    Ok(Manifest {
        protocol: PROTOCOL_VERSION,
        session_id: session.info().id.clone(),
        name: session.info().name.clone(),
        project_dir: session.info().project_dir.clone(),
        pid: own.pid,
        start_ticks: own.start_ticks,
        boot_id: process::boot_id()
            .map_err(system("the boot id"))?
            .to_owned(),
        socket_path: session.paths().attach_socket().display().to_string(),
        herdr_pane_id: std::env::var("HERDR_PANE_ID").ok(),
        updated_at: clock::wall(),
        agents: Vec::new(),
        desktops: Vec::new(),
    })
}

fn ready_of(session: &Session, desktops: &DesktopSet) -> Ready {
    let paths = session.paths();
    Ready {
        session_id: session.info().id.clone(),
        name: session.info().name.clone(),
        pid: std::process::id(),
        socket_path: paths.attach_socket().display().to_string(),
        runtime_dir: paths.runtime_dir.display().to_string(),
        state_dir: paths.state_dir.display().to_string(),
        desktops: desktops
            .all()
            .iter()
            .map(|desktop| ReadyDesktop {
                id: desktop.id().clone(),
                size: desktop.size(),
            })
            .collect(),
    }
}

/// Removes the records of old sessions beyond the bound; what fails is tried
/// again by the next host.
fn prune(roots: &Roots) {
    let Ok(root) = roots.state() else {
        return;
    };
    let known = session::list(roots).unwrap_or_default();
    let is_kept = |dir: &Path| {
        known
            .iter()
            .filter(|session| session.state_dir == dir)
            .any(|session| match session.state {
                SessionState::Live => true,
                SessionState::Crashed | SessionState::Damaged => !is_older(dir, FORGOTTEN_AFTER),
                SessionState::Ended => false,
            })
    };
    match handover_store::prune(&root, Limits::default(), is_kept) {
        Ok(pruned) => {
            for dir in pruned.removed {
                tracing::info!(dir = %dir.display(), "removed the record of an old session");
            }
        }
        Err(error) => tracing::warn!(%error, "failed to prune"),
    }
}

/// Whether nothing in a directory has changed for so long; not if that cannot be seen.
fn is_older(dir: &Path, age: Duration) -> bool {
    let latest = std::fs::read_dir(dir)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.metadata().ok()?.modified().ok())
        .max();
    latest.is_some_and(|latest| latest.elapsed().is_ok_and(|since| since > age))
}

/// The log of this host. A host that cannot write it works all the same.
fn log_to(logs: &Path) {
    let path = logs.join("host.log");
    let file = std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(&path);
    if let Ok(file) = file {
        let subscriber = tracing_subscriber::fmt()
            .with_writer(std::sync::Mutex::new(file))
            .with_ansi(false)
            .with_max_level(tracing::Level::INFO)
            .finish();
        // A test that runs a host within itself has set its own.
        let _ = tracing::subscriber::set_global_default(subscriber);
    }
}
