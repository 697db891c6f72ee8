//! What is appended is there, in order, for every kind of reader.

use handover_store::{
    GENESIS, LiveItem, MAX_PAGE, Mode, NewEvent, Options, Put, Query, Recorded, Source, Store,
    StoreError,
};
use serde_json::json;

fn create() -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), Options::new(Mode::Create)).unwrap();
    (dir, store)
}

fn click(x: u64) -> NewEvent {
    NewEvent::new("desktop_click", Source::Agent)
        .desktop("d1")
        .field("x", x)
}

#[tokio::test]
async fn events_are_numbered_in_the_order_of_the_calls() {
    let (_dir, store) = create();
    assert_eq!(store.head(), GENESIS);
    // Made in one order and awaited in the other.
    let first = store.append(click(1));
    let second = store.append_spooled(click(2));
    store.append_soon(click(3));
    let fourth = store.append(click(4)).await.unwrap();
    assert!(matches!(second.await, Recorded::Stored(stored) if stored.seq == 2));
    assert_eq!(first.await.unwrap().seq, 1);
    assert_eq!(fourth.seq, 4);
    assert_eq!(fourth.hash, store.head());

    let page = store.events(Query::default()).await.unwrap();
    let xs: Vec<_> = page
        .events
        .iter()
        .map(|event| event.to_map()["x"].clone())
        .collect();
    assert_eq!(xs, [json!(1), json!(2), json!(3), json!(4)]);
    assert_eq!((page.next, page.more, page.head), (4, false, store.head()));
}

#[tokio::test]
async fn several_events_and_projections_are_kept_together_or_not_at_all() {
    let (_dir, store) = create();
    let steer = |n: u64| {
        NewEvent::new("steer", Source::Human)
            .agent("a1")
            .field("n", n)
    };
    let puts = vec![Put::set("steer/s1", "accepted"), Put::set("agent/a1", 1)];
    let stored = store
        .append_all(vec![steer(1), steer(2)], puts)
        .await
        .unwrap();
    assert_eq!(
        stored.iter().map(|stored| stored.seq).collect::<Vec<_>>(),
        [1, 2]
    );
    assert_eq!(stored[1].hash, store.head());

    let huge = NewEvent::new("steer", Source::Human).field("text", "x".repeat(2 << 20));
    let refused = store.append_all(vec![steer(3), huge.clone()], vec![Put::set("steer/s2", 1)]);
    assert!(matches!(
        refused.await,
        Err(StoreError::EventTooLarge { .. })
    ));
    assert_eq!(store.get("steer/s2").await.unwrap(), None);
    assert_eq!(store.last_seq(), 2);

    // What must not be refused is shortened instead.
    let puts = vec![Put::delete("steer/s1"), Put::set("steer/s2", "handed")];
    let kept = store.append_all_spooled(vec![steer(3), huge], puts).await;
    assert!(matches!(kept, Recorded::Stored(stored) if stored.len() == 2));
    store.append_all_soon(vec![steer(5), steer(6)], vec![Put::set("steer/s3", 1)]);
    let only_puts = store.append_all_spooled(Vec::new(), vec![Put::set("agent/a1", 2)]);
    assert_eq!(only_puts.await, Recorded::Stored(Vec::new()));
    assert_eq!(store.last_seq(), 6);
    let keys: Vec<_> = store.list("").await.unwrap();
    let expected = [
        ("agent/a1", json!(2)),
        ("steer/s2", json!("handed")),
        ("steer/s3", json!(1)),
    ];
    assert_eq!(keys, expected.map(|(key, value)| (key.to_owned(), value)));
    assert!(store.verify(Some(&store.head())).await.unwrap().ok);
}

#[tokio::test]
async fn a_row_is_flat_and_reserved_names_cannot_be_forged() {
    let (_dir, store) = create();
    let event = NewEvent::new("desktop_type", Source::Agent)
        .actor(handover_store::Actor {
            uid: 7,
            pid: 8,
            agent: Some("a1".into()),
            via: "mcp".into(),
            evidence: None,
        })
        .desktop("d1")
        .epoch(3)
        .field("chars", 12)
        .field("source", "human")
        .field("seq", 99);
    let stored = store.append(event).await.unwrap();
    let page = store.events(Query::default()).await.unwrap();
    let expected = json!({
        "seq": 1, "at": stored.at, "kind": "desktop_type", "source": "agent", "uid": 7, "pid": 8,
        "actor": {"uid": 7, "pid": 8, "agent": "a1", "via": "mcp"},
        "desktop": "d1", "epoch": 3, "chars": 12,
    });
    assert_eq!(serde_json::Value::Object(page.events[0].to_map()), expected);
    // What the store writes is what the wire sends, for events without a known actor too.
    store.append(click(1)).await.unwrap();
    let page = store.events(Query::default()).await.unwrap();
    for event in &page.events {
        let wire = event.to_wire().unwrap();
        assert_eq!(serde_json::to_value(&wire).unwrap(), json!(event.to_map()));
    }
    assert_eq!(page.events[1].to_wire().unwrap().actor.via, "host");
}

#[tokio::test]
async fn pages_are_bounded_filtered_and_continue() {
    let (_dir, store) = create();
    for n in 0..30 {
        let event = if n % 3 == 0 {
            NewEvent::new("steer", Source::Human).agent("a1")
        } else {
            click(n)
        };
        store.append_soon(event);
    }
    store.append(click(99)).await.unwrap();

    let mut since = 0;
    let mut seen = Vec::new();
    loop {
        let query = Query {
            since,
            limit: 4,
            kinds: vec!["steer".into()],
            agent: None,
        };
        let page = store.events(query).await.unwrap();
        seen.extend(page.events.iter().map(|event| event.seq));
        since = page.next;
        if !page.more {
            break;
        }
        assert_eq!(page.events.len(), 4);
    }
    assert_eq!(seen, (0..10).map(|n| n * 3 + 1).collect::<Vec<_>>());
    assert_eq!(since, 31);
    let of_agent = Query {
        agent: Some("a1".into()),
        limit: usize::MAX,
        ..Query::default()
    };
    assert_eq!(store.events(of_agent).await.unwrap().events.len(), 10);
    assert_eq!(MAX_PAGE, 10_000);
}

