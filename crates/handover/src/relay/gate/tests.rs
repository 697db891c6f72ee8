//! The gate, told step by step what happens.

mod again;
mod host;

use std::time::Duration;

use handover_protocol::{ErrorCode, PermitName, Refusal};
use serde_json::{Value, json};

use super::super::allow::Allow;
use super::super::call::{CLIENT_CANCEL, GRACE, Permit};
use super::super::records::weight;
use super::{Effect, Gate};

const START: Duration = Duration::from_secs(100);

fn gate() -> Gate {
    Gate::new(Allow::new(vec!["look".into()], true))
}

fn permit(number: u64) -> Permit {
    Permit {
        link: 1,
        name: PermitName::from(format!("p{number}")),
    }
}

fn call(id: &Value, tool: &str) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool}})
        .to_string()
}

fn says(gate: &mut Gate, record: &str) -> Vec<Effect> {
    gate.client_wrote(record.as_bytes().to_vec(), START);
    gate.effects()
}

fn server_says(gate: &mut Gate, record: &str) -> Vec<Effect> {
    gate.server_wrote(record.as_bytes().to_vec());
    gate.effects()
}

fn to_server(record: &str) -> Effect {
    Effect::ToServer(format!("{record}\n").into_bytes())
}

fn to_client(record: &str) -> Effect {
    Effect::ToClient(format!("{record}\n").into_bytes())
}

fn ask(call: u64, tool: &str) -> Effect {
    let tool = tool.to_owned();
    Effect::AskPermit { call, tool }
}

/// The one record that the client is told, and nothing else happens.
fn told(effects: Vec<Effect>) -> Value {
    match &effects[..] {
        [Effect::ToClient(record)] => serde_json::from_slice(record).unwrap(),
        _ => panic!("{effects:?}"),
    }
}

fn human() -> Refusal {
    Refusal::new(ErrorCode::HumanControlActive, "ada has control")
        .with("lease", json!({"holder": "ada"}))
}

/// A gate with call 1 under way under the id 7.
fn under_way() -> Gate {
    let mut gate = gate();
    says(&mut gate, &call(&json!(7), "act"));
    gate.permitted(1, Ok(permit(1)));
    gate.effects();
    gate
}

const RESPONSE: &str = r#"{"jsonrpc":"2.0","id":7,"result":{}}"#;
const ERROR: &str = r#"{"jsonrpc":"2.0","id":7,"error":{"code":0,"message":"cancelled"}}"#;

#[test]
fn a_call_holds_its_permit_until_its_response_has_passed() {
    let mut gate = gate();
    let record = call(&json!(7), "act");
    assert_eq!(says(&mut gate, &record), [ask(1, "act")]);
    gate.permitted(1, Ok(permit(1)));
    assert_eq!(gate.effects(), [to_server(&record)]);
    // Neither a request of the server's under the same id is its end, nor progress, nor another's response.
    for other in [
        r#"{"jsonrpc":"2.0","id":7,"method":"sampling/createMessage","params":{}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7}}"#,
        r#"{"jsonrpc":"2.0","id":"7","result":{}}"#,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"?"}}"#,
        "",
    ] {
        assert_eq!(server_says(&mut gate, other), [to_client(other)]);
    }
    // Nor the client's response to that request.
    let response = r#"{"jsonrpc":"2.0","id":7,"result":{"role":"assistant"}}"#;
    assert_eq!(says(&mut gate, response), [to_server(response)]);
    let ended = server_says(&mut gate, RESPONSE);
    assert_eq!(ended, [to_client(RESPONSE), Effect::Complete(permit(1))]);
    assert!(gate.is_idle() && gate.deadline().is_none());
}

#[test]
fn what_comes_behind_a_call_stays_behind_it() {
    let mut gate = gate();
    let (first, second) = (call(&json!(1), "act"), call(&json!("x"), "act"));
    let ping = r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#;
    assert_eq!(says(&mut gate, &first), [ask(1, "act")]);
    assert_eq!(says(&mut gate, ping), []);
    assert_eq!(says(&mut gate, &second), [ask(2, "act")]);
    let held = [&first, ping, &second].map(|record| weight(record.as_bytes()));
    assert_eq!(gate.held_bytes(), held.iter().sum::<usize>());
    gate.permitted(2, Ok(permit(2)));
    assert_eq!(gate.effects(), []);
    gate.permitted(1, Ok(permit(1)));
    let all = [to_server(&first), to_server(ping), to_server(&second)];
    assert_eq!(gate.effects(), all);
    assert_eq!(gate.held_bytes(), 0);
}

