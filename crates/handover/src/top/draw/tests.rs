use handover_protocol::{AgentId, SteerWhen};
use proptest::prelude::*;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use serde_json::{Value, json};

use super::super::app::{Ask, Purpose, Status};
use super::super::rows::{Key, Part};
use super::*;
use crate::overview::News;
use crate::overview::testing::{event, list, manifest};
use crate::top::Now;

/// 2026-01-31T09:40:00Z.
const NOW: Now = Now {
    ms: 5000,
    wall: handover_protocol::Timestamp(1_769_852_400_000),
};

/// Three sessions: one in which much happens, one that is quiet, and one whose host does not answer.
pub fn app() -> App {
    let mut app = App::new(Now { ms: 0, ..NOW }, 0);
    for (id, name) in [("s1", "shop"), ("s2", "docs"), ("s3", "lost")] {
        let found = News::Found(Box::new(manifest(id, name)));
        app.hear(&id.into(), found);
    }
    app.hear(&"s1".into(), News::Listed(Box::new(list("s1"))));
    let mut quiet = list("s2");
    (quiet.agents, quiet.requests) = (Vec::new(), Vec::new());
    quiet.desktops.truncate(1);
    quiet.desktops[0] = list("s2").desktops[1].clone();
    app.hear(&"s2".into(), News::Listed(Box::new(quiet)));
    let silent = "the host did not answer list within 10000 ms".to_owned();
    app.hear(&"s3".into(), News::Lost(silent));
    for event in events() {
        app.hear(&"s1".into(), News::Event(Box::new(event)));
    }
    app.tick(NOW.ms, NOW.wall);
    app
}

fn events() -> Vec<handover_protocol::Event> {
    let of = |seq: u64, kind: &str, fields: Value| {
        let mut event = event(seq, kind, fields);
        event.agent = Some("k7m2".into());
        event
    };
    let mut click = event(
        6,
        "desktop_click",
        json!({"x": 12, "y": 40, "outcome": "done"}),
    );
    click.desktop = Some("d2".into());
    vec![
        of(1, "agent_status", json!({"status": "running"})),
        of(
            2,
            "agent_text",
            json!({"text": "I look for oats.\nThere are \u{1b}[31mnone\u{1b}[0m left; shall I take something else instead of them?"}),
        ),
        of(
            3,
            "agent_tool",
            json!({"tool": "bash", "state": "start", "summary": "ls shelves"}),
        ),
        of(4, "steer", json!({"steerId": "st-1", "state": "accepted"})),
        of(
            5,
            "human_intervention",
            json!({"act": "steer", "text": "take soy", "steerId": "st-1"}),
        ),
        click,
        of(7, "steer", json!({"steerId": "st-1", "state": "handed"})),
    ]
}

fn select(app: &mut App, part: Part) {
    app.used = true;
    app.selected = Some(Key {
        session: "s1".into(),
        part,
    });
}

fn draw(app: &mut App, columns: u16, rows: u16) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
    let drawn = terminal.draw(|frame| screen(frame, app, Paint::none()));
    drawn.unwrap().buffer.clone()
}

