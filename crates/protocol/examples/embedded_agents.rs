//! A program with two agents of its own, in its own process, that people reach as they reach any other:
//!
//! ```text
//! cargo run -p handover-protocol --features server --example embedded_agents
//! handover list
//! handover steer book "look at the other file"
//! handover follow bookkeeper
//! handover abort postman --yes
//! ```
//!
//! The agents are toys: each is a task that takes one message after the other and says what it was told.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use handover_protocol::server::dirs::Roots;
use handover_protocol::server::{AgentControl, AttachServer, Events, Identity};
use handover_protocol::{
    AbortParams, AbortResult, AgentId, AgentStatus, AgentView, CallerView, ErrorCode, Refusal,
    ResultParams, ResultResult, SteerId, SteerParams, SteerResult, SteerState, Timestamp,
};
use tokio::sync::{mpsc, watch};

/// Messages that may wait for a clerk.
const INBOX: usize = 16;

/// How long a clerk takes to think.
const STEP: Duration = Duration::from_millis(50);

/// All agents of the program.
struct Office {
    clerks: Vec<Clerk>,
}

/// One agent, as the rest of the program sees it.
struct Clerk {
    id: AgentId,
    task: String,
    started_at: Timestamp,
    inbox: mpsc::Sender<(SteerId, String)>,
    state: Arc<watch::Sender<State>>,
    /// Told to end.
    aborted: watch::Sender<bool>,
}

/// What changes of an agent.
struct State {
    status: AgentStatus,
    said: String,
    /// Messages that it has not read yet.
    pending: u32,
    steers: u64,
    finished_at: Option<Timestamp>,
}

/// An agent's own side.
struct Work {
    id: AgentId,
    inbox: mpsc::Receiver<(SteerId, String)>,
    state: Arc<watch::Sender<State>>,
    aborted: watch::Receiver<bool>,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let dir = Roots::from_env().runtime()?;
    let dir = dir.join(format!("office-{}", std::process::id()));
    let server = open(&dir, &std::env::current_dir()?).await?;
    println!("{}", server.socket_path().display());
    tokio::signal::ctrl_c().await?;
    server.close().await;
    Ok(())
}

/// Serves two clerks in `dir`, and lets them work on `project`.
pub async fn open(dir: &Path, project: &Path) -> Result<AttachServer, Box<dyn Error>> {
    let (first, work_of_first) = clerk("bookkeeper", "keep the books");
    let (second, work_of_second) = clerk("postman", "file the letters");
    let clerks = vec![first, second];
    let identity = Identity {
        project_dir: project.to_owned(),
        ..Identity::of(dir)?
    };
    let server = AttachServer::bind_as(dir, identity, Office { clerks }).await?;
    for work in [work_of_first, work_of_second] {
        tokio::spawn(work.run(server.events().clone()));
    }
    Ok(server)
}

fn clerk(id: &str, task: &str) -> (Clerk, Work) {
    let (inbox, messages) = mpsc::channel(INBOX);
    let (aborted, ending) = watch::channel(false);
    let state = Arc::new(watch::Sender::new(State {
        status: AgentStatus::Running,
        said: String::new(),
        pending: 0,
        steers: 0,
        finished_at: None,
    }));
    let clerk = Clerk {
        id: id.into(),
        task: task.to_owned(),
        started_at: now(),
        inbox,
        state: Arc::clone(&state),
        aborted,
    };
    let work = Work {
        id: id.into(),
        inbox: messages,
        state,
        aborted: ending,
    };
    (clerk, work)
}

impl Work {
    /// Works until it is told to stop, by an abort or by the word `done`.
    async fn run(mut self, events: Events) {
        events.agent_status(&self.id, AgentStatus::Running, None);
        let status = loop {
            let (steer, text) = tokio::select! {
                message = self.inbox.recv() => match message {
                    Some(message) => message,
                    // The program ends.
                    None => return,
                },
                _ = self.aborted.wait_for(|aborted| *aborted) => break AgentStatus::Aborted,
            };
            self.state.send_modify(|state| state.pending -= 1);
            // It is in the agent's own hands now, and the toy has no model that it could be sent to.
            events.steer(&self.id, &steer, SteerState::Inserted, None);
            tokio::time::sleep(STEP).await;
            let said = format!("I was told: {text}\n");
            events.agent_text(&self.id, &said);
            self.state.send_modify(|state| state.said = said);
            if text == "done" {
                break AgentStatus::Done;
            }
        };
        self.state.send_modify(|state| {
            state.status = status;
            state.finished_at = Some(now());
        });
        // What is still in the inbox will never be read.
        self.inbox.close();
        while let Some((steer, _)) = self.inbox.recv().await {
            self.state.send_modify(|state| state.pending -= 1);
            events.steer(
                &self.id,
                &steer,
                SteerState::Dropped,
                Some("the agent ended"),
            );
        }
        events.agent_status(&self.id, status, None);
    }
}

