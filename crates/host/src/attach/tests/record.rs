//! `journal` and `subscribe`.

use handover_protocol::Method;
use handover_store::{Mode, NewEvent, Options, Source};
use serde_json::{Value, json};

use super::{Client, ConnectionLimits, Harness};

async fn fill(harness: &Harness, count: u64) {
    for n in 0..count {
        let kind = if n % 2 == 0 { "even" } else { "odd" };
        harness
            .store
            .append_soon(NewEvent::new(kind, Source::Host).agent("a1").field("n", n));
    }
    harness.store.put("settled", true).await.unwrap();
}

/// The next notification as its method and number.
async fn news(client: &mut Client) -> (String, u64) {
    let line = client.line().await.unwrap();
    let number = &line["params"]["seq"];
    (
        line["method"].as_str().unwrap().to_owned(),
        number.as_u64().unwrap_or(0),
    )
}

#[tokio::test]
async fn the_journal_pages() {
    let harness = Harness::start().await;
    fill(&harness, 10).await;
    let mut client = harness.connect().await;
    let page = client
        .call(Method::Journal, json!({"limit": 3, "kinds": ["odd"]}))
        .await
        .unwrap();
    let seqs = |page: &Value| -> Vec<u64> {
        page["events"]
            .as_array()
            .unwrap()
            .iter()
            .map(|event| event["seq"].as_u64().unwrap())
            .collect()
    };
    assert_eq!(seqs(&page), [2, 4, 6]);
    let rest = client
        .call(
            Method::Journal,
            json!({"since": page["next"], "kinds": ["odd"]}),
        )
        .await
        .unwrap();
    assert_eq!((seqs(&rest), &rest["next"]), (vec![8, 10], &json!(10)));
    assert_eq!(rest["head"], harness.store.head());
    assert_eq!(rest["events"][0]["n"], 7);
    let all = client
        .call(
            Method::Journal,
            json!({"limit": 50_000, "kinds": ["even", "odd"]}),
        )
        .await
        .unwrap();
    assert_eq!(seqs(&all).len(), 10);
    // Last, since a refusal is an event itself.
    assert_eq!(
        client.call(Method::Journal, json!({"limit": 0})).await,
        Err("bad_params".into())
    );
    for method in [Method::Journal, Method::Subscribe] {
        let kinds = json!({"kinds": vec!["odd"; 65]});
        assert_eq!(client.call(method, kinds).await, Err("bad_params".into()));
    }
}

#[tokio::test]
async fn a_subscription_begins_where_asked_and_goes_on() {
    let harness = Harness::start().await;
    fill(&harness, 1000).await;
    let mut client = harness.connect().await;
    let begun = client
        .call(Method::Subscribe, json!({"since": 500}))
        .await
        .unwrap();
    assert_eq!(begun, json!({"cursor": 500}));
    for seq in 501..=1000 {
        assert_eq!(news(&mut client).await, ("event".into(), seq));
    }
    fill(&harness, 3).await;
    for seq in 1001..=1003 {
        assert_eq!(news(&mut client).await, ("event".into(), seq));
    }
    // Without a place it begins with what is new; a second one replaces the first.
    let begun = client
        .call(Method::Subscribe, json!({"kinds": ["odd"], "agent": "a1"}))
        .await
        .unwrap();
    assert_eq!(begun, json!({"cursor": 1003}));
    fill(&harness, 2).await;
    assert_eq!(news(&mut client).await, ("event".into(), 1005));
    harness
        .store
        .append(NewEvent::new("odd", Source::Host).agent("a2"))
        .await
        .unwrap();
    fill(&harness, 2).await;
    assert_eq!(news(&mut client).await, ("event".into(), 1008));
}

#[tokio::test]
async fn a_slow_reader_is_told_what_it_missed() {
    let options = Options {
        live: 16,
        ..Options::new(Mode::Create)
    };
    let harness = Harness::with(options).await;
    let mut client = harness.connect().await;
    client.call(Method::Subscribe, json!({})).await.unwrap();
    // More than the socket and the queue hold, in steps that a fast reader would follow.
    let pad = "x".repeat(4000);
    let mut last = 0;
    for _ in 0..100 {
        let event = || NewEvent::new("large", Source::Host).field("pad", pad.as_str());
        for _ in 0..9 {
            harness.store.append_soon(event());
        }
        last = harness.store.append(event()).await.unwrap().seq;
    }
    let mut next = 1;
    let mut gaps = 0;
    while next <= last {
        let line = client.line().await.unwrap();
        if line["method"] == "gap" {
            assert_eq!(
                line["params"]["from"], next,
                "a gap begins where the events end"
            );
            next = line["params"]["to"].as_u64().unwrap() + 1;
            gaps += 1;
        } else {
            assert_eq!(line["params"]["seq"], next);
            next += 1;
        }
    }
    assert!(gaps > 0);
    let seq = harness
        .store
        .append(NewEvent::new("after", Source::Host))
        .await
        .unwrap()
        .seq;
    assert_eq!(news(&mut client).await, ("event".into(), seq));
}

#[tokio::test]
async fn a_fast_reader_misses_nothing_however_short_the_memory() {
    let options = Options {
        live: 2,
        ..Options::new(Mode::Create)
    };
    let harness = Harness::with(options).await;
    let mut client = harness.connect().await;
    client.call(Method::Subscribe, json!({})).await.unwrap();
    fill(&harness, 100).await;
    for seq in 1..=100 {
        assert_eq!(news(&mut client).await, ("event".into(), seq));
    }
}

#[tokio::test]
async fn all_that_come_back_at_once_get_everything() {
    // More than the record reads for at once.
    const CLIENTS: usize = 400;
    let limits = ConnectionLimits::within(8 * CLIENTS as u64);
    let harness = Harness::within(Options::new(Mode::Create), limits).await;
    fill(&harness, 20).await;
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        let mut client = harness.connect().await;
        client.send("subscribe", json!({"since": 0})).await;
        clients.push(client);
    }
    for client in &mut clients {
        let begun = client.line().await.unwrap();
        assert_eq!(begun["result"], json!({"cursor": 0}));
        for seq in 1..=20 {
            assert_eq!(news(client).await, ("event".into(), seq));
        }
    }
}
