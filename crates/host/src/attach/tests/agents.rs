//! The methods about agents: who may call them, and for which.

use std::time::Duration;

use handover_protocol::Method;
use serde_json::{Value, json};

use super::fake::PERSON;
use super::{Harness, PATIENCE};
use crate::callers::{Caller, CallerKind};

fn agent(id: &str) -> CallerKind {
    CallerKind::Agent {
        id: Some(id.into()),
    }
}

fn steer(id: &str) -> Value {
    json!({"id": id, "text": "look left"})
}

#[tokio::test]
async fn a_person_may_steer_and_end_every_agent() {
    let harness = Harness::start().await;
    let mut client = harness.connect().await;
    let accepted = client.call(Method::Steer, steer("parent")).await;
    assert_eq!(
        accepted,
        Ok(json!({"steerId": "st-1", "state": "accepted"}))
    );
    let ended = client.call(Method::Abort, json!({"id": "child"})).await;
    assert_eq!(
        ended,
        Ok(json!({"id": "child", "status": "aborted", "descendants": [], "survivors": []}))
    );
    let result = client.call(Method::Result, json!({"id": "parent"})).await;
    assert_eq!(result.unwrap()["text"], "all done");
    for method in [Method::Steer, Method::Abort, Method::Result] {
        let params = if method == Method::Steer {
            steer("nobody")
        } else {
            json!({"id": "nobody"})
        };
        let called = client.call(method, params).await;
        assert_eq!(called, Err("agent_unknown".into()));
    }
    assert_eq!(harness.session.agents.calls(), ["steer", "abort"]);
}

#[tokio::test]
async fn an_agent_reaches_those_below_it_and_learns_nothing_of_others() {
    let harness = Harness::start().await;
    harness.session.become_kind(agent("parent"));
    let mut client = harness.connect().await;
    assert!(client.call(Method::Steer, steer("child")).await.is_ok());
    let ended = client.call(Method::Abort, json!({"id": "child"})).await;
    assert!(ended.is_ok());
    assert_eq!(harness.session.agents.calls(), ["steer", "abort"]);
    let mut refusals = Vec::new();
    // Itself, one that does not exist, no name at all, and parameters that make no sense.
    for params in [
        steer("parent"),
        steer("nobody"),
        json!({"text": "x"}),
        json!([1]),
    ] {
        let id = client.send("steer", params).await;
        refusals.push(client.answer(id).await["error"].clone());
    }
    assert_eq!(refusals[0]["data"]["code"], "caller_refused");
    assert!(refusals.iter().all(|refusal| *refusal == refusals[0]));
    for kind in [agent("child"), CallerKind::Agent { id: None }] {
        harness.session.become_kind(kind);
        let called = client.call(Method::Abort, json!({"id": "parent"})).await;
        assert_eq!(called, Err("caller_refused".into()));
        let called = client.call(Method::Steer, steer("child")).await;
        assert_eq!(called, Err("caller_refused".into()));
    }
    assert!(harness.session.agents.calls().is_empty());
    // The answer is for everybody.
    let result = client.call(Method::Result, json!({"id": "parent"})).await;
    assert!(result.is_ok());
}

#[tokio::test]
async fn whoever_spawns_proves_that_it_was_greeted() {
    let harness = Harness::start().await;
    let mut client = harness.connect().await;
    let spawn = |caller: Value| {
        let mut params = json!({"driver": "command", "prompt": "x", "args": ["true"]});
        if !caller.is_null() {
            params["caller"] = caller;
        }
        params
    };
    let before = json!({"name": "me", "token": ""});
    let greeted = {
        let called = client.call(Method::Spawn, spawn(before)).await;
        assert_eq!(called, Err("caller_refused".into()));
        client.hello(json!({})).await.unwrap()
    };
    let token = &greeted["callerToken"];
    for caller in [
        Value::Null,
        json!({}),
        json!("me"),
        json!({"name": "me"}),
        json!({"name": " ", "token": token}),
        json!({"name": "me", "token": ""}),
        json!({"name": "me", "token": "wrong"}),
        json!({"name": "me", "token": token, "more": 1}),
    ] {
        let called = client.call(Method::Spawn, spawn(caller.clone())).await;
        assert_eq!(called, Err("caller_refused".into()), "{caller}");
    }
    // That of one connection is no good on another.
    let mine = spawn(json!({"name": "me", "token": token}));
    let mut other = harness.connect().await;
    other.hello(json!({})).await.unwrap();
    let called = other.call(Method::Spawn, mine.clone()).await;
    assert_eq!(called, Err("caller_refused".into()));
    assert!(harness.session.agents.calls().is_empty());
    assert_eq!(
        client.call(Method::Spawn, mine).await,
        Ok(json!({"id": "child", "status": "queued"}))
    );
    let wrong = json!({"prompt": "x", "caller": {"name": "me", "token": token}});
    let called = client.call(Method::Spawn, wrong).await;
    assert_eq!(called, Err("bad_params".into()));
}

