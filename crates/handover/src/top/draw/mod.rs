//! What is on the screen.

pub mod bars;
mod help;
mod log;
mod panel;
#[cfg(test)]
mod tests;
pub mod tree;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::Line;

use self::tree::Columns;
use super::app::{App, Hit, Hits, Mode};
use super::paint::Paint;

/// Rows that a page moves.
pub const PAGE: isize = 10;

/// The fewest columns and rows that the screen can do with.
pub const SMALLEST: (u16, u16) = (40, 10);

/// From so many columns on, tree and log stand side by side.
const WIDE: u16 = 70;

/// Draws everything, and notes what stands where.
pub fn screen(frame: &mut Frame<'_>, app: &mut App, paint: Paint) {
    let area = frame.area();
    app.hits = Hits::default();
    if area.width < SMALLEST.0 || area.height < SMALLEST.1 {
        too_small(frame, area);
        return;
    }
    let panel = panel::height(app, area);
    let [header, body, panel, status, keys] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Min(1),
        Constraint::Length(panel),
        Constraint::Length(1),
        Constraint::Length(1),
    ])
    .areas(area);
    let room = usize::from(area.width);
    frame.render_widget(bars::header(app.overview.tally(), paint, room), header);
    self::body(frame, app, body, paint);
    panel::draw(frame, app, panel, paint);
    frame.render_widget(bars::status(app, paint, room), status);
    bars::keys(frame, app, keys, paint);
}

fn too_small(frame: &mut Frame<'_>, area: Rect) {
    let (columns, rows) = SMALLEST;
    let lines = [
        format!("handover top needs {columns}x{rows},"),
        format!("this is {}x{}", area.width, area.height),
        "q quits".to_owned(),
    ];
    for (line, row) in lines.into_iter().zip(area.rows()) {
        frame.render_widget(Line::from(line), row);
    }
}

fn body(frame: &mut Frame<'_>, app: &mut App, area: Rect, paint: Paint) {
    if let Mode::Help(first) = &mut app.mode {
        help::draw(frame, area, first, paint);
        return;
    }
    if app.full {
        return log::draw(frame, app, area, paint);
    }
    if area.width < WIDE {
        return tree(frame, app, area, paint);
    }
    let left = (area.width * 2 / 5).clamp(34, 76);
    let [left, between, right] = Layout::horizontal([
        Constraint::Length(left),
        Constraint::Length(2),
        Constraint::Min(1),
    ])
    .areas(area);
    for row in between.rows() {
        frame.render_widget(Line::styled("│", paint.dim()), row);
    }
    tree(frame, app, left, paint);
    log::draw(frame, app, right, paint);
}

fn tree(frame: &mut Frame<'_>, app: &mut App, area: Rect, paint: Paint) {
    let height = usize::from(area.height);
    let room = usize::from(area.width);
    let mut hits = std::mem::take(&mut app.hits);
    hits.put(area, Hit::Tree);
    let (first, now) = (app.first, app.now);
    let rows = app.rows();
    let at = app.index(&rows);
    // The selection stays in sight, and no row is left empty above the last one.
    let first = at.map_or(first, |at| first.clamp((at + 1).saturating_sub(height), at));
    let first = first.min(rows.len().saturating_sub(height));
    let columns = Columns::of(&rows, room);
    let shown = rows.iter().enumerate().skip(first).zip(area.rows());
    for ((index, row), place) in shown {
        let mut line = tree::line(row, columns, now, paint, room);
        if at == Some(index) {
            line = line.patch_style(paint.selected());
            frame.buffer_mut().set_style(place, paint.selected());
        }
        frame.render_widget(line, place);
        hits.put(place, Hit::Row(row.key.clone()));
    }
    if rows.is_empty() {
        let nothing = if app.choice.filter.is_empty() {
            "no session is running; `handover up` starts one"
        } else {
            "nothing fits the filter; Esc ends it"
        };
        for (row, place) in super::text::wrap(nothing, room)
            .into_iter()
            .zip(area.rows())
        {
            frame.render_widget(Line::styled(row, paint.dim()), place);
        }
    }
    drop(rows);
    app.first = first;
    app.hits = hits;
}
