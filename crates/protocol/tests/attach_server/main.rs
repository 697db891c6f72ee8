//! A program's own agents behind an attach socket, with the documented client and with bare lines.

mod clients;
mod place;
mod told;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use handover_protocol::client::{ANSWER_TIMEOUT, CONNECT_TIMEOUT, Client, Notifications};
use handover_protocol::server::{AgentControl, AttachServer};
use handover_protocol::{
    AbortParams, AbortResult, AgentId, AgentState, AgentStatus, AgentView, CallerView, ErrorCode,
    Method, Refusal, ResultParams, ResultResult, SteerParams, SteerResult, SteerState,
};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::sync::Semaphore;

/// Longer than anything here takes, so that a fault is a failure and not a hang.
const PATIENCE: Duration = Duration::from_secs(60);

/// Agents that only note what they are told. `a0` and its child `a1` at first; a steer of `slow` waits,
/// one of `panic` panics.
struct Noted {
    agents: Mutex<Vec<AgentView>>,
    steers: Mutex<Vec<String>>,
    slow: Semaphore,
    /// Slow steers that came to their end.
    finished: AtomicUsize,
}

impl Noted {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            agents: Mutex::new(vec![agent(0, None), agent(1, Some("a0".into()))]),
            steers: Mutex::default(),
            slow: Semaphore::new(0),
            finished: AtomicUsize::new(0),
        })
    }
}

fn agent(number: usize, parent: Option<AgentId>) -> AgentView {
    AgentView {
        id: format!("a{number}").into(),
        name: format!("agent {number}"),
        kind: "noted".into(),
        status: AgentStatus::Running,
        depth: u32::from(parent.is_some()),
        parent,
        task: "to note".into(),
        started_at: None,
        output_file: None,
        pending: 0,
        not_steerable: None,
        tokens: None,
    }
}

fn known(agents: &[AgentView], id: &AgentId) -> Result<AgentView, Refusal> {
    let found = agents.iter().find(|agent| agent.id == *id).cloned();
    found.ok_or_else(|| Refusal::new(ErrorCode::AgentUnknown, "there is no such agent"))
}

impl AgentControl for Noted {
    async fn list(&self) -> Vec<AgentView> {
        self.agents.lock().unwrap().clone()
    }

    async fn steer(&self, _: &CallerView, params: SteerParams) -> Result<SteerResult, Refusal> {
        known(&self.agents.lock().unwrap(), &params.id)?;
        let text = params.text.into_inner();
        assert_ne!(text, "panic");
        if text == "slow" {
            self.slow.acquire().await.unwrap().forget();
            self.finished.fetch_add(1, Ordering::SeqCst);
        }
        self.steers.lock().unwrap().push(text);
        Ok(SteerResult {
            steer_id: params.steer_id.unwrap_or_else(|| "s1".into()),
            state: SteerState::Accepted,
            reason: None,
        })
    }

    async fn abort(&self, _: &CallerView, params: AbortParams) -> Result<AbortResult, Refusal> {
        let mut agents = self.agents.lock().unwrap();
        known(&agents, &params.id)?;
        let mut descendants = Vec::new();
        for agent in agents.iter_mut() {
            let below = agent.parent.as_ref() == Some(&params.id);
            if below || agent.id == params.id {
                agent.status = AgentStatus::Aborted;
            }
            if below {
                descendants.push(AgentState {
                    id: agent.id.clone(),
                    status: agent.status,
                });
            }
        }
        Ok(AbortResult {
            id: params.id,
            status: AgentStatus::Aborted,
            descendants,
            survivors: Vec::new(),
        })
    }

    async fn result(&self, params: ResultParams) -> Result<ResultResult, Refusal> {
        let agent = known(&self.agents.lock().unwrap(), &params.id)?;
        Ok(ResultResult {
            id: params.id,
            status: agent.status,
            text: self.steers.lock().unwrap().join(" "),
            error: None,
            finished_at: None,
        })
    }
}

/// A server of [`Noted`] agents in a directory of its own.
struct Served {
    /// Above the server's directory, which is `here`.
    _above: tempfile::TempDir,
    dir: PathBuf,
    agents: Arc<Noted>,
    server: AttachServer,
}

impl Served {
    async fn new() -> Self {
        let above = tempfile::tempdir().unwrap();
        let dir = above.path().join("here");
        let agents = Noted::new();
        let server = AttachServer::bind(&dir, Arc::clone(&agents)).await.unwrap();
        Self {
            _above: above,
            dir,
            agents,
            server,
        }
    }

    async fn client(&self) -> (Client, Notifications) {
        let path = self.server.socket_path();
        Client::connect(&path, CONNECT_TIMEOUT).await.unwrap()
    }

    async fn bare(&self) -> Bare {
        Bare::connect(&self.server.socket_path()).await
    }
}

/// A client of bare lines.
struct Bare(BufReader<UnixStream>);

impl Bare {
    async fn connect(path: &Path) -> Self {
        Self(BufReader::new(UnixStream::connect(path).await.unwrap()))
    }

    async fn send(&mut self, bytes: &[u8]) {
        let sent = tokio::time::timeout(PATIENCE, self.0.write_all(bytes));
        sent.await.expect("the server reads").unwrap();
    }

    async fn ask(&mut self, id: u64, method: &str, params: Value) {
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.send(format!("{request}\n").as_bytes()).await;
    }

    /// The next line; `None` at the end.
    async fn next(&mut self) -> Option<Value> {
        let mut line = String::new();
        let read = tokio::time::timeout(PATIENCE, self.0.read_line(&mut line));
        read.await.expect("the server answers").unwrap();
        (!line.is_empty()).then(|| serde_json::from_str(&line).unwrap())
    }

    async fn call(&mut self, id: u64, method: &str, params: Value) -> Value {
        self.ask(id, method, params).await;
        loop {
            let answer = self.next().await.expect("an answer");
            if answer["id"] == id {
                return answer;
            }
        }
    }
}

/// Waits until `condition` holds.
async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let waited = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waited).await.expect(what);
}

fn steer(id: &str, text: &str) -> SteerParams {
    SteerParams {
        id: id.into(),
        text: text.into(),
        steer_id: None,
        when: None,
        wait: None,
        timeout_ms: None,
    }
}

const ANSWER: Option<Duration> = Some(ANSWER_TIMEOUT);
