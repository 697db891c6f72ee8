//! What clients are answered, however they behave.

use handover_protocol::server::SUPPORTED;
use handover_protocol::{ActAs, CallerKind, ListParams, ListResult};
use std::time::Instant;

use super::*;

#[tokio::test]
async fn the_documented_client_does_all_that_is_served() {
    let served = Served::new().await;
    let (client, _news) = served.client().await;
    let hello = client.hello("a test", None).await.unwrap();
    assert_eq!(hello.session_id.as_str(), "here");
    assert_eq!(hello.caller.kind, CallerKind::Human);
    assert_eq!(hello.caller.pid, std::process::id());
    let list: ListResult = client
        .call(Method::List, &ListParams {}, ANSWER)
        .await
        .unwrap();
    assert_eq!(list.session.as_str(), "here");
    assert_eq!(list.agents, *served.agents.agents.lock().unwrap());
    for text in ["one", "two", "three"] {
        let steered: SteerResult = client
            .call(Method::Steer, &steer("a1", text), ANSWER)
            .await
            .unwrap();
        assert_eq!(steered.state, SteerState::Accepted);
    }
    let id = ResultParams { id: "a1".into() };
    let result: ResultResult = client.call(Method::Result, &id, ANSWER).await.unwrap();
    assert_eq!(result.text, "one two three");
    let id = AbortParams { id: "a0".into() };
    let aborted: AbortResult = client.call(Method::Abort, &id, ANSWER).await.unwrap();
    assert_eq!(aborted.descendants[0].id.as_str(), "a1");
    let refused = client
        .call::<_, SteerResult>(Method::Steer, &steer("zz", ""), ANSWER)
        .await
        .unwrap_err();
    assert_eq!(refused.code(), ErrorCode::AgentUnknown);
    let other = client.hello("a test", Some(ActAs::Agent)).await.unwrap();
    assert_eq!(other.caller.kind, CallerKind::Agent);
    let other = client.hello("a test", None).await.unwrap();
    assert_eq!(other.caller.kind, CallerKind::Agent, "given up for good");
}

#[tokio::test]
async fn every_other_method_is_unknown_and_says_which_are_not() {
    let served = Served::new().await;
    let mut bare = served.bare().await;
    let names = Method::names().into_iter().chain(["no.such", ""]);
    for (id, name) in (1..).zip(names) {
        let answer = bare.call(id, name, json!({})).await;
        let is_served = SUPPORTED.iter().any(|method| method.name() == name);
        if is_served {
            assert_ne!(answer["error"]["code"], -32601, "{answer}");
        } else {
            assert_eq!(answer["error"]["code"], -32601, "{name}: {answer}");
            assert_eq!(answer["error"]["data"]["code"], "method_unknown");
            let supported = json!(SUPPORTED.map(Method::name));
            assert_eq!(answer["error"]["data"]["supported"], supported);
        }
    }
    let answer = bare.call(100, "steer", json!({"id": "a0"})).await;
    assert_eq!(answer["error"]["code"], -32602);
    let answer = bare.call(101, "hello", json!({"client": "x", "protocol": 9}));
    let answer = answer.await;
    assert_eq!(answer["error"]["data"]["code"], "protocol_mismatch");
}

#[tokio::test]
async fn bad_lines_and_long_lines_are_answered_and_survived() {
    let served = Served::new().await;
    let mut bare = served.bare().await;
    for (line, code) in [("nonsense\n", -32700), ("[]\n", -32600), ("{}\n", -32600)] {
        bare.send(line.as_bytes()).await;
        assert_eq!(bare.next().await.unwrap()["error"]["code"], code);
    }
    // One byte over a mebibyte, of characters that have three bytes each.
    let head = r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":{"x":""#;
    let mut long = head.to_owned();
    while long.len() + 3 + 3 <= (1 << 20) + 1 {
        long.push('漢');
    }
    while long.len() + 3 < (1 << 20) + 1 {
        long.push('x');
    }
    long.push_str("\"}}");
    assert_eq!(long.len(), (1 << 20) + 1);
    bare.send(format!("{long}\n").as_bytes()).await;
    let answer = bare.next().await.unwrap();
    assert_eq!(answer["error"]["code"], -32600);
    assert_eq!(answer["error"]["data"]["code"], "line_too_long");
    let longest = long.replacen("漢", "..", 1);
    assert_eq!(longest.len(), 1 << 20);
    bare.send(format!("{longest}\n").as_bytes()).await;
    assert_eq!(bare.next().await.unwrap()["id"], 7);
    assert_eq!(
        bare.call(8, "ping", json!({})).await["result"]["protocol"],
        1
    );
}

