//! An agent reaches its desktop through `handover mcp` with any MCP client, here the official one,
//! and learns in its own terms what people do: refusals say who is in control and what to do,
//! questions are answered, hand-backs are shown, and nothing hangs when the host is gone.

use std::time::Instant;

use serde_json::json;

use crate::support::{
    Agent, LONG, Place, SHORT, Session, Signal, Typed, alive, eventually, signal, stop,
};

/// The protocols of the official client: with a greeting of its own, and the newest.
const MODES: [&str; 2] = ["legacy", "auto"];

#[test]
fn the_tools_drive_the_desktop() {
    let session = Session::up();
    for mode in MODES {
        let typed = Typed::start(&session);
        let mut agent = Agent::start(&session, mode);
        assert_eq!(agent.tools().len(), 19);

        let screenshot = agent.done("desktop_screenshot", json!({}));
        let pictures = screenshot.pictures();
        let facts = screenshot.structured();
        assert_eq!(
            (&facts["width"], &facts["height"]),
            (&json!(800), &json!(600))
        );
        assert_eq!(facts["sha256"], sha256(&pictures[0]));
        assert_eq!(
            std::fs::read(facts["path"].as_str().expect("a path")).expect("a file"),
            pictures[0]
        );
        assert!(facts["png"].is_null(), "the picture is told once");

        agent.done("desktop_click", json!({"x": 100, "y": 80}));
        agent.done("desktop_type", json!({"text": "grüße"}));
        typed.becomes("grüße");
        agent.done("desktop_key", json!({"keys": "shift+a"}));
        typed.becomes("grüßeA");
        agent.done("desktop_move", json!({"x": 1, "y": 1}));
        agent.done("desktop_scroll", json!({"x": 100, "y": 80, "dy": 1}));
        agent.done("desktop_drag", json!({"from": [60, 60], "to": [90, 60]}));
        agent.done("desktop_double_click", json!({"x": 100, "y": 80}));
        let windows = agent.done("desktop_windows", json!({}));
        let windows = windows.structured()["windows"]
            .as_array()
            .expect("windows")
            .clone();
        assert!(
            windows.iter().any(|window| window["focused"] == true),
            "{windows:?}"
        );
        let launched = agent.done("desktop_launch", json!({"command": ["sleep", "600"]}));
        assert!(launched.structured()["pid"].is_u64(), "{launched:?}");
        agent.leave();
        signal(typed.pid, Signal::TERM);
    }
    let clicks = session.events("desktop_click");
    assert!(
        clicks.iter().all(|event| event["source"] == "agent"),
        "{clicks:?}"
    );
    let types = session.events("desktop_type");
    assert!(types.iter().all(|event| event["chars"] == 5), "{types:?}");
}

#[test]
fn wrong_arguments_are_explained_and_never_repeated() {
    let session = Session::up();
    let mut agent = Agent::start(&session, "legacy");
    let refusal = agent.refused("desktop_type", json!({"text": "x", "secret": "hunter2"}));
    assert_eq!(refusal["code"], "bad_params");
    assert!(!refusal.to_string().contains("hunter2"), "{refusal}");
    let outside = agent.refused("desktop_click", json!({"x": 800, "y": 0}));
    assert_eq!(outside["code"], "out_of_bounds");
    assert_eq!(
        (&outside["width"], &outside["height"]),
        (&json!(800), &json!(600))
    );
    let key = agent.refused("desktop_key", json!({"keys": "ctrl+nonsense"}));
    assert_eq!(key["code"], "unknown_key");
    assert!(
        key["message"]
            .as_str()
            .expect("a message")
            .contains("nonsense"),
        "{key}"
    );
    let elsewhere = agent.refused("desktop_windows", json!({"desktop": "d9"}));
    assert_eq!(elsewhere["code"], "desktop_unknown");
}

