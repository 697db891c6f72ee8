//! The record: what happened, by whom, in order; never what was typed; and no change to it goes unnoticed.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::{Place, Session, Typed};

const WORD: &str = "correct-horse-battery-staple";

/// Whether any file below `directory` holds `text`.
fn holds(directory: &Path, text: &str) -> Option<std::path::PathBuf> {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        let kind = entry.file_type().ok()?;
        let found = if kind.is_dir() {
            holds(&path, text)
        } else if kind.is_file() {
            let bytes = fs::read(&path).unwrap_or_default();
            bytes
                .windows(text.len())
                .any(|part| part == text.as_bytes())
                .then_some(path)
        } else {
            None
        };
        if found.is_some() {
            return found;
        }
    }
    None
}

/// A13: the typed text is in no file, answer or output, whether it was typed, refused, or part of bad
/// parameters.
#[test]
fn typed_text_is_only_a_length() {
    let session = Session::up();
    let typed = Typed::start(&session);
    let mut agent = session.wire();
    agent.done("desktop.type", json!({"text": WORD}));
    typed.becomes(WORD);
    let mut answers = Vec::new();
    answers.push(agent.refused("desktop.type", json!({"text": WORD, "nonsense": true})));
    answers.push(agent.refused("desktop.type", json!({"text": WORD, "method": WORD})));
    answers.push(agent.refused("desktop.type", json!({"text": [WORD]})));
    answers.push(agent.refused("desktop.type", json!({"text": WORD, "desktop": "d9"})));
    answers.push(agent.refused(
        "desktop.key",
        json!({"keys": format!("ctrl+{WORD}"), "x": 1}),
    ));
    let mut holder = session.take(json!({}));
    answers.push(agent.refused("desktop.type", json!({"text": WORD})));
    holder
        .wire
        .done("control.secret", json!({"desktop": "d1", "text": WORD}));
    typed.becomes(&WORD.repeat(2));
    holder.viewer.tap(WORD);
    typed.becomes(&WORD.repeat(3));
    holder.give_back();
    for answer in answers {
        let said = format!("{}{}", answer.message, answer.data);
        assert!(!said.contains(WORD), "an error repeats the text: {said}");
    }
    fs::remove_file(session.place.path().join("typed")).expect("the terminal's own file");
    let journal = json!(session.journal()).to_string();
    assert!(!journal.contains(WORD));
    let outcome = session.cli(&["report"]);
    assert_eq!(outcome.code, 0, "{outcome:?}");
    if let Some(path) = holds(session.place.path(), WORD) {
        panic!("the text is in {}", path.display());
    }
    let length = WORD.len() as u64;
    assert!(
        session
            .events("desktop_type")
            .iter()
            .any(|event| event["chars"] == length)
    );
}

/// What was done and what was refused is on record, from every path, with coordinates, outcome and epoch.
#[test]
fn acts_and_refusals_are_on_record() {
    let session = Session::up();
    let mut agent = session.wire();
    agent.done("desktop.click", json!({"x": 12, "y": 34}));
    agent.done("desktop.key", json!({"keys": "Escape"}));
    agent.refused("desktop.click", json!({"x": 9999, "y": 34}));
    let mut holder = session.take(json!({}));
    agent.refused("desktop.click", json!({"x": 1, "y": 2}));
    assert_eq!(
        session.cli(&["desktop", "click", "3", "4"]).refused(),
        "human_control_active"
    );
    holder.viewer.tap("hidden");
    holder.give_back();

    let clicks = session.events("desktop_click");
    let brief: Vec<Value> = clicks
        .iter()
        .map(|e| json!([e["x"], e["y"], e["outcome"], e["code"]]))
        .collect();
    assert!(brief.contains(&json!([12, 34, "done", null])), "{brief:?}");
    assert!(
        brief.contains(&json!([9999, 34, "refused", "out_of_bounds"])),
        "{brief:?}"
    );
    assert!(
        brief.contains(&json!([1, 2, "refused", "human_control_active"])),
        "{brief:?}"
    );
    assert!(
        brief.contains(&json!([3, 4, "refused", "human_control_active"])),
        "{brief:?}"
    );
    for event in session.journal() {
        for field in ["seq", "at", "kind", "source", "actor", "uid", "pid"] {
            assert!(!event[field].is_null(), "{field} is missing: {event}");
        }
    }
    let seqs: Vec<u64> = session
        .journal()
        .iter()
        .map(|event| event["seq"].as_u64().expect("a number"))
        .collect();
    assert!(
        seqs.iter().zip(1..).all(|(&seq, expected)| seq == expected),
        "{seqs:?}"
    );
}

