//! Events: what a caller gives, and the flat row that is stored and sent.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use handover_protocol::{Actor, AgentId, Source, Timestamp};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::chain;

/// Largest event that is stored, in bytes of canonical JSON. A little above the largest request, so
/// that a steer's text always fits into its event.
pub(crate) const MAX_EVENT_BYTES: usize = (1 << 20) + (64 << 10);

/// Fields that the store sets itself and that [`NewEvent::fields`] cannot override.
const RESERVED: [&str; 10] = [
    "seq", "at", "kind", "source", "actor", "uid", "pid", "desktop", "epoch", "agent",
];

/// The name of an event's number.
const SEQ: &str = "seq";

/// An event to be stored. Its number, hash and, unless given, its time are set by the store.
#[derive(Debug, Clone, PartialEq)]
pub struct NewEvent {
    /// What happened, such as `takeover_start`.
    pub kind: &'static str,
    /// Who it comes from.
    pub source: Source,
    /// The process behind it; stored as `actor` and also flat as `uid` and `pid`. The host itself when
    /// `None`.
    pub actor: Option<Actor>,
    /// The desktop it concerns.
    pub desktop: Option<String>,
    /// The desktop's epoch when it happened.
    pub epoch: Option<u64>,
    /// The agent it concerns.
    pub agent: Option<String>,
    /// When it happened; the time of the call when `None`.
    pub at: Option<Timestamp>,
    /// The fields of this kind. Names that the store sets itself are ignored here.
    pub fields: Map<String, Value>,
}

impl NewEvent {
    /// An event of `kind` from `source`, with nothing else known.
    #[must_use]
    pub fn new(kind: &'static str, source: Source) -> Self {
        Self {
            kind,
            source,
            actor: None,
            desktop: None,
            epoch: None,
            agent: None,
            at: None,
            fields: Map::new(),
        }
    }

    /// Sets the process behind the event.
    #[must_use]
    pub fn actor(mut self, actor: Actor) -> Self {
        self.actor = Some(actor);
        self
    }

    /// Sets the desktop that the event concerns.
    #[must_use]
    pub fn desktop(mut self, desktop: impl Into<String>) -> Self {
        self.desktop = Some(desktop.into());
        self
    }

    /// Sets the desktop's epoch.
    #[must_use]
    pub fn epoch(mut self, epoch: u64) -> Self {
        self.epoch = Some(epoch);
        self
    }

    /// Sets the agent that the event concerns.
    #[must_use]
    pub fn agent(mut self, agent: impl Into<String>) -> Self {
        self.agent = Some(agent.into());
        self
    }

    /// Sets one field of the kind.
    #[must_use]
    pub fn field(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.fields.insert(name.to_owned(), value.into());
        self
    }

    /// Sets one field of the kind if there is a value for it.
    #[must_use]
    pub fn field_if(self, name: &str, value: Option<impl Into<Value>>) -> Self {
        match value {
            Some(value) => self.field(name, value),
            None => self,
        }
    }
}

/// Where and when an event was stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Stored {
    /// Its number, from 1.
    pub seq: u64,
    /// When it happened.
    pub at: Timestamp,
    /// The head of the chain with it, in hexadecimal.
    pub hash: String,
}

/// How what must not be refused was kept: one event, or several as a `Vec`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recorded<T = Stored> {
    /// It is durable.
    Stored(T),
    /// It is in memory, in order, and will be stored as soon as the disk takes it.
    Spooled,
    /// Neither the disk nor the bounded spool took it; the next `gap` event counts it.
    Lost,
}

/// A stored event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Its number, from 1, without holes.
    pub seq: u64,
    /// What happened.
    pub kind: String,
    /// The agent it concerns.
    pub agent: Option<String>,
    /// The whole event, flat, as canonical JSON: what the chain is computed over.
    pub json: String,
    /// The head of the chain with it, in hexadecimal.
    pub hash: String,
}

impl Event {
    /// The event as it goes over the wire; `None` if the stored text is not one, which
    /// [`crate::verify_dir`] reports.
    #[must_use]
    pub fn to_wire(&self) -> Option<handover_protocol::Event> {
        serde_json::from_str(&self.json).ok()
    }

    /// The event's fields; empty if the stored text is no JSON object, which [`crate::verify_dir`] reports.
    #[must_use]
    pub fn to_map(&self) -> Map<String, Value> {
        serde_json::from_str(&self.json).unwrap_or_default()
    }
}

