//! The line at the top, and those at the bottom.

use crossterm::event::{KeyCode, KeyModifiers};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::super::app::{App, Hit, Mode, Status};
use super::super::paint::Paint;
use super::super::rows::Part;
use super::tree::clip;
use super::{log, panel};
use crate::overview::{Tally, clean};

/// What needs a person, and how many there are of everything.
pub fn header(tally: Tally, paint: Paint, room: usize) -> Line<'static> {
    let count = |n: usize, word: &str| {
        let s = if n == 1 { "" } else { "s" };
        format!("{n} {word}{s}")
    };
    let mut spans = vec![Span::styled("handover", paint.title())];
    spans.push(match (tally.needs, tally.silent) {
        (0, 0) => Span::styled("  nothing needs you", paint.dim()),
        // What they need is not known.
        (0, silent) => Span::styled(format!("  no answer: {silent}"), paint.trouble()),
        (needs, _) => Span::styled(format!("  needs you: {needs}"), paint.alert()),
    });
    let mut counts = format!("  {}", count(tally.sessions, "session"));
    counts.push_str(&format!("  {}", count(tally.agents, "agent")));
    if tally.running > 0 {
        counts.push_str(&format!(", {} running", tally.running));
    }
    counts.push_str(&format!("  {}", count(tally.desktops, "desktop")));
    if tally.held > 0 {
        counts.push_str(&format!(", {} held", tally.held));
    }
    if tally.paused > 0 {
        counts.push_str(&format!(", {} paused", tally.paused));
    }
    spans.push(Span::raw(counts));
    clip(&mut spans, room);
    Line::from(spans)
}

/// What was said last.
pub fn status(app: &App, paint: Paint, room: usize) -> Line<'static> {
    let mut spans = match &app.status {
        None if !app.choice.filter.is_empty() => {
            let text = format!(
                "only rows with “{}”; Esc ends it",
                clean(&app.choice.filter)
            );
            vec![Span::styled(text, paint.dim())]
        }
        None => Vec::new(),
        Some(Status::Good(text)) => vec![Span::raw(text.clone())],
        Some(Status::Bad(text)) => vec![Span::styled(text.clone(), paint.trouble())],
        Some(Status::Message(session, agent, steer)) => {
            let session = app.overview.session(session);
            let receipt = session.and_then(|session| {
                session
                    .receipts(agent)
                    .find(|receipt| receipt.steer == *steer)
            });
            // The answer to the call says so much, even before the record tells it.
            let known = receipt.map_or_else(|| "accepted".to_owned(), log::progress);
            let agent = clean(agent.as_str());
            vec![Span::raw(format!("message to {agent}: {known}"))]
        }
    };
    clip(&mut spans, room);
    Line::from(spans)
}

/// A key, what it is called and what it does.
type Offer = (KeyCode, KeyModifiers, &'static str, &'static str);

const NONE: KeyModifiers = KeyModifiers::NONE;
const HELP: Offer = (KeyCode::Char('?'), NONE, "?", "help");
const QUIT: Offer = (KeyCode::Char('q'), NONE, "q", "quit");

/// What can be done now, the most likely first.
fn offers(app: &App) -> Vec<Offer> {
    let key =
        |c: char, name: &'static str, what: &'static str| (KeyCode::Char(c), NONE, name, what);
    let escape = |what: &'static str| (KeyCode::Esc, NONE, "Esc", what);
    match &app.mode {
        Mode::Help(_) => vec![escape("back"), key('j', "j", "down"), key('k', "k", "up")],
        Mode::Confirm(..) => {
            let mut offers = vec![key('y', "y", "yes"), key('n', "n", "no")];
            if panel::wider(app) {
                offers.insert(1, key('A', "A", "in all sessions"));
            }
            offers
        }
        Mode::Write(writing) => {
            let mut offers = vec![
                (KeyCode::Enter, NONE, "Enter", writing.verb()),
                escape("cancel"),
            ];
            if writing.when().is_some() {
                offers.push((KeyCode::Tab, NONE, "Tab", "when"));
                offers.push((KeyCode::Enter, KeyModifiers::ALT, "Alt-Enter", "new line"));
            }
            offers
        }
        Mode::Browse => {
            let mut offers = match app.selected.as_ref().map(|key| &key.part) {
                Some(Part::Agent(_)) => vec![key('s', "s", "steer"), key('a', "a", "abort")],
                Some(Part::Desktop(_)) => vec![
                    key('t', "t", "take"),
                    key('r', "r", "return"),
                    key('p', "p", "pause"),
                ],
                Some(Part::Request(_)) => vec![
                    key('y', "y", "answer"),
                    key('t', "t", "take"),
                    key('s', "s", "steer"),
                ],
                _ => vec![(KeyCode::Enter, NONE, "Enter", "fold")],
            };
            let log = if app.full { "tree" } else { "log" };
            offers.push(key('f', "f", log));
            offers.push(key('/', "/", "filter"));
            offers.push(key('x', "x", "stop all"));
            offers
        }
    }
}

/// Draws the keys that fit, and notes where they can be clicked on.
pub fn keys(frame: &mut Frame<'_>, app: &mut App, area: Rect, paint: Paint) {
    let offers = offers(app);
    let always: &[Offer] = match app.mode {
        Mode::Browse => &[HELP, QUIT],
        _ => &[],
    };
    let takes = |offer: &Offer| offer.2.len() + offer.3.len() + 3;
    let mut left = usize::from(area.width) - always.iter().map(takes).sum::<usize>();
    let fitting = offers.into_iter().take_while(|offer| {
        let fits = takes(offer) <= left;
        left -= takes(offer).min(left);
        fits
    });
    let mut at = area.x;
    let mut spans = Vec::new();
    for offer in fitting.chain(always.iter().copied()) {
        let columns = u16::try_from(takes(&offer)).unwrap_or(0);
        let button = Rect::new(at, area.y, columns, 1).intersection(area);
        app.hits.put(button, Hit::Key(offer.0, offer.1));
        at = at.saturating_add(columns);
        spans.push(Span::styled(offer.2, paint.key()));
        spans.push(Span::raw(format!(" {}  ", offer.3)));
    }
    frame.render_widget(Line::from(spans), area);
}
