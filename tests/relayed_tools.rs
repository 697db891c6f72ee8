//! Any MCP server behind `handover relay`: its tools act while the agent has control, and never while a
//! person has; what was under way ends first; and nothing of it outlives relay or client.

use serde_json::json;

use crate::support::{Relay, Session};

#[test]
fn a_call_passes_and_is_refused_in_human_time() {
    let session = Session::up();
    let mut relay = Relay::start(&session.place, &[]);
    relay.done(1, "act", json!({"note": "one"}));

    let mut holder = session.take(json!({}));
    let refused = relay.refused(2, "act");
    assert_eq!(refused["data"]["code"], "human_control_active");
    assert_eq!(
        refused["data"]["lease"]["leaseId"],
        holder.granted["leaseId"]
    );
    let message = refused["message"].as_str().expect("a message");
    assert!(message.contains("wait for the hand-back"), "{message}");
    assert!(
        !relay.reached().contains(r#""id":2"#),
        "it reached the server"
    );
    // What does not act goes on.
    relay.write(r#"{"jsonrpc":"2.0","id":3,"method":"ping"}"#);
    relay.answer(&json!(3));
    let event = session.event("relay_refused");
    assert_eq!(event["tool"], "act");
    assert_eq!(event["code"], "human_control_active");
    assert_eq!(event["desktop"], "d1");
    assert_eq!(event["epoch"], holder.granted["epoch"]);
    assert_eq!(event["source"], "agent");

    holder.give_back();
    relay.done(4, "act", json!({"note": "two"}));
    assert_eq!(relay.acts(), "acted one\nacted two\n");
    assert_eq!(relay.finish().code, 0);
}
