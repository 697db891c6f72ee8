//! Who may call what.

use std::sync::atomic::Ordering;
use std::time::Duration;

use handover_protocol::Method;
use serde_json::json;

use super::Harness;
use super::fake::PERSON;
use crate::callers::CallerKind;

#[tokio::test]
async fn human_only_calls_of_agents_are_refused_before_anything_else() {
    let harness = Harness::start().await;
    harness.session.become_kind(CallerKind::Agent {
        id: Some("a1".into()),
    });
    let mut client = harness.connect().await;
    for &method in Method::ALL {
        // Not even parameters that make no sense are looked at.
        let called = client.call(method, json!(["nonsense"])).await;
        if method.human_only() || matches!(method, Method::Steer | Method::Abort) {
            assert_eq!(called, Err("caller_refused".into()), "{method}");
        } else {
            assert_eq!(called, Err("bad_params".into()), "{method}");
        }
    }
}

#[tokio::test]
async fn a_program_on_a_desktop_may_only_look() {
    let harness = Harness::start().await;
    harness.session.become_kind(CallerKind::App {
        desktop: "d1".into(),
    });
    let mut client = harness.connect().await;
    assert_eq!(
        client.hello(json!({"as": "agent"})).await.unwrap()["caller"]["kind"],
        "app"
    );
    for &method in Method::ALL {
        let called = client.call(method, json!(["nonsense"])).await;
        let expected = if method.open_to_apps() {
            "bad_params"
        } else {
            "caller_refused"
        };
        assert_eq!(called, Err(expected.into()), "{method}");
    }
    assert!(client.call(Method::List, json!({})).await.is_ok());
}

#[tokio::test]
async fn power_that_was_given_up_does_not_come_back() {
    let harness = Harness::start().await;
    let mut client = harness.connect().await;
    assert!(client.call(Method::ControlPause, json!({})).await.is_ok());
    let greeted = client.hello(json!({"as": "agent"})).await.unwrap();
    assert_eq!(greeted["caller"]["kind"], "agent");
    client.hello(json!({})).await.unwrap();
    assert_eq!(
        client.call(Method::ControlPause, json!({})).await,
        Err("caller_refused".into())
    );
    let mut other = harness.connect().await;
    assert!(other.call(Method::ControlPause, json!({})).await.is_ok());
}

#[tokio::test]
async fn below_a_known_agent_program_a_person_confirms_once() {
    let harness = Harness::start().await;
    *harness.session.marked.lock().unwrap() = Some("SOME_AGENT".into());
    harness.session.confirms.store(false, Ordering::Relaxed);
    let mut client = harness.connect().await;
    assert_eq!(
        client.call(Method::ControlPause, json!({})).await,
        Err("caller_refused".into())
    );
    // What needs no person needs no confirmation.
    assert!(client.call(Method::List, json!({})).await.is_ok());
    assert_eq!(harness.session.asked.load(Ordering::Relaxed), 1);
    harness.session.confirms.store(true, Ordering::Relaxed);
    for method in [
        Method::ControlPause,
        Method::ControlResume,
        Method::ControlRevoke,
    ] {
        assert!(client.call(method, json!({})).await.is_ok());
    }
    assert_eq!(harness.session.asked.load(Ordering::Relaxed), 2);
    let mut other = harness.connect().await;
    assert!(other.call(Method::ControlPause, json!({})).await.is_ok());
    assert_eq!(harness.session.asked.load(Ordering::Relaxed), 3);
    // Whoever says that it is an agent is not asked, and gets nothing.
    other.hello(json!({"as": "agent"})).await.unwrap();
    assert_eq!(
        other.call(Method::ControlPause, json!({})).await,
        Err("caller_refused".into())
    );
    assert_eq!(harness.session.asked.load(Ordering::Relaxed), 3);
}

#[tokio::test]
async fn refused_calls_are_recorded_without_their_arguments() {
    let harness = Harness::start().await;
    let mut client = harness.connect().await;
    client.hello(json!({"client": "someone/1"})).await.unwrap();
    harness.session.become_kind(CallerKind::Agent {
        id: Some("a1".into()),
    });
    let secret = json!({"desktop": "d1", "text": "hunter2"});
    client
        .call(Method::ControlSecret, secret)
        .await
        .unwrap_err();
    client
        .call(Method::ControlAcquire, json!({"desktop": "hunter2"}))
        .await
        .unwrap_err();
    client
        .call(
            Method::DesktopType,
            json!({"desktop": "d1", "text": "hunter2", "x": 1}),
        )
        .await
        .unwrap_err();
    client
        .call(
            Method::DesktopKey,
            json!({"desktop": "d1", "text": "hunter2"}),
        )
        .await
        .unwrap_err();
    client.call(Method::Ping, json!({"x": 1})).await.unwrap();
    harness.session.become_kind(PERSON);
    client
        .call(Method::ControlReturn, json!({}))
        .await
        .unwrap_err();

    let events = harness.events().await;
    let brief: Vec<_> = events
        .iter()
        .map(|event| {
            json!([
                event["kind"],
                event["source"],
                event["code"],
                event.get("method"),
                event.get("desktop")
            ])
        })
        .collect();
    assert_eq!(
        json!(brief),
        json!([
            [
                "call_refused",
                "agent",
                "caller_refused",
                "control.secret",
                "d1"
            ],
            [
                "call_refused",
                "agent",
                "caller_refused",
                "control.acquire",
                null
            ],
            ["desktop_type", "agent", "bad_params", null, "d1"],
            ["desktop_key", "agent", "bad_params", null, "d1"],
            [
                "call_refused",
                "human",
                "lease_stale",
                "control.return",
                null
            ],
        ])
    );
    assert!(events.iter().all(|event| event["outcome"] == "refused"));
    assert_eq!(events[0]["actor"]["agent"], "a1");
    assert_eq!(events[0]["actor"]["via"], "someone/1");
    assert_eq!(events[4]["actor"]["evidence"], "lineage");
    assert!(!json!(events).to_string().contains("hunter2"));
}

#[tokio::test]
async fn a_question_on_a_terminal_ends_with_its_caller() {
    let harness = Harness::start().await;
    *harness.session.marked.lock().unwrap() = Some("SOME_AGENT".into());
    harness.session.hesitates.store(true, Ordering::Relaxed);
    let mut client = harness.connect().await;
    client.send("control.pause", json!({})).await;
    let standing = || harness.session.standing.load(Ordering::Relaxed);
    let becomes = async |count: usize| {
        let waited = tokio::time::timeout(Duration::from_secs(20), async {
            while standing() != count {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
        assert!(waited.await.is_ok(), "{count} questions should stand there");
    };
    becomes(1).await;
    drop(client);
    becomes(0).await;
}
