//! The tree: what is shown of the overview, a row each, in the order in which a person should see it.

use std::collections::HashSet;

use handover_protocol::{
    AgentId, AgentView, DesktopId, DesktopView, RequestId, RequestView, SessionId,
};

use crate::lineage;
use crate::overview::{Overview, Session};

/// Agents that have ended and are shown of each session, the newest ones.
const ENDED_SHOWN: usize = 10;

/// What a row stands for; the same from one frame to the next.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// The session it belongs to.
    pub session: SessionId,
    /// What of it.
    pub part: Part,
}

/// What of a session a row stands for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// All of it.
    Whole,
    /// A request for a person.
    Request(RequestId),
    /// A desktop.
    Desktop(DesktopId),
    /// An agent.
    Agent(AgentId),
    /// The agents that have ended and are not shown.
    Hidden,
}

/// One row.
#[derive(Debug)]
pub struct Row<'a> {
    /// What it stands for.
    pub key: Key,
    /// The session it belongs to.
    pub session: &'a Session,
    /// What it shows.
    pub what: What<'a>,
}

/// What a row shows.
#[derive(Debug)]
pub enum What<'a> {
    /// The session; whether the rows below it are hidden.
    Session {
        /// Whether the rows below it are hidden.
        folded: bool,
    },
    /// A request for a person.
    Request(&'a RequestView),
    /// A desktop.
    Desktop(&'a DesktopView),
    /// An agent, with the lines that join it to its parent.
    Agent {
        /// The lines before its name.
        lines: String,
        /// The agent.
        agent: Box<AgentView>,
    },
    /// So many ended agents are not shown.
    Hidden(usize),
}

/// What is chosen to be seen.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// Sessions of which only one row is shown.
    pub folded: HashSet<SessionId>,
    /// What rows must contain, in whatever case; all if empty.
    pub filter: String,
}

impl Choice {
    /// The filter as it is compared: in lower case.
    fn words(&self) -> String {
        self.filter.trim().to_lowercase()
    }

    /// The index of the row to be selected when the filter has changed: `at` if the filter fits that row
    /// itself, else the first that it fits. A session's row is also shown for what fits below it.
    pub fn found(&self, rows: &[Row<'_>], at: Option<usize>) -> Option<usize> {
        let words = self.words();
        at.filter(|at| rows.get(*at).is_some_and(|row| row.contains(&words)))
            .or_else(|| rows.iter().position(|row| row.contains(&words)))
    }
}

/// The rows of the tree.
pub fn rows<'a>(overview: &'a Overview, choice: &Choice) -> Vec<Row<'a>> {
    let filter = choice.words();
    let mut rows = Vec::new();
    for session in overview.sessions() {
        let folded = choice.folded.contains(session.id());
        let head = row(session, Part::Whole, What::Session { folded });
        let whole = head.contains(&filter);
        let mut below = below(session);
        if !whole {
            below.retain(|row| row.contains(&filter));
            if below.is_empty() {
                continue;
            }
        }
        rows.push(head);
        // What is searched for is not to be hidden by a fold.
        if !folded || !whole {
            rows.append(&mut below);
        }
    }
    rows
}

fn row<'a>(session: &'a Session, part: Part, what: What<'a>) -> Row<'a> {
    let key = Key {
        session: session.id().clone(),
        part,
    };
    Row { key, session, what }
}

/// The rows of one session below its own: requests, desktops, agents.
fn below(session: &Session) -> Vec<Row<'_>> {
    let mut rows = Vec::new();
    for request in session.open() {
        let part = Part::Request(request.request_id.clone());
        rows.push(row(session, part, What::Request(request)));
    }
    for desktop in &session.desktops {
        let part = Part::Desktop(desktop.id.clone());
        rows.push(row(session, part, What::Desktop(desktop)));
    }
    let shown = lineage::newest(&session.agents, ENDED_SHOWN);
    for branch in lineage::tree(&shown) {
        let part = Part::Agent(branch.agent.id.clone());
        let what = What::Agent {
            lines: branch.lines,
            agent: Box::new(branch.agent.clone()),
        };
        rows.push(row(session, part, what));
    }
    let hidden = session.agents.len() - shown.len();
    if hidden > 0 {
        rows.push(row(session, Part::Hidden, What::Hidden(hidden)));
    }
    rows
}

