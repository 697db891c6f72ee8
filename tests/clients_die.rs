//! A client that dies in the middle of a call costs nobody anything: no lease, no permit and no half-done act is
//! left, and the host serves the next one.

use serde_json::{Value, json};

use crate::support::{LONG, Running, Session, Wire, eventually};

/// Every method with parameters that do something, but for those that end the session.
fn calls(session: &Session) -> Vec<(String, Value)> {
    let mut wire = session.wire();
    let unknown = wire.refused("no.such", json!({}));
    let names = unknown.data["supported"]
        .as_array()
        .expect("a list")
        .clone();
    let hello = wire.done("hello", json!({"client": "dies", "protocol": 1}));
    let params = |name: &str| match name {
        "hello" => json!({"client": "dies", "protocol": 1}),
        "spawn" => json!({
            "driver": "command", "prompt": "", "args": ["true"],
            "caller": {"name": "dies", "token": hello["callerToken"]},
        }),
        "steer" => json!({"id": "nobody", "text": "x", "wait": "answered"}),
        "abort" | "result" => json!({"id": "nobody"}),
        "control.acquire" => json!({"desktop": "d1", "note": "dies"}),
        "control.request" => json!({"desktop": "d1", "waitMs": 5000}),
        "control.permit" => json!({"what": "something"}),
        "control.complete" => json!({"permit": "p1"}),
        "control.renew" | "control.reclaim" | "control.give" | "control.refuse" => {
            json!({"leaseId": "l-1", "token": "x"})
        }
        "control.secret" => json!({"text": "x"}),
        "desktop.destroy" => json!({"desktop": "none"}),
        "desktop.launch" => json!({"command": ["true"]}),
        "desktop.click" | "desktop.double_click" | "desktop.move" => json!({"x": 5, "y": 5}),
        "desktop.scroll" => json!({"dy": 1}),
        "desktop.drag" => json!({"from": [5, 5], "to": [50, 50]}),
        "desktop.type" => json!({"text": "word ".repeat(15)}),
        "desktop.key" => json!({"keys": "a"}),
        "request_human" => json!({"reason": "dies"}),
        "request_status" => json!({"requestId": "r1", "waitMs": 60000}),
        "answer" => json!({"requestId": "r99", "text": "x"}),
        _ => json!({}),
    };
    let names = names.iter().filter_map(Value::as_str);
    names
        .filter(|name| *name != "stop")
        .map(|name| (name.to_owned(), params(name)))
        .collect()
}

fn line(method: &str, params: &Value) -> String {
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    format!("{request}\n")
}

/// Opens connections, writes to each another part of a line, and kills itself.
const DIES: &str = r#"
import os, socket, sys
line = sys.argv[2].encode()
held = []
for length in (len(line) // 2, len(line) - 1, len(line)):
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(sys.argv[1])
    connection.sendall(line[:length])
    held.append(connection)
os.kill(os.getpid(), 9)
"#;

/// A process that is killed in the middle of the line, before its newline, and before the answer.
fn killed(session: &Session, line: &str) {
    let mut command = session.place.command("python3");
    command.args(["-c", DIES]).arg(session.socket()).arg(line);
    assert_eq!(Running::start(&mut command).finish(LONG).code, 137);
}

/// Waits until the desktop is with the agents again, without anything under way. The pauses are ended.
fn settles(session: &Session, after: &str) {
    eventually(&format!("all is as before after {after}"), LONG, || {
        let status = session.status();
        if status["control"] == "paused" && status["phase"] == "steady" {
            // It may be resumed by a call that is still under way: then there is nothing to resume.
            let _ = session.wire().call("control.resume", json!({}));
        }
        (status["control"] == "agent" && status["phase"] == "steady").then_some(())
    });
}

/// Ends what `desktop.new` made, once it is there: its calls go on without their clients.
fn only_the_first_desktop(session: &Session) {
    let mut wire = session.wire();
    loop {
        let list = wire.done("list", json!({}));
        let desktops = list["desktops"].as_array().expect("a list");
        let Some(other) = desktops.iter().find(|desktop| desktop["id"] != "d1") else {
            break;
        };
        // It may be on its way up still.
        let _ = wire.call("desktop.destroy", json!({"desktop": other["id"]}));
    }
}

#[test]
fn in_the_middle_of_every_method() {
    let session = Session::up();
    let calls = calls(&session);
    assert!(calls.len() >= 40, "{}", calls.len());
    for (method, params) in &calls {
        let line = line(method, params);
        killed(&session, &line);
        // Each makes a desktop with a display of its own: one is enough.
        let many = if method == "desktop.new" { 1 } else { 20 };
        // A permit is its process's, and this one lives on.
        if method != "control.permit" {
            let mut wire = Wire::connect(&session.socket());
            wire.raw(line.repeat(many).as_bytes());
        }
        only_the_first_desktop(&session);
        settles(&session, method);
    }
    // Nothing keeps a lease, and the agent's next act goes through.
    let mut wire = session.wire();
    wire.done("desktop.screenshot", json!({}));
    wire.done("desktop.click", json!({"x": 5, "y": 5}));
    session.take(json!({})).give_back();
    assert_eq!(session.status()["control"], "agent");
    let verified = session.cli(&["verify"]);
    assert_eq!(verified.code, 0, "{verified:?}");
}

/// The same to those who wait: for an agent's receipt, its end, and its start.
#[test]
fn in_the_middle_of_an_agents_life() {
    let session = Session::up();
    for round in 0..10 {
        let mut dies = session.wire();
        let hello = dies.done("hello", json!({"client": "dies", "protocol": 1}));
        let spawn = json!({
            "driver": "command", "prompt": "", "args": ["sleep", "1000"],
            "caller": {"name": "dies", "token": hello["callerToken"]},
        });
        dies.send("spawn", spawn);
        drop(dies);
        // What was taken is done: nobody needs to wait for it.
        let id = eventually("the agent is there", LONG, || {
            let list = session.wire().done("list", json!({}));
            let agents = list["agents"].as_array()?;
            let found = agents.iter().find(|agent| agent["status"] == "running")?;
            Some(found["id"].clone())
        });
        let mut dies = session.wire();
        dies.send("abort", json!({"id": id}));
        if round % 2 == 0 {
            dies.send("list", json!({}));
        }
        drop(dies);
        eventually("the agent is aborted", LONG, || {
            let result = session.wire().done("result", json!({"id": id}));
            (result["status"] == "aborted").then_some(())
        });
    }
}
