//! What the manager asks of the host around it: the record, processes, and people.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;

use handover_protocol::{Actor, AgentId, DesktopId, RequestId, Source};
use serde_json::{Map, Value};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::driver::Program;

/// A future without a name.
pub type Pending<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Who wants something of the manager, proven by the host.
#[derive(Clone, Debug, PartialEq)]
pub struct By {
    /// The process.
    pub actor: Actor,
    /// Whether it is a person, an agent or the host itself.
    pub source: Source,
}

impl By {
    /// The agent that it is, if the host knows it.
    pub fn agent(&self) -> Option<&AgentId> {
        self.actor.agent.as_ref()
    }
}

/// One event of the record.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// What happened, such as `steer`.
    pub kind: &'static str,
    /// Who caused it; the host itself if `None`.
    pub by: Option<By>,
    /// The agent that it is about.
    pub agent: AgentId,
    /// What else there is to say.
    pub fields: Map<String, Value>,
}

/// Events and the stored state that they explain, kept together or not at all.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Change {
    /// What happened, in this order.
    pub entries: Vec<Entry>,
    /// State by key; `None` removes it.
    pub state: Vec<(String, Option<Value>)>,
}

/// Why the record did not take a change. Nothing of it is kept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotRecorded(pub String);

/// What a program is started with.
#[derive(Clone, Debug)]
pub struct Start {
    /// The program.
    pub program: Program,
    /// Where it works.
    pub cwd: PathBuf,
    /// Environment variables that whoever asked for the agent gave.
    pub env: BTreeMap<String, String>,
    /// The desktop that it uses.
    pub desktop: Option<DesktopId>,
    /// Whether it gets DISPLAY and XAUTHORITY of that desktop.
    pub display: bool,
}

/// How a program ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exit {
    /// Whether it returned 0.
    pub success: bool,
    /// In words: `exit code 1`, `signal 9`.
    pub how: String,
}

/// A program that was started, below a keeper of its own.
pub struct Started {
    /// Its standard input; dropped, it is closed.
    pub stdin: Box<dyn AsyncWrite + Send + Unpin>,
    /// Its standard output, to its end.
    pub stdout: Box<dyn AsyncRead + Send + Unpin>,
    /// Its standard error, to its end.
    pub stderr: Box<dyn AsyncRead + Send + Unpin>,
    /// Comes when the program itself has ended; what it started may go on.
    pub exited: Pending<Exit>,
    /// Everything below the keeper.
    pub tree: Box<dyn Tree>,
}

/// The processes of one agent.
pub trait Tree: Send + Sync {
    /// TERM to all, after `grace` KILL until none is left, then the keeper itself. Answers the pids
    /// that could not be ended; empty unless one hangs in the kernel.
    fn end(&self, grace: Duration) -> Pending<Vec<u32>>;
}

/// A question that people were asked.
pub struct Asked {
    /// The request that it is listed as.
    pub request: RequestId,
    /// Their answer in words, or `None` if the question was cancelled. Dropped, the question is
    /// withdrawn.
    pub answer: Pending<Option<String>>,
}

/// The host around the manager.
pub trait Environment: Send + Sync + 'static {
    /// Stores a change; it is durable when this answers. Changes are ordered as the calls are made,
    /// before the first await.
    fn record(&self, change: Change) -> Pending<Result<(), NotRecorded>>;
    /// The same for what must not be refused: kept in memory while the disk takes nothing. True if it
    /// is durable.
    fn record_spooled(&self, change: Change) -> Pending<bool>;
    /// The same without waiting, for what nothing depends on.
    fn record_soon(&self, change: Change);
    /// False while the record takes nothing.
    fn healthy(&self) -> bool;
    /// The state under keys that begin so, in the order of the keys: of those after `after`, at most
    /// `limit`.
    fn stored(
        &self,
        prefix: &str,
        after: &str,
        limit: usize,
    ) -> Pending<Result<Vec<(String, Value)>, NotRecorded>>;
    /// The state under one key.
    fn stored_at(&self, key: &str) -> Pending<Result<Option<Value>, NotRecorded>>;

    /// Whether an agent of another live session has this name.
    fn is_taken(&self, id: &AgentId) -> bool;
    /// Where an agent's output goes. Its directory exists.
    fn output_file(&self, id: &AgentId) -> PathBuf;
    /// Where an agent's errors go. Its directory exists.
    fn error_file(&self, id: &AgentId) -> PathBuf;
    /// Starts a program below a keeper; from then on what runs there is known as this agent. The error
    /// is for people.
    fn start(&self, id: &AgentId, start: Start) -> Pending<Result<Started, String>>;

    /// Checks that the session has this desktop.
    ///
    /// # Errors
    /// `desktop_unknown`.
    fn check_desktop(&self, desktop: &DesktopId) -> Result<(), handover_protocol::Refusal>;
    /// What an agent whose turn has ended still waits for, in words: an answer of a person, or one of
    /// the desktops that it uses. None if for nothing.
    fn waits_for(&self, id: &AgentId, desktops: &[DesktopId]) -> Option<String>;
    /// Asks people whether the agent may do something. The error is for people.
    fn ask(
        &self,
        id: &AgentId,
        desktop: Option<&DesktopId>,
        what: &str,
    ) -> Pending<Result<Asked, String>>;

    /// The list of agents has changed.
    fn changed(&self);
    /// The host, where it speaks for itself.
    fn host(&self) -> Actor;
    /// The present time, for people.
    fn now(&self) -> handover_protocol::Timestamp;
}
