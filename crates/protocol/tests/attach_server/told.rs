//! What followers are told.

use handover_protocol::{ActAs, Event, Gap, SubscribeParams, SubscribeResult};

use super::*;

async fn next(news: &mut Notifications) -> handover_protocol::client::Notification {
    let next = tokio::time::timeout(PATIENCE, news.recv());
    next.await.expect("news").expect("the connection is open")
}

async fn event(news: &mut Notifications) -> Event {
    let said = next(news).await;
    assert_eq!(said.method, "event");
    serde_json::from_value(said.params).unwrap()
}

async fn subscribe(client: &Client, params: SubscribeParams) -> u64 {
    let begun: SubscribeResult = client
        .call(Method::Subscribe, &params, ANSWER)
        .await
        .unwrap();
    begun.cursor
}

#[tokio::test]
async fn every_event_comes_once_in_order_and_can_be_gone_on_from() {
    let served = Served::new().await;
    let events = served.server.events();
    let (one, other): (AgentId, AgentId) = ("a0".into(), "a1".into());
    events.agent_spawned(&one, "noted", "one", None);
    events.agent_text(&one, &"漢".repeat(3000));
    let (client, mut news) = served.client().await;
    let params = SubscribeParams {
        since: Some(0),
        ..SubscribeParams::default()
    };
    assert_eq!(subscribe(&client, params).await, 0);
    events.steer(&other, &"s1".into(), SteerState::Dropped, Some("too late"));
    events.agent_tool(&other, "read", "start", None);
    let spawned = event(&mut news).await;
    assert_eq!((spawned.seq, spawned.kind.as_str()), (1, "agent_spawned"));
    let mut text = String::new();
    for _ in 0..3 {
        let said = event(&mut news).await;
        let piece = said.fields["text"].as_str().unwrap();
        assert!(piece.len() <= 4096);
        text.push_str(piece);
    }
    assert_eq!(text, "漢".repeat(3000));
    let dropped = event(&mut news).await;
    assert_eq!(dropped.fields["reason"], "too late");
    assert_eq!(event(&mut news).await.seq, 6);

    let (client, mut news) = served.client().await;
    let params = SubscribeParams {
        since: Some(2),
        kinds: Some(vec!["agent_tool".into(), "agent_text".into()]),
        agent: Some(other.clone()),
    };
    subscribe(&client, params).await;
    assert_eq!(event(&mut news).await.seq, 6);
    // A later subscription takes the place of the earlier one; of one that is ahead, nothing is lost.
    let params = SubscribeParams {
        since: Some(1 << 40),
        ..SubscribeParams::default()
    };
    assert_eq!(subscribe(&client, params).await, 6);
    events.agent_status(&other, AgentStatus::Failed, Some("no more"));
    let failed = event(&mut news).await;
    assert_eq!(failed.seq, 7);
    assert_eq!(failed.fields["error"], "no more");
    let params = SubscribeParams {
        kinds: Some(vec!["x".into(); 65]),
        ..SubscribeParams::default()
    };
    let refused = client
        .call::<_, SubscribeResult>(Method::Subscribe, &params, ANSWER)
        .await
        .unwrap_err();
    assert_eq!(refused.code(), ErrorCode::BadParams);
}

#[tokio::test]
async fn what_a_person_does_is_announced_and_what_fails_is_not() {
    let served = Served::new().await;
    let (client, mut news) = served.client().await;
    client.hello("by hand", None).await.unwrap();
    subscribe(&client, SubscribeParams::default()).await;
    client
        .call::<_, SteerResult>(Method::Steer, &steer("zz", "nobody"), ANSWER)
        .await
        .unwrap_err();
    client
        .call::<_, SteerResult>(Method::Steer, &steer("a1", "left"), ANSWER)
        .await
        .unwrap();
    let told = event(&mut news).await;
    assert_eq!(told.kind, "human_intervention");
    assert_eq!(told.source, handover_protocol::Source::Human);
    assert_eq!(told.actor.via, "by hand");
    assert_eq!(told.agent, Some("a1".into()));
    let said = |name: &str| told.fields[name].as_str().unwrap();
    assert_eq!(
        [
            said("act"),
            said("text"),
            said("steerId"),
            said("agentType")
        ],
        ["steer", "left", "s1", "noted"]
    );
    client.hello("a program", Some(ActAs::Agent)).await.unwrap();
    client
        .call::<_, SteerResult>(Method::Steer, &steer("a1", "right"), ANSWER)
        .await
        .unwrap();
    let (person, _) = served.client().await;
    let id = AbortParams { id: "a1".into() };
    person
        .call::<_, AbortResult>(Method::Abort, &id, ANSWER)
        .await
        .unwrap();
    let told = event(&mut news).await;
    assert_eq!(told.fields["act"], "abort", "agents are not announced");
}

#[tokio::test]
async fn a_slow_reader_is_told_what_it_missed() {
    let served = Served::new().await;
    let events = served.server.events();
    let (client, mut news) = served.client().await;
    subscribe(&client, SubscribeParams::default()).await;
    let id: AgentId = "a0".into();
    let mut told = 0;
    for _ in 0..200 {
        // Nothing is read meanwhile: more than is kept, in the sockets and everywhere.
        for _ in 0..100 {
            events.agent_text(&id, &"x".repeat(1000));
            told += 1;
        }
        tokio::task::yield_now().await;
    }
    let (mut seen, mut gaps) = (0, 0);
    while seen < told {
        let said = next(&mut news).await;
        if said.method == "gap" {
            let gap: Gap = serde_json::from_value(said.params).unwrap();
            assert_eq!(gap.from, seen + 1);
            seen = gap.to;
            gaps += 1;
        } else {
            assert_eq!(said.params["seq"], seen + 1);
            seen += 1;
        }
    }
    assert_eq!(seen, told);
    assert!(gaps > 0);
}
