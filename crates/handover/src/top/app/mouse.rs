//! What clicks and the wheel do.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use handover_protocol::SteerWhen;
use ratatui::layout::{Position, Rect};

use super::super::rows::Key as RowKey;
use super::{App, Mode, Todo};

/// Rows that one step of the wheel moves.
const WHEEL: isize = 3;

/// What stands at a place of the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hit {
    /// A row of the tree, by what it stands for: it may be in another place by the time of the click.
    Row(RowKey),
    /// The tree as a whole.
    Tree,
    /// The log.
    Log,
    /// A key that can be clicked on.
    Key(KeyCode, KeyModifiers),
    /// A moment for a message.
    Moment(Option<SteerWhen>),
}

/// What stands where. What was put later is above what was put earlier.
#[derive(Clone, Debug, Default)]
pub struct Hits(Vec<(Rect, Hit)>);

impl Hits {
    /// Notes what stands in `area`.
    pub fn put(&mut self, area: Rect, hit: Hit) {
        self.0.push((area, hit));
    }

    /// What stands at a place.
    pub fn at(&self, column: u16, row: u16) -> Option<Hit> {
        let place = Position::new(column, row);
        let found = self.0.iter().rev().find(|(area, _)| area.contains(place));
        found.map(|(_, hit)| hit.clone())
    }
}

impl App {
    /// The mouse was moved, pressed or turned.
    pub fn mouse(&mut self, event: MouseEvent) -> Option<Todo> {
        let hit = self.hits.at(event.column, event.row)?;
        self.used = true;
        match event.kind {
            MouseEventKind::Down(MouseButton::Left) => self.click(hit),
            MouseEventKind::ScrollUp => {
                self.turn(hit, WHEEL);
                None
            }
            MouseEventKind::ScrollDown => {
                self.turn(hit, -WHEEL);
                None
            }
            _ => None,
        }
    }

    fn click(&mut self, hit: Hit) -> Option<Todo> {
        self.dirty = true;
        match hit {
            Hit::Key(code, modifiers) => self.key(KeyEvent::new(code, modifiers)),
            Hit::Moment(moment) => {
                self.choose_moment(moment);
                None
            }
            Hit::Row(key) if matches!(self.mode, Mode::Browse) => {
                let at = self.rows().iter().position(|row| row.key == key);
                if at.is_some() && self.selected.as_ref() == Some(&key) {
                    return self.key(KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE));
                }
                if let Some(at) = at {
                    self.select(at);
                }
                None
            }
            Hit::Row(_) | Hit::Tree | Hit::Log => None,
        }
    }

    /// Positive is up.
    fn turn(&mut self, hit: Hit, by: isize) {
        match (&mut self.mode, hit) {
            (Mode::Browse, Hit::Row(_) | Hit::Tree) => self.step(-by.signum()),
            (Mode::Browse, Hit::Log) => self.scroll(by),
            (Mode::Help(first) | Mode::Confirm(_, first), _) => {
                *first = first.saturating_add_signed(-by);
                self.dirty = true;
            }
            _ => {}
        }
    }
}