/// An event ready to be numbered and chained. It is written out by whoever has it to store, so that the
/// writer has less to do.
#[derive(Debug, Clone)]
pub(crate) struct Prepared {
    pub(crate) kind: &'static str,
    pub(crate) agent: Option<String>,
    pub(crate) at: Timestamp,
    /// The canonical JSON of everything but the number.
    text: String,
    /// Where in it the number belongs.
    place: usize,
}

impl Prepared {
    /// Flattens an event and stamps it with the time.
    pub(crate) fn new(event: NewEvent) -> Self {
        Self::within(event, usize::MAX)
    }

    /// The same for events that must be kept in any case: what is too large is replaced by a note of its
    /// size.
    pub(crate) fn shortened(event: NewEvent) -> Self {
        Self::within(event, MAX_EVENT_BYTES)
    }

    fn within(event: NewEvent, limit: usize) -> Self {
        let at = event.at.unwrap_or_else(now);
        let mut body = event.fields;
        body.retain(|name, _| !RESERVED.contains(&name.as_str()));
        body.insert("at".into(), at.to_string().into());
        body.insert("kind".into(), event.kind.into());
        body.insert("source".into(), source_name(event.source).into());
        let actor = event.actor.unwrap_or_else(this_process);
        body.insert("uid".into(), actor.uid.into());
        body.insert("pid".into(), actor.pid.into());
        body.insert("actor".into(), actor_value(actor));
        if let Some(desktop) = event.desktop {
            body.insert("desktop".into(), desktop.into());
        }
        if let Some(epoch) = event.epoch {
            body.insert("epoch".into(), epoch.into());
        }
        if let Some(agent) = &event.agent {
            body.insert("agent".into(), agent.as_str().into());
        }
        let (mut text, mut place) = chain::canonical_before(&body, SEQ);
        if text.len() > limit {
            body.retain(|name, _| RESERVED.contains(&name.as_str()));
            body.insert("truncatedBytes".into(), text.len().into());
            (text, place) = chain::canonical_before(&body, SEQ);
        }
        Self {
            kind: event.kind,
            agent: event.agent,
            at,
            text,
            place,
        }
    }

    /// Its size as canonical JSON without the number, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.text.len()
    }

    /// The canonical JSON of the row with number `seq`.
    pub(crate) fn row(&self, seq: u64) -> String {
        let (before, after) = self.text.split_at(self.place);
        // There is always something before and after it, such as `at` and `source`.
        format!("{before}\"{SEQ}\":{seq},{after}")
    }
}

fn source_name(source: Source) -> &'static str {
    match source {
        Source::Human => "human",
        Source::Agent => "agent",
        Source::App => "app",
        Source::Host => "host",
    }
}

fn actor_value(actor: Actor) -> Value {
    let mut map = Map::new();
    map.insert("uid".into(), actor.uid.into());
    map.insert("pid".into(), actor.pid.into());
    if let Some(agent) = actor.agent {
        map.insert("agent".into(), agent.0.into());
    }
    map.insert("via".into(), actor.via.into());
    if let Some(evidence) = actor.evidence {
        map.insert("evidence".into(), evidence.into());
    }
    Value::Object(map)
}

/// The host as the one behind an event.
fn this_process() -> Actor {
    Actor {
        uid: rustix::process::getuid().as_raw(),
        pid: std::process::id(),
        agent: None::<AgentId>,
        via: "host".to_owned(),
        evidence: None,
    }
}

/// The wall clock; 1970 if it stands before that.
fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    Timestamp::from_unix(since.unwrap_or(Duration::ZERO))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_canonical_with_its_number() {
        let event = NewEvent::new("steer", Source::Human)
            .desktop("d1")
            .agent("a1")
            .field("seq", "not this one")
            .field("sent", true)
            .field("zebra", "last")
            .field("text", "a \"seq\":1, b");
        let row = Prepared::new(event).row(u64::MAX);
        let map: Map<String, Value> = serde_json::from_str(&row).unwrap();
        assert_eq!(map["seq"], u64::MAX);
        assert_eq!(row, chain::canonical(&map));
    }

    #[test]
    fn what_is_too_large_is_shortened() {
        let large =
            || NewEvent::new("steer", Source::Host).field("text", "x".repeat(MAX_EVENT_BYTES));
        let whole = Prepared::new(large());
        let short = Prepared::shortened(large());
        assert!(whole.bytes() > MAX_EVENT_BYTES && short.bytes() < 1000);
        let map: Map<String, Value> = serde_json::from_str(&short.row(7)).unwrap();
        assert_eq!(map["truncatedBytes"], whole.bytes());
        assert_eq!(map["kind"], "steer");
    }
}
