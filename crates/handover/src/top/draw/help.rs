//! The list of keys.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::super::paint::Paint;
use super::super::text::{cut, fit};

/// Each key and what it does.
const KEYS: &[(&str, &str)] = &[
    ("↑ ↓ j k", "select"),
    ("g G", "first, last"),
    (
        "Enter",
        "open: fold a session, show a log in full, answer a request",
    ),
    ("← →", "fold and unfold the session"),
    ("PgUp PgDn", "scroll the log"),
    ("f", "follow the log on the whole screen, and back"),
    (
        "s",
        "steer: send the agent a message (Tab: when, Alt-Enter: new line)",
    ),
    ("a", "abort the agent and those below it; asks first"),
    ("y", "answer a request for a person"),
    (
        "t",
        "take control of the desktop; Enter there returns it, with a note",
    ),
    ("r", "return control of the desktop, with a note"),
    ("p", "pause the desktop, or let it go on"),
    (
        "x",
        "emergency stop: pause every desktop, abort every agent; asks first",
    ),
    ("/", "show only rows with a text; Esc ends it"),
    ("Ctrl-Z", "back to the shell; fg comes back"),
    ("q", "quit; nothing else ends with it"),
    (
        "mouse",
        "click selects, again opens; keys in the last line can be clicked",
    ),
];

/// Draws it from line `first` on.
pub fn draw(frame: &mut Frame<'_>, area: Rect, first: &mut usize, paint: Paint) {
    let room = usize::from(area.width);
    *first = (*first).min(KEYS.len().saturating_sub(usize::from(area.height)));
    for ((key, what), place) in KEYS.iter().skip(*first).zip(area.rows()) {
        let line = Line::from(vec![
            Span::styled(fit(key, 10), paint.key()),
            Span::raw(cut(&format!(" {what}"), room.saturating_sub(10))),
        ]);
        frame.render_widget(line, place);
    }
}
