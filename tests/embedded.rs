//! A program's own agents, behind its own socket, are found and driven as all others.
//!
//! The program is the example of the protocol crate, here within the test's process.

use handover_protocol::server::AttachServer;
use handover_protocol::server::dirs::Roots;
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::support::{LONG, Outcome, Place, Running, Session, eventually};

#[path = "../crates/protocol/examples/embedded_agents.rs"]
#[allow(dead_code, reason = "its main is not called here")]
mod embedded_agents;

fn run(place: &Place, arguments: &[&str]) -> Outcome {
    Running::start(place.handover().args(arguments)).finish(LONG)
}

/// The example in a session of this name.
fn open(runtime: &Runtime, place: &Place, session: &str) -> AttachServer {
    let roots = Roots::at(&place.state(), &place.runtime());
    let dir = roots.runtime().expect("a place for sockets").join(session);
    let opened = runtime.block_on(async {
        let opened = embedded_agents::open(&dir, &place.project()).await;
        opened.map_err(|error| error.to_string())
    });
    opened.unwrap_or_else(|error| panic!("{}: {error}", dir.display()))
}

fn status(list: &Value, id: &str) -> String {
    let agents = list["agents"].as_array().expect("a list");
    let agent = agents.iter().find(|agent| agent["id"] == id);
    let agent = agent.unwrap_or_else(|| panic!("{id} in {list}"));
    agent["status"].as_str().expect("a status").to_owned()
}

#[test]
fn the_command_line_finds_and_drives_them() {
    let place = Place::new();
    let runtime = Runtime::new().expect("a runtime");
    let server = open(&runtime, &place, "office");

    let list = run(&place, &["list", "--json"]).done();
    assert_eq!(status(&list, "bookkeeper"), "running");
    assert_eq!(status(&list, "postman"), "running");

    let arguments = ["follow", "bookkeeper", "--since", "0", "--json"];
    let follow = Running::start(place.handover().args(arguments));
    follow.line("the agent", |event| event["kind"] == "agent_status");
    let steered = run(&place, &["steer", "bookkeeper", "look left", "--json"]).done();
    assert_eq!(steered["state"], "accepted");
    follow.line("the receipt", |event| {
        event["kind"] == "steer" && event["steerId"] == steered["steerId"]
    });
    let announced = follow.line("the announcement", |event| {
        event["kind"] == "human_intervention"
    });
    assert_eq!(announced["text"], "look left");
    eventually("the clerk should have said it", LONG, || {
        let said = run(&place, &["result", "bookkeeper", "--json"]).done();
        (said["text"] == "I was told: look left\n").then_some(())
    });

    // By the beginning of its id, and refused as by any other host.
    let refused = run(&place, &["steer", "clerk", "whom?", "--json"]);
    assert_eq!(refused.refused(), "agent_unknown");
    let done = run(&place, &["steer", "book", "done", "--json"]).done();
    assert_eq!(done["state"], "accepted");
    let followed = follow.finish(LONG);
    assert_eq!(followed.code, 0, "{followed:?}");
    assert!(followed.out.contains(r#""status":"done""#), "{followed:?}");
    // It keeps no record, but what happened last is remembered.
    let later = run(&place, &arguments);
    assert_eq!(later.code, 0, "{later:?}");
    assert_eq!(later.out, followed.out);
    let late = run(&place, &["steer", "bookkeeper", "more", "--json"]);
    assert_eq!(late.refused(), "agent_not_running");

    let aborted = run(&place, &["abort", "postman", "--yes", "--json"]).done();
    assert_eq!(aborted["status"], "aborted");
    let list = run(&place, &["list", "--json"]).done();
    assert_eq!(status(&list, "bookkeeper"), "done");
    assert_eq!(status(&list, "postman"), "aborted");

    runtime.block_on(server.close());
    let none = run(&place, &["list", "--json"]);
    assert_eq!(none.code, 3, "{none:?}");
    assert!(!place.runtime().join("handover/office").exists());
}

/// Beside a host, agents are found wherever they are, and neither is in the other's way.
#[test]
fn beside_a_host() {
    let place = Place::new();
    let runtime = Runtime::new().expect("a runtime");
    let server = open(&runtime, &place, "office");
    // It is in the same project, and no reason not to start a session with desktops there.
    let session = Session::with(place, &[]);
    let session_id = session.id();
    let host = ["--session", &session_id];
    let command = ["agent", "run", "--driver", "command", "--", "sleep", "1000"];
    let id = session.cli(&[&host[..], &command].concat()).done()["id"].clone();
    let id = id.as_str().expect("an id").to_owned();
    for name in [&id[..], "book", "post"] {
        let result = session.cli(&["result", name]).done();
        assert_ne!(result["status"], "done", "{result}");
    }
    assert_eq!(session.cli(&["list"]).refused(), "session_ambiguous");
    let list = session.cli(&["list", "--session", "office"]).done();
    assert_eq!(status(&list, "postman"), "running");
    assert_eq!(
        session.cli(&["abort", "post", "--yes"]).done()["status"],
        "aborted"
    );
    let down = session.cli(&["down", "--all"]).done();
    assert_eq!(down["sessions"].as_array().map(Vec::len), Some(1), "{down}");
    let list = session.cli(&["list"]).done();
    assert_eq!(status(&list, "bookkeeper"), "running");
    runtime.block_on(server.close());
}
