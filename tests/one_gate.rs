//! E2: every path by which an agent can act goes through one admission gate. Each test knows all methods, tools
//! or commands there are and fails when a new one has not declared its gate.

use serde_json::{Value, json};

use crate::support::{Agent, Relay, Session, Wire};

#[test]
fn every_method_is_gated() {
    let session = Session::up();
    let mut wire = session.wire();
    let supported = wire.refused("no.such", json!({})).data["supported"].clone();
    let supported: Vec<&str> = supported
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    let acts = [
        ("control.permit", json!({"what": "x"})),
        ("desktop.click", json!({"x": 5, "y": 5})),
        ("desktop.destroy", json!({"desktop": "d1"})),
        ("desktop.double_click", json!({"x": 5, "y": 5})),
        ("desktop.drag", json!({"from": [5, 5], "to": [9, 9]})),
        ("desktop.key", json!({"keys": "a"})),
        ("desktop.launch", json!({"command": ["true"]})),
        ("desktop.move", json!({"x": 5, "y": 5})),
        ("desktop.scroll", json!({"dy": 1})),
        ("desktop.type", json!({"text": "a"})),
    ];
    let others = [
        "hello",
        "ping",
        "list",
        "spawn",
        "steer",
        "abort",
        "result",
        "subscribe",
        "journal",
        "control.acquire",
        "control.renew",
        "control.reclaim",
        "control.return",
        "control.status",
        "control.revoke",
        "control.pause",
        "control.resume",
        "control.request",
        "control.give",
        "control.refuse",
        "control.complete",
        "control.secret",
        "desktop.new",
        "desktop.screenshot",
        "desktop.windows",
        "view.open",
        // The commands that come by the socket have their own test, with their gates.
        "cdp.open",
        "request_human",
        "request_status",
        "answer",
        "stop",
        "stop_all_input",
    ];
    let mut known: Vec<&str> = acts.iter().map(|(name, _)| *name).chain(others).collect();
    let mut named = supported;
    known.sort_unstable();
    named.sort_unstable();
    assert_eq!(named, known, "a method without a declared gate");

    // A person may still end a paused desktop; an agent may not.
    let mut agent = Wire::connect(&session.socket());
    agent.done(
        "hello",
        json!({"client": "an agent", "protocol": 1, "as": "agent"}),
    );
    let mut holder = session.take(json!({}));
    for (method, params) in &acts {
        assert_eq!(
            agent.refused(method, params.clone()).code,
            "human_control_active",
            "{method}"
        );
    }
    holder.give_back();
    session.wire().done("control.pause", json!({}));
    for (method, params) in acts {
        assert_eq!(agent.refused(method, params).code, "paused", "{method}");
    }
}

#[test]
fn every_tool_is_gated() {
    let session = Session::up();
    let mut agent = Agent::start(&session, "legacy");
    let acts = [
        ("desktop_click", json!({"x": 5, "y": 5})),
        ("desktop_double_click", json!({"x": 5, "y": 5})),
        ("desktop_drag", json!({"from": [5, 5], "to": [9, 9]})),
        ("desktop_key", json!({"keys": "a"})),
        ("desktop_launch", json!({"command": ["true"]})),
        ("desktop_move", json!({"x": 5, "y": 5})),
        ("desktop_scroll", json!({"dy": 1})),
        ("desktop_type", json!({"text": "a"})),
    ];
    let others = [
        "desktop_screenshot",
        "desktop_windows",
        "takeover_status",
        "request_human",
        "request_status",
        // Below the agent alone, whoever holds a desktop.
        "agent_spawn",
        "agent_list",
        "agent_steer",
        "agent_abort",
        "agent_result",
        "agent_wait",
    ];
    let tools = agent.tools();
    let mut named: Vec<&str> = tools
        .iter()
        .map(|tool| tool["name"].as_str().expect("a name"))
        .collect();
    let mut known: Vec<&str> = acts.iter().map(|(name, _)| *name).chain(others).collect();
    named.sort_unstable();
    known.sort_unstable();
    assert_eq!(named, known, "a tool without a declared gate");

    let mut holder = session.take(json!({}));
    for (tool, arguments) in &acts {
        let refused = agent.refused(tool, arguments.clone());
        assert_eq!(refused["code"], "human_control_active", "{tool}");
    }
    holder.give_back();
    session.wire().done("control.pause", json!({}));
    for (tool, arguments) in acts {
        assert_eq!(agent.refused(tool, arguments)["code"], "paused", "{tool}");
    }
    agent.leave();
}