#[tokio::test]
async fn a_wait_for_a_receipt_ends_with_the_client() {
    let harness = Harness::start().await;
    let mut client = harness.connect().await;
    let params = json!({"id": "parent", "text": "x", "wait": "answered", "timeoutMs": 600_000});
    client.send("steer", params).await;
    client.call(Method::Ping, json!({})).await.unwrap();
    assert_eq!(harness.session.agents.calls(), ["steer", "steer"]);
    drop(client);
    // The server can only close in time if nothing of that connection is left.
    let mut harness = harness;
    let server = harness.server.take().unwrap();
    let closed = tokio::time::timeout(PATIENCE, server.close(Duration::from_secs(600)));
    closed.await.expect("the wait has ended");
}

#[tokio::test]
async fn an_agent_uses_the_desktops_that_it_acts_on_looks_at_or_asks_about() {
    let harness = Harness::start().await;
    harness.session.become_kind(agent("parent"));
    let mut client = harness.connect().await;
    let click = json!({"desktop": "d1", "x": 1, "y": 1});
    client.call(Method::DesktopClick, click).await.unwrap();
    client
        .call(Method::DesktopWindows, json!({}))
        .await
        .unwrap();
    let ask = json!({"reason": "a captcha"});
    client.call(Method::RequestHuman, ask).await.unwrap();
    client.call(Method::List, json!({})).await.unwrap();
    client.call(Method::ControlStatus, json!({})).await.unwrap();
    let unknown = json!({"desktop": "d9", "x": 1, "y": 1});
    client
        .call(Method::DesktopClick, unknown)
        .await
        .unwrap_err();
    let used = || std::mem::take(&mut *harness.session.agents.used.lock().unwrap());
    let d1 = || ("parent".into(), "d1".into());
    assert_eq!(used(), [d1(), d1(), d1()]);
    for kind in [CallerKind::Agent { id: None }, PERSON] {
        harness.session.become_kind(kind);
        let click = json!({"desktop": "d1", "x": 1, "y": 1});
        client.call(Method::DesktopClick, click).await.unwrap();
    }
    assert_eq!(used(), []);
}

#[tokio::test]
async fn a_marked_person_confirms_what_is_done_to_an_agent() {
    let harness = Harness::start().await;
    *harness.session.marked.lock().unwrap() = Some("SOME_AGENT".into());
    let said = |yes| {
        let confirms = &harness.session.confirms;
        confirms.store(yes, std::sync::atomic::Ordering::Relaxed);
    };
    let mut client = harness.connect().await;
    said(false);
    for (method, params) in [
        (Method::Steer, steer("parent")),
        (Method::Abort, json!({"id": "parent"})),
    ] {
        let called = client.call(method, params).await;
        assert_eq!(called, Err("caller_refused".into()));
    }
    assert!(harness.session.agents.calls().is_empty());
    said(true);
    client.call(Method::Steer, steer("parent")).await.unwrap();
    let called = std::mem::take(&mut *harness.session.agents.called.lock().unwrap());
    let [("steer", Caller { kind, .. })] = &called[..] else {
        panic!("one steer: {called:?}");
    };
    assert_eq!(*kind, PERSON);
}
