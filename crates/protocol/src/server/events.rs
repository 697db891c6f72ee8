//! What a program tells of its agents, for whoever follows them.
//!
//! The latest events are kept in memory, so that a client that comes back can go on where it was. What
//! is older, and what a client is too slow for, is named to it as a gap.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use serde::Serialize;
use serde_json::{Map, Value};
use tokio::sync::{Notify, watch};

use super::outlet::{Outlet, Room, SharedLine};
use crate::envelope::notification_line;
use crate::{
    Actor, AgentId, AgentStatus, Event, Gap, Source, SteerId, SteerState, SubscribeParams,
    Timestamp,
};

/// Events that are kept.
const MAX_EVENTS: usize = 4096;
/// Their bytes, as lines.
const MAX_BYTES: usize = 8 << 20;
/// The longest text of one `agent_text`, in bytes.
const MAX_TEXT: usize = 4 << 10;

/// The events of one server. Clones share them.
#[derive(Debug, Clone)]
pub struct Events {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    kept: Mutex<Kept>,
    /// The number of the newest event.
    newest: watch::Sender<u64>,
    /// The agents are no longer as they were.
    agents_changed: Notify,
}

#[derive(Debug, Default)]
struct Kept {
    /// The number of the newest event; those before it are `lines`, without a hole.
    newest: u64,
    lines: VecDeque<Told>,
    bytes: usize,
}

/// An event, ready to be sent.
#[derive(Debug, Clone)]
struct Told {
    kind: Arc<str>,
    agent: Option<AgentId>,
    line: SharedLine,
}

/// An event that has not been told.
#[derive(Debug, Clone)]
pub struct NewEvent {
    kind: String,
    source: Source,
    actor: Actor,
    agent: Option<AgentId>,
    fields: Map<String, Value>,
}

impl NewEvent {
    /// One of this kind, the doing of this program.
    pub fn new(kind: &str, source: Source) -> Self {
        Self {
            kind: kind.to_owned(),
            source,
            actor: Actor {
                uid: rustix::process::geteuid().as_raw(),
                pid: std::process::id(),
                agent: None,
                via: String::new(),
                evidence: None,
            },
            agent: None,
            fields: Map::new(),
        }
    }

    /// It is about this agent.
    #[must_use]
    pub fn agent(mut self, agent: &AgentId) -> Self {
        self.agent = Some(agent.clone());
        self
    }

    /// It is the doing of this process.
    #[must_use]
    pub fn actor(mut self, actor: Actor) -> Self {
        self.actor = actor;
        self
    }

    /// Says more. A value that cannot be written as JSON is left out.
    #[must_use]
    pub fn field(mut self, name: &str, value: impl Serialize) -> Self {
        if let Ok(value) = serde_json::to_value(value) {
            self.fields.insert(name.to_owned(), value);
        }
        self
    }
}

impl Default for Events {
    fn default() -> Self {
        Self {
            shared: Arc::new(Shared {
                kept: Mutex::default(),
                newest: watch::Sender::new(0),
                agents_changed: Notify::new(),
            }),
        }
    }
}

impl Events {
    /// Without any event.
    pub fn new() -> Self {
        Self::default()
    }

    /// Tells an event and answers its number. Never waits for a client.
    pub fn tell(&self, event: NewEvent) -> u64 {
        let NewEvent {
            kind,
            source,
            actor,
            agent,
            fields,
        } = event;
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let changes_agents = matches!(kind.as_str(), "agent_status" | "agent_spawned");
        let mut kept = self.kept();
        let seq = kept.newest + 1;
        let event = Event {
            seq,
            at: Timestamp::from_unix(now.unwrap_or_default()),
            kind,
            source,
            uid: actor.uid,
            pid: actor.pid,
            actor,
            desktop: None,
            epoch: None,
            agent,
            fields,
        };
        // Text, numbers and JSON values with text keys can always be written.
        let line = notification_line("event", &event).unwrap_or_default();
        kept.push(Told {
            kind: event.kind.into(),
            agent: event.agent,
            line: line.into(),
        });
        drop(kept);
        self.shared.newest.send_replace(seq);
        if changes_agents {
            self.agents_changed();
        }
        seq
    }

    /// `agent_spawned`: there is a new agent.
    pub fn agent_spawned(&self, id: &AgentId, kind: &str, name: &str, parent: Option<&AgentId>) {
        let mut event = NewEvent::new("agent_spawned", Source::Host)
            .agent(id)
            .field("agentType", kind)
            .field("name", name);
        if let Some(parent) = parent {
            event = event.field("parent", parent);
        }
        self.tell(event);
    }

    /// `agent_status`: an agent stands otherwise than before; `error` says why it failed.
    pub fn agent_status(&self, id: &AgentId, status: AgentStatus, error: Option<&str>) {
        let mut event = NewEvent::new("agent_status", Source::Host)
            .agent(id)
            .field("status", status);
        if let Some(error) = error {
            event = event.field("error", error);
        }
        self.tell(event);
    }