impl Office {
    fn find(&self, id: &AgentId) -> Result<&Clerk, Refusal> {
        let found = self.clerks.iter().find(|clerk| clerk.id == *id);
        found.ok_or_else(|| {
            Refusal::new(
                ErrorCode::AgentUnknown,
                format!("there is no agent {id}; `list` shows those there are"),
            )
        })
    }
}

impl Clerk {
    fn view(&self) -> AgentView {
        let state = self.state.borrow();
        AgentView {
            id: self.id.clone(),
            name: self.id.to_string(),
            kind: "clerk".to_owned(),
            status: state.status,
            parent: None,
            depth: 0,
            task: self.task.clone(),
            started_at: Some(self.started_at),
            output_file: None,
            pending: state.pending,
            not_steerable: None,
            tokens: None,
        }
    }

    /// Puts a message into the inbox, if the agent still reads it.
    fn put(&self, steer: SteerId, text: String) -> Result<(), Refusal> {
        let mut put = Ok(());
        self.state.send_modify(|state| {
            put = match self.inbox.try_send((steer, text)) {
                Ok(()) => {
                    state.pending += 1;
                    Ok(())
                }
                Err(mpsc::error::TrySendError::Full(_)) => {
                    let message = format!("{INBOX} messages wait for it already: try again later");
                    Err(Refusal::new(ErrorCode::QueueFull, message))
                }
                Err(mpsc::error::TrySendError::Closed(_)) => Err(not_running(state.status)),
            };
        });
        put
    }
}

impl AgentControl for Office {
    async fn list(&self) -> Vec<AgentView> {
        self.clerks.iter().map(Clerk::view).collect()
    }

    async fn steer(&self, _: &CallerView, params: SteerParams) -> Result<SteerResult, Refusal> {
        let clerk = self.find(&params.id)?;
        let steer_id = params.steer_id.unwrap_or_else(|| {
            let mut number = 0;
            clerk.state.send_modify(|state| {
                state.steers += 1;
                number = state.steers;
            });
            format!("{}-{number}", clerk.id).into()
        });
        clerk.put(steer_id.clone(), params.text.into_inner())?;
        Ok(SteerResult {
            steer_id,
            state: SteerState::Accepted,
            reason: None,
        })
    }

    async fn abort(&self, _: &CallerView, params: AbortParams) -> Result<AbortResult, Refusal> {
        let clerk = self.find(&params.id)?;
        let status = clerk.state.borrow().status;
        if status != AgentStatus::Running {
            return Err(not_running(status));
        }
        clerk.aborted.send_replace(true);
        let mut state = clerk.state.subscribe();
        let ended = state.wait_for(|state| state.status != AgentStatus::Running);
        // It cannot fail, since the clerk holds the sender.
        let status = ended.await.map_or(status, |state| state.status);
        Ok(AbortResult {
            id: params.id,
            status,
            descendants: Vec::new(),
            survivors: Vec::new(),
        })
    }

    async fn result(&self, params: ResultParams) -> Result<ResultResult, Refusal> {
        let state = self.find(&params.id)?.state.borrow();
        Ok(ResultResult {
            id: params.id,
            status: state.status,
            text: state.said.clone(),
            error: None,
            finished_at: state.finished_at,
        })
    }
}

fn not_running(status: AgentStatus) -> Refusal {
    let message = "it has ended; `result` has what it said last";
    Refusal::new(ErrorCode::AgentNotRunning, message).with("status", status)
}

fn now() -> Timestamp {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    Timestamp::from_unix(now.unwrap_or_default())
}
