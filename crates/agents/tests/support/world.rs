//! What surrounds a manager, in memory; its processes are real.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use handover_agents::environment::{
    Asked, Change, Entry, Environment, Exit, NotRecorded, Pending, Start, Started, Tree,
};
use handover_protocol::{Actor, AgentId, DesktopId, ErrorCode, Refusal, RequestId, Timestamp};
use serde_json::Value;
use tokio::process::Command;
use tokio::sync::oneshot;

/// The record, the questions, and what is waited for.
#[derive(Debug)]
pub struct World {
    dir: tempfile::TempDir,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    entries: Vec<Entry>,
    stored: BTreeMap<String, Value>,
    full: bool,
    waits: bool,
    questions: Vec<(String, oneshot::Sender<Option<String>>)>,
}

impl World {
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            dir: tempfile::tempdir().unwrap(),
            state: Mutex::default(),
        })
    }

    /// A world whose record is that of this one, as after a crash.
    pub fn after_a_crash(&self) -> Arc<Self> {
        let next = Self::new();
        next.state().stored = self.state().stored.clone();
        next
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The disk takes nothing, or takes everything again.
    pub fn full(&self, full: bool) {
        self.state().full = full;
    }

    /// Agents wait for something when their turn ends.
    pub fn waits(&self, waits: bool) {
        self.state().waits = waits;
    }

    /// The events so far, as `kind agent field=value …`.
    pub fn told(&self, kind: &str) -> Vec<Entry> {
        let state = self.state();
        let of_kind = state.entries.iter().filter(|entry| entry.kind == kind);
        of_kind.cloned().collect()
    }

    /// One field of every event of a kind about an agent, in order.
    pub fn fields(&self, kind: &str, agent: &AgentId, field: &str) -> Vec<String> {
        let told = self.told(kind);
        let about = told.iter().filter(|entry| entry.agent == *agent);
        about
            .filter_map(|entry| entry.fields.get(field)?.as_str().map(str::to_owned))
            .collect()
    }

    /// The steps of one receipt, in order.
    pub fn steps(&self, agent: &AgentId, steer: &str) -> Vec<String> {
        let told = self.told("steer");
        told.iter()
            .filter(|entry| entry.agent == *agent && entry.fields["steerId"] == steer)
            .map(|entry| entry.fields["state"].as_str().unwrap().to_owned())
            .collect()
    }

    pub fn put(&self, key: &str, value: Value) {
        self.state().stored.insert(key.to_owned(), value);
    }

    pub fn get(&self, key: &str) -> Option<Value> {
        self.state().stored.get(key).cloned()
    }

    /// The questions that nobody has answered.
    pub fn questions(&self) -> Vec<String> {
        let mut state = self.state();
        state.questions.retain(|(_, answer)| !answer.is_closed());
        state
            .questions
            .iter()
            .map(|(what, _)| what.clone())
            .collect()
    }

    pub fn answer(&self, text: &str) {
        let (_, answer) = self.state().questions.remove(0);
        answer.send(Some(text.to_owned())).unwrap();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn apply(&self, change: Change) {
        let mut state = self.state();
        state.entries.extend(change.entries);
        for (key, value) in change.state {
            match value {
                Some(value) => state.stored.insert(key, value),
                None => state.stored.remove(&key),
            };
        }
    }
}

impl Environment for World {
    fn record(&self, change: Change) -> Pending<Result<(), NotRecorded>> {
        let full = self.state().full;
        if !full {
            self.apply(change);
        }
        Box::pin(async move {
            // As slow as a disk, so that what only looks durable is found out.
            tokio::time::sleep(Duration::from_millis(1)).await;
            if full {
                Err(NotRecorded("the disk is full".to_owned()))
            } else {
                Ok(())
            }
        })
    }

    fn record_spooled(&self, change: Change) -> Pending<bool> {
        self.apply(change);
        Box::pin(std::future::ready(true))
    }

    fn record_soon(&self, change: Change) {
        self.apply(change);
    }

    fn healthy(&self) -> bool {
        !self.state().full
    }

    fn stored(
        &self,
        prefix: &str,
        after: &str,
        limit: usize,
    ) -> Pending<Result<Vec<(String, Value)>, NotRecorded>> {
        let state = self.state();
        let found = state
            .stored
            .iter()
            .filter(|(key, _)| key.starts_with(prefix) && key.as_str() > after)
            .take(limit);
        let found = found.map(|(key, value)| (key.clone(), value.clone()));
        Box::pin(std::future::ready(Ok(found.collect())))
    }

    fn stored_at(&self, key: &str) -> Pending<Result<Option<Value>, NotRecorded>> {
        Box::pin(std::future::ready(Ok(self.get(key))))
    }

    fn is_taken(&self, _id: &AgentId) -> bool {
        false
    }

    fn output_file(&self, id: &AgentId) -> PathBuf {
        self.dir().join(format!("{id}.out"))
    }

    fn error_file(&self, id: &AgentId) -> PathBuf {
        self.dir().join(format!("{id}.log"))
    }

    fn start(&self, id: &AgentId, start: Start) -> Pending<Result<Started, String>> {
        let mut command = Command::new(&start.program.argv[0]);
        command
            .args(&start.program.argv[1..])
            .current_dir(start.cwd)
            .envs(start.env)
            .env("HANDOVER_AGENT", id.as_str())
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Box::pin(async move {
            let mut child = command.spawn().map_err(|error| error.to_string())?;
            let group = child.id().unwrap();
            Ok(Started {
                stdin: Box::new(child.stdin.take().unwrap()),
                stdout: Box::new(child.stdout.take().unwrap()),
                stderr: Box::new(child.stderr.take().unwrap()),
                exited: Box::pin(async move {
                    let status = child.wait().await.unwrap();
                    Exit {
                        success: status.success(),
                        how: status.to_string(),
                    }
                }),
                tree: Box::new(Group(group)),
            })
        })
    }

    fn check_desktop(&self, desktop: &DesktopId) -> Result<(), Refusal> {
        match desktop.as_str() {
            "d1" => Ok(()),
            _ => Err(Refusal::new(ErrorCode::DesktopUnknown, "there is only d1")),
        }
    }

    fn waits_for(&self, _id: &AgentId, _desktops: &[DesktopId]) -> Option<String> {
        self.state().waits.then(|| "a person".to_owned())
    }

    fn ask(
        &self,
        _id: &AgentId,
        _desktop: Option<&DesktopId>,
        what: &str,
    ) -> Pending<Result<Asked, String>> {
        let (answer, answered) = oneshot::channel();
        self.state().questions.push((what.to_owned(), answer));
        let asked = Asked {
            request: RequestId("r1".to_owned()),
            answer: Box::pin(async move { answered.await.ok().flatten() }),
        };
        Box::pin(std::future::ready(Ok(asked)))
    }

    fn changed(&self) {}

    fn host(&self) -> Actor {
        Actor {
            uid: 1000,
            pid: std::process::id(),
            agent: None,
            via: "host".to_owned(),
            evidence: None,
        }
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_unix(Duration::from_secs(1_800_000_000))
    }
}

/// A process group stands for the tree.
struct Group(u32);

impl Tree for Group {
    fn end(&self, grace: Duration) -> Pending<Vec<u32>> {
        let group = self.0;
        Box::pin(async move {
            signal(group, "TERM").await;
            let gone = async {
                while signal(group, "0").await {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            };
            if tokio::time::timeout(grace, gone).await.is_err() {
                signal(group, "KILL").await;
            }
            Vec::new()
        })
    }
}

async fn signal(group: u32, name: &str) -> bool {
    let status = Command::new("kill")
        .args(["-s", name, "--", &format!("-{group}")])
        .stderr(Stdio::null())
        .status();
    status.await.unwrap().success()
}
