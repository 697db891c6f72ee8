//! Starting agents: who may, how many, and when it is an agent's turn.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use handover_protocol::{
    AgentId, AgentState, AgentStatus, ErrorCode, Refusal, Source, SpawnParams,
};
use serde_json::{Map, Value};
use tokio::sync::mpsc;

use super::table::Work;
use super::task::{Task, one_line};
use super::{Finish, Inner, Manager, Outcome, ids, refuse, status_entry};
use crate::driver::{self, ToolServer};
use crate::environment::{By, Change, Entry as RecordEntry, Start};
use crate::run::{self, Launch};

/// Orders that may wait for one agent's run.
const INBOX: usize = 2048;
/// The longest name, in characters.
const MAX_NAME: usize = 100;
/// How long until a start is tried again that the disk holds up.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// So much of a task is shown, in characters.
const SHOWN_TASK: usize = 200;

impl Manager {
    /// Starts an agent, or queues it. The task is stored before anything is started.
    ///
    /// # Errors
    /// `bad_params`, `caller_refused`, `queue_full`, `desktop_unknown`, `agent_unknown` for the parent,
    /// `agent_not_running` for a parent that has ended, `storage_failed`.
    pub async fn spawn(&self, by: &By, params: SpawnParams) -> Result<AgentState, Refusal> {
        let inner = &self.inner;
        let parent = inner.parent_for(by, params.parent.as_ref())?;
        if let Some(desktop) = &params.desktop {
            inner.env.check_desktop(desktop)?;
        } else if params.display == Some(true) {
            return Err(refuse::bad(
                "display",
                "`display` needs the `desktop` whose display it is to be",
            ));
        }
        let cwd = inner.cwd_of(params.cwd.as_deref())?;
        check_words(&params)?;
        if !inner.env.healthy() {
            return Err(Refusal::new(
                ErrorCode::StorageFailed,
                "the record cannot be written, so no agent is started that it would miss; make room on the disk and try again",
            ));
        }
        let id = inner.fresh_id().map_err(|error| {
            Refusal::new(ErrorCode::Internal, format!("no random bytes: {error}"))
        })?;
        let (queued, stored) = {
            let mut table = inner.table();
            if table.closing {
                return Err(refuse::queue_full(
                    "the session is ending and starts no agents any more",
                ));
            }
            let rate = match by.source {
                Source::Human | Source::Host => &mut table.people,
                Source::Agent | Source::App => &mut table.programs,
            };
            if let Err(wait) = rate.take(Instant::now()) {
                let wait = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX) + 1;
                return Err(refuse::queue_full(format!(
                    "agents are started too fast: try again in {wait} ms"
                ))
                .with("retryAfterMs", wait));
            }
            let depth = inner.check_place(&table, parent.as_ref())?;
            if table.queued() >= inner.settings.limits.queued {
                return Err(refuse::queue_full(format!(
                    "{} agents wait for their turn already: wait until some have ended, or abort some",
                    inner.settings.limits.queued
                )));
            }
            let what = driver::Task {
                prompt: params.prompt.expose().to_owned(),
                args: params.args.clone().unwrap_or_default(),
                cwd: cwd.clone(),
                tools: inner.tools_for(&id, params.desktop.as_ref().map(AsRef::as_ref)),
            };
            let (program, driver) = (inner.settings.drivers)(&params.driver, what)?;
            let task = Task {
                order: table.next_order(),
                id: id.clone(),
                name: name_of(&params)?,
                driver: params.driver.clone(),
                status: AgentStatus::Queued,
                parent,
                depth,
                task: shown_task(&params),
                desktop: params.desktop.clone(),
                started_at: None,
                finished_at: None,
                output_file: Some(inner.env.output_file(&id).display().to_string()),
                not_steerable: driver.capabilities().not_steerable.map(str::to_owned),
            };
            let launch = Launch {
                driver,
                start: Start {
                    program,
                    cwd,
                    env: params.env.clone().unwrap_or_default(),
                    desktop: params.desktop.clone(),
                    display: params.display.unwrap_or(false),
                },
            };
            let mut work = Work::new(Some(Box::new(launch)), None);
            work.desktops.extend(params.desktop.clone());
            let change = Change {
                entries: vec![
                    spawned_entry(&task, Some(by)),
                    status_entry(&id, AgentStatus::Queued, None, Some(by)),
                ],
                state: vec![task.put()],
            };
            table.insert(task, Some(Box::new(work)));
            table.announce();
            (id, inner.env.record(change))
        };
        let stored = stored.await;
        {
            let mut table = inner.table();
            if stored.is_err() {
                table.remove(&queued);
            }
            table.arrive(&queued);
        }
        stored.map_err(|error| refuse::storage(&error))?;
        self.start_next();
        inner.env.changed();
        let status = self.status(&queued).unwrap_or(AgentStatus::Queued);
        Ok(AgentState { id: queued, status })
    }

    /// Starts those whose turn it is.
    pub(crate) fn start_next(&self) {
        let inner = &self.inner;
        if !inner.env.healthy() {
            self.start_later();
            return;
        }
        loop {
            let mut table = inner.table();
            let Some(id) = table.next_to_start(&inner.settings.limits) else {
                return;
            };
            let Some(entry) = table.get_mut(&id) else {
                continue;
            };
            let Some(work) = entry.work.as_mut() else {
                continue;
            };
            let Some(launch) = work.launch.take() else {
                continue;
            };
            let (orders, inbox) = mpsc::channel(INBOX);
            work.inbox = Some(orders);
            work.when = launch.driver.capabilities().when;
            let abort = work.abort.subscribe();
            entry.task.status = AgentStatus::Starting;
            entry.task.started_at = Some(inner.env.now());
            let change = Change {
                entries: vec![status_entry(&id, AgentStatus::Starting, None, None)],
                state: vec![entry.task.put()],
            };
            inner.env.record_soon(change);
            drop(table);
            let run = tokio::spawn(run::run(self.clone(), id.clone(), *launch, inbox, abort));
            tokio::spawn(self.clone().outlive(id, run));
        }
    }
}