/// In human time nothing is recorded but the start, the end, and what agents were refused; one picture at the end.
#[test]
fn human_time_is_not_recorded() {
    let session = Session::up();
    let mut holder = session.take(json!({}));
    let from = session.journal().len();
    holder.viewer.tap("words");
    holder.viewer.pointer(1, 50, 50);
    holder.viewer.pointer(0, 50, 50);
    holder.give_back();
    let after: Vec<String> = session.journal()[from..]
        .iter()
        .map(|event| event["kind"].to_string())
        .collect();
    assert_eq!(
        after
            .iter()
            .filter(|kind| !kind.contains("takeover_return"))
            .count(),
        0,
        "{after:?}"
    );
    let pictures = fs::read_dir(session.state().join("evidence"))
        .expect("evidence")
        .count();
    assert_eq!(pictures, 1);
}

/// A10: changes to the stored record are found.
#[test]
fn a_changed_record_is_found() {
    let session = Session::up();
    session
        .wire()
        .done("desktop.click", json!({"x": 12, "y": 34}));
    session.take(json!({})).give_back();
    let good = session.cli(&["verify"]);
    assert_eq!(good.code, 0, "{good:?}");
    let head = good.json()["head"].as_str().expect("a head").to_owned();
    assert_eq!(session.cli(&["verify", "--head", &head]).code, 0);
    for malformed in ["abc", "", &head[1..]] {
        let usage = session.cli(&["verify", "--head", malformed]);
        assert_eq!(usage.code, 2, "{usage:?}");
        assert_eq!(usage.json()["error"]["code"], "bad_params", "{usage:?}");
    }
    let other = session.cli(&["verify", "--head", &"0".repeat(head.len())]);
    assert_eq!(other.code, 1, "{other:?}");
    let id = session.id();
    assert_eq!(session.cli(&["down"]).code, 0);

    // Somebody moves a click by one pixel, in the file itself.
    let database = session.state().join("session.db");
    let bytes = fs::read(&database).expect("the database");
    let at = bytes
        .windows(4)
        .rposition(|part| part == b"\"x\":")
        .map(|at| at + 4);
    let at = at.expect("events are JSON in the database");
    let mut changed = bytes;
    changed[at] = if changed[at] == b'9' { b'8' } else { b'9' };
    fs::write(&database, changed).expect("written");
    let found = session.cli(&["verify", "--session", &id]);
    assert_eq!(found.code, 1, "{found:?}");
}

/// The report is one static page: no script, nothing from elsewhere, what agents wrote escaped.
#[test]
fn the_report_is_inert() {
    let session = Session::up();
    let evil = "<script>alert(1)</script><img src=x onerror=alert(2)>";
    session
        .wire()
        .done("request_human", json!({"desktop": "d1", "reason": evil}));
    let mut holder = session.take(json!({}));
    let mut proof = holder.proof();
    proof["note"] = json!(evil);
    holder.wire.done("control.return", proof);
    let said = session.cli(&["report"]).done();
    let path = said["path"].as_str().expect("the page's path");
    let page = fs::read_to_string(path).expect("the page");
    assert!(
        !page.contains("<script") && !page.contains("onerror=alert(2)>"),
        "not escaped"
    );
    assert!(page.contains("&lt;script&gt;"), "the note is missing");
    assert!(page.contains("Content-Security-Policy") && page.contains("default-src 'none'"));
    assert!(
        !page.contains("http://") && !page.contains("https://"),
        "the page points elsewhere"
    );
}

/// The record of a session that was brought back goes on where it ended.
#[test]
fn the_record_goes_on() {
    let mut session = Session::with(Place::new(), &["--desktop", "--size", "320x240"]);
    session
        .wire()
        .done("desktop.click", json!({"x": 12, "y": 34}));
    let before = session.journal();
    assert_eq!(session.cli(&["down"]).code, 0);
    session.again();
    let after = session.journal();
    assert_eq!(after[..before.len()], before[..]);
    assert_eq!(session.cli(&["verify"]).code, 0);
    let log = session.cli(&["log"]);
    assert!(log.out.contains("desktop_click"), "{log:?}");
}

/// Two readers of one record, while it grows.
#[test]
fn pages_of_the_journal_fit_together() {
    let session = Session::up();
    let mut agent = session.wire();
    for _ in 0..50 {
        agent.done("desktop.move", json!({"x": 5, "y": 5}));
    }
    let whole = session.journal();
    let mut pages = Vec::new();
    let mut since = 0;
    loop {
        let page = agent.done("journal", json!({"since": since, "limit": 7}));
        let events = page["events"].as_array().expect("a list").clone();
        if events.is_empty() {
            break;
        }
        since = page["next"].as_u64().expect("where to go on");
        pages.extend(events);
    }
    assert_eq!(pages[..whole.len()], whole[..]);
    let kinds = agent.done("journal", json!({"kinds": ["takeover_start"]}));
    assert_eq!(kinds["events"], json!([]));
}
