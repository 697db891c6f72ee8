//! The tools for agents against a stand-in for the host.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::server_tests::{Agent, Host, Reply, socket};

/// An agent as a host lists it.
fn listed(id: &str, parent: Option<&str>) -> Value {
    json!({
        "id": id, "name": id, "type": "pi", "status": "running", "parent": parent, "depth": 1,
        "task": "t", "startedAt": null, "outputFile": null, "pending": 0,
    })
}

/// A session in which `me` has a child and a grandchild, and others have agents too.
fn family(method: &str, params: &Value) -> Reply {
    match method {
        "list" => Reply::Result(json!({
            "session": "s1", "desktops": [], "requests": [],
            "agents": [
                listed("me", None), listed("other", None), listed("c1", Some("me")),
                listed("c2", Some("other")), listed("c11", Some("c1")),
            ],
        })),
        "result" => Reply::Result(json!({"id": params["id"], "status": "running", "text": "half"})),
        "spawn" => Reply::Result(json!({"id": "new", "status": "queued", "asked": params})),
        _ => Reply::Result(json!({"method": method, "params": params})),
    }
}

#[tokio::test]
async fn only_what_is_below_is_shown() {
    let (_directory, path) = socket();
    let _host = Host::start(&path, family);
    let mut agent = Agent::start(&path, json!({})).await;
    let list = agent.call("agent_list", json!({})).await;
    let agents = list["structuredContent"]["agents"].as_array().unwrap();
    let ids: Vec<&str> = agents
        .iter()
        .filter_map(|agent| agent["id"].as_str())
        .collect();
    assert_eq!(ids, ["c1", "c11"]);
    for tool in ["agent_result", "agent_wait"] {
        for id in ["other", "c2", "me", "nobody"] {
            let refused = agent.call(tool, json!({"id": id})).await;
            assert_eq!(
                refused["structuredContent"]["code"], "agent_unknown",
                "{tool} {id}"
            );
        }
    }
    let result = agent.call("agent_result", json!({"id": "c11"})).await;
    assert_eq!(result["structuredContent"]["text"], "half");
}

#[tokio::test]
async fn an_agent_is_started_below_its_own() {
    let (_directory, path) = socket();
    let _host = Host::start(&path, family);
    let mut agent = Agent::start(&path, json!({})).await;
    let task = json!({"driver": "command", "prompt": "", "args": ["true"], "env": {"A": "b"}});
    let spawned = agent.call("agent_spawn", task).await;
    let asked = &spawned["structuredContent"]["asked"];
    assert_eq!(asked["caller"], json!({"name": "mcp", "token": "t"}));
    assert_eq!(asked["parent"], "me");
    assert_eq!(
        (&asked["args"], &asked["env"]["A"]),
        (&json!(["true"]), &json!("b"))
    );
    assert!(
        asked.get("desktop").is_none(),
        "a desktop is given only when asked for"
    );
    // Its result can be had although the list does not show it yet.
    let result = agent.call("agent_result", json!({"id": "new"})).await;
    assert_eq!(result["isError"], false, "{result}");
    let misfit = agent
        .call("agent_spawn", json!({"driver": "pi", "parent": "other"}))
        .await;
    assert_eq!(misfit["structuredContent"]["code"], "bad_params");
}

#[tokio::test]
async fn messages_and_ends_go_to_the_host() {
    let (_directory, path) = socket();
    let _host = Host::start(&path, family);
    let mut agent = Agent::start(&path, json!({})).await;
    let message = json!({
        "id": "c1", "text": "stop that", "when": "now", "wait": "sent", "timeoutMs": 90_000,
        "steerId": "m1",
    });
    let steered = agent.call("agent_steer", message).await;
    assert_eq!(steered["structuredContent"]["method"], "steer");
    let params = &steered["structuredContent"]["params"];
    assert_eq!(
        *params,
        json!({"id": "c1", "text": "stop that", "when": "now", "wait": "sent",
               "timeoutMs": 60_000, "steerId": "m1"})
    );
    let aborted = agent.call("agent_abort", json!({"id": "c1"})).await;
    assert_eq!(aborted["structuredContent"]["method"], "abort");
    assert_eq!(aborted["structuredContent"]["params"], json!({"id": "c1"}));
}

#[tokio::test]
async fn waiting_ends_with_the_agent_or_its_time() {
    let (_directory, path) = socket();
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let _host = Host::start(&path, move |method, params| {
        if method != "result" {
            return family(method, params);
        }
        let status = match (
            params["id"].as_str(),
            counted.fetch_add(1, Ordering::SeqCst),
        ) {
            (Some("c11"), _) => "waiting",
            (_, 0..2) => "running",
            _ => "done",
        };
        Reply::Result(json!({"id": params["id"], "status": status, "text": "all"}))
    });
    let mut agent = Agent::start(&path, json!({})).await;
    let soon = agent
        .call("agent_wait", json!({"id": "c1", "timeoutMs": 0}))
        .await;
    assert_eq!(soon["structuredContent"]["ended"], false);
    let done = agent.call("agent_wait", json!({"id": "c1"})).await;
    assert_eq!(done["structuredContent"]["ended"], true);
    assert_eq!(done["structuredContent"]["text"], "all");
    assert_eq!(asked.load(Ordering::SeqCst), 3);
    let waiting = agent.call("agent_wait", json!({"id": "c11"})).await;
    assert_eq!(waiting["structuredContent"]["status"], "waiting");
    assert_eq!(waiting["structuredContent"]["ended"], false);
}
