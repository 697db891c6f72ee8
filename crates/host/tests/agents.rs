//! Agents' programs below real keepers: their streams, their environment, their names, their ends.

mod support;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use handover_agents::driver::{Framing, Program};
use handover_agents::environment::{Environment, Exit, Start, Started};
use handover_host::agents::{AgentHost, Parts, end_leftovers};
use handover_host::attach::Outlets;
use handover_host::callers::Callers;
use handover_host::desktop::{HandedBack, Hooks, RelayedServers};
use handover_host::desktops::{DesktopSet, Shared};
use handover_host::requests::Requests;
use handover_host::session::Session;
use handover_host::system::dirs::Roots;
use handover_host::system::process::ProcessIdentity;
use handover_protocol::{AgentId, DesktopId, HandBack, LeaseWarning, RequestView};
use handover_store::{Mode, Options, Store};
use rustix::process::Signal;
use serde_json::json;
use support::{ended, pid_in, program};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::watch;

const GRACE: Duration = Duration::from_millis(300);

struct Nothing;

impl Hooks for Nothing {
    fn changed(&self, _: &DesktopId) {}
    fn gone(&self, _: &DesktopId) {}
    fn taken(&self, _: &DesktopId, _: &str) {}
    fn handed_back(&self, _: &DesktopId, _: &HandBack) -> HandedBack {
        HandedBack::default()
    }
    fn ending(&self, _: &DesktopId, _: &str, _: &LeaseWarning) {}
    fn requests(&self, _: &DesktopId) -> Vec<RequestView> {
        Vec::new()
    }
}

struct World {
    dir: tempfile::TempDir,
    store: Store,
    host: AgentHost,
    _desktops: Arc<DesktopSet>,
    session: Session,
}

impl World {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::chown(dir.path(), None, None).unwrap();
        let roots = Roots::at(dir.path(), dir.path());
        let session = Session::create(&roots, dir.path(), None).unwrap();
        let paths = session.paths().clone();
        let store = Store::open(&paths.state_dir, Options::new(Mode::Create)).unwrap();
        let desktops = Arc::new(DesktopSet::new(Shared {
            session: session.info().id.to_string(),
            paths: paths.clone(),
            project_dir: dir.path().to_owned(),
            store: store.clone(),
            outlets: Outlets::new(),
            relayed: RelayedServers::open(&store).await.unwrap(),
            hooks: Arc::new(Nothing),
            admit: Arc::new(|_, _| Ok(())),
            admit_to_browser: Arc::new(|_, _| unreachable!("no browser is started")),
            orphan_timeout: Duration::from_secs(60),
            observe_guard: true,
        }));
        let host = AgentHost::new(Parts {
            session: session.info().id.to_string(),
            paths,
            keeper: program(),
            roots,
            store: store.clone(),
            callers: Arc::new(Callers::new()),
            desktops: Arc::downgrade(&desktops),
            requests: Arc::new(Requests::open(store.clone()).await.unwrap()),
            changes: watch::Sender::new(0),
        });
        Self {
            dir,
            store,
            host,
            _desktops: desktops,
            session,
        }
    }

    async fn start(&self, script: &str) -> Started {
        let start = self.host.start(&id(), self.shell(script));
        start.await.unwrap_or_else(|error| panic!("{error}"))
    }

    fn shell(&self, script: &str) -> Start {
        Start {
            program: Program {
                argv: ["sh", "-c", script].map(str::to_owned).to_vec(),
                env: BTreeMap::from([("FROM".to_owned(), "driver".to_owned())]),
                framing: Framing::Lines,
            },
            cwd: self.dir.path().to_owned(),
            env: BTreeMap::from([("ASKED".to_owned(), "yes".to_owned())]),
            desktop: Some("d1".into()),
            display: false,
        }
    }

    /// The keepers on record, once all that was done before is in it.
    async fn keepers(&self) -> Vec<(String, serde_json::Value)> {
        self.store.put("settled", true).await.unwrap();
        self.store.list("agent-keeper/").await.unwrap()
    }

    async fn keeper(&self) -> ProcessIdentity {
        let rows = self.keepers().await;
        let [(_, row)] = &rows[..] else {
            panic!("one keeper is on record: {rows:?}");
        };
        serde_json::from_value(row["process"].clone()).unwrap()
    }
}

fn id() -> AgentId {
    "abc234".into()
}

async fn read(stream: &mut (impl AsyncReadExt + Unpin)) -> String {
    let mut text = String::new();
    let reading = stream.read_to_string(&mut text);
    let within = tokio::time::timeout(Duration::from_secs(20), reading);
    within.await.expect("the stream ends").unwrap();
    text
}