#[test]
fn a_refused_call_is_answered_and_never_passed_on() {
    let mut gate = gate();
    says(&mut gate, &call(&json!("a\"b"), "act"));
    gate.permitted(1, Err(human()));
    let error = told(gate.effects());
    assert_eq!(error["id"], "a\"b");
    assert_eq!(error["error"]["code"], -32050);
    let data = &error["error"]["data"];
    assert_eq!(data["code"], "human_control_active");
    assert_eq!(data["lease"]["holder"], "ada");
    assert_eq!(data["tool"], "act");
    // The id is free again.
    assert_eq!(
        says(&mut gate, &call(&json!("a\"b"), "act")),
        [ask(2, "act")]
    );
}

#[test]
fn each_call_of_a_batch_needs_its_own_permit() {
    let mut gate = gate();
    let batch = format!(
        r#"[{}, {{"jsonrpc":"2.0","id":3,"method":"ping"}} ,{}]"#,
        call(&json!(1), "act"),
        call(&json!(2), "act")
    );
    assert_eq!(says(&mut gate, &batch), [ask(1, "act"), ask(2, "act")]);
    gate.permitted(2, Ok(permit(2)));
    gate.permitted(1, Err(human()));
    let rest = format!(
        r#"[{{"jsonrpc":"2.0","id":3,"method":"ping"}},{}]"#,
        call(&json!(2), "act")
    );
    let effects = gate.effects();
    assert_eq!(effects[0], to_server(&rest));
    let told = told(effects[1..].to_vec());
    assert_eq!(
        (&told[0]["id"], told.as_array().unwrap().len()),
        (&json!(1), 1)
    );
    let responses =
        r#"[{"jsonrpc":"2.0","id":3,"result":{}},{"jsonrpc":"2.0","id":2,"result":{}}]"#;
    let ended = server_says(&mut gate, responses);
    assert_eq!(ended, [to_client(responses), Effect::Complete(permit(2))]);
    // One that is allowed as a whole is not touched.
    says(&mut gate, &batch);
    gate.permitted(3, Ok(permit(3)));
    gate.permitted(4, Ok(permit(4)));
    assert_eq!(gate.effects(), [to_server(&batch)]);
}

#[test]
fn an_id_in_use_cannot_hide_a_call() {
    let ping = r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#;
    let mut gate = under_way();
    for second in [ping, &call(&json!(7.0), "act"), &format!("[{ping}]")] {
        assert_eq!(told(says(&mut gate, second))["id"], Value::Null, "{second}");
    }
    // The other way round: its response would be taken for the call's.
    let mut gate = self::gate();
    assert_eq!(says(&mut gate, ping), [to_server(ping)]);
    told(says(&mut gate, &call(&json!(7), "act")));
    let twice = format!("[{},{}]", call(&json!(8), "act"), call(&json!(8), "act"));
    told(says(&mut gate, &twice));
}

#[test]
fn a_takeover_cancels_what_is_under_way() {
    let mut gate = under_way();
    gate.interrupt(&permit(1), START);
    assert_eq!(gate.deadline(), Some(START + GRACE));
    gate.tick(START + GRACE / 2);
    assert_eq!(gate.effects(), []);
    gate.tick(START + GRACE);
    let effects = gate.effects();
    let [Effect::ToServer(cancel)] = &effects[..] else {
        panic!("{effects:?}");
    };
    let cancel: Value = serde_json::from_slice(cancel).unwrap();
    assert_eq!(cancel["method"], "notifications/cancelled");
    assert_eq!(cancel["params"]["requestId"], 7);
    let effects = server_says(&mut gate, ERROR);
    assert_eq!(effects[1], Effect::Complete(permit(1)));
    let error = told(effects[..1].to_vec());
    assert_eq!(error["error"]["data"]["code"], "interrupted_by_human");
    assert_eq!(error["error"]["data"]["server"]["message"], "cancelled");
}

#[test]
fn a_result_that_comes_after_all_is_passed_as_it_is() {
    let mut gate = under_way();
    gate.interrupt(&permit(1), START);
    gate.tick(START + GRACE);
    gate.effects();
    let ended = server_says(&mut gate, RESPONSE);
    assert_eq!(ended, [to_client(RESPONSE), Effect::Complete(permit(1))]);
    // And an error of its own in the grace.
    let mut gate = under_way();
    gate.interrupt(&permit(1), START);
    assert_eq!(server_says(&mut gate, ERROR)[0], to_client(ERROR));
}

