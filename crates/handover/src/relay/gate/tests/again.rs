//! A server that is ended for a person, and started again.

use serde_json::{Value, json};

use super::super::super::call::{ASK_AGAIN, CUT_OFF, GRACE};
use super::super::Effect;
use super::super::again::GREETING;
use super::{
    RESPONSE, START, ask, call, gate, permit, says, server_says, silent, to_client, told, under_way,
};

#[test]
fn a_server_that_stays_silent_is_ended_while_people_wait_and_started_again() {
    let mut gate = silent();
    let due = START + GRACE + CUT_OFF;
    assert_eq!(gate.deadline(), Some(due));
    gate.tick(due);
    assert_eq!(gate.effects(), [Effect::AskDraining]);
    // The takeover was given up meanwhile. The host does not interrupt a second time: the next is asked for.
    gate.draining(false);
    assert_eq!(gate.effects(), []);
    let due = due + ASK_AGAIN;
    assert_eq!(gate.deadline(), Some(due));
    gate.tick(due);
    assert_eq!(gate.effects(), [Effect::AskDraining]);
    gate.draining(true);
    let effects = gate.effects();
    let [answer @ .., Effect::ReplaceServer(_)] = &effects[..] else {
        panic!("{effects:?}");
    };
    // Its permit ends with its processes, not with our word.
    let error = told(answer.to_vec());
    assert_eq!(error["id"], 7);
    assert_eq!(error["error"]["data"]["code"], "interrupted_by_human");
    assert!(gate.is_away());
    // What the old one still says goes nowhere, and nothing goes to it.
    assert_eq!(server_says(&mut gate, RESPONSE), []);
    told(says(&mut gate, &call(&json!(8), "act")));
    // A server that was not greeted needs no greeting.
    gate.server_is_back(due);
    assert!(!gate.is_away());
    let record = call(&json!(7), "act");
    assert_eq!(says(&mut gate, &record), [ask(2, "act")]);
}

#[test]
fn a_server_that_is_started_again_is_told_what_the_first_was() {
    let mut gate = gate();
    let request = |id: &str, method: &str, params: &Value| {
        json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
    };
    let result = |id: &str| json!({"jsonrpc": "2.0", "id": id, "result": {}}).to_string();
    let version = json!({"protocolVersion": "1"});
    let level = json!({"level": "error"});
    for (method, params) in [("initialize", &version), ("logging/setLevel", &level)] {
        says(&mut gate, &request(method, method, params));
        server_says(&mut gate, &result(method));
    }
    says(
        &mut gate,
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    );
    says(&mut gate, &call(&json!(7), "act"));
    gate.permitted(1, Ok(permit(1)));
    gate.interrupt(&permit(1), START);
    gate.tick(START + GRACE);
    gate.tick(START + GRACE + CUT_OFF);
    gate.draining(true);
    gate.effects();

    gate.server_is_back(START);
    let parsed = |effects: Vec<Effect>| -> Vec<Value> {
        let records = effects.into_iter().map(|effect| match effect {
            Effect::ToServer(record) => serde_json::from_slice(&record).unwrap(),
            other => panic!("{other:?}"),
        });
        records.collect()
    };
    let greeting = parsed(gate.effects());
    assert_eq!(greeting[0]["method"], "initialize");
    assert_eq!((greeting.len(), &greeting[0]["params"]), (1, &version));
    assert!(gate.is_away());
    // What it says unasked passes; how it greets does not.
    let log = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#;
    assert_eq!(server_says(&mut gate, log), [to_client(log)]);
    let ours = greeting[0]["id"].as_str().unwrap();
    let told = parsed(server_says(&mut gate, &result(ours)));
    assert_eq!(told[0]["method"], "notifications/initialized");
    assert_eq!(
        (&told[1]["method"], &told[1]["params"]),
        (&json!("logging/setLevel"), &level)
    );
    assert!(!gate.is_away());
    let ours = told[1]["id"].as_str().unwrap();
    assert_eq!(server_says(&mut gate, &result(ours)), []);
    assert!(gate.is_idle() && gate.deadline().is_none());
}

#[test]
fn a_server_that_is_started_again_in_vain_ends_the_relay() {
    let greeted = || {
        let mut gate = gate();
        says(
            &mut gate,
            r#"{"jsonrpc":"2.0","id":7,"method":"initialize"}"#,
        );
        server_says(&mut gate, RESPONSE);
        says(&mut gate, &call(&json!(7), "act"));
        gate.permitted(1, Ok(permit(1)));
        gate.interrupt(&permit(1), START);
        gate.tick(START + GRACE);
        gate.tick(START + GRACE + CUT_OFF);
        gate
    };
    let mut gate = greeted();
    gate.draining(true);
    gate.server_is_back(START);
    gate.effects();
    assert_eq!(gate.deadline(), Some(START + GREETING));
    gate.tick(START + GREETING);
    assert!(matches!(&gate.effects()[..], [Effect::EndServer(_)]));

    let mut gate = greeted();
    gate.draining(true);
    gate.server_is_back(START);
    gate.effects();
    let refused = r#"{"jsonrpc":"2.0","id":"handover-1","error":{"code":1,"message":"no"}}"#;
    let effects = server_says(&mut gate, refused);
    assert!(matches!(&effects[..], [Effect::EndServer(_)]));

    // The client's answer to a question of the old one must not reach the new one.
    let mut gate = greeted();
    server_says(
        &mut gate,
        r#"{"jsonrpc":"2.0","id":0,"method":"roots/list"}"#,
    );
    gate.effects();
    gate.draining(true);
    assert!(matches!(&gate.effects()[..], [Effect::EndServer(_)]));
}

/// As a relay finds it that was stopped: its server is gone, and only then does it hear why.
#[test]
fn a_server_that_was_ended_for_a_person_is_started_again() {
    let mut gate = under_way();
    assert!(gate.may_be_interrupted());
    gate.interrupt(&permit(1), START);
    assert!(!gate.may_be_interrupted());
    gate.server_ended("signal 15 ended the server");
    let effects = gate.effects();
    let [answer @ .., Effect::ReplaceServer(why)] = &effects[..] else {
        panic!("{effects:?}");
    };
    assert_eq!(why, "signal 15 ended the server when a person took control");
    let error = told(answer.to_vec());
    assert_eq!(error["error"]["data"]["code"], "interrupted_by_human");

    let mut gate = under_way();
    gate.host_gone(1, START);
    gate.effects();
    gate.server_ended("signal 15 ended the server");
    let effects = gate.effects();
    let [.., Effect::ReplaceServer(why)] = &effects[..] else {
        panic!("{effects:?}");
    };
    assert_eq!(
        why,
        "signal 15 ended the server when the session's host had ended"
    );

    let mut gate = under_way();
    let why = "the server ended with exit status 1";
    gate.server_ended(why);
    assert_eq!(gate.effects(), [Effect::EndServer(why.to_owned())]);
}