#[tokio::test]
async fn a_program_has_its_streams_its_environment_and_an_end() {
    let world = World::new().await;
    let mut started = world
        .start("read line; echo \"$line $FROM $ASKED $HANDOVER_AGENT $HANDOVER_SESSION ${DISPLAY-none}\"; echo bad >&2; exit 3")
        .await;
    started.stdin.write_all(b"hello\n").await.unwrap();
    let session = world.session.info().id.to_string();
    assert_eq!(
        read(&mut started.stdout).await,
        format!("hello driver yes abc234 {session} none\n")
    );
    assert_eq!(read(&mut started.stderr).await, "bad\n");
    let exit = started.exited.await;
    assert_eq!(
        exit,
        Exit {
            success: false,
            how: "exit code 3".into()
        }
    );
    let keeper = world.keeper().await;
    assert!(started.tree.end(GRACE).await.is_empty());
    ended(keeper).await;
    assert!(started.tree.end(GRACE).await.is_empty(), "once more");
    assert_eq!(world.keepers().await, []);
}

#[tokio::test]
async fn what_cannot_be_started_leaves_nothing() {
    let world = World::new().await;
    let mut start = world.shell("true");
    start.program.argv = vec!["/no/such/program".into()];
    let error = match world.host.start(&id(), start).await {
        Ok(_) => panic!("there is no such program"),
        Err(error) => error,
    };
    assert!(error.contains("/no/such/program"), "{error}");
    let mut start = world.shell("true");
    start.display = true;
    let error = world.host.start(&id(), start).await.err().unwrap();
    assert!(error.contains("d1"), "{error}");
    assert_eq!(world.keepers().await, []);
    let runtime = world.session.paths().runtime_dir.clone();
    assert_eq!(std::fs::read_dir(runtime).unwrap().count(), 0);
}

#[tokio::test]
async fn a_tree_ends_whole_however_its_program_hides() {
    let world = World::new().await;
    let started = world
        .start(
            "trap '' TERM; setsid -f sh -c 'trap \"\" TERM; echo $$ >away; exec sleep 1000'; \
             (sleep 1000 & echo $! >child); while :; do sleep 1; done",
        )
        .await;
    let away = pid_in(&world.dir.path().join("away")).await;
    let child = pid_in(&world.dir.path().join("child")).await;
    assert!(started.tree.end(GRACE).await.is_empty());
    assert!(!away.is_alive() && !child.is_alive());
    assert!(!started.exited.await.success);
}

#[tokio::test]
async fn a_killed_keeper_takes_its_tree_along() {
    let world = World::new().await;
    let started = world
        .start("setsid -f sh -c 'echo $$ >away; exec sleep 1000'; sleep 1000")
        .await;
    let away = pid_in(&world.dir.path().join("away")).await;
    let keeper = world.keeper().await;
    keeper.signal(Signal::KILL).unwrap();
    let exit = started.exited.await;
    assert!(!exit.success && exit.how.contains("keeper"), "{exit:?}");
    assert!(!away.is_alive());
    let runtime = world.session.paths().runtime_dir.clone();
    assert_eq!(std::fs::read_dir(runtime).unwrap().count(), 0);
    assert!(started.tree.end(GRACE).await.is_empty());
}

#[tokio::test]
async fn a_tree_that_is_let_go_ends_by_itself() {
    let world = World::new().await;
    let started = world.start("echo $$ >own; exec sleep 1000").await;
    let own = pid_in(&world.dir.path().join("own")).await;
    drop(started);
    ended(own).await;
}

#[tokio::test]
async fn the_next_host_ends_what_a_dead_one_left() {
    let world = World::new().await;
    let started = world.start("echo $$ >own; exec sleep 1000").await;
    let own = pid_in(&world.dir.path().join("own")).await;
    let keeper = world.keeper().await;
    // A keeper that cannot act, as little as one that was killed together with its host.
    keeper.signal(Signal::STOP).unwrap();
    keeper.signal(Signal::KILL).unwrap();
    ended(keeper).await;
    std::mem::forget(started);
    end_leftovers(&world.store).await.unwrap();
    ended(own).await;
    // A keeper of another boot is nobody's now.
    let row = json!({"process": {"pid": std::process::id(), "startTicks": 1}, "bootId": "other"});
    world.store.put("agent-keeper/x", row).await.unwrap();
    end_leftovers(&world.store).await.unwrap();
    assert_eq!(world.keepers().await, []);
}