#[tokio::test]
async fn projections_change_with_their_event() {
    let (dir, store) = create();
    let puts = vec![
        Put::set("control/d1", json!({"control": "human"})),
        Put::set("task/1", 1),
    ];
    store.append_with(click(1), puts).await.unwrap();
    store.put("control/d%", 2).await.unwrap();
    assert_eq!(
        store.get("control/d1").await.unwrap(),
        Some(json!({"control": "human"}))
    );
    let keys: Vec<_> = store
        .list("control/")
        .await
        .unwrap()
        .into_iter()
        .map(|(key, _)| key)
        .collect();
    assert_eq!(keys, ["control/d%", "control/d1"]);
    for (after, limit, expected) in [("", 1, "control/d%"), ("control/d%", 9, "control/d1")] {
        let page = store.list_page("control/", after, limit).await.unwrap();
        assert_eq!((page.len(), page[0].0.as_str()), (1, expected));
    }
    store.delete("control/d%").await.unwrap();
    store.close().await.unwrap();

    let store = Store::open(dir.path(), Options::new(Mode::Existing)).unwrap();
    assert_eq!(store.list("").await.unwrap().len(), 2);
    assert_eq!(store.append(click(2)).await.unwrap().seq, 2);
}

#[tokio::test]
async fn a_subscriber_sees_everything_or_is_told_what_it_missed() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options {
        live: 4,
        ..Options::new(Mode::Create)
    };
    let store = Store::open(dir.path(), options).unwrap();
    store.append(click(0)).await.unwrap();
    let mut live = store.subscribe();
    assert_eq!(live.cursor(), 1);
    store.append(click(1)).await.unwrap();
    assert!(matches!(live.next().await, Some(LiveItem::Event(event)) if event.seq == 2));

    for n in 0..20 {
        store.append(click(n)).await.unwrap();
    }
    assert!(matches!(
        live.next().await,
        Some(LiveItem::Gap { from: 3, to: 18 })
    ));
    for seq in 19..=22 {
        assert!(matches!(live.next().await, Some(LiveItem::Event(event)) if event.seq == seq));
    }
    store.close().await.unwrap();
    assert!(live.next().await.is_none());
    assert!(matches!(
        store.append(click(1)).await,
        Err(StoreError::Closed)
    ));
}

#[tokio::test]
async fn subscribers_share_one_line_which_is_the_event_on_the_wire() {
    let (_dir, store) = create();
    let (mut first, mut second) = (store.subscribe(), store.subscribe());
    let event = click(1)
        .desktop("d1")
        .epoch(3)
        .agent("a1")
        .field("text", "line\nbreak \u{1b}\"")
        .field("nested", serde_json::json!({"z": [1.5, null], "a": "é"}));
    store.append(event).await.unwrap();
    let mut lines = Vec::new();
    for live in [&mut first, &mut second] {
        let Some(LiveItem::Event(event)) = live.next().await else {
            panic!("an event was stored");
        };
        lines.push((event.line(), event.to_wire().unwrap()));
    }
    assert!(std::sync::Arc::ptr_eq(&lines[0].0, &lines[1].0));
    let (line, wire) = &lines[0];
    assert_eq!(line.iter().filter(|&&byte| byte == b'\n').count(), 1);
    assert!(line.ends_with(b"\n"));
    let text: serde_json::Value = serde_json::from_slice(line).unwrap();
    let expected = serde_json::json!({"jsonrpc": "2.0", "method": "event", "params": wire});
    assert_eq!(text, expected);
}

#[tokio::test]
async fn an_event_that_is_too_large_is_refused_or_shortened() {
    let (_dir, store) = create();
    let large = || click(1).field("text", "x".repeat(2 << 20));
    assert!(matches!(
        store.append(large()).await,
        Err(StoreError::EventTooLarge { bytes, .. }) if bytes > 2 << 20
    ));
    assert!(matches!(
        store.append_spooled(large()).await,
        Recorded::Stored(_)
    ));
    let page = store.events(Query::default()).await.unwrap();
    let map = page.events[0].to_map();
    assert!(map["truncatedBytes"].as_u64().unwrap() > 2 << 20);
    assert_eq!(
        (map["kind"].as_str(), map["desktop"].as_str()),
        (Some("desktop_click"), Some("d1"))
    );
}

#[tokio::test]
async fn evidence_is_named_by_its_content() {
    let (dir, store) = create();
    let kept = store
        .put_evidence(b"picture".to_vec(), "png")
        .await
        .unwrap();
    assert_eq!(std::fs::read(&kept.path).unwrap(), b"picture");
    assert_eq!(
        kept.path,
        dir.path()
            .join("evidence")
            .join(format!("{}.png", kept.sha256))
    );
    assert_eq!(
        store
            .put_evidence(b"picture".to_vec(), "png")
            .await
            .unwrap(),
        kept
    );
    assert_eq!(
        std::fs::read_dir(dir.path().join("evidence"))
            .unwrap()
            .count(),
        1
    );
    for bad in ["", "../x", "PNG", "toolongext"] {
        assert!(matches!(
            store.put_evidence(Vec::new(), bad).await,
            Err(StoreError::BadExtension { .. })
        ));
    }
}
