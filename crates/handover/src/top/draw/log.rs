//! What happens in what is selected, the latest at the bottom.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::super::app::{App, Hit};
use super::super::paint::Paint;
use super::super::text::{cut, width, wrap};
use crate::cli::steer::word;
use crate::overview::{Line as Entry, Of, Receipt, Session, Whom};

/// Receipts that are shown below the log, the latest ones.
const RECEIPTS: usize = 2;

/// All that is known of a message, in its order.
pub fn progress(receipt: &Receipt) -> String {
    let states: Vec<_> = receipt.states.iter().copied().map(word).collect();
    let mut text = states.join(" › ");
    if let Some(reason) = &receipt.reason {
        text.push_str(&format!(": {reason}"));
    }
    text
}

/// Draws the log of what is selected.
pub fn draw(frame: &mut Frame<'_>, app: &mut App, area: Rect, paint: Paint) {
    app.hits.put(area, Hit::Log);
    let room = usize::from(area.width);
    let mut places: Vec<Rect> = area.rows().collect();
    let title = title(app, paint, room);
    if let Some(place) = (!places.is_empty()).then(|| places.remove(0)) {
        frame.render_widget(title, place);
    }
    for line in receipts(app, paint, room).into_iter().rev() {
        // At least one row is the log's.
        if places.len() > 1
            && let Some(place) = places.pop()
        {
            frame.render_widget(line, place);
        }
    }
    let (lines, back, seen) = rows(app, paint, room, places.len());
    (app.back, app.seen) = (back, seen);
    let empty = places.len() - lines.len();
    for (line, place) in lines.into_iter().zip(places.into_iter().skip(empty)) {
        frame.render_widget(line, place);
    }
}

fn title(app: &App, paint: Paint, room: usize) -> Line<'static> {
    let mut spans = vec![Span::styled(app.title(), paint.title())];
    if app.back > 0 {
        let text = format!("  {} rows back, PgDn", app.back);
        spans.push(Span::styled(text, paint.alert()));
    }
    super::tree::clip(&mut spans, room);
    Line::from(spans)
}

fn receipts(app: &App, paint: Paint, room: usize) -> Vec<Line<'static>> {
    let known = app.receipts();
    let latest = &known[known.len().saturating_sub(RECEIPTS)..];
    let lines = latest.iter().map(|receipt| {
        let progress = progress(receipt);
        let room_for_text = room.saturating_sub(width(&progress) + 6);
        let text = cut(&receipt.text.replace('\n', " "), room_for_text);
        let mut spans = vec![
            Span::styled(format!("→ “{text}” "), paint.dim()),
            Span::raw(progress),
        ];
        super::tree::clip(&mut spans, room);
        Line::from(spans)
    });
    lines.collect()
}

/// The rows that are in sight, how far back that really is, and how many lines there are.
fn rows(app: &App, paint: Paint, room: usize, height: usize) -> (Vec<Line<'static>>, usize, u64) {
    let Some((session, of)) = app.subject() else {
        return (Vec::new(), 0, 0);
    };
    let among = (of == Of::All).then_some(session);
    let count = session.lines.count();
    let mut back = app.back;
    if back > 0 {
        // What is read stays where it is while more happens below.
        let more = usize::try_from(count.saturating_sub(app.seen)).unwrap_or(usize::MAX);
        let more = session.lines.latest(more, of);
        let more = more.map(|entry| entry_rows(entry, among, paint, room).len());
        back += more.sum::<usize>();
    }
    let wanted = height + back;
    // From the latest back, until there is enough.
    let mut found: Vec<Line<'static>> = Vec::new();
    for entry in session.lines.about(of).rev() {
        let mut rows = entry_rows(entry, among, paint, room);
        rows.reverse();
        found.append(&mut rows);
        if found.len() >= wanted {
            break;
        }
    }
    let back = back.min(found.len().saturating_sub(height));
    let mut shown: Vec<_> = found.into_iter().skip(back).take(height).collect();
    shown.reverse();
    (shown, back, count)
}

fn entry_rows(
    entry: &Entry,
    among: Option<&Session>,
    paint: Paint,
    room: usize,
) -> Vec<Line<'static>> {
    let whom = match among {
        Some(session) => [Whom::Named(session), Whom::ById],
        None => [Whom::Unsaid; 2],
    };
    // On a narrow screen what is said matters more than when and by whom.
    let fits = |lead: &String| width(lead) * 3 <= room;
    let lead = whom.map(|whom| entry.lead(whom)).into_iter().find(fits);
    let lead = lead.unwrap_or_default();
    let indent = " ".repeat(width(&lead));
    let rows = wrap(&entry.text, room - indent.len()).into_iter();
    let rows = rows.enumerate().map(|(index, row)| {
        let lead = if index == 0 { &lead } else { &indent };
        Line::from(vec![
            Span::styled(lead.clone(), paint.dim()),
            Span::styled(row, paint.tone(entry.tone)),
        ])
    });
    rows.collect()
}
