//! Events told to whoever follows: what an agent says and does, and what becomes of messages to it.

use handover_protocol::{AgentId, AgentStatus, Event, Source};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::list;
use super::log;
use super::style::{Paint, Style, painted};
use super::text::{plain, plain_lines, shortened};

/// How events are told.
#[derive(Clone, Copy, Debug)]
pub struct Story {
    style: Style,
    /// Whether each line names its agent.
    several: bool,
}

impl Story {
    /// Of everything in a session.
    pub fn of_all(style: Style) -> Self {
        Self {
            style,
            several: true,
        }
    }

    /// Of one agent, which no line has to name.
    pub fn of_one(style: Style) -> Self {
        Self {
            style,
            several: false,
        }
    }

    /// The lines for one event, without a newline at their end.
    pub fn tell(&self, event: &Event) -> String {
        let (text, paint) = self.words(event);
        let mut before = event.at.to_string();
        // The time of the day.
        before = before.get(11..19).map_or(before.clone(), str::to_owned);
        let mut lead = painted(&before, self.style.dim());
        if let Some(agent) = event.agent.as_ref().filter(|_| self.several) {
            lead.push_str(&format!(" {}", plain(agent.as_str())));
        }
        let mut lines = String::new();
        for line in text.trim_end_matches('\n').split('\n') {
            if !lines.is_empty() {
                lines.push('\n');
            }
            lines.push_str(&format!("{lead} {}", painted(line, paint)));
        }
        lines
    }

    /// What an event says, without its time and its agent; lines stay lines.
    pub fn words(&self, event: &Event) -> (String, Option<Paint>) {
        let text = |name: &str| field::<String>(event, name).unwrap_or_default();
        let because = |name: &str| match text(name) {
            reason if reason.is_empty() => String::new(),
            reason => format!(": {}", plain(&reason)),
        };
        match event.kind.as_str() {
            "agent_text" => {
                let said = plain_lines(&text("text"));
                let said = said.trim_end_matches('\n').replace('\n', "\n  ");
                match field::<u64>(event, "elided") {
                    Some(bytes) => (
                        format!("… {bytes} bytes are only in its output file\n{said}"),
                        None,
                    ),
                    None => (said, None),
                }
            }
            "agent_tool" => {
                let mark = if text("state") == "end" { "◂" } else { "▸" };
                let summary = match text("summary") {
                    summary if summary.is_empty() => summary,
                    summary => format!(" {}", shortened(&summary, 160)),
                };
                (
                    format!("{mark} {}{summary}", plain(&text("tool"))),
                    self.style.dim(),
                )
            }
            "agent_status" => {
                let status = field::<AgentStatus>(event, "status");
                let word =
                    status.map_or_else(|| plain(&text("status")), |s| list::status(s).into());
                let paint = status.and_then(|status| self.style.status(status));
                (format!("● {word}{}", because("error")), paint)
            }
            "agent_spawned" => {
                let name = plain(&text("name"));
                let parent = match text("parent") {
                    parent if parent.is_empty() => String::new(),
                    parent => format!(", for {}", plain(&parent)),
                };
                (
                    format!("+ {name} ({}{parent})", plain(&text("agentType"))),
                    None,
                )
            }
            "steer" => {
                let (id, state) = (plain(&text("steerId")), plain(&text("state")));
                // The words of another agent; a person's are in the intervention.
                let words = match text("text") {
                    words if words.is_empty() => String::new(),
                    words => format!(" from {}: {}", who(event.source), plain(&words)),
                };
                let words = format!("· {id} {state}{words}{}", because("reason"));
                (words, self.style.dim())
            }
            "human_intervention" => {
                let who = who(event.source);
                let words = match text("act").as_str() {
                    "steer" => format!("! {who} says{}", because("text")),
                    "abort" => format!("! {who} ends the agent"),
                    act => format!("! {who}: {}{}", plain(act), because("text")),
                };
                (words, self.style.alert())
            }
            _ => (log::told(event), None),
        }
    }
}

fn who(source: Source) -> &'static str {
    match source {
        Source::Human => "a person",
        Source::Agent => "an agent",
        Source::App => "a program",
        Source::Host => "the host",
    }
}

/// Whether `event` tells that `agent` has ended.
pub fn ends(event: &Event, agent: &AgentId) -> bool {
    event.kind == "agent_status"
        && event.agent.as_ref() == Some(agent)
        && field(event, "status").is_some_and(AgentStatus::has_ended)
}

