//! A row of the tree.

use handover_protocol::{AgentView, DesktopView, RequestView, Timestamp};
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::super::paint::Paint;
use super::super::rows::{Row, What};
use super::super::text::{cut, fit, width};
use crate::cli::{duration, list};
use crate::overview::{Link, Session, clean};

/// The most columns of an agent's name.
const MOST_NAME: usize = 24;

/// When it is.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    /// On the overview's clock, in milliseconds.
    pub ms: u64,
    /// On the wall.
    pub wall: Timestamp,
}

/// Columns that the rows of one tree have in common.
#[derive(Clone, Copy, Debug, Default)]
pub struct Columns {
    /// That of agents' names, with the lines before them.
    name: usize,
    /// That of how they stand.
    status: usize,
}

impl Columns {
    /// Those that fit all of `rows` in `room` columns.
    pub fn of(rows: &[Row<'_>], room: usize) -> Self {
        let mut columns = Self::default();
        for row in rows {
            if let What::Agent { lines, agent } = &row.what {
                let name = width(lines) + width(&cut(&name(agent), MOST_NAME));
                columns.name = columns.name.max(name);
                columns.status = columns.status.max(list::status(agent.status).len());
            }
        }
        columns.name = columns.name.min(room / 2);
        columns
    }
}

/// What a row shows, in at most `room` columns.
pub fn line(row: &Row<'_>, columns: Columns, now: Now, paint: Paint, room: usize) -> Line<'static> {
    let mut spans = match &row.what {
        What::Session { folded } => session(row.session, *folded, paint, room),
        What::Request(request) => asking(row.session, request, paint),
        What::Desktop(view) => desktop(row.session, view, now, paint),
        What::Agent { lines, agent } => self::agent(lines, agent, columns, now, paint),
        What::Hidden(count) => {
            let text = format!("  and {count} more that have ended");
            vec![Span::styled(text, paint.dim())]
        }
    };
    clip(&mut spans, room);
    Line::from(spans)
}

/// Cuts spans to `room` columns.
pub fn clip(spans: &mut Vec<Span<'static>>, room: usize) {
    let mut left = room;
    for (index, span) in spans.iter_mut().enumerate() {
        let takes = width(&span.content);
        if takes > left {
            span.content = cut(&span.content, left).into();
            spans.truncate(index + 1);
            return;
        }
        left -= takes;
    }
}

fn session(session: &Session, folded: bool, paint: Paint, room: usize) -> Vec<Span<'static>> {
    let fold = if folded { "▸ " } else { "▾ " };
    let name = cut(&clean(&session.manifest.name), room / 2);
    let mut spans = vec![
        Span::raw(fold),
        Span::styled(name, paint.title()),
        Span::styled(format!(" {}", clean(session.id().as_str())), paint.dim()),
    ];
    match &session.link {
        Link::Live => {}
        Link::Connecting => spans.push(Span::styled(" connecting", paint.dim())),
        Link::Lost(why) => {
            let text = format!(" no answer: {}", clean(why));
            spans.push(Span::styled(text, paint.trouble()));
        }
        Link::Ended { .. } => spans.push(Span::styled(" host has ended", paint.trouble())),
    }
    let needs = session.needs();
    if needs > 0 {
        spans.push(Span::styled(format!(" needs you: {needs}"), paint.alert()));
    }
    let dir = format!(" {}", clean(&session.manifest.project_dir));
    spans.push(Span::styled(dir, paint.dim()));
    spans
}

fn asking(session: &Session, request: &RequestView, paint: Paint) -> Vec<Span<'static>> {
    let who = match &request.agent {
        Some(id) => session.agent(id).map_or_else(|| clean(id.as_str()), name),
        None => clean(request.request_id.as_str()),
    };
    let mut text = format!("  ? {who}: {}", clean(&request.reason));
    if let Some(question) = &request.question {
        text.push_str(&format!(" — {}", clean(question)));
    }
    if let Some(desktop) = &request.desktop {
        text.push_str(&format!(" ({})", clean(desktop.as_str())));
    }
    vec![Span::styled(text, paint.alert())]
}

fn desktop(session: &Session, view: &DesktopView, now: Now, paint: Paint) -> Vec<Span<'static>> {
    let control = list::control(view.control, view.phase);
    let mut spans = vec![
        Span::raw(format!("  ▣ {} ", clean(view.id.as_str()))),
        Span::styled(control, paint.control(view.control)),
    ];
    if let Some(lease) = &view.lease {
        spans.push(Span::raw(format!(" {}", clean(&lease.holder))));
    }
    if let Some(left) = session.left_ms(view, now.ms) {
        let text = format!(", {} left", duration::show(left));
        spans.push(Span::styled(text, paint.dim()));
    }
    spans.push(Span::styled(format!(" {}", view.size), paint.dim()));
    spans
}

/// An agent's name, with its id where that is another.
fn name(agent: &AgentView) -> String {
    let id = clean(agent.id.as_str());
    let name = clean(&agent.name);
    if name.is_empty() || name == id {
        id
    } else {
        format!("{} {id}", cut(&name, MOST_NAME - 6))
    }
}

fn agent(
    lines: &str,
    agent: &AgentView,
    columns: Columns,
    now: Now,
    paint: Paint,
) -> Vec<Span<'static>> {
    let age = agent.started_at.map_or_else(String::new, |started| {
        duration::age(now.wall.unix_ms().saturating_sub(started.unix_ms()))
    });
    let room = columns.name.saturating_sub(width(lines));
    let mut spans = vec![
        Span::styled(format!("  {lines}"), paint.dim()),
        Span::raw(fit(&name(agent), room)),
        Span::raw(" "),
        Span::styled(
            fit(list::status(agent.status), columns.status),
            paint.status(agent.status),
        ),
        Span::styled(format!(" {age:>3}"), paint.dim()),
    ];
    if agent.pending > 0 {
        let text = format!(" {} unread", agent.pending);
        spans.push(Span::styled(text, paint.alert()));
    }
    if let Some(tokens) = agent.tokens {
        let text = format!(" {} tokens", list::tokens(tokens));
        spans.push(Span::styled(text, paint.dim()));
    }
    spans.push(Span::styled(
        format!(" {} ", clean(&agent.kind)),
        paint.dim(),
    ));
    spans.push(Span::styled(clean(&agent.task), Style::new()));
    spans
}