#[test]
fn a_takeover_is_told_from_the_refusal_to_the_hand_back() {
    let session = Session::up();
    let mut agent = Agent::start(&session, "legacy");
    agent.done("desktop_screenshot", json!({}));
    let mut holder = session.take(json!({"note": "looking"}));

    for (tool, arguments) in [
        ("desktop_click", json!({"x": 1, "y": 1})),
        ("desktop_type", json!({"text": "hello"})),
        ("desktop_launch", json!({"command": ["true"]})),
    ] {
        let refusal = agent.refused(tool, arguments);
        assert_eq!(refusal["code"], "human_control_active", "{tool}");
        let lease = &refusal["lease"];
        assert!(lease["holder"].is_string(), "{refusal}");
        assert!(lease["since"].is_string(), "{refusal}");
        assert!(lease["expiresInMs"].is_u64(), "{refusal}");
        assert!(
            refusal["todo"]
                .as_str()
                .is_some_and(|todo| todo.contains("request_status"))
        );
    }
    // Looking goes on, but what is seen in human time is not kept.
    let seen = agent.done("desktop_screenshot", json!({}));
    assert_eq!(seen.pictures().len(), 1);
    assert!(seen.structured()["path"].is_null(), "{seen:?}");
    let status = agent.done("takeover_status", json!({}));
    assert_eq!(status.structured()["control"], "human");

    let mut proof = holder.proof();
    proof["note"] = "mind the gap".into();
    holder.wire.done("control.return", proof);
    let status = agent.done("takeover_status", json!({}));
    let hand_back = &status.structured()["lastHandBack"];
    assert_eq!(hand_back["end"], "return");
    assert_eq!(hand_back["note"], "mind the gap");
    assert!(
        hand_back["heldMs"].is_u64() && hand_back["windowsOpened"].is_array(),
        "{hand_back}"
    );
    let path = hand_back["screenshot"].as_str().expect("a screenshot");
    assert_eq!(status.pictures(), [std::fs::read(path).expect("a file")]);

    let stale = agent.refused("desktop_click", json!({"x": 1, "y": 1}));
    assert_eq!(stale["code"], "stale_observation");
    agent.done("desktop_screenshot", json!({}));
    agent.done("desktop_click", json!({"x": 1, "y": 1}));
}

#[test]
fn a_request_waits_for_a_takeover_with_progress() {
    let session = Session::up();
    for mode in MODES {
        let mut agent = Agent::start(&session, mode);
        let started = Instant::now();
        let asked = agent.done("request_human", json!({"reason": "I need the password."}));
        assert!(started.elapsed() < SHORT, "request_human answers at once");
        let request = asked.structured()["requestId"]
            .as_str()
            .expect("an id")
            .to_owned();
        let open = agent.done("request_status", json!({"requestId": request}));
        assert_eq!(open.structured()["state"], "open");

        let waiting = agent.begin(
            "request_status",
            json!({"requestId": request, "waitMs": 60_000}),
        );
        agent.says("progress", |line| {
            line["id"] == waiting && line["progress"].is_number()
        });
        let mut holder = session.take(json!({}));
        let changed = agent.result(waiting);
        assert_eq!(changed.structured()["state"], "taken");
        let waiting = agent.begin(
            "request_status",
            json!({"requestId": request, "waitMs": 60_000}),
        );
        holder.give_back();
        let handed_back = agent.result(waiting);
        assert_eq!(handed_back.structured()["state"], "handed_back");
        assert_eq!(handed_back.structured()["handBack"]["end"], "return");
        assert_eq!(handed_back.pictures().len(), 1);
        agent.leave();
    }
}

#[test]
fn a_question_is_answered_from_the_command_line() {
    let session = Session::up();
    let mut agent = Agent::start(&session, "legacy");
    let question = json!({"reason": "Two files fit.", "question": "The first or the second?"});
    let asked = agent.done("request_human", question);
    let request = asked.structured()["requestId"]
        .as_str()
        .expect("an id")
        .to_owned();
    agent.says("the person is asked", |line| {
        line["asked"] == "Two files fit.\n\nThe first or the second?"
    });
    let waiting = agent.begin(
        "request_status",
        json!({"requestId": request, "waitMs": 60_000}),
    );
    session.cli(&["answer", &request, "the second"]).done();
    let answered = agent.result(waiting);
    assert_eq!(answered.structured()["state"], "answered");
    assert_eq!(answered.structured()["text"], "the second");
    agent.says("the question is withdrawn", |line| {
        line["unasked"].is_string()
    });
}

