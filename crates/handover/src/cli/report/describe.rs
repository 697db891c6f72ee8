//! What happened, in words.

use handover_protocol::{Event, Source};
use serde_json::Value;

use super::super::duration;
use super::agents;

/// Fields that a sentence or the page itself tells already.
const TOLD: &[&str] = &[
    "x",
    "y",
    "toX",
    "toY",
    "program",
    "chars",
    "keys",
    "outcome",
    "code",
    "heldMs",
    "note",
    "screenshot",
    "holder",
];

/// Who did it, in a word.
pub fn who(event: &Event) -> String {
    let who = match event.source {
        Source::Human => "person",
        Source::Agent => "agent",
        Source::App => "program on the desktop",
        Source::Host => "host",
    };
    match &event.actor.agent {
        Some(agent) => format!("{who} {agent}"),
        None => who.to_owned(),
    }
}

/// What happened, as one sentence without its end.
pub fn what(event: &Event) -> String {
    if let Some(sentence) = agents::what(event) {
        return sentence;
    }
    let text = |name: &str| event.fields.get(name).and_then(Value::as_str);
    let number = |name: &str| event.fields.get(name).and_then(Value::as_i64);
    let place = match (number("x"), number("y")) {
        (Some(x), Some(y)) => format!(" at {x},{y}"),
        _ => String::new(),
    };
    let holder = text("holder").unwrap_or("a person");
    let held = number("heldMs")
        .and_then(|ms| u64::try_from(ms).ok())
        .map(duration::show);
    let held = held.map_or_else(String::new, |held| format!(" after {held}"));
    let mut sentence = match event.kind.as_str() {
        "desktop_click" => format!("click{place}"),
        "desktop_double_click" => format!("double click{place}"),
        "desktop_move" => format!("pointer moved{place}"),
        "desktop_scroll" => format!("wheel turned{place}"),
        "desktop_drag" => match (number("toX"), number("toY")) {
            (Some(x), Some(y)) => format!("drag{place} to {x},{y}"),
            _ => "drag".to_owned(),
        },
        "desktop_type" => match number("chars") {
            Some(chars) => format!("typed {chars} characters"),
            None => "typed".to_owned(),
        },
        "desktop_key" => format!("pressed {}", text("keys").unwrap_or("a key")),
        "desktop_launch" => format!("started {}", text("program").unwrap_or("a program")),
        "desktop_screenshot" => "took a picture".to_owned(),
        "takeover_start" => format!("{holder} took control"),
        "takeover_return" => format!("control given back{held}"),
        "takeover_cancelled" => format!("takeover cancelled{held}"),
        "takeover_timeout" => format!("takeover ended by its time limit{held}"),
        "takeover_revoked" => format!("takeover revoked{held}"),
        "takeover_recovered" => format!("takeover ended by a crash{held}"),
        "paused" => "desktop paused".to_owned(),
        "resumed" => "desktop resumed".to_owned(),
        "request_human" => "asked for a person".to_owned(),
        "request_answered" => "a person answered".to_owned(),
        "foreign_connection" => "a program connected to the display past the gate".to_owned(),
        "gap" => gap(event),
        "record_mended" => {
            "the record's files were changed while in use, and written anew".to_owned()
        }
        kind => kind.replace('_', " "),
    };
    match (text("outcome"), text("code")) {
        (_, Some(code)) => sentence.push_str(&format!(": {code}")),
        (Some(outcome), None) if outcome != "ok" && outcome != "done" => {
            sentence.push_str(&format!(": {outcome}"));
        }
        _ => {}
    }
    sentence
}

/// A gap is what could not be stored in time, or was lost with damaged files; the fields say which.
fn gap(event: &Event) -> String {
    let number = |name: &str| event.fields.get(name).and_then(Value::as_u64);
    let range = match (number("from"), number("to")) {
        (Some(from), Some(to)) if to > from => format!("events {from} to {to}"),
        (Some(from), _) => format!("event {from}"),
        _ => "events".to_owned(),
    };
    if event.fields.contains_key("movedTo") {
        return format!("{range} were lost: the record was damaged while in use");
    }
    match number("lost") {
        Some(lost) => format!("{range} were stored late and {lost} not at all: the disk was full"),
        None => format!("{range} were stored late: the disk was full"),
    }
}

/// Whether it came to nothing.
pub fn is_refused(event: &Event) -> bool {
    event.fields.contains_key("code")
}

/// What somebody said, to be quoted below the sentence.
pub fn quote(event: &Event) -> Option<&str> {
    let note = event.fields.get("note").and_then(Value::as_str);
    note.or_else(|| agents::words(event))
}

/// The fields that the sentence leaves out, as `name=value`.
pub fn rest(event: &Event) -> String {
    let told = match agents::what(event) {
        Some(_) => agents::TOLD,
        None => TOLD,
    };
    let fields = event.fields.iter();
    let fields = fields.filter(|(name, _)| !told.contains(&name.as_str()));
    let fields = fields.map(|(name, value)| match value {
        Value::String(text) => format!("{name}={text}"),
        value => format!("{name}={value}"),
    });
    fields.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(kind: &str, fields: Value) -> Event {
        let mut event = json!({
            "seq": 1, "at": "2026-01-31T09:30:00.250Z", "kind": kind, "source": "agent",
            "actor": {"uid": 0, "pid": 7, "via": "mcp", "agent": "a1"}, "uid": 0, "pid": 7,
        });
        let members = event.as_object_mut().unwrap();
        members.extend(fields.as_object().unwrap().clone());
        serde_json::from_value(event).unwrap()
    }

    #[test]
    fn sentences() {
        let click = event("desktop_click", json!({"x": 5, "y": 6, "outcome": "ok"}));
        assert_eq!(what(&click), "click at 5,6");
        assert_eq!(who(&click), "agent a1");
        assert!(!is_refused(&click));
        let refused = event(
            "desktop_type",
            json!({"chars": 9, "outcome": "refused", "code": "human_control_active"}),
        );
        assert_eq!(what(&refused), "typed 9 characters: human_control_active");
        assert!(is_refused(&refused));
        let end = event(
            "takeover_return",
            json!({"heldMs": 61_000, "leaseId": "l-1"}),
        );
        assert_eq!(what(&end), "control given back after 1:01");
        assert_eq!(rest(&end), "leaseId=l-1");
        assert_eq!(what(&event("something_new", json!({}))), "something new");
    }
}
