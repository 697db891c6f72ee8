//! The host as the manager of agents sees it.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use handover_agents::environment::{
    Asked, Change, Environment, NotRecorded, Pending, Start, Started,
};
use handover_control::{Control, PauseReason, Phase};
use handover_protocol::{Actor, AgentId, DesktopId, ErrorCode, Refusal, Timestamp};
use handover_store::{Recorded, Store};
use serde_json::Value;
use tokio::sync::watch;

use super::launch;
use super::record::{parts, refused};
use crate::attach::Desktop;
use crate::callers::Callers;
use crate::desktop::DesktopHandle;
use crate::desktops::DesktopSet;
use crate::keeper::client::KeeperProgram;
use crate::manifest::discover_in;
use crate::requests::{Question, Requests};
use crate::session::SessionPaths;
use crate::system::clock;
use crate::system::dirs::Roots;

/// The parts of the host that agents need.
pub struct Parts {
    /// The session.
    pub session: String,
    /// Where its files are.
    pub paths: SessionPaths,
    /// The program that keeps their trees.
    pub keeper: KeeperProgram,
    /// Where other sessions are.
    pub roots: Roots,
    /// The record.
    pub store: Store,
    /// Who is calling.
    pub callers: Arc<Callers>,
    /// The desktops, whose news reach the agents in turn.
    pub desktops: Weak<DesktopSet>,
    /// The requests for a person.
    pub requests: Arc<Requests>,
    /// Told of what changed; the manifest follows.
    pub changes: watch::Sender<u64>,
}

impl Parts {
    /// The desktops, oldest first; none once the session ends.
    pub(super) fn desktops(&self) -> Vec<DesktopHandle> {
        self.desktops
            .upgrade()
            .map(|desktops| desktops.all())
            .unwrap_or_default()
    }
}

/// The host around the manager of agents.
pub struct AgentHost(Arc<Parts>, Mutex<Option<Elsewhere>>);

impl AgentHost {
    /// With these parts.
    pub fn new(parts: Parts) -> Self {
        Self(Arc::new(parts), Mutex::default())
    }
}

/// How long what was seen of other sessions holds: a burst of starts looks once. Manifests are not
/// newer than that by much.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// The agents of other sessions.
struct Elsewhere {
    at: Instant,
    agents: HashSet<AgentId>,
}

impl Elsewhere {
    fn look(parts: &Parts) -> Self {
        let others = discover_in(&parts.roots).live.into_iter();
        let agents = others
            .filter(|found| found.manifest.session_id.as_str() != parts.session)
            .flat_map(|found| found.manifest.agents)
            .map(|agent| agent.id)
            .collect();
        Self {
            at: Instant::now(),
            agents,
        }
    }
}

impl Environment for AgentHost {
    fn record(&self, change: Change) -> Pending<Result<(), NotRecorded>> {
        let (events, puts) = parts(change);
        let stored = self.0.store.append_all(events, puts);
        Box::pin(async move { stored.await.map(drop).map_err(|error| refused(&error)) })
    }

    fn record_spooled(&self, change: Change) -> Pending<bool> {
        let (events, puts) = parts(change);
        let recorded = self.0.store.append_all_spooled(events, puts);
        Box::pin(async move {
            let recorded = recorded.await;
            if recorded == Recorded::Lost {
                tracing::error!("a change of agents found no room in the record");
            }
            matches!(recorded, Recorded::Stored(_))
        })
    }

    fn record_soon(&self, change: Change) {
        let (events, puts) = parts(change);
        self.0.store.append_all_soon(events, puts);
    }

    fn healthy(&self) -> bool {
        self.0.store.healthy()
    }

    fn stored(
        &self,
        prefix: &str,
        after: &str,
        limit: usize,
    ) -> Pending<Result<Vec<(String, Value)>, NotRecorded>> {
        let (store, prefix, after) = (self.0.store.clone(), prefix.to_owned(), after.to_owned());
        Box::pin(async move {
            let page = store.list_page(prefix, after, limit).await;
            page.map_err(|error| refused(&error))
        })
    }

    fn stored_at(&self, key: &str) -> Pending<Result<Option<Value>, NotRecorded>> {
        let (store, key) = (self.0.store.clone(), key.to_owned());
        Box::pin(async move { store.get(key).await.map_err(|error| refused(&error)) })
    }

    fn is_taken(&self, id: &AgentId) -> bool {
        let mut elsewhere = self.1.lock().unwrap_or_else(PoisonError::into_inner);
        let known = elsewhere
            .take()
            .filter(|known| known.at.elapsed() < LOOK_AGAIN);
        let known = known.unwrap_or_else(|| Elsewhere::look(&self.0));
        elsewhere.insert(known).agents.contains(id)
    }

    fn output_file(&self, id: &AgentId) -> PathBuf {
        self.0.paths.agent_output(id)
    }

    fn error_file(&self, id: &AgentId) -> PathBuf {
        self.0.paths.agent_log(id)
    }

    fn start(&self, id: &AgentId, start: Start) -> Pending<Result<Started, String>> {
        Box::pin(launch::start(Arc::clone(&self.0), id.clone(), start))
    }

    fn check_desktop(&self, desktop: &DesktopId) -> Result<(), Refusal> {
        let all = self.0.desktops();
        if all.iter().any(|known| known.id() == desktop) {
            return Ok(());
        }
        let names: Vec<&DesktopId> = all.iter().map(Desktop::id).collect();
        Err(Refusal::new(
            ErrorCode::DesktopUnknown,
            format!(
                "there is no desktop {:?}; `list` shows those there are",
                desktop.as_str()
            ),
        )
        .with("desktops", names))
    }

    fn waits_for(&self, id: &AgentId, desktops: &[DesktopId]) -> Option<String> {
        if let Some(request) = self.0.requests.of_agent(id) {
            return Some(format!("the answer to request {}", request.request_id));
        }
        let all = self.0.desktops();
        let away = all.iter().find(|known| {
            let control = known.control();
            let view = control.borrow();
            let with_agents = view.control == Control::Agent && view.phase == Phase::Steady;
            // What has ended is waited for by nobody.
            let gone = view.pause == Some(PauseReason::DesktopGone);
            desktops.contains(known.id()) && !with_agents && !gone
        })?;
        Some(format!("control of desktop {}", away.id()))
    }

    fn ask(
        &self,
        id: &AgentId,
        desktop: Option<&DesktopId>,
        what: &str,
    ) -> Pending<Result<Asked, String>> {
        let requests = Arc::clone(&self.0.requests);
        let (id, desktop, what) = (id.clone(), desktop.cloned(), what.to_owned());
        Box::pin(async move {
            let asked = requests.ask_permission(&id, desktop, &what).await;
            let request = asked.map_err(|refusal| refusal.message)?;
            let question = Question::new(requests, request.clone());
            Ok(Asked {
                request,
                answer: Box::pin(question.answer()),
            })
        })
    }

    fn changed(&self) {
        self.0.changes.send_modify(|count| *count += 1);
    }

    fn host(&self) -> Actor {
        Actor {
            uid: rustix::process::getuid().as_raw(),
            pid: std::process::id(),
            agent: None,
            via: "host".to_owned(),
            evidence: None,
        }
    }

    fn now(&self) -> Timestamp {
        clock::wall()
    }
}
