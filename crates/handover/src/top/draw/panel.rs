//! What is written or asked, between the body and the lines at the bottom.

use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};

use super::super::app::{App, Hit, MOMENTS, Mode, Writing};
use super::super::paint::Paint;
use super::super::text::{cut, width, wrap};
use crate::overview::clean_lines;

/// The most rows of a text that are shown at once.
const MOST_TEXT: usize = 6;

/// Rows that stay with the body.
const FOR_BODY: u16 = 3;

/// How many rows it needs.
pub fn height(app: &App, area: Rect) -> u16 {
    // The lines at the top and at the bottom have three.
    let most = area.height.saturating_sub(3 + FOR_BODY);
    let wanted = match &app.mode {
        Mode::Browse | Mode::Help(_) => 0,
        Mode::Write(writing) => {
            let (rows, _) = text(writing, usize::from(area.width));
            1 + rows.len().min(MOST_TEXT)
        }
        Mode::Confirm(ask, _) => 1 + ask.ending(&app.overview).len(),
    };
    most.min(u16::try_from(wanted).unwrap_or(u16::MAX))
}

/// Draws it.
pub fn draw(frame: &mut Frame<'_>, app: &mut App, area: Rect, paint: Paint) {
    if area.height == 0 {
        return;
    }
    match &mut app.mode {
        Mode::Browse | Mode::Help(_) => {}
        Mode::Write(writing) => write(frame, writing, area, paint, &mut app.hits),
        Mode::Confirm(ask, first) => {
            let ending = ask.ending(&app.overview);
            let question = ask.question(&app.overview);
            confirm(frame, (&ending, &question), first, area, paint);
        }
    }
}

/// The rows of the text, and where the cursor is in them.
fn text(writing: &Writing, room: usize) -> (Vec<String>, (usize, usize)) {
    // One column for the cursor behind the last character.
    let room = room.saturating_sub(1);
    let before = wrap_exactly(&clean_lines(&writing.editor.before()), room);
    let last = before.last().map_or(0, |row| width(row));
    let whole = clean_lines(&(writing.editor.before() + &writing.editor.behind()));
    let mut rows = wrap_exactly(&whole, room);
    let cursor = (before.len().saturating_sub(1), last);
    while rows.len() <= cursor.0 {
        rows.push(String::new());
    }
    (rows, cursor)
}

/// Rows broken only where they are full, so that the text before the cursor breaks as the whole does.
fn wrap_exactly(text: &str, room: usize) -> Vec<String> {
    let mut rows = Vec::new();
    for line in text.split('\n') {
        let mut row = String::new();
        for c in line.chars() {
            let more = unicode_width::UnicodeWidthChar::width(c).unwrap_or(0);
            if width(&row) + more > room {
                rows.push(std::mem::take(&mut row));
            }
            row.push(c);
        }
        rows.push(row);
    }
    rows
}

fn write(
    frame: &mut Frame<'_>,
    writing: &Writing,
    area: Rect,
    paint: Paint,
    hits: &mut super::super::app::Hits,
) {
    let mut places = area.rows();
    if let Some(place) = places.next() {
        title(frame, writing, place, paint, hits);
    }
    let (rows, (row, column)) = text(writing, usize::from(area.width));
    let height = usize::from(area.height.saturating_sub(1));
    let first = (row + 1).saturating_sub(height);
    for (index, (text, place)) in rows.into_iter().skip(first).zip(places).enumerate() {
        frame.render_widget(Line::raw(text), place);
        if index + first == row {
            let column = u16::try_from(column).unwrap_or(u16::MAX);
            let x = place.x.saturating_add(column).min(place.right() - 1);
            frame.set_cursor_position(Position::new(x, place.y));
        }
    }
}

fn title(
    frame: &mut Frame<'_>,
    writing: &Writing,
    place: Rect,
    paint: Paint,
    hits: &mut super::super::app::Hits,
) {
    let title = cut(&writing.title(), usize::from(place.width));
    let mut at = place.x + u16::try_from(width(&title)).unwrap_or(place.width);
    let mut spans = vec![Span::styled(title, paint.title())];
    if let Some(chosen) = writing.when() {
        for (moment, name) in MOMENTS {
            let style = if moment == chosen {
                paint.selected()
            } else {
                paint.dim()
            };
            let columns = u16::try_from(name.len()).unwrap_or(0);
            spans.push(Span::raw("  "));
            spans.push(Span::styled(name, style));
            let button = Rect::new(at + 2, place.y, columns, 1).intersection(place);
            hits.put(button, Hit::Moment(moment));
            at = at.saturating_add(2 + columns);
        }
    }
    frame.render_widget(Line::from(spans), place);
}

fn confirm(
    frame: &mut Frame<'_>,
    (ending, question): (&[String], &str),
    first: &mut usize,
    area: Rect,
    paint: Paint,
) {
    let room = usize::from(area.width);
    let mut places: Vec<Rect> = area.rows().collect();
    let Some(last) = places.pop() else { return };
    *first = (*first).min(ending.len().saturating_sub(places.len()));
    let below = ending.len().saturating_sub(*first + places.len());
    for (text, place) in ending.iter().skip(*first).zip(places) {
        let line = Line::raw(format!("  {}", cut(text, room.saturating_sub(2))));
        frame.render_widget(line, place);
    }
    let mut question = question.to_owned();
    if *first > 0 || below > 0 {
        question = format!("{question} ({} shown, ↑↓)", ending.len() - below - *first);
    }
    let question = wrap(&question, room).into_iter().next().unwrap_or_default();
    frame.render_widget(Line::styled(question, paint.alert()), last);
}

/// What a question is about, for the line of keys.
pub fn wider(app: &App) -> bool {
    match &app.mode {
        Mode::Confirm(ask, _) => ask.wider(&app.overview).is_some(),
        _ => false,
    }
}
