//! Requests for a person.

use std::time::Duration;

use handover_protocol::{End, HandBack, Method};
use handover_store::{Mode, Options, Store};
use serde_json::{Value, json};

use super::fake::PERSON;
use super::{Client, Harness, outcome};
use crate::callers::CallerKind;
use crate::requests::Requests;

const AGENT: CallerKind = CallerKind::Agent { id: None };

async fn ask(client: &mut Client, question: Option<&str>) -> Result<Value, String> {
    client
        .call(
            Method::RequestHuman,
            json!({"reason": "stuck", "question": question}),
        )
        .await
}

fn hand_back() -> HandBack {
    HandBack {
        end: End::Return,
        holder: "ada".into(),
        held_ms: 1000,
        note: Some("done".into()),
        epoch: 3,
        screenshot: None,
        windows_opened: Vec::new(),
        windows_closed: Vec::new(),
    }
}

#[tokio::test]
async fn a_question_is_answered_in_text() {
    let harness = Harness::start().await;
    harness.session.become_kind(AGENT);
    let mut agent = harness.connect().await;
    assert_eq!(
        ask(&mut agent, Some("Train or bus?")).await.unwrap(),
        json!({"requestId": "r1"})
    );
    let open = agent
        .call(Method::RequestStatus, json!({"requestId": "r1"}))
        .await
        .unwrap();
    assert_eq!(open, json!({"requestId": "r1", "state": "open"}));
    let waiting = agent
        .send(
            "request_status",
            json!({"requestId": "r1", "waitMs": 60_000}),
        )
        .await;

    harness.session.become_kind(PERSON);
    let mut person = harness.connect().await;
    let listed = person.call(Method::List, json!({})).await.unwrap();
    // The only desktop is the one that it is about.
    assert_eq!(listed["requests"][0]["desktop"], "d1");
    let answer = json!({"requestId": "r1", "text": "Train."});
    let answered = person.call(Method::Answer, answer.clone()).await.unwrap();
    assert_eq!(answered, json!({"requestId": "r1", "state": "answered"}));
    let status = outcome(&agent.answer(waiting).await).unwrap();
    assert_eq!(
        status,
        json!({"requestId": "r1", "state": "answered", "text": "Train."})
    );
    assert_eq!(
        person.call(Method::Answer, answer).await,
        Err("bad_params".into())
    );
    let kinds: Vec<_> = harness
        .events()
        .await
        .iter()
        .map(|event| event["kind"].clone())
        .collect();
    assert_eq!(
        json!(kinds),
        json!(["request_human", "request_answered", "call_refused"])
    );
}

#[tokio::test]
async fn a_question_for_a_secret_is_pointed_to_a_takeover() {
    let harness = Harness::start().await;
    harness.session.become_kind(AGENT);
    let mut agent = harness.connect().await;
    let params = json!({"reason": "login", "question": "What is the password?"});
    let id = agent.send("request_human", params).await;
    let error = agent.answer(id).await["error"].clone();
    assert_eq!(
        (&error["data"]["code"], &error["data"]["remedy"]),
        (&json!("bad_params"), &json!("takeover"))
    );
    assert!(error["message"].as_str().unwrap().contains("take control"));
    // The reason may say what it is about: nobody types into that.
    let asked = agent
        .call(
            Method::RequestHuman,
            json!({"reason": "the password is needed"}),
        )
        .await;
    assert_eq!(asked.unwrap(), json!({"requestId": "r1"}));
    harness.session.become_kind(PERSON);
    let answer = json!({"requestId": "r1", "text": "hunter2"});
    assert_eq!(
        agent.call(Method::Answer, answer).await,
        Err("bad_params".into())
    );
}