#[test]
fn an_interruption_that_comes_before_its_permit_or_before_the_call_is_sent() {
    let mut gate = gate();
    says(&mut gate, &call(&json!(1), "act"));
    says(&mut gate, &call(&json!(2), "act"));
    gate.interrupt(&permit(1), START);
    gate.permitted(2, Ok(permit(2)));
    gate.interrupt(&permit(2), START);
    let recorded = Effect::Record { tool: "act".into() };
    assert_eq!(
        gate.effects(),
        [Effect::Complete(permit(2)), recorded.clone()]
    );
    gate.permitted(1, Ok(permit(1)));
    let effects = gate.effects();
    let sent = effects
        .iter()
        .any(|effect| matches!(effect, Effect::ToServer(_)));
    assert!(!sent, "{effects:?}");
    assert!(effects.contains(&Effect::Complete(permit(1))) && effects.contains(&recorded));
    assert!(gate.is_idle() && gate.early.is_empty());
    // One for a call that has just ended is not kept either.
    says(&mut gate, &call(&json!(3), "act"));
    gate.interrupt(&permit(9), START);
    gate.permitted(3, Ok(permit(3)));
    assert!(gate.early.is_empty());
}

/// Call 1 was cancelled for a person who waits, and is still unanswered.
fn silent() -> Gate {
    let mut gate = under_way();
    gate.interrupt(&permit(1), START);
    gate.tick(START + GRACE);
    gate.effects();
    gate
}

#[test]
fn a_call_that_its_client_cancels_holds_its_permit_for_a_while() {
    let mut gate = under_way();
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#;
    assert_eq!(says(&mut gate, cancel), [to_server(cancel)]);
    assert_eq!(gate.deadline(), Some(START + CLIENT_CANCEL));
    gate.tick(START + CLIENT_CANCEL);
    assert_eq!(gate.effects(), [Effect::Complete(permit(1))]);
    // Its id is not free yet: a response may come.
    told(says(&mut gate, &call(&json!(7), "act")));
    assert_eq!(server_says(&mut gate, ERROR), [to_client(ERROR)]);
    assert!(gate.is_idle());
}

#[test]
fn what_only_looks_passes_without_a_permit_unless_it_may_not_be_watched() {
    let mut gate = gate();
    let look = call(&json!(1), "look");
    assert_eq!(says(&mut gate, &look), [Effect::AskWatched { call: 1 }]);
    gate.watched(1, Ok(()));
    assert_eq!(gate.effects(), [to_server(&look)]);
    let response = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    assert_eq!(server_says(&mut gate, response), [to_client(response)]);
    says(&mut gate, &look);
    gate.watched(2, Err(Refusal::new(ErrorCode::Private, "no")));
    let mut effects = gate.effects();
    let tool = "look".to_owned();
    assert_eq!(effects.remove(0), Effect::Record { tool });
    assert_eq!(told(effects)["error"]["data"]["code"], "private");
    // What the server says of its tools counts from its answer on.
    says(
        &mut gate,
        r#"{"jsonrpc":"2.0","id":"l","method":"tools/list"}"#,
    );
    let tools = r#"{"jsonrpc":"2.0","id":"l","result":{"tools":[{"name":"peek","annotations":{"readOnlyHint":true}}]}}"#;
    assert_eq!(server_says(&mut gate, tools), [to_client(tools)]);
    let peek = says(&mut gate, &call(&json!(2), "peek"));
    assert_eq!(peek, [Effect::AskWatched { call: 3 }]);
}

#[test]
fn what_is_no_record_is_answered_or_ends_the_server() {
    let mut gate = gate();
    for (record, code) in [
        ("{", -32700),
        ("7", -32700),
        (r#"{"method":"tools/call"}"#, -32600),
    ] {
        assert_eq!(
            told(says(&mut gate, record))["error"]["code"],
            code,
            "{record}"
        );
    }
    gate.client_wrote_too_much();
    assert_eq!(
        told(gate.effects())["error"]["data"]["code"],
        "line_too_long"
    );
    for ends in [Gate::server_wrote_too_much, |gate: &mut Gate| {
        gate.server_wrote(b"oops".to_vec())
    }] {
        let mut gate = under_way();
        says(&mut gate, r#"{"jsonrpc":"2.0","id":8,"method":"ping"}"#);
        ends(&mut gate);
        assert!(matches!(&gate.effects()[..], [Effect::EndServer(_)]));
        gate.end("broken");
        let answers = gate.effects();
        assert_eq!(
            answers.len(),
            2,
            "every request has its answer: {answers:?}"
        );
        // Nothing of it is passed any more.
        assert_eq!(server_says(&mut gate, RESPONSE), []);
        told(says(&mut gate, &call(&json!(9), "act")));
    }
}
