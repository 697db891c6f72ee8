//! A server that the project did not write, made with the MCP project's own TypeScript SDK: as the specification
//! recommends, that answers no call that was cancelled, whether it stops or, as here, goes on.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Relay, Session, alive};

/// The MCP project's server for tests of clients.
fn everything() -> String {
    let clients = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/clients/servers");
    assert!(
        clients.join("installed").exists(),
        "no relayed servers: run `scripts/install-deps test` first"
    );
    let server = clients.join("node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    server.to_string_lossy().into_owned()
}

#[test]
fn a_server_of_the_official_sdk_is_gated_taken_over_and_back() {
    let session = Session::up();
    let mut relay = Relay::before(&session.place, &["node", &everything()]);
    relay.write(r#"{"jsonrpc":"2.0","id":"l","method":"tools/list"}"#);
    let tools = relay.answer(&json!("l"))["result"]["tools"].clone();
    assert!(
        tools.as_array().is_some_and(|tools| tools.len() > 5),
        "{tools}"
    );
    let echoed = |answer: &Value| answer["result"]["content"][0]["text"] == "Echo: é";
    assert!(echoed(&relay.call(1, "echo", json!({"message": "é"}))));

    // A call that is under way, and goes on whatever it is told.
    let params = json!({
        "name": "trigger-long-running-operation",
        "arguments": {"duration": 600, "steps": 6000},
        "_meta": {"progressToken": "p"},
    });
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params});
    relay.write(&call.to_string());
    relay.says(|line| line["method"] == "notifications/progress");
    let before = relay.below();
    let mut person = session.wire();
    let started = Instant::now();
    person.done("control.acquire", json!({"desktop": "d1"}));
    let took = started.elapsed();
    assert!(took < Duration::from_secs(10), "took {took:?}");
    assert!(
        !before.iter().any(|pid| alive(*pid)),
        "granted while it ran"
    );
    let error = relay.answer(&json!(2))["error"].clone();
    assert_eq!(error["data"]["code"], "interrupted_by_human");
    assert_eq!(
        relay.refused(3, "echo")["data"]["code"],
        "human_control_active"
    );
    person.done("control.return", json!({"desktop": "d1"}));
    assert!(echoed(&relay.call(4, "echo", json!({"message": "é"}))));
    assert_eq!(relay.finish().code, 0);
}
