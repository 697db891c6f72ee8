//! A9, E7: whatever arrives gets a typed answer at once, limits are in bytes, and no connection is lost over a
//! bad line.

use serde_json::json;

use crate::support::{LONG, Place, SHORT, Session, Wire};

fn error(wire: &mut Wire, what: &str) -> (i64, String) {
    let message = wire.first(what, SHORT, |message| message.get("error").is_some());
    let error = &message["error"];
    (
        error["code"].as_i64().expect("a number"),
        error["data"]["code"].as_str().expect("a code").to_owned(),
    )
}

#[test]
fn bad_lines_are_answered_and_survived() {
    let session = Session::with(Place::new(), &[]);
    let mut wire = session.wire();
    wire.raw(b"this is no JSON\n");
    assert_eq!(error(&mut wire, "malformed"), (-32700, "malformed".into()));
    wire.raw(b"\xff\xfe{}\n");
    assert_eq!(error(&mut wire, "not UTF-8"), (-32700, "malformed".into()));
    wire.raw(b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"no.such\",\"params\":{}}\n");
    let message = wire.first("an unknown method", SHORT, |message| message["id"] == 7);
    assert_eq!(
        (&message["error"]["code"], &message["error"]["data"]["code"]),
        (&json!(-32601), &json!("method_unknown"))
    );
    let supported = message["error"]["data"]["supported"]
        .as_array()
        .expect("a list");
    assert!(supported.contains(&json!("control.acquire")));
    let refused = wire.refused("desktop.click", json!({"x": "left", "y": 5}));
    assert_eq!(
        (refused.number, refused.code.as_str()),
        (-32602, "bad_params")
    );
    wire.done("ping", json!({}));
}

/// Three bytes a character: half a million characters are over the limit, fewer than 350,000 are not.
#[test]
fn limits_are_in_bytes() {
    let session = Session::with(Place::new(), &[]);
    let mut wire = session.wire();
    let line = |text: String| {
        format!(
            "{}\n",
            json!({"jsonrpc": "2.0", "id": 9, "method": "ping", "params": {"x": text}})
        )
    };
    wire.raw(line("漢".repeat(500_000)).as_bytes());
    assert_eq!(
        error(&mut wire, "too long"),
        (-32600, "line_too_long".into())
    );
    wire.done("ping", json!({}));
    wire.raw(line("漢".repeat(300_000)).as_bytes());
    let message = wire.first("an answer", SHORT, |message| message["id"] == 9);
    assert_ne!(
        message["error"]["data"]["code"], "line_too_long",
        "{message}"
    );
    wire.done("ping", json!({}));
}

/// A mebibyte is within the limit and one byte more is over it, whatever the characters are made of.
#[test]
fn the_limit_is_exact() {
    const LIMIT: usize = 1 << 20;
    let session = Session::with(Place::new(), &[]);
    let mut wire = session.wire();
    for character in ["é", "漢", "🙂"] {
        for length in [LIMIT, LIMIT + 1] {
            let head = r#"{"jsonrpc":"2.0","id":9,"method":"ping","params":{"x":""#;
            let tail = "\"}}";
            let room = length - head.len() - tail.len();
            let text = character.repeat(room / character.len());
            let rest = "x".repeat(room % character.len());
            let line = format!("{head}{text}{rest}{tail}");
            assert_eq!(line.len(), length);
            // In two pieces, the first of which ends within a character.
            let (first, second) = line.as_bytes().split_at(head.len() + 1);
            wire.raw(first);
            wire.raw(second);
            wire.raw(b"\n");
            if length > LIMIT {
                assert_eq!(
                    error(&mut wire, "too long"),
                    (-32600, "line_too_long".into())
                );
            } else {
                wire.first("an answer", SHORT, |message| message["id"] == 9);
            }
            wire.done("ping", json!({}));
        }
    }
}

/// A line without an end is answered once, not once a megabyte, and skipped to its newline.
#[test]
fn an_endless_line_is_answered_once() {
    let session = Session::with(Place::new(), &[]);
    let mut wire = session.wire();
    for _ in 0..5 {
        wire.raw(&[b'x'; 1 << 20]);
    }
    assert_eq!(
        error(&mut wire, "too long"),
        (-32600, "line_too_long".into())
    );
    wire.raw(b"\n");
    wire.done("ping", json!({}));
    let none = wire.call("list", json!({})).expect("the connection stands");
    assert!(
        none["agents"].as_array().is_some_and(Vec::is_empty),
        "{none}"
    );
}

/// A subscriber that reads slowly is told what it missed.
#[test]
fn a_slow_subscriber_gets_a_gap_or_everything() {
    let session = Session::up();
    let mut slow = session.wire();
    slow.done("subscribe", json!({}));
    let mut agent = session.wire();
    for _ in 0..300 {
        agent.done("desktop.move", json!({"x": 5, "y": 5}));
    }
    let mut next = None;
    let mut count = 0;
    while count < 300 {
        let message = slow.first("an event or a gap", LONG, |message| {
            message["method"] == "event" || message["method"] == "gap"
        });
        let params = &message["params"];
        let (from, to) = if message["method"] == "gap" {
            (
                params["from"].as_u64().expect("from"),
                params["to"].as_u64().expect("to"),
            )
        } else {
            let seq = params["seq"].as_u64().expect("a number");
            (seq, seq)
        };
        assert!(
            next.is_none_or(|next| next == from),
            "silence before {from}"
        );
        next = Some(to + 1);
        count += to - from + 1;
    }
}

/// Without agents, the agents' methods answer truthfully.
#[test]
fn no_agents_is_an_answer() {
    let session = Session::with(Place::new(), &[]);
    let mut wire = session.wire();
    assert_eq!(wire.done("list", json!({}))["agents"], json!([]));
    for (method, params) in [
        ("steer", json!({"id": "a1", "text": "x"})),
        ("abort", json!({"id": "a1"})),
        ("result", json!({"id": "a1"})),
    ] {
        assert_eq!(
            wire.refused(method, params).code,
            "agent_unknown",
            "{method}"
        );
    }
    wire.done("subscribe", json!({}));
}

/// What cannot be in an environment is refused, and not changed into something else.
#[test]
fn an_environment_that_cannot_be() {
    let session = Session::up();
    let mut wire = session.wire();
    for name in ["", "A=B"] {
        let params = json!({"command": ["true"], "env": {name: "c"}});
        let refused = wire.refused("desktop.launch", params);
        assert_eq!(refused.code, "bad_params", "{refused:?}");
        assert!(
            refused.message.contains(&format!("{name:?}")),
            "{refused:?}"
        );
    }
}