    /// `agent_text`: what an agent says. A long text becomes several events.
    pub fn agent_text(&self, id: &AgentId, text: &str) {
        let mut rest = text;
        while !rest.is_empty() {
            let (piece, later) = rest.split_at(rest.floor_char_boundary(MAX_TEXT));
            rest = later;
            let event = NewEvent::new("agent_text", Source::Agent).agent(id);
            self.tell(event.field("text", piece));
        }
    }

    /// `agent_tool`: an agent begins (`start`) or has ended (`end`) the use of a tool.
    pub fn agent_tool(&self, id: &AgentId, tool: &str, state: &str, summary: Option<&str>) {
        let mut event = NewEvent::new("agent_tool", Source::Agent)
            .agent(id)
            .field("tool", tool)
            .field("state", state);
        if let Some(summary) = summary {
            event = event.field("summary", summary);
        }
        self.tell(event);
    }

    /// `steer`: more is known about a steer; `reason` says why it was dropped.
    pub fn steer(&self, id: &AgentId, steer: &SteerId, state: SteerState, reason: Option<&str>) {
        let mut event = NewEvent::new("steer", Source::Host)
            .agent(id)
            .field("steerId", steer)
            .field("state", state);
        if let Some(reason) = reason {
            event = event.field("reason", reason);
        }
        self.tell(event);
    }

    /// Says that `list` has a new answer without an event to tell: the manifest follows. The events of
    /// agents that come and change say it themselves.
    pub fn agents_changed(&self) {
        self.shared.agents_changed.notify_one();
    }

    /// Waits for the next [`Events::agents_changed`].
    pub(super) async fn wait_for_agents(&self) {
        self.shared.agents_changed.notified().await;
    }

    /// A subscription that begins after `params.since`, or with the next event.
    pub(super) fn subscribe(&self, params: SubscribeParams) -> Subscription {
        let newest = self.kept().newest;
        Subscription {
            events: self.clone(),
            // A number of an earlier life of this program means nothing now.
            seen: params.since.unwrap_or(newest).min(newest),
            kinds: params.kinds.unwrap_or_default(),
            agent: params.agent,
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // Nothing panics while it holds this lock.
        self.shared
            .kept
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn push(&mut self, event: Told) {
        self.newest += 1;
        self.bytes += event.line.len();
        self.lines.push_back(event);
        while self.lines.len() > MAX_EVENTS || (self.bytes > MAX_BYTES && self.lines.len() > 1) {
            let oldest = self.lines.pop_front();
            self.bytes -= oldest.map_or(0, |oldest| oldest.line.len());
        }
    }

    /// The event after `seen`, or what is missing there.
    fn after(&self, seen: u64) -> Next {
        let first = self.newest + 1 - self.lines.len() as u64;
        if seen + 1 < first {
            return Next::Missing(Gap {
                from: seen + 1,
                to: first - 1,
            });
        }
        let index = usize::try_from(seen + 1 - first).unwrap_or(usize::MAX);
        self.lines
            .get(index)
            .cloned()
            .map_or(Next::None, Next::Event)
    }
}

enum Next {
    Event(Told),
    Missing(Gap),
    None,
}

/// One client's place in the events.
#[derive(Debug)]
pub(super) struct Subscription {
    events: Events,
    /// The last number that was sent or passed over.
    seen: u64,
    kinds: Vec<String>,
    agent: Option<AgentId>,
}

impl Subscription {
    /// The number after which it begins.
    pub(super) fn cursor(&self) -> u64 {
        self.seen
    }

    /// Sends events until the connection is closed. A client that does not read is sent nothing more;
    /// what is no longer kept when it reads again is named in a `gap`.
    pub(super) async fn run(mut self, outlet: Outlet) {
        let mut newest = self.events.shared.newest.subscribe();
        loop {
            tokio::select! {
                // It cannot fail, since `self.events` holds the sender.
                _ = newest.wait_for(|newest| *newest > self.seen) => {}
                () = outlet.closed() => return,
            }
            if outlet.room().await == Room::Closed {
                return;
            }
            let next = self.events.kept().after(self.seen);
            match next {
                Next::Event(event) => {
                    self.seen += 1;
                    if self.wants(&event) {
                        outlet.share(event.line.clone());
                    }
                }
                Next::Missing(gap) => {
                    self.seen = gap.to;
                    outlet.notify("gap", &gap);
                }
                Next::None => {}
            }
        }
    }

    fn wants(&self, event: &Told) -> bool {
        let kind = self.kinds.is_empty() || self.kinds.iter().any(|kind| **kind == *event.kind);
        kind && (self.agent.is_none() || self.agent == event.agent)
    }
}