#[test]
fn every_command_is_gated() {
    let session = Session::up();
    let mut holder = session.take(json!({}));
    let acts: [&[&str]; 9] = [
        &["click", "5", "5"],
        &["destroy", "d1"],
        &["double-click", "5", "5"],
        &["drag", "5", "5", "9", "9"],
        &["key", "a"],
        &["launch", "--", "true"],
        &["move", "5", "5"],
        &["scroll", "--dy", "1"],
        &["type", "a"],
    ];
    // Which commands there are, the command line's own test knows.
    for act in acts {
        let arguments = [&["desktop"], act].concat();
        let refused = session.cli(&arguments).refused();
        assert_eq!(refused, "human_control_active", "{act:?}");
    }
    holder.give_back();
}

/// What a client can say to a relayed server: calls act, or look if it is allowed, however they are written;
/// everything else passes.
#[test]
fn every_way_through_a_relay_is_gated() {
    let session = Session::up();
    let mut relay = Relay::start(&session.place, &["--allow", "list_*"]);
    let acts = [
        r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"act"}}"#,
        r#"{"params":{"n\u0061me":"act"},"method":"tools\/call","id":"a"}"#,
        r#"[{"jsonrpc":"2.0","id":"b","method":"ping"},{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"act"}}]"#,
        r#"{"jsonrpc":"2.0","id":"a","method":"ping","method":"tools/call","params":{"name":"act"}}"#,
        r#"{"jsonrpc":"2.0","id":"a","method":"ping","Method":"tools/call","params":{"name":"act"}}"#,
        r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"list_things","name":"act"}}"#,
        r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"act","task":{"ttl":1}}}"#,
        r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"act"}}"#,
        r#"{"jsonrpc":"2.0","id":null,"method":"tools/call","params":{"name":"act"}}"#,
        r#"{"jsonrpc":"2.0","id":"a","method":"tools/call\u0000","params":{"name":"act"}}"#,
        r#"{"jsonrpc":"2.0","id":"a","method":"ping","method\u0000":"tools/call","params":{"name":"act"}}"#,
        r#"[[{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"act"}}]]"#,
        "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"tools/call\",\"params\":{\"name\":\"act\"}}",
        "{\"jsonrpc\":\"2.0\"}\r{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"tools/call\",\"params\":{\"name\":\"act\"}}",
    ];
    let looks =
        r#"{"jsonrpc":"2.0","id":"l","method":"tools/call","params":{"name":"list_things"}}"#;
    let neutral = [
        "initialize",
        "ping",
        "tools/list",
        "resources/list",
        "resources/templates/list",
        "resources/read",
        "resources/subscribe",
        "resources/unsubscribe",
        "prompts/list",
        "prompts/get",
        "completion/complete",
        "logging/setLevel",
        "tasks/list",
        "tasks/get",
        "tasks/result",
        "tasks/cancel",
    ];
    let _holder = session.take(json!({}));
    for record in acts {
        let said = relay.said().len();
        relay.write(record);
        relay.said_more(said, |line| line.to_string().contains(r#""error""#));
    }
    relay.write(looks);
    assert!(relay.answer(&json!("l"))["result"].is_object());
    for (id, method) in (1..).zip(neutral) {
        let params = json!({"protocolVersion": "2025-06-18"});
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        relay.write(&request.to_string());
        relay.answer(&json!(id));
        assert!(
            relay.reached().contains(&format!("\"{method}\"")),
            "{method}"
        );
    }
    assert_eq!(relay.acts(), "list_things is done\n");
}
