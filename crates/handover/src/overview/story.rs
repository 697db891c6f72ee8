//! What happened in a session, as lines that can be shown as they are.

use std::collections::VecDeque;

use handover_protocol::{AgentId, AgentStatus, DesktopId, Event, Gap, Timestamp};

use super::clean::{clean, clean_lines};
use super::session::Session;
use crate::cli::report::describe;
use crate::cli::story::Story;
use crate::cli::style::Style;

/// The most lines that are kept of one session.
pub const MOST_LINES: usize = 2000;

/// The most bytes of the text of one line.
pub const MOST_BYTES: usize = 4 << 10;

/// How it is said before a line of whom it is.
#[derive(Clone, Copy, Debug)]
pub enum Whom<'a> {
    /// Not at all: all lines are of the same.
    Unsaid,
    /// By the short id.
    ById,
    /// By the name that the agent has in this session.
    Named(&'a Session),
}

/// How a line is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// What an agent says.
    Said,
    /// What an agent or a desktop does.
    Deed,
    /// How an agent stands.
    Status(Option<AgentStatus>),
    /// What becomes of a message.
    Receipt,
    /// A person's act, and what concerns one.
    Person,
    /// What was refused or went wrong.
    Trouble,
}

/// What a line is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of<'a> {
    /// Anything in the session.
    All,
    /// One agent.
    Agent(&'a AgentId),
    /// One desktop.
    Desktop(&'a DesktopId),
}

/// One thing that happened. Its text may have several lines, all of them harmless.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// When, if it is of the record.
    pub at: Option<Timestamp>,
    /// The agent it is about.
    pub agent: Option<AgentId>,
    /// The desktop it is about.
    pub desktop: Option<DesktopId>,
    /// How it is meant.
    pub tone: Tone,
    /// What happened, in words.
    pub text: String,
}

impl Line {
    /// The line for an event.
    pub fn of(event: &Event) -> Self {
        let (text, tone) = told(event);
        Self {
            at: Some(event.at),
            // What an agent did on a desktop belongs to both.
            agent: event.agent.clone().or_else(|| event.actor.agent.clone()),
            desktop: event.desktop.clone(),
            tone,
            text: shortened(clean_lines(&text)),
        }
    }

    /// The last line of a session whose host has ended.
    pub(super) fn host_ended() -> Self {
        Self::own("the host has ended; `handover up --session` brings the session back".to_owned())
    }

    fn own(text: String) -> Self {
        Self {
            at: None,
            agent: None,
            desktop: None,
            tone: Tone::Trouble,
            text,
        }
    }

    /// What stands before it: the time of the day, and of whom it is.
    pub fn lead(&self, whom: Whom<'_>) -> String {
        let time = self.at.map_or_else(String::new, |at| at.to_string());
        let lead = format!("{:<8} ", time.get(11..19).unwrap_or_default());
        let of = match (&self.agent, &self.desktop, whom) {
            (_, _, Whom::Unsaid) | (None, None, _) => return lead,
            (Some(agent), _, Whom::Named(session)) => session.name_of(agent),
            (Some(agent), _, Whom::ById) => clean(agent.as_str()),
            (None, Some(desktop), _) => clean(desktop.as_str()),
        };
        format!("{lead}{of} ")
    }

    /// Whether it is about that; what concerns the whole session is about everything.
    pub fn is_about(&self, of: Of<'_>) -> bool {
        let of_session = self.agent.is_none() && self.desktop.is_none();
        match of {
            Of::All => true,
            Of::Agent(id) => self.agent.as_ref() == Some(id) || (of_session && self.at.is_none()),
            Of::Desktop(id) => {
                self.desktop.as_ref() == Some(id) || (of_session && self.at.is_none())
            }
        }
    }
}

fn told(event: &Event) -> (String, Tone) {
    let words = || Story::of_one(Style::default()).words(event).0;
    let tone = match event.kind.as_str() {
        "agent_text" => Tone::Said,
        "agent_tool" => Tone::Deed,
        "agent_spawned" => Tone::Status(None),
        "agent_status" => {
            let status = event.fields.get("status");
            Tone::Status(status.and_then(|status| serde_json::from_value(status.clone()).ok()))
        }
        "steer" => Tone::Receipt,
        "human_intervention" => Tone::Person,
        _ => return by_others(event),
    };
    (words(), tone)
}

/// What desktops, takeovers and requests are about.
fn by_others(event: &Event) -> (String, Tone) {
    let mut text = format!("{}: {}", describe::who(event), describe::what(event));
    let named = |name: &str| event.fields.get(name).and_then(serde_json::Value::as_str);
    for said in [
        named("reason"),
        named("question"),
        named("text"),
        describe::quote(event),
    ] {
        if let Some(said) = said.filter(|said| !said.is_empty()) {
            text.push_str(&format!(" “{}”", clean(said)));
        }
    }
    let kind = event.kind.as_str();
    let for_people = kind.starts_with("takeover_")
        || matches!(
            kind,
            "paused" | "resumed" | "request_human" | "request_answered"
        );
    let tone = if describe::is_refused(event) || kind == "foreign_connection" {
        Tone::Trouble
    } else if for_people {
        Tone::Person
    } else {
        Tone::Deed
    };
    (text, tone)
}

/// At most [`MOST_BYTES`] of it, with a mark where it was cut.
fn shortened(mut text: String) -> String {
    const MARK: char = '…';
    if text.len() > MOST_BYTES {
        let cut = text.floor_char_boundary(MOST_BYTES - MARK.len_utf8());
        text.truncate(cut);
        text.push(MARK);
    }
    text
}