impl Manager {
    /// What waits for its turn waits also while the record takes nothing.
    fn start_later(&self) {
        {
            let mut table = self.inner.table();
            if table.queued() == 0 || std::mem::replace(&mut table.starts_later, true) {
                return;
            }
        }
        let manager = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(LOOK_AGAIN).await;
            manager.inner.table().starts_later = false;
            manager.start_next();
        });
    }

    /// An agent whose run has broken down is not shown as running for ever. Its processes end with the
    /// keeper that the run held.
    async fn outlive(self, id: AgentId, run: tokio::task::JoinHandle<()>) {
        let Err(error) = run.await else {
            return;
        };
        tracing::error!(agent = %id, %error, "the run of an agent broke down");
        let finish = Finish {
            status: AgentStatus::Failed,
            outcome: Some(Outcome {
                text: String::new(),
                error: Some("a fault of Handover's own; its log says more".to_owned()),
            }),
            survivors: Vec::new(),
        };
        self.end(&id, finish, None).await;
    }
}

impl Inner {
    /// A name that no agent has, here or in another live session.
    pub(super) fn fresh_id(&self) -> Result<AgentId, getrandom::Error> {
        // Other sessions are looked at without the lock.
        ids::fresh(|id| self.table().get(id).is_some() || self.env.is_taken(id))
    }

    /// The parent of a new agent: an agent's child is its own, a person may name one.
    fn parent_for(&self, by: &By, wanted: Option<&AgentId>) -> Result<Option<AgentId>, Refusal> {
        match (by.source, by.agent()) {
            (Source::Agent | Source::App, None) => Err(Refusal::new(
                ErrorCode::CallerRefused,
                "only a person, or an agent that this session runs, may start agents",
            )),
            (Source::Agent | Source::App, Some(own)) => {
                let table = self.table();
                match wanted {
                    Some(wanted) if wanted != own && !table.is_below(wanted, own) => {
                        Err(Refusal::new(
                            ErrorCode::CallerRefused,
                            "an agent may start agents only below itself: leave out `parent`",
                        ))
                    }
                    wanted => Ok(Some(wanted.unwrap_or(own).clone())),
                }
            }
            (Source::Human | Source::Host, _) => Ok(wanted.cloned()),
        }
    }