impl Row<'_> {
    /// Whether what it stands for contains `filter`, which is in lower case.
    fn contains(&self, filter: &str) -> bool {
        if filter.is_empty() {
            return true;
        }
        let manifest = &self.session.manifest;
        let words = match &self.what {
            What::Session { .. } => format!(
                "{} {} {}",
                manifest.name, manifest.session_id, manifest.project_dir
            ),
            What::Request(request) => format!(
                "{} {} {}",
                request.request_id,
                request.reason,
                request.question.as_deref().unwrap_or_default()
            ),
            What::Desktop(desktop) => {
                let control = crate::cli::list::control(desktop.control, desktop.phase);
                format!("{} {control}", desktop.id)
            }
            What::Agent { agent, .. } => format!(
                "{} {} {} {} {}",
                agent.id,
                agent.name,
                agent.kind,
                crate::cli::list::status(agent.status),
                agent.task
            ),
            What::Hidden(_) => return false,
        };
        words.to_lowercase().contains(filter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::overview::News;
    use crate::overview::testing::{list, manifest};

    fn overview() -> Overview {
        let mut overview = Overview::default();
        for (id, name) in [("s1", "shop"), ("s2", "docs")] {
            let found = News::Found(Box::new(manifest(id, name)));
            overview.hear(&id.into(), found, 0);
        }
        overview.hear(&"s1".into(), News::Listed(Box::new(list("s1"))), 0);
        overview
    }

    fn parts(overview: &Overview, choice: &Choice) -> Vec<String> {
        let rows = rows(overview, choice);
        let named = rows.iter().map(|row| match &row.key.part {
            Part::Whole => row.key.session.to_string(),
            Part::Request(id) => format!("?{id}"),
            Part::Desktop(id) => id.to_string(),
            Part::Agent(id) => id.to_string(),
            Part::Hidden => "hidden".to_owned(),
        });
        named.collect()
    }

    #[test]
    fn requests_then_desktops_then_agents_as_a_tree() {
        let overview = overview();
        let all = parts(&overview, &Choice::default());
        assert_eq!(all, ["s1", "?r1", "d1", "d2", "k7m2", "a3b4", "z9y8", "s2"]);
    }

    #[test]
    fn a_fold_hides_and_a_filter_finds() {
        let overview = overview();
        let mut choice = Choice::default();
        choice.folded.insert("s1".into());
        assert_eq!(parts(&overview, &choice), ["s1", "s2"]);
        choice.filter = "CODEX".to_owned();
        assert_eq!(parts(&overview, &choice), ["s1", "a3b4"]);
        choice.filter = "docs".to_owned();
        assert_eq!(parts(&overview, &choice), ["s1", "a3b4", "s2"]);
        choice.filter = "nothing like it".to_owned();
        assert!(parts(&overview, &choice).is_empty());
    }

    #[test]
    fn of_many_ended_agents_only_the_newest_are_shown() {
        let mut overview = overview();
        let mut many = list("s1");
        many.agents = (0..50)
            .map(|n| {
                let mut agent = many.agents[2].clone();
                agent.id = format!("a{n:02}").into();
                agent.parent = None;
                agent
            })
            .collect();
        many.requests.clear();
        overview.hear(&"s1".into(), News::Listed(Box::new(many)), 0);
        let all = parts(&overview, &Choice::default());
        assert_eq!(
            all.iter().filter(|part| part.starts_with('a')).count(),
            ENDED_SHOWN
        );
        assert!(all.contains(&"a49".to_owned()) && all.contains(&"hidden".to_owned()));
    }
}
