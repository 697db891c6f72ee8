//! Sessions for tests.

use handover_protocol::{Event, ListResult, Manifest};
use serde_json::{Value, json};

/// A live session's manifest.
pub fn manifest(id: &str, name: &str) -> Manifest {
    serde_json::from_value(json!({
        "protocol": 1, "sessionId": id, "name": name, "projectDir": format!("/home/ada/{name}"),
        "pid": 20_098, "startTicks": 7, "bootId": "b", "socketPath": "/run/h/attach.sock",
        "herdrPaneId": null, "updatedAt": "2026-01-31T09:40:00.000Z", "agents": [], "desktops": [],
    }))
    .unwrap()
}

/// A session with a family of agents, two desktops and an open request.
pub fn list(id: &str) -> ListResult {
    serde_json::from_value(json!({
        "session": id,
        "desktops": [
            {"id": "d1", "size": "1280x800", "control": "human", "phase": "steady", "epoch": 3,
             "lease": {"leaseId": "l-1", "holder": "ada (pid 7)", "since": "2026-01-31T09:30:00.250Z",
                       "expiresInMs": 27_500, "viewer": null}},
            {"id": "d2", "size": "640x480", "control": "agent", "phase": "steady", "epoch": 1}
        ],
        "agents": [
            {"id": "k7m2", "name": "checkout", "type": "pi", "status": "running", "parent": null,
             "depth": 0, "task": "buy milk and oats", "startedAt": "2026-01-31T09:30:00.000Z",
             "outputFile": null, "pending": 1,
             "tokens": {"input": 12_345, "output": 980}},
            {"id": "a3b4", "name": "docs", "type": "codex", "status": "waiting", "parent": "k7m2",
             "depth": 1, "task": "read the terms", "startedAt": "2026-01-31T09:39:00.000Z",
             "outputFile": null, "pending": 0},
            {"id": "z9y8", "name": "z9y8", "type": "command", "status": "done", "parent": "k7m2",
             "depth": 1, "task": "count", "startedAt": "2026-01-31T09:35:00.000Z",
             "outputFile": null, "pending": 0, "notSteerable": "it takes no messages"}
        ],
        "requests": [
            {"requestId": "r1", "agent": "a3b4", "reason": "which milk", "question": "oat or soy?",
             "state": "open", "since": "2026-01-31T09:39:30.000Z"}
        ]
    }))
    .unwrap()
}

/// An event of the record.
pub fn event(seq: u64, kind: &str, fields: Value) -> Event {
    let mut event = json!({
        "seq": seq, "at": "2026-01-31T09:39:50.250Z", "kind": kind, "source": "human",
        "actor": {"uid": 0, "pid": 7, "via": "cli"}, "uid": 0, "pid": 7,
    });
    let members = event.as_object_mut().unwrap();
    members.extend(fields.as_object().unwrap().clone());
    serde_json::from_value(event).unwrap()
}