    /// The depth of a new agent below `parent`, if there may be one.
    fn check_place(
        &self,
        table: &super::table::Table,
        parent: Option<&AgentId>,
    ) -> Result<u32, Refusal> {
        let Some(parent) = parent else {
            return Ok(0);
        };
        let limits = &self.settings.limits;
        let entry = table.known(parent)?;
        let Some(work) = &entry.work else {
            return Err(refuse::not_running(parent, entry.task.status));
        };
        if work.aborting {
            return Err(refuse::not_running(parent, AgentStatus::Aborted));
        }
        let depth = entry.task.depth + 1;
        if depth > limits.depth {
            return Err(refuse::queue_full(format!(
                "agent {parent} is {} levels deep, and agents go no deeper than {}: let one above do it",
                entry.task.depth, limits.depth
            ))
            .with("depth", limits.depth));
        }
        if table.children(parent) >= limits.children {
            return Err(refuse::queue_full(format!(
                "agent {parent} has {} unfinished children already: wait for some, or abort some",
                limits.children
            ))
            .with("children", limits.children));
        }
        Ok(depth)
    }

    fn cwd_of(&self, wanted: Option<&str>) -> Result<PathBuf, Refusal> {
        let Some(wanted) = wanted else {
            return Ok(self.settings.project_dir.clone());
        };
        let path = PathBuf::from(wanted);
        if !path.is_absolute() {
            return Err(refuse::bad(
                "cwd",
                format!("`cwd` must be an absolute path, not {wanted:?}"),
            ));
        }
        if !path.is_dir() {
            return Err(refuse::bad(
                "cwd",
                format!("the working directory {wanted:?} does not exist"),
            ));
        }
        Ok(path)
    }

    fn tools_for(&self, id: &AgentId, desktop: Option<&str>) -> Option<ToolServer> {
        let mut tools = self.settings.tools.clone()?;
        if let Some(desktop) = desktop {
            tools
                .command
                .extend(["--desktop".to_owned(), desktop.to_owned()]);
        }
        tools.env.insert("HANDOVER_AGENT".to_owned(), id.0.clone());
        Some(tools)
    }
}

/// The event of a new agent.
pub(super) fn spawned_entry(task: &Task, by: Option<&By>) -> RecordEntry {
    let mut fields = Map::new();
    fields.insert("agentType".to_owned(), Value::from(task.driver.as_str()));
    fields.insert("name".to_owned(), Value::from(task.name.as_str()));
    fields.insert("task".to_owned(), Value::from(task.task.as_str()));
    if let Some(parent) = &task.parent {
        fields.insert("parent".to_owned(), Value::from(parent.as_str()));
    }
    RecordEntry {
        kind: "agent_spawned",
        by: by.cloned(),
        agent: task.id.clone(),
        fields,
    }
}

/// What no program can be given is refused before anything is stored.
fn check_words(params: &SpawnParams) -> Result<(), Refusal> {
    let args = params.args.iter().flatten();
    if args.into_iter().any(|word| word.contains('\0')) {
        return Err(refuse::bad("args", "`args` must not contain a zero byte"));
    }
    for (name, value) in params.env.iter().flatten() {
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            return Err(refuse::bad(
                "env",
                format!(
                    "`env` cannot set {name:?}: a name must not be empty, and there is no `=` in it nor a zero byte anywhere"
                ),
            ));
        }
    }
    Ok(())
}

fn name_of(params: &SpawnParams) -> Result<String, Refusal> {
    let Some(name) = &params.name else {
        return Ok(default_name(params));
    };
    let clean = one_line(name, MAX_NAME);
    if clean.is_empty() || clean != name.trim() {
        return Err(refuse::bad(
            "name",
            format!("`name` must be one line of at most {MAX_NAME} characters, and not empty"),
        ));
    }
    Ok(clean)
}

/// The program's own name for a plain command, else the driver's.
fn default_name(params: &SpawnParams) -> String {
    let program = match params.driver.as_str() {
        "command" | "acp" => params.args.as_ref().and_then(|args| args.first()),
        _ => None,
    };
    let base = program.and_then(|program| program.rsplit('/').next());
    one_line(base.unwrap_or(&params.driver), MAX_NAME)
}

fn shown_task(params: &SpawnParams) -> String {
    let prompt = params.prompt.expose();
    if prompt.trim().is_empty() {
        one_line(
            &params.args.clone().unwrap_or_default().join(" "),
            SHOWN_TASK,
        )
    } else {
        one_line(prompt, SHOWN_TASK)
    }
}