#[test]
fn a_question_is_answered_at_the_agents_client() {
    let session = Session::up();
    for mode in MODES {
        let mut agent = Agent::start(&session, mode);
        let question = json!({"reason": "Two files fit.", "question": "Which of the two?"});
        let asked = agent.done("request_human", question);
        let request = asked.structured()["requestId"]
            .as_str()
            .expect("an id")
            .to_owned();
        agent.answer("the older one");
        let answered = agent.done(
            "request_status",
            json!({"requestId": request, "waitMs": 60_000}),
        );
        assert_eq!(
            answered.structured()["state"],
            "answered",
            "{mode}: {answered:?}"
        );
        assert_eq!(answered.structured()["text"], "the older one");
        agent.leave();
    }
    // The answer came through the agent's program, and the record does not take it for a person's.
    let events = session.events("request_answered");
    assert_eq!(events.len(), MODES.len());
    assert!(
        events.iter().all(|event| event["source"] == "agent"),
        "{events:?}"
    );
}

#[test]
fn a_question_for_a_secret_is_refused_on_every_path() {
    let session = Session::up();
    let question = json!({"reason": "stuck", "question": "What is the 6-digit code?"});
    let refusal = Agent::start(&session, "legacy").refused("request_human", question.clone());
    assert_eq!(refusal["code"], "bad_params");
    assert!(
        refusal["todo"]
            .as_str()
            .is_some_and(|todo| todo.contains("takes over")),
        "{refusal}"
    );
    let refused = session.wire().refused("request_human", question);
    assert_eq!(refused.code, "bad_params");
    let listed = session.wire().done("list", json!({}));
    assert_eq!(listed["requests"], json!([]), "nobody is asked");
}

#[test]
fn a_dead_host_is_told_at_once_and_found_again() {
    let mut session = Session::up();
    let mut agent = Agent::start(&session, "legacy");
    let asked = agent.done("request_human", json!({"reason": "stuck"}));
    let request = asked.structured()["requestId"]
        .as_str()
        .expect("an id")
        .to_owned();
    let waiting = agent.begin(
        "request_status",
        json!({"requestId": request, "waitMs": 60_000}),
    );
    agent.says("progress", |line| {
        line["id"] == waiting && line["progress"].is_number()
    });

    let killed = Instant::now();
    signal(session.host(), Signal::KILL);
    let gone = agent.result(waiting);
    assert_eq!(gone.structured()["code"], "desktop_gone");
    assert!(killed.elapsed() < SHORT, "the end of the host is noticed");
    let gone = agent.refused("desktop_screenshot", json!({}));
    assert_eq!(gone["code"], "desktop_gone");

    session.again();
    let back = agent.done("desktop_screenshot", json!({}));
    assert_eq!(back.pictures().len(), 1);
}

#[test]
fn a_stopped_host_does_not_hold_the_agent_up_for_ever() {
    let session = Session::up();
    let mut agent = Agent::start(&session, "legacy");
    stop(&[session.host()]);
    let refusal = agent.refused("desktop_windows", json!({}));
    signal(session.host(), Signal::CONT);
    assert_eq!(refusal["code"], "timeout");
    agent.done("desktop_windows", json!({}));
}

#[test]
fn a_cancelled_call_leaves_the_others_alone() {
    let session = Session::up();
    for mode in MODES {
        let mut agent = Agent::start(&session, mode);
        let asked = agent.done("request_human", json!({"reason": "stuck"}));
        let request = asked.structured()["requestId"]
            .as_str()
            .expect("an id")
            .to_owned();
        let waiting = agent.begin(
            "request_status",
            json!({"requestId": request, "waitMs": 60_000}),
        );
        agent.says("progress", |line| {
            line["id"] == waiting && line["progress"].is_number()
        });
        agent.cancel(waiting);
        agent.done("desktop_screenshot", json!({}));
        agent.leave();
    }
}

#[test]
fn the_server_starts_before_its_session_and_ends_with_its_input() {
    let place = Place::new();
    let mut agent = Agent::with(&place, "legacy", &[]);
    let early = agent.refused("desktop_screenshot", json!({}));
    assert_eq!(early["code"], "session_unknown");
    let session = Session::with(place, &["--desktop", "--size", "800x600"]);
    agent.done("desktop_screenshot", json!({}));
    let asked = agent.done("request_human", json!({"reason": "stuck"}));
    let request = asked.structured()["requestId"].clone();
    agent.begin(
        "request_status",
        json!({"requestId": request, "waitMs": 60_000}),
    );

    let server = agent.server();
    agent.leave();
    eventually("the server has ended", LONG, || {
        (!alive(server)).then_some(())
    });
    assert!(alive(session.host()), "the session goes on");
}

fn sha256(bytes: &[u8]) -> String {
    use sha2::Digest as _;
    sha2::Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