#[tokio::test]
async fn a_takeover_deals_with_what_was_open() {
    let harness = Harness::start().await;
    harness.session.become_kind(AGENT);
    let mut agent = harness.connect().await;
    ask(&mut agent, None).await.unwrap();
    let waiting = agent
        .send(
            "request_status",
            json!({"requestId": "r1", "waitMs": 60_000}),
        )
        .await;
    agent.call(Method::Ping, json!({})).await.unwrap();
    harness.requests.taken(&"d1".into());
    assert_eq!(
        outcome(&agent.answer(waiting).await).unwrap()["state"],
        "taken"
    );
    // Asked while the person is busy: not what they came for.
    ask(&mut agent, None).await.unwrap();
    assert_eq!(
        harness.requests.handed_back(&"d1".into(), &hand_back()),
        ["r1".into()]
    );
    let status = agent
        .call(
            Method::RequestStatus,
            json!({"requestId": "r1", "waitMs": 60_000}),
        )
        .await;
    let status = status.unwrap();
    assert_eq!(
        (&status["state"], &status["handBack"]["note"]),
        (&json!("handed_back"), &json!("done"))
    );
    let open = harness.requests.open_requests(Some(&"d1".into()));
    assert_eq!(open.len(), 1);
    harness.requests.cancel(&"d1".into());
    assert!(harness.requests.open_requests(None).is_empty());
    // A program on the desktop learns that there was an answer, and not which.
    harness.session.become_kind(CallerKind::App {
        desktop: "d1".into(),
    });
    let seen = agent
        .call(Method::RequestStatus, json!({"requestId": "r1"}))
        .await
        .unwrap();
    assert_eq!(seen, json!({"requestId": "r1", "state": "handed_back"}));
}

#[tokio::test]
async fn waits_are_bounded_and_unknown_requests_refused() {
    let harness = Harness::start().await;
    let mut client = harness.connect().await;
    ask(&mut client, None).await.unwrap();
    let begun = std::time::Instant::now();
    let status = client
        .call(
            Method::RequestStatus,
            json!({"requestId": "r1", "waitMs": 50}),
        )
        .await;
    assert_eq!(status.unwrap()["state"], "open");
    assert!(begun.elapsed() >= Duration::from_millis(50));
    for (unknown, named) in [
        ("r2", "there is no request r2"),
        ("x", "`requestId` must be"),
        ("r", "`requestId` must be"),
        ("r99999999999999999999999", "`requestId` must be"),
    ] {
        for method in [Method::RequestStatus, Method::Answer] {
            let mut params = json!({"requestId": unknown});
            if method == Method::Answer {
                params["text"] = json!("yes");
            }
            let id = client.send(method.name(), params).await;
            let error = client.answer(id).await["error"].clone();
            assert_eq!(error["data"]["code"], "bad_params", "{method} {unknown}");
            let message = error["message"].as_str().unwrap();
            assert!(message.contains(named), "{method}: {message}");
        }
    }
}

#[tokio::test]
async fn open_requests_are_bounded_and_blank_ones_refused() {
    let harness = Harness::start().await;
    let mut client = harness.connect().await;
    for reason in [" ".to_owned(), "x".repeat(8001)] {
        let asked = client
            .call(Method::RequestHuman, json!({"reason": reason}))
            .await;
        assert_eq!(asked, Err("bad_params".into()));
    }
    for n in 1..=64 {
        assert_eq!(
            ask(&mut client, None).await.unwrap()["requestId"],
            format!("r{n}")
        );
    }
    assert_eq!(ask(&mut client, None).await, Err("queue_full".into()));
    harness.requests.cancel(&"d1".into());
    assert_eq!(ask(&mut client, None).await.unwrap()["requestId"], "r65");
}

#[tokio::test]
async fn requests_outlive_their_host() {
    let harness = Harness::start().await;
    let mut client = harness.connect().await;
    ask(&mut client, Some("Train or bus?")).await.unwrap();
    ask(&mut client, None).await.unwrap();
    client
        .call(Method::Answer, json!({"requestId": "r1", "text": "Bus."}))
        .await
        .unwrap();
    harness.requests.taken(&"d1".into());
    harness.store.close().await.unwrap();
    let store = Store::open(harness.dir.path(), Options::new(Mode::Existing)).unwrap();
    let requests = Requests::open(store).await.unwrap();
    // The takeover ended with its host, and nobody has dealt with the request.
    let open = requests.open_requests(None);
    assert_eq!((open.len(), open[0].request_id.as_str()), (1, "r2"));
}