/// The latest lines of a session.
#[derive(Debug, Default)]
pub struct Lines {
    kept: VecDeque<Line>,
    /// The number of the latest event that was seen.
    seen: u64,
    /// How many lines there were before those that are kept.
    dropped: u64,
}

impl Lines {
    /// Takes in an event; false if it was seen before.
    pub(super) fn push(&mut self, event: &Event) -> bool {
        if event.seq <= self.seen {
            return false;
        }
        self.seen = event.seq;
        self.push_own(Line::of(event));
        true
    }

    pub(super) fn push_own(&mut self, line: Line) {
        if self.kept.len() >= MOST_LINES {
            self.kept.pop_front();
            self.dropped += 1;
        }
        self.kept.push_back(line);
    }

    pub(super) fn left_out(&mut self, gap: Gap) {
        if gap.to <= self.seen {
            return;
        }
        self.seen = gap.to;
        let text = format!(
            "… events {} to {} were left out; see `handover log`",
            gap.from, gap.to
        );
        self.push_own(Line::own(text));
    }

    /// The lines about something, oldest first.
    pub fn about<'a>(&'a self, of: Of<'a>) -> impl DoubleEndedIterator<Item = &'a Line> {
        self.kept.iter().filter(move |line| line.is_about(of))
    }

    /// Those of the latest `count` lines that are about something, the latest first.
    pub fn latest<'a>(&'a self, count: usize, of: Of<'a>) -> impl Iterator<Item = &'a Line> {
        let latest = self.kept.iter().rev().take(count);
        latest.filter(move |line| line.is_about(of))
    }

    /// Grows with every line, so that it tells whether there is something new.
    pub fn count(&self) -> u64 {
        self.dropped + self.kept.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use handover_protocol::Event;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::super::testing::event;
    use super::*;

    fn text(event: &Event) -> String {
        Line::of(event).text
    }

    #[test]
    fn what_happened_in_words() {
        let mut asked = event(
            3,
            "request_human",
            json!({"reason": "log in", "question": "who?"}),
        );
        asked.actor.agent = Some("a1".into());
        asked.source = handover_protocol::Source::Agent;
        let lines = [
            text(&event(
                1,
                "agent_text",
                json!({"text": "I look\n\tat \u{1b}[2Jit"}),
            )),
            text(&event(
                2,
                "agent_tool",
                json!({"tool": "bash", "state": "start", "summary": "ls"}),
            )),
            text(&asked),
            text(&event(
                4,
                "takeover_return",
                json!({"heldMs": 61_000, "note": "done\u{202e}"}),
            )),
            text(&event(
                5,
                "desktop_click",
                json!({"x": 1, "y": 2, "outcome": "refused", "code": "paused"}),
            )),
        ];
        insta::assert_snapshot!(lines.join("\n"), @r"
        I look
              at \u{1b}[2Jit
        ▸ bash ls
        agent a1: asked for a person “log in” “who?”
        person: control given back after 1:01 “done\u{202e}”
        person: click at 1,2: paused
        ");
    }

    #[test]
    fn no_more_is_kept_than_the_bound() {
        let mut lines = Lines::default();
        let long = "é".repeat(MOST_BYTES);
        for seq in 1..=(MOST_LINES as u64 + 10) {
            assert!(lines.push(&event(seq, "agent_text", json!({"text": long}))));
        }
        assert_eq!(lines.kept.len(), MOST_LINES);
        assert_eq!(lines.count(), MOST_LINES as u64 + 10);
        assert!(lines.kept.iter().all(|line| line.text.len() <= MOST_BYTES));
        assert!(lines.kept[0].text.ends_with('…'));
    }

    #[test]
    fn what_was_seen_does_not_come_twice() {
        let mut lines = Lines::default();
        assert!(lines.push(&event(5, "agent_text", json!({"text": "x"}))));
        assert!(!lines.push(&event(5, "agent_text", json!({"text": "x"}))));
        lines.left_out(Gap { from: 6, to: 9 });
        lines.left_out(Gap { from: 6, to: 9 });
        assert!(!lines.push(&event(9, "agent_text", json!({"text": "x"}))));
        assert!(lines.push(&event(10, "agent_text", json!({"text": "x"}))));
        assert_eq!(lines.count(), 3);
    }

    #[test]
    fn each_has_its_own() {
        let mut lines = Lines::default();
        let mut of_agent = event(1, "agent_text", json!({"text": "a"}));
        of_agent.agent = Some("a1".into());
        let mut of_both = event(2, "desktop_click", json!({}));
        (of_both.actor.agent, of_both.desktop) = (Some("a1".into()), Some("d1".into()));
        let mut of_desktop = event(3, "paused", json!({}));
        of_desktop.desktop = Some("d1".into());
        for event in [&of_agent, &of_both, &of_desktop] {
            lines.push(event);
        }
        let (a1, a2, d1) = ("a1".into(), "a2".into(), "d1".into());
        let count = |of| lines.about(of).count();
        assert_eq!(count(Of::All), 3);
        assert_eq!(count(Of::Agent(&a1)), 2);
        assert_eq!(count(Of::Desktop(&d1)), 2);
        assert_eq!(count(Of::Agent(&a2)), 0);
    }

    proptest! {
        #[test]
        fn no_line_holds_what_a_terminal_acts_on(
            kind in "agent_text|agent_tool|steer|human_intervention|request_human|desktop_key|.{0,10}",
            name in "text|tool|summary|reason|note|keys|error|status|act|code|holder",
            value in any::<String>(),
        ) {
            let mut fields = serde_json::Map::new();
            fields.insert(name, Value::String(value));
            let line = Line::of(&event(1, &kind, Value::Object(fields)));
            prop_assert!(line.text.chars().all(|c| c == '\n' || !c.is_control()), "{:?}", line.text);
        }
    }
}