/// A member by name, if it is of that shape.
fn field<T: DeserializeOwned>(event: &Event, name: &str) -> Option<T> {
    let value: &Value = event.fields.get(name)?;
    T::deserialize(value).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(kind: &str, agent: Option<&str>, fields: Value) -> Event {
        let mut event = json!({
            "seq": 7, "at": "2026-01-31T09:30:00.250Z", "kind": kind, "source": "human",
            "actor": {"uid": 0, "pid": 7, "via": "cli"}, "uid": 0, "pid": 7,
        });
        let members = event.as_object_mut().unwrap();
        members.extend(agent.map(|id| ("agent".to_owned(), id.into())));
        members.extend(fields.as_object().unwrap().clone());
        serde_json::from_value(event).unwrap()
    }

    #[test]
    fn what_a_person_reads() {
        let events = [
            event(
                "agent_spawned",
                Some("k7m2p4"),
                json!({"agentType": "pi", "name": "docs", "parent": "b2c3d4"}),
            ),
            event("agent_status", Some("k7m2p4"), json!({"status": "running"})),
            event(
                "agent_text",
                Some("k7m2p4"),
                json!({"text": "I look\nat \u{1b}[2Jit.\n"}),
            ),
            event(
                "agent_tool",
                Some("k7m2p4"),
                json!({"tool": "bash", "state": "start", "summary": "cargo test\u{202e}"}),
            ),
            event(
                "agent_tool",
                Some("k7m2p4"),
                json!({"tool": "bash", "state": "end"}),
            ),
            event(
                "agent_text",
                Some("k7m2p4"),
                json!({"text": "Much more.", "elided": 70_000}),
            ),
            event(
                "human_intervention",
                Some("k7m2p4"),
                json!({"act": "steer", "agentType": "pi", "text": "use\nthe other", "steerId": "st-1"}),
            ),
            event(
                "steer",
                Some("k7m2p4"),
                json!({"steerId": "st-1", "state": "accepted"}),
            ),
            event(
                "steer",
                Some("k7m2p4"),
                json!({"steerId": "st-2", "state": "accepted", "text": "from above"}),
            ),
            event(
                "steer",
                Some("k7m2p4"),
                json!({"steerId": "st-1", "state": "dropped", "reason": "it was aborted"}),
            ),
            event(
                "human_intervention",
                Some("k7m2p4"),
                json!({"act": "abort", "agentType": "pi"}),
            ),
            event(
                "agent_status",
                Some("k7m2p4"),
                json!({"status": "failed", "error": "exit status 3\u{9b}m"}),
            ),
            event(
                "takeover_start",
                None,
                json!({"desktop": "d1", "epoch": 3, "holder": "ada"}),
            ),
        ];
        let all = Story::of_all(Style::default());
        let told: Vec<String> = events.iter().map(|event| all.tell(event)).collect();
        insta::assert_snapshot!(told.join("\n"), @r"
        09:30:00 k7m2p4 + docs (pi, for b2c3d4)
        09:30:00 k7m2p4 ● running
        09:30:00 k7m2p4 I look
        09:30:00 k7m2p4   at \u{1b}[2Jit.
        09:30:00 k7m2p4 ▸ bash cargo test\u{202e}
        09:30:00 k7m2p4 ◂ bash
        09:30:00 k7m2p4 … 70000 bytes are only in its output file
        09:30:00 k7m2p4 Much more.
        09:30:00 k7m2p4 ! a person says: use\nthe other
        09:30:00 k7m2p4 · st-1 accepted
        09:30:00 k7m2p4 · st-2 accepted from a person: from above
        09:30:00 k7m2p4 · st-1 dropped: it was aborted
        09:30:00 k7m2p4 ! a person ends the agent
        09:30:00 k7m2p4 ● failed: exit status 3\u{9b}m
        09:30:00 human takeover_start d1 epoch=3 holder=ada
        ");
        let one = Story::of_one(Style::coloured());
        insta::assert_snapshot!(one.tell(&events[1]).replace('\u{1b}', "ESC"), @"ESC[2m09:30:00ESC[0m ESC[32m● runningESC[0m");
    }

    #[test]
    fn the_end_of_an_agent() {
        let id = AgentId::from("a1");
        let status = |status: &str| event("agent_status", Some("a1"), json!({"status": status}));
        assert!(ends(&status("done"), &id));
        assert!(ends(&status("cancelled-before-start"), &id));
        assert!(!ends(&status("waiting"), &id));
        assert!(!ends(&status("nonsense"), &id));
        assert!(!ends(&status("done"), &"a2".into()));
    }
}