#[tokio::test]
async fn a_fault_of_the_program_is_answered_and_ends_nothing() {
    let served = Served::new().await;
    let mut bare = served.bare().await;
    let answer = bare.call(1, "steer", json!({"id": "a0", "text": "panic"}));
    assert_eq!(answer.await["error"]["data"]["code"], "internal");
    let answer = bare.call(2, "steer", json!({"id": "a0", "text": "on"}));
    assert_eq!(answer.await["result"]["state"], "accepted");
}

#[tokio::test]
async fn calls_begin_in_order_and_a_slow_one_holds_up_no_other() {
    let served = Served::new().await;
    let mut bare = served.bare().await;
    bare.ask(1, "steer", json!({"id": "a0", "text": "slow"}))
        .await;
    for id in 2..100 {
        let text = id.to_string();
        bare.ask(id, "steer", json!({"id": "a0", "text": text}))
            .await;
    }
    for id in 2..100 {
        assert_eq!(bare.next().await.unwrap()["id"], id);
    }
    let in_order: Vec<String> = (2..100).map(|id| id.to_string()).collect();
    assert_eq!(*served.agents.steers.lock().unwrap(), in_order);
    served.agents.slow.add_permits(1);
    assert_eq!(bare.next().await.unwrap()["id"], 1);
}

#[tokio::test]
async fn a_call_is_not_given_up_when_its_client_dies() {
    let served = Served::new().await;
    for _ in 0..10 {
        let mut bare = served.bare().await;
        bare.ask(1, "steer", json!({"id": "a0", "text": "slow"}))
            .await;
        bare.call(2, "ping", json!({})).await;
    }
    served.agents.slow.add_permits(10);
    until("the steers should end", || {
        served.agents.finished.load(Ordering::SeqCst) == 10
    })
    .await;
}

#[tokio::test]
async fn one_that_has_stopped_writing_gets_its_answers() {
    let served = Served::new().await;
    let mut bare = served.bare().await;
    bare.ask(1, "steer", json!({"id": "a0", "text": "slow"}))
        .await;
    bare.ask(2, "list", json!({})).await;
    bare.0.get_mut().shutdown().await.unwrap();
    assert_eq!(bare.next().await.unwrap()["id"], 2);
    served.agents.slow.add_permits(1);
    assert_eq!(bare.next().await.unwrap()["id"], 1);
    assert_eq!(bare.next().await, None);
}

#[tokio::test]
async fn fifty_that_never_read_hold_up_neither_others_nor_the_end() {
    let served = Served::new().await;
    *served.agents.agents.lock().unwrap() = (0..200).map(|n| agent(n, None)).collect();
    let mut silent = Vec::new();
    for _ in 0..50 {
        let mut bare = served.bare().await;
        bare.ask(0, "subscribe", json!({})).await;
        for id in 1..50 {
            bare.ask(id, "list", json!({})).await;
        }
        // In the middle of a line.
        bare.send(br#"{"jsonrpc":"2.0","#).await;
        silent.push(bare);
    }
    let (client, _news) = served.client().await;
    let list: ListResult = client
        .call(Method::List, &ListParams {}, ANSWER)
        .await
        .unwrap();
    assert_eq!(list.agents.len(), 200);
    let before = Instant::now();
    served.server.close().await;
    assert!(before.elapsed() < Duration::from_secs(10));
    assert!(!served.dir.exists());
}

#[tokio::test]
async fn more_connections_than_there_is_room_for_are_told_so() {
    let served = Served::new().await;
    let mut open = Vec::new();
    for _ in 0..handover_protocol::server::MAX_CONNECTIONS {
        let mut bare = served.bare().await;
        bare.call(1, "ping", json!({})).await;
        open.push(bare);
    }
    let mut late = served.bare().await;
    let told = late.next().await.unwrap();
    assert_eq!(told["error"]["data"]["code"], "queue_full");
    // A place is free once the server has seen that one is gone.
    open.pop();
    loop {
        let mut next = served.bare().await;
        next.ask(1, "ping", json!({})).await;
        if next.next().await.is_some_and(|answer| answer["id"] == 1) {
            break;
        }
    }
}
