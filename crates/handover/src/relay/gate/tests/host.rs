//! A host that goes, comes back, or has changed its mind.

use serde_json::json;

use super::super::super::call::{CUT_OFF, GRACE, PERMIT_TIME, Permit};
use super::super::Effect;
use super::super::due::HOST_GONE;
use super::{
    ERROR, RESPONSE, START, call, gate, permit, says, server_says, silent, to_client, told,
    under_way,
};

#[test]
fn without_the_host_nothing_acts() {
    let mut gate = gate();
    says(&mut gate, &call(&json!(1), "act"));
    assert_eq!(gate.deadline(), Some(START + PERMIT_TIME));
    gate.tick(START + PERMIT_TIME);
    assert_eq!(told(gate.effects())["error"]["data"]["code"], "timeout");
    // A permit that comes after all is given back.
    gate.permitted(1, Ok(permit(1)));
    assert_eq!(gate.effects(), [Effect::Complete(permit(1))]);

    let mut gate = under_way();
    gate.host_gone(1, START);
    assert!(matches!(&gate.effects()[..], [Effect::ToServer(_)]));
    gate.tick(START + HOST_GONE);
    let effects = gate.effects();
    assert!(matches!(
        &effects[..],
        [Effect::ToClient(_), Effect::ReplaceServer(_)]
    ));
    // One that ends in time ends nothing else.
    let mut gate = under_way();
    gate.host_gone(1, START);
    gate.effects();
    assert_eq!(server_says(&mut gate, ERROR).len(), 1);
    gate.tick(START + HOST_GONE);
    assert_eq!(gate.effects(), []);
    // Whoever has cancelled it, one that goes on is ended.
    let mut gate = under_way();
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#;
    says(&mut gate, cancel);
    gate.host_gone(1, START);
    assert_eq!(gate.effects(), []);
    gate.tick(START + HOST_GONE);
    let effects = gate.effects();
    assert!(matches!(effects.last(), Some(Effect::ReplaceServer(_))));
}

#[test]
fn a_permit_is_worth_nothing_after_its_connection() {
    let mut gate = gate();
    says(&mut gate, &call(&json!(7), "act"));
    gate.host_gone(1, START);
    gate.permitted(1, Ok(permit(1)));
    assert_eq!(
        told(gate.effects())["error"]["data"]["code"],
        "session_unknown"
    );
    // One of the next connection is, even if the end of the first is told late.
    says(&mut gate, &call(&json!(7), "act"));
    let next = Permit {
        link: 2,
        ..permit(1)
    };
    gate.permitted(2, Ok(next.clone()));
    gate.effects();
    gate.host_gone(1, START);
    assert_eq!(gate.effects(), []);
    assert_eq!(
        server_says(&mut gate, RESPONSE),
        [to_client(RESPONSE), Effect::Complete(next)]
    );
}

#[test]
fn what_has_ended_while_it_was_asked_about_ends_no_server() {
    let mut gate = silent();
    gate.tick(START + GRACE + CUT_OFF);
    assert_eq!(gate.effects(), [Effect::AskDraining]);
    server_says(&mut gate, ERROR);
    gate.draining(true);
    assert_eq!(gate.effects(), []);
    assert!(gate.is_idle() && gate.deadline().is_none());
}
