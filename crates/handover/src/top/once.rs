//! One frame for scripts: as text, or as JSON.

use std::time::Duration;

use handover_protocol::{AgentView, DesktopView, Manifest, RequestView};
use serde::Serialize;
use tokio::time::Instant;

use super::draw::tree::{Columns, Now};
use super::draw::{bars, tree};
use super::paint::Paint;
use super::rows::{self, Choice};
use super::text::{cut, width, wrap};
use crate::cli::duration;
use crate::overview::{Feed, Link, News, Of, Overview, Session, Tally, Whom};

/// The fewest columns that a frame is made for.
const FEWEST_COLUMNS: usize = 40;

/// What happened last, in so many entries.
const LATEST: usize = 10;

/// So many rows of each, the last ones.
const ROWS: usize = 4;

/// How long it may take until events of the past have arrived, once every host has answered.
const SETTLED: Duration = Duration::from_millis(150);

/// Feeds `overview` until every host has answered or been given up, at most for `limit`. `expected` is
/// how many hosts there are.
pub async fn gather(feed: &mut Feed, overview: &mut Overview, expected: usize, limit: Duration) {
    let began = Instant::now();
    let deadline = began + limit;
    loop {
        let complete = has_answered(overview, expected);
        let until = if complete {
            deadline.min(Instant::now() + SETTLED)
        } else {
            deadline
        };
        let Ok(Some((id, news))) = tokio::time::timeout_at(until, feed.news.recv()).await else {
            return;
        };
        let now = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        overview.hear(&id, news, now);
    }
}

/// Marks the hosts that have not answered within `limit`. All that do not answer: if there are any, the frame is
/// not whole.
pub fn unanswered(overview: &mut Overview, limit: Duration) -> Vec<Manifest> {
    let waited_for = |session: &&Session| session.link == Link::Connecting;
    let sessions = overview.sessions().into_iter().filter(waited_for);
    let waited_for: Vec<_> = sessions.map(|session| session.id().clone()).collect();
    let within = duration::show(duration::ms(limit));
    for id in waited_for {
        let silent = format!("the host did not answer within {within}");
        overview.hear(&id, News::Lost(silent), 0);
    }
    let sessions = overview.sessions().into_iter();
    let silent = sessions.filter(|session| matches!(session.link, Link::Lost(_)));
    silent.map(|session| session.manifest.clone()).collect()
}

fn has_answered(overview: &Overview, expected: usize) -> bool {
    let sessions = overview.sessions();
    let answered = |session: &&Session| match session.link {
        Link::Connecting => false,
        Link::Live | Link::Lost(_) | Link::Ended { .. } => true,
    };
    sessions.len() >= expected && sessions.iter().all(answered)
}

/// The frame as text, as wide as `columns`, and as long as it has to be.
pub fn text(overview: &Overview, now: Now, columns: usize) -> String {
    let columns = columns.max(FEWEST_COLUMNS);
    let paint = Paint::none();
    let rows = rows::rows(overview, &Choice::default());
    let shared = Columns::of(&rows, columns);
    let mut lines = vec![bars::header(overview.tally(), paint, columns).to_string()];
    for row in &rows {
        lines.push(tree::line(row, shared, now, paint, columns).to_string());
    }
    if rows.is_empty() {
        lines.push("no session is running; `handover up` starts one".to_owned());
    }
    let several = overview.tally().sessions > 1;
    for session in overview.sessions() {
        latest(session, several, columns, &mut lines);
    }
    let trimmed = lines.iter().map(|line| line.trim_end());
    trimmed.fold(String::new(), |text, line| text + line + "\n")
}

fn latest(session: &Session, several: bool, columns: usize, lines: &mut Vec<String>) {
    let mut latest: Vec<_> = session.lines.about(Of::All).rev().take(LATEST).collect();
    if latest.is_empty() {
        return;
    }
    latest.reverse();
    lines.push(String::new());
    let title = if several {
        format!(
            "latest in {}",
            crate::overview::clean(&session.manifest.name)
        )
    } else {
        "latest".to_owned()
    };
    lines.push(cut(&title, columns));
    for line in latest {
        // A long name leaves no room for what it says.
        let leads = [Whom::Named(session), Whom::ById].map(|whom| line.lead(whom));
        let fits = |lead: &String| width(lead) * 2 <= columns;
        let lead = leads.into_iter().find(fits);
        let lead = lead.unwrap_or_else(|| line.lead(Whom::Unsaid));
        let indent = " ".repeat(width(&lead));
        let rows = wrap(&line.text, columns - indent.len());
        let skipped = rows.len().saturating_sub(ROWS);
        let sign = (skipped > 0).then_some("…");
        let shown = sign
            .into_iter()
            .chain(rows.iter().skip(skipped).map(AsRef::as_ref));
        for (index, row) in shown.enumerate() {
            let lead = if index == 0 { &lead } else { &indent };
            lines.push(format!("{lead}{row}"));
        }
    }
}

/// The model for programs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Model<'a> {
    needs: usize,
    counts: Tally,
    sessions: Vec<Entry<'a>>,
}