fn text(buffer: &Buffer) -> String {
    let area = buffer.area;
    let rows = area.rows().map(|row| {
        let mut text = String::new();
        let mut skip = 0;
        for column in row.columns() {
            let symbol = buffer[(column.x, column.y)].symbol();
            if skip == 0 {
                text.push_str(symbol);
                skip = super::super::text::width(symbol);
            }
            skip = skip.saturating_sub(1);
        }
        text.trim_end().to_owned()
    });
    rows.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_smallest_terminal() {
    let mut app = app();
    insta::assert_snapshot!("smallest", text(&draw(&mut app, 40, 10)));
    select(&mut app, Part::Agent("k7m2".into()));
    app.full = true;
    insta::assert_snapshot!("smallest_log", text(&draw(&mut app, 40, 10)));
    insta::assert_snapshot!(text(&draw(&mut app, 39, 9)), @r"
    handover top needs 40x10,
    this is 39x9
    q quits
    ");
}

#[test]
fn the_usual_terminal() {
    let mut app = app();
    insta::assert_snapshot!("usual", text(&draw(&mut app, 80, 24)));
    select(&mut app, Part::Agent("k7m2".into()));
    app.say(Status::Message("s1".into(), "k7m2".into(), "st-1".into()));
    insta::assert_snapshot!("usual_agent", text(&draw(&mut app, 80, 24)));
    select(&mut app, Part::Desktop("d2".into()));
    app.say(Status::Bad("nobody has control of d2".to_owned()));
    insta::assert_snapshot!("usual_desktop", text(&draw(&mut app, 80, 24)));
}

#[test]
fn a_large_terminal() {
    let mut app = app();
    select(&mut app, Part::Agent("k7m2".into()));
    insta::assert_snapshot!("large", text(&draw(&mut app, 200, 60)));
}

#[test]
fn what_is_written_and_asked() {
    let mut app = app();
    select(&mut app, Part::Agent("k7m2".into()));
    let agent = AgentId::from("k7m2");
    app.begin(Purpose::Steer(
        "s1".into(),
        agent.clone(),
        Some(SteerWhen::Now),
    ));
    app.paste("take soy\nand hurry");
    insta::assert_snapshot!("writing", text(&draw(&mut app, 80, 12)));
    app.mode = Mode::Confirm(Ask::Abort("s1".into(), agent), 0);
    insta::assert_snapshot!("confirming", text(&draw(&mut app, 80, 12)));
    app.mode = Mode::Confirm(Ask::Stop("s1".into()), 0);
    insta::assert_snapshot!("stopping", text(&draw(&mut app, 40, 10)));
    app.mode = Mode::Help(0);
    insta::assert_snapshot!("help", text(&draw(&mut app, 80, 24)));
}

#[test]
fn nothing_there() {
    let mut app = App::new(NOW, 0);
    insta::assert_snapshot!(text(&draw(&mut app, 60, 10)), @r"
    handover  nothing needs you  0 sessions  0 agents  0 deskto…
    no session is running; `handover up` starts one







    Enter fold  f log  / filter  x stop all  ? help  q quit
    ");
}

#[test]
fn what_is_read_stays_in_place_while_more_happens() {
    let mut app = app();
    for seq in 10..60 {
        let said = event(seq, "agent_text", json!({"text": format!("line {seq}")}));
        app.hear(&"s1".into(), News::Event(Box::new(said)));
    }
    app.full = true;
    let latest = text(&draw(&mut app, 60, 12));
    assert!(latest.contains("line 59"), "{latest}");
    app.scroll(5);
    let back = text(&draw(&mut app, 60, 12));
    assert!(
        back.contains("line 54") && !back.contains("line 55"),
        "{back}"
    );
    for seq in 60..70 {
        let said = event(seq, "agent_text", json!({"text": format!("line {seq}")}));
        app.hear(&"s1".into(), News::Event(Box::new(said)));
    }
    let still = text(&draw(&mut app, 60, 12));
    assert!(
        still.contains("line 54") && !still.contains("line 55"),
        "{still}"
    );
    // No further back than there is something.
    app.scroll(10_000);
    let first = text(&draw(&mut app, 60, 12));
    assert!(first.contains("● running"), "{first}");
}

#[test]
fn every_row_can_be_selected_and_stays_in_sight() {
    let mut app = app();
    let count = app.rows().len();
    for _ in 0..count {
        let drawn = text(&draw(&mut app, 40, 10));
        let key = app.selected.clone().unwrap();
        let at = app.rows().iter().position(|row| row.key == key).unwrap();
        assert!(at >= app.first && at < app.first + 7, "{drawn}");
        app.key(crossterm::event::KeyCode::Down.into());
    }
}

/// A text that somebody else wrote: anything at all, and what terminals act on.
fn anything() -> impl Strategy<Value = String> {
    let bytes = proptest::collection::vec(any::<u8>(), 0..40);
    prop_oneof![
        any::<String>(),
        bytes.prop_map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
        "[\u{0}-\u{1f}\u{7f}-\u{9f}\u{200b}-\u{200f}\u{202a}-\u{202e}a漢]{0,20}",
        Just("\u{1b}]0;x\u{7}\u{1b}[2J\u{9b}31m\u{202e}".to_owned()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn no_cell_holds_what_a_terminal_acts_on(
        texts in proptest::collection::vec(anything(), 16),
        columns in 1u16..160,
        rows in 1u16..50,
        selected in 0usize..10,
        mode in 0u8..7,
    ) {
        let mut texts = texts.into_iter();
        let mut next = || texts.next().unwrap_or_default();
        let mut app = App::new(NOW, 0);
        let mut found = manifest("s1", "shop");
        (found.name, found.project_dir) = (next(), next());
        app.hear(&"s1".into(), News::Found(Box::new(found)));
        let mut listed = list("s1");
        (listed.agents[0].name, listed.agents[0].task) = (next(), next());
        listed.agents[1].kind = next();
        listed.agents[1].id = next().into();
        listed.desktops[1].id = next().into();
        (listed.requests[0].reason, listed.requests[0].question) = (next(), Some(next()));
        listed.desktops[0].lease.as_mut().unwrap().holder = next();
        app.hear(&"s1".into(), News::Listed(Box::new(listed)));
        for (seq, kind) in ["agent_text", "agent_tool", "steer", "human_intervention", "desktop_key"].iter().enumerate() {
            let mut fields = serde_json::Map::new();
            for name in ["text", "tool", "summary", "state", "steerId", "reason", "act", "keys", "code"] {
                fields.insert(name.to_owned(), next().into());
            }
            let mut said = event(seq as u64 + 1, kind, Value::Object(fields));
            said.agent = Some("k7m2".into());
            app.hear(&"s1".into(), News::Event(Box::new(said)));
        }
        app.hear(&"s1".into(), News::Lost(next()));
        for _ in 0..selected {
            app.key(crossterm::event::KeyCode::Down.into());
        }
        app.say(Status::Message("s1".into(), "k7m2".into(), next().into()));
        match mode {
            0 => app.full = true,
            1 => app.begin(Purpose::Steer("s1".into(), "k7m2".into(), Some(SteerWhen::Now))),
            2 => app.begin(Purpose::Filter(next())),
            3 => app.mode = Mode::Confirm(Ask::Abort("s1".into(), "k7m2".into()), 3),
            4 => app.mode = Mode::Confirm(Ask::Stop("s1".into()), 1),
            5 => app.mode = Mode::Help(9),
            _ => {}
        }
        app.paste(&next());
        let buffer = draw(&mut app, columns, rows);
        for cell in buffer.content() {
            let symbol = cell.symbol();
            prop_assert!(!symbol.chars().any(char::is_control), "{symbol:?}");
            prop_assert!(!symbol.contains(['\u{202e}', '\u{200b}', '\u{2066}', '\u{feff}']), "{symbol:?}");
        }
        let once = super::super::once::text(&app.overview, NOW, usize::from(columns));
        prop_assert!(!once.chars().any(|c| c != '\n' && c.is_control()));
    }
}
