//! What an agent says and does, as events for those who follow it. Text comes in small parts; it is
//! recorded in larger ones, and not faster than anybody reads.

use std::time::Duration;

use handover_protocol::{Actor, AgentId, Source};
use serde_json::{Map, Value};
use tokio::time::Instant;

use crate::environment::{By, Change, Entry};
use crate::manager::Manager;

/// How long text is gathered.
const GATHER: Duration = Duration::from_millis(150);
/// The longest text of one event, in bytes.
const MAX_TEXT: usize = 4 << 10;
/// Bytes of text that one agent may record at once, and in a second after that. What is more is in
/// its output file.
const BURST: usize = 1 << 20;
const PER_SECOND: usize = 128 << 10;

/// What an agent does, on its way into the record.
#[derive(Debug)]
pub(super) struct Activity {
    /// Who said what is gathered.
    speaker: AgentId,
    gathered: String,
    /// When the first of it was said.
    since: Option<Instant>,
    budget: Budget,
    /// Bytes that were left out.
    elided: usize,
}

/// The use of a tool.
#[derive(Debug)]
pub(super) struct Tool {
    pub call: Option<String>,
    pub tool: String,
    pub ended: bool,
    pub summary: Option<String>,
}

impl Activity {
    pub fn new(own: AgentId) -> Self {
        Self {
            speaker: own,
            gathered: String::new(),
            since: None,
            budget: Budget::full(),
            elided: 0,
        }
    }

    /// Comes when what was gathered is to be recorded.
    pub async fn due(&self) {
        match self.since {
            Some(since) => tokio::time::sleep_until(since + GATHER).await,
            None => std::future::pending().await,
        }
    }

    pub fn text(&mut self, manager: &Manager, agent: AgentId, text: &str) {
        if agent != self.speaker {
            self.flush(manager);
            self.speaker = agent;
        }
        let mut rest = text;
        while !rest.is_empty() {
            self.since.get_or_insert_with(Instant::now);
            let room = MAX_TEXT - self.gathered.len();
            let (part, after) = rest.split_at(rest.floor_char_boundary(room));
            if part.is_empty() {
                self.flush(manager);
                continue;
            }
            self.gathered.push_str(part);
            rest = after;
            if self.gathered.len() >= MAX_TEXT {
                self.flush(manager);
            }
        }
    }

    pub fn tool(&mut self, manager: &Manager, agent: AgentId, tool: Tool) {
        self.flush(manager);
        let mut fields = Map::new();
        let state = if tool.ended { "end" } else { "start" };
        fields.insert("tool".to_owned(), Value::from(tool.tool));
        fields.insert("state".to_owned(), Value::from(state));
        if let Some(call) = tool.call {
            fields.insert("callId".to_owned(), Value::from(call));
        }
        if let Some(summary) = tool.summary {
            fields.insert("summary".to_owned(), Value::from(summary));
        }
        record(manager, agent, "agent_tool", fields);
    }

    /// Records what was gathered.
    pub fn flush(&mut self, manager: &Manager) {
        self.since = None;
        let text = std::mem::take(&mut self.gathered);
        if text.is_empty() {
            return;
        }
        if !self.budget.take(text.len(), Instant::now()) {
            if self.elided == 0 {
                tracing::info!(agent = %self.speaker, "more text than is recorded; the rest is in the output file");
            }
            self.elided += text.len();
            return;
        }
        let mut fields = Map::new();
        fields.insert("text".to_owned(), Value::from(text));
        if self.elided > 0 {
            // Said with the next text, so that nobody takes the two for neighbours.
            fields.insert("elided".to_owned(), Value::from(self.elided));
            self.elided = 0;
        }
        record(manager, self.speaker.clone(), "agent_text", fields);
    }
}

fn record(manager: &Manager, agent: AgentId, kind: &'static str, fields: Map<String, Value>) {
    let env = &manager.inner.env;
    let by = By {
        actor: Actor {
            agent: Some(agent.clone()),
            ..env.host()
        },
        source: Source::Agent,
    };
    let entry = Entry {
        kind,
        by: Some(by),
        agent,
        fields,
    };
    env.record_soon(Change {
        entries: vec![entry],
        state: Vec::new(),
    });
}

/// Bytes that may be recorded.
#[derive(Debug)]
struct Budget {
    left: usize,
    at: Option<Instant>,
}

impl Budget {
    fn full() -> Self {
        Self {
            left: BURST,
            at: None,
        }
    }

    fn take(&mut self, bytes: usize, now: Instant) -> bool {
        if let Some(at) = self.at {
            let earned = now.saturating_duration_since(at).as_secs_f64() * PER_SECOND as f64;
            self.left = self.left.saturating_add(earned as usize).min(BURST);
        }
        self.at = Some(now);
        let fits = bytes <= self.left;
        if fits {
            self.left -= bytes;
        }
        fits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_recorded_no_faster_than_the_budget() {
        let mut budget = Budget::full();
        let start = Instant::now();
        assert!(budget.take(BURST, start));
        assert!(!budget.take(1, start));
        let later = start + Duration::from_secs(1);
        assert!(budget.take(PER_SECOND - 1024, later));
        assert!(!budget.take(PER_SECOND, later));
        let much_later = start + Duration::from_secs(1000);
        assert!(budget.take(BURST, much_later));
        assert!(!budget.take(1, much_later));
    }
}