/// One session for programs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry<'a> {
    session_id: &'a str,
    name: &'a str,
    project_dir: &'a str,
    pid: u32,
    state: &'static str,
    /// Why its host does not answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
    needs: usize,
    requests: &'a [RequestView],
    desktops: &'a [DesktopView],
    agents: &'a [AgentView],
}

impl<'a> Model<'a> {
    /// All that `overview` knows but the latest events, which `handover log` prints.
    pub fn of(overview: &'a Overview) -> Self {
        let sessions = overview.sessions().into_iter().map(Entry::of).collect();
        let counts = overview.tally();
        Self {
            needs: counts.needs,
            counts,
            sessions,
        }
    }
}

impl<'a> Entry<'a> {
    fn of(session: &'a Session) -> Self {
        let (state, message) = match &session.link {
            Link::Connecting => ("connecting", None),
            Link::Live => ("live", None),
            Link::Lost(why) => ("lost", Some(why.as_str())),
            Link::Ended { .. } => ("ended", None),
        };
        Self {
            session_id: session.id().as_str(),
            name: &session.manifest.name,
            project_dir: &session.manifest.project_dir,
            pid: session.manifest.pid,
            state,
            message,
            needs: session.needs(),
            requests: &session.requests,
            desktops: &session.desktops,
            agents: &session.agents,
        }
    }
}

#[cfg(test)]
mod tests {
    use handover_protocol::Timestamp;
    use serde_json::json;

    use super::*;
    use crate::overview::testing::{event, list, manifest};

    fn frame(agent: &str, said: &[String], columns: usize) -> String {
        let mut overview = Overview::default();
        let found = News::Found(Box::new(manifest("s1", "shop")));
        overview.hear(&"s1".into(), found, 0);
        for (seq, said) in (1..).zip(said) {
            let said = event(seq, "agent_text", json!({"agent": agent, "text": said}));
            overview.hear(&"s1".into(), News::Event(Box::new(said)), 0);
        }
        let wall = Timestamp(1_769_852_400_000);
        text(&overview, Now { ms: 0, wall }, columns)
    }

    #[test]
    fn much_that_is_said_does_not_make_the_frame_long() {
        let many = |n: u64| {
            (0..300)
                .map(|line| format!("{n}.{line}\n"))
                .collect::<String>()
        };
        let said: Vec<_> = (0..100).map(many).collect();
        let frame = frame("k7m2", &said, 80);
        let rows = frame.lines().count();
        assert!(rows < LATEST * (ROWS + 1) + 10, "{rows} rows:\n{frame}");
        assert!(
            frame.contains("k7m2 …") && frame.contains("99.299"),
            "{frame}"
        );
        assert!(
            !frame.contains("99.200") && !frame.contains("89.299"),
            "{frame}"
        );
    }

    #[test]
    fn a_host_that_only_greets_is_not_live_yet() {
        let mut overview = Overview::default();
        let caller = json!({"kind": "human", "pid": 7, "uid": 0});
        let mut hear = |news| overview.hear(&"s1".into(), news, 0);
        hear(News::Found(Box::new(manifest("s1", "shop"))));
        hear(News::Connected(serde_json::from_value(caller).unwrap()));
        assert!(!has_answered(&overview, 1));
        assert_eq!(Model::of(&overview).sessions[0].state, "connecting");
        let silent = unanswered(&mut overview, Duration::from_secs(5));
        assert_eq!(silent.len(), 1);
        let wall = Timestamp(0);
        let shown = text(&overview, Now { ms: 0, wall }, 100);
        assert!(
            shown.contains("handover  no answer: 1  1 session"),
            "{shown}"
        );
        let row = "no answer: the host did not answer within 5.0 s";
        assert!(shown.contains(row), "{shown}");
        overview.hear(&"s1".into(), News::Listed(Box::new(list("s1"))), 0);
        assert!(has_answered(&overview, 1));
        assert_eq!(Model::of(&overview).sessions[0].state, "live");
        assert!(unanswered(&mut overview, Duration::from_secs(5)).is_empty());
    }

    #[test]
    fn what_is_short_is_shown_whole_beside_any_name() {
        let said = ["one\ntwo\nthree".to_owned()];
        let whole = frame("k7m2", &said, 80);
        assert!(
            whole.contains("k7m2 one") && !whole.contains('…'),
            "{whole}"
        );
        let narrow = frame(&"k".repeat(60), &said, 0);
        assert!(narrow.contains("09:39:50 one"), "{narrow}");
    }

    #[test]
    fn lines_are_led_by_the_names_of_the_tree() {
        let mut overview = Overview::default();
        let said = event(1, "agent_text", json!({"agent": "k7m2", "text": "one"}));
        for news in [
            News::Found(Box::new(manifest("s1", "shop"))),
            News::Listed(Box::new(list("s1"))),
            News::Event(Box::new(said)),
        ] {
            overview.hear(&"s1".into(), news, 0);
        }
        let wall = Timestamp(1_769_852_400_000);
        let frame = text(&overview, Now { ms: 0, wall }, 80);
        assert!(frame.contains("09:39:50 checkout one"), "{frame}");
    }
}
