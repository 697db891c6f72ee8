//! A3: an agent has agents of its own through `handover mcp`, here with the official client: it starts,
//! reads, waits for and ends what is below it, and reaches nothing else.

use serde_json::json;

use crate::support::scripted::{agent as listed, becomes};
use crate::support::{Agent, Place, Session};

/// Starts `script` below the agent and gives its id.
fn start(agent: &mut Agent, script: &str) -> String {
    let task = json!({"driver": "command", "prompt": "", "args": ["sh", "-c", script]});
    let started = agent.done("agent_spawn", task);
    let id = started.structured()["id"].as_str().expect("an id");
    id.to_owned()
}

#[test]
fn an_agent_reaches_what_is_below_it_and_nothing_else() {
    let session = Session::with(Place::new(), &[]);
    let (mut agent, own) = Agent::of_the_session(&session);
    let run = ["agent", "run", "--driver", "command", "--", "sleep", "600"];
    let stranger = session.cli(&run).done();
    let stranger = stranger["id"].as_str().expect("an id").to_owned();

    let child = start(&mut agent, "echo inner; exec sleep 600");
    let shown = listed(&session, &child);
    assert_eq!(
        (&shown["parent"], &shown["depth"]),
        (&json!(own), &json!(1))
    );

    let list = agent.done("agent_list", json!({}));
    let below = list.structured()["agents"]
        .as_array()
        .expect("agents")
        .clone();
    let ids: Vec<&str> = below
        .iter()
        .filter_map(|agent| agent["id"].as_str())
        .collect();
    assert_eq!(ids, [&child]);

    becomes(&session, &child, "running");
    let soon = agent.done("agent_wait", json!({"id": child, "timeoutMs": 50}));
    assert_eq!(soon.structured()["ended"], false);
    let unsteerable = agent.refused("agent_steer", json!({"id": child, "text": "hurry"}));
    assert_eq!(unsteerable["code"], "not_steerable");

    for other in [&stranger, &own] {
        let steer = agent.refused("agent_steer", json!({"id": other, "text": "stop"}));
        assert_eq!(steer["code"], "caller_refused", "{steer}");
        let abort = agent.refused("agent_abort", json!({"id": other}));
        assert_eq!(abort["code"], "caller_refused", "{abort}");
        for tool in ["agent_result", "agent_wait"] {
            let look = agent.refused(tool, json!({"id": other}));
            assert_eq!(look["code"], "agent_unknown", "{tool}: {look}");
        }
    }
    becomes(&session, &stranger, "running");

    let ended = agent.done("agent_abort", json!({"id": child}));
    assert_eq!(ended.structured()["status"], "aborted");
    assert_eq!(ended.structured()["survivors"], json!([]));
    let result = agent.done("agent_result", json!({"id": child}));
    assert_eq!(result.structured()["status"], "aborted");
    // No person did it, and the record does not say so.
    assert!(session.events("human_intervention").is_empty());
    agent.leave();
}

#[test]
fn an_agent_waits_for_what_its_agents_come_to() {
    let session = Session::with(Place::new(), &[]);
    let (mut agent, own) = Agent::of_the_session(&session);
    let child = start(&mut agent, "echo the answer");
    let done = agent.done("agent_wait", json!({"id": child, "timeoutMs": 60_000}));
    let done = done.structured();
    assert_eq!(
        (&done["ended"], &done["status"]),
        (&json!(true), &json!("done"))
    );
    assert_eq!(done["text"].as_str().map(str::trim), Some("the answer"));
    let failed = start(&mut agent, "exit 3");
    let failed = agent.done("agent_wait", json!({"id": failed, "timeoutMs": 60_000}));
    assert_eq!(failed.structured()["status"], "failed");
    assert!(failed.structured()["error"].is_string(), "{failed:?}");

    // A person ends the agent: its children end with it.
    let last = start(&mut agent, "exec sleep 600");
    let ended = session.cli(&["abort", &own, "--yes"]).done();
    let descendants = ended["descendants"].as_array().expect("a list");
    assert!(
        descendants.iter().any(|agent| agent["id"] == *last),
        "{ended}"
    );
    assert_eq!(listed(&session, &last)["status"], "aborted");
}

/// An agent that Handover does not run has nothing below it, and starts nothing.
#[test]
fn a_stranger_starts_no_agents() {
    let session = Session::with(Place::new(), &[]);
    let run = ["agent", "run", "--driver", "command", "--", "sleep", "600"];
    let id = session.cli(&run).done()["id"].clone();
    let mut agent = Agent::start(&session, "legacy");
    let task = json!({"driver": "command", "prompt": "", "args": ["true"]});
    assert_eq!(agent.refused("agent_spawn", task)["code"], "caller_refused");
    let list = agent.done("agent_list", json!({}));
    assert_eq!(list.structured()["agents"], json!([]));
    let refused = agent.refused("agent_abort", json!({"id": id}));
    assert_eq!(refused["code"], "caller_refused");
    agent.leave();
}
