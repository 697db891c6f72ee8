//! Steers, their receipts, and what people and parents are told.

mod support;

use handover_agents::Manager;
use handover_protocol::{AbortParams, AgentId, AgentStatus, ErrorCode, SteerParams, SteerState};
use support::{
    World, agent, command, eventually, manager, person, result, stands, steer, steer_until, toy,
};

async fn running(manager: &Manager) -> AgentId {
    let id = manager.spawn(&person(), toy("work")).await.unwrap().id;
    stands(manager, &id, AgentStatus::Running).await;
    id
}

#[tokio::test]
async fn a_receipt_moves_forward_once_and_the_intervention_is_written_once() {
    let world = World::new();
    let manager = manager(&world, 4).await;
    let id = running(&manager).await;
    let told = steer_until(
        &manager,
        steer(&id, "s1", "look left"),
        SteerState::Answered,
    )
    .await;
    assert_eq!(told.unwrap().state, SteerState::Answered);
    assert_eq!(
        world.steps(&id, "s1"),
        ["accepted", "handed", "inserted", "answered"]
    );
    let told = world.told("human_intervention");
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].fields["text"], "look left");
    assert_eq!(told[0].fields["act"], "steer");
    assert_eq!(told[0].fields["agentType"], "toy");
    assert_eq!(told[0].by, Some(person()));
    // The same name again is the same message.
    let again = manager
        .steer(&person(), steer(&id, "s1", "look right"))
        .await;
    assert_eq!(again.unwrap().state, SteerState::Answered);
    assert_eq!(world.told("human_intervention").len(), 1);
    manager.close(&person()).await;
    // Also after the agent's end.
    let again = manager
        .steer(&person(), steer(&id, "s1", "look right"))
        .await;
    assert_eq!(again.unwrap().state, SteerState::Answered);
    let other = manager.steer(&person(), steer(&id, "s2", "hello")).await;
    let refusal = other.unwrap_err();
    assert_eq!(refusal.code, ErrorCode::AgentNotRunning);
    assert_eq!(refusal.data["status"], "aborted");
    assert_eq!(
        world.told("human_intervention").len(),
        2,
        "s1 and the abort"
    );
}

#[tokio::test]
async fn a_hundred_at_once_arrive_in_the_order_of_their_acceptance() {
    let world = World::new();
    let manager = manager(&world, 4).await;
    let id = running(&manager).await;
    let mut all = tokio::task::JoinSet::new();
    for n in 0..100 {
        let (manager, params) = (
            manager.clone(),
            steer(&id, &format!("s{n}"), &format!("n{n}")),
        );
        all.spawn(async move { steer_until(&manager, params, SteerState::Answered).await });
    }
    for told in all.join_all().await {
        assert_eq!(told.unwrap().state, SteerState::Answered);
    }
    let accepted: Vec<String> = world
        .told("human_intervention")
        .iter()
        .map(|entry| entry.fields["text"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(accepted.len(), 100);
    manager.close(&person()).await;
    let said = world.fields("agent_text", &id, "text").concat();
    let said: Vec<&str> = said.lines().skip(1).collect();
    assert_eq!(said, accepted);
}

#[tokio::test]
async fn what_a_crash_overtakes_is_unknown_or_dropped_and_never_more() {
    let world = World::new();
    let manager = manager(&world, 4).await;
    let id = running(&manager).await;
    let dies = steer_until(&manager, steer(&id, "s1", "die"), SteerState::Answered).await;
    assert_eq!(dies.unwrap().state, SteerState::Unknown);
    stands(&manager, &id, AgentStatus::Failed).await;
    let error = result(&manager, &id).await.error.unwrap();
    assert!(error.contains('3'), "{error}");
    assert_eq!(world.steps(&id, "s1"), ["accepted", "handed", "unknown"]);
}

#[tokio::test]
async fn nothing_is_steered_into_what_is_queued_ended_unknown_or_deaf() {
    let world = World::new();
    let manager = manager(&world, 1).await;
    let deaf = manager
        .spawn(&person(), command(&["sleep", "1000"]))
        .await
        .unwrap()
        .id;
    let queued = manager.spawn(&person(), toy("work")).await.unwrap().id;
    stands(&manager, &deaf, AgentStatus::Running).await;
    let cases = [
        (&deaf, ErrorCode::NotSteerable),
        (&queued, ErrorCode::AgentNotRunning),
        (&AgentId("nobody".to_owned()), ErrorCode::AgentUnknown),
    ];
    for (id, code) in cases {
        let refusal = manager.steer(&person(), steer(id, "s1", "hello")).await;
        assert_eq!(refusal.unwrap_err().code, code);
    }
    let late = SteerParams {
        when: Some(handover_protocol::SteerWhen::Now),
        ..steer(&queued, "s1", "hello")
    };
    manager
        .abort(&person(), AbortParams { id: deaf })
        .await
        .unwrap();
    stands(&manager, &queued, AgentStatus::Running).await;
    let refusal = manager.steer(&person(), late).await.unwrap_err();
    assert_eq!(refusal.data["parameter"], "when");
    for (wrong, parameter) in [
        (steer(&queued, "s 1", "hello"), "steerId"),
        (steer(&queued, "", "hello"), "steerId"),
        (steer(&queued, "s1", " \n"), "text"),
        (steer(&queued, "s1", &"x".repeat((512 << 10) + 1)), "text"),
    ] {
        let refusal = manager.steer(&person(), wrong).await.unwrap_err();
        assert_eq!(refusal.data["parameter"], parameter);
    }
    // Only the abort was one.
    assert_eq!(world.told("human_intervention").len(), 1);
    manager.close(&person()).await;
}

#[tokio::test]
async fn what_waits_for_one_agent_is_bounded_in_bytes_too() {
    let world = World::new();
    let manager = manager(&world, 4).await;
    let id = running(&manager).await;
    let longest = "x".repeat(512 << 10);
    let send =
        async |name: &str, text: &str| manager.steer(&person(), steer(&id, name, text)).await;
    send("s0", "stall").await.unwrap();
    for n in 1..8 {
        send(&format!("s{n}"), &longest).await.unwrap();
    }
    let refusal = send("s8", &longest).await.unwrap_err();
    assert_eq!(refusal.code, ErrorCode::QueueFull);
    // It was not accepted, so the same name may come again; what has room is taken.
    send("s8", "short").await.unwrap();
    assert_eq!(world.told("human_intervention").len(), 9);
    manager.close(&person()).await;
}

#[tokio::test]
async fn while_the_program_asks_for_permission_nothing_is_steered_into_it() {
    let world = World::new();
    let manager = manager(&world, 4).await;
    let id = running(&manager).await;
    manager
        .steer(&person(), steer(&id, "s1", "ask"))
        .await
        .unwrap();
    stands(&manager, &id, AgentStatus::Waiting).await;
    let refusal = manager
        .steer(&person(), steer(&id, "s2", "hello"))
        .await
        .unwrap_err();
    assert_eq!(refusal.code, ErrorCode::NotSteerable);
    assert_eq!(refusal.data["requestId"], "r1");
    assert_eq!(world.questions(), ["May I?"]);
    world.answer("yes");
    stands(&manager, &id, AgentStatus::Running).await;
    let said = || world.fields("agent_text", &id, "text").concat();
    eventually("the program learns of the answer", || {
        said().contains("true")
    })
    .await;
    steer_until(&manager, steer(&id, "s2", "hello"), SteerState::Answered)
        .await
        .unwrap();

    manager
        .steer(&person(), steer(&id, "s3", "ask"))
        .await
        .unwrap();
    stands(&manager, &id, AgentStatus::Waiting).await;
    manager.abort(&person(), AbortParams { id }).await.unwrap();
    eventually("the question is withdrawn", || world.questions().is_empty()).await;
}

#[tokio::test]
async fn an_abort_takes_back_what_was_not_handed_over() {
    let world = World::new();
    let manager = manager(&world, 4).await;
    let id = running(&manager).await;
    let mut steers = tokio::task::JoinSet::new();
    for n in 0..50 {
        let (manager, params) = (manager.clone(), steer(&id, &format!("s{n}"), "hello"));
        steers.spawn(async move { steer_until(&manager, params, SteerState::Answered).await });
    }
    let aborted = manager
        .abort(&person(), AbortParams { id: id.clone() })
        .await
        .unwrap();
    assert_eq!(aborted.status, AgentStatus::Aborted);
    for told in steers.join_all().await.into_iter().flatten() {
        let steps = world.steps(&id, told.steer_id.as_str());
        let handed = steps.contains(&"handed".to_owned());
        match told.state {
            SteerState::Dropped => assert!(!handed, "{steps:?}"),
            SteerState::Unknown | SteerState::Answered => assert!(handed, "{steps:?}"),
            other => panic!("{other:?} is no end: {steps:?}"),
        }
    }
}

#[tokio::test]
async fn a_programs_own_subagent_is_listed_and_steered_as_itself() {
    let world = World::new();
    let manager = manager(&world, 4).await;
    let id = running(&manager).await;
    manager
        .steer(&person(), steer(&id, "s1", "child"))
        .await
        .unwrap();
    eventually("the child is listed", || manager.list().len() == 2).await;
    let child = manager.list()[1].clone();
    assert_eq!((child.parent.as_ref(), child.depth), (Some(&id), 1));
    assert_eq!((child.name.as_str(), child.output_file), ("helper", None));
    let told = steer_until(&manager, steer(&child.id, "s2", "hi"), SteerState::Answered).await;
    assert_eq!(told.unwrap().state, SteerState::Answered);
    assert!(world.steps(&id, "s2").is_empty());
    assert!(manager.is_below(&child.id, &id));
    let params = AbortParams {
        id: child.id.clone(),
    };
    let aborted = manager.abort(&person(), params).await.unwrap();
    assert_eq!(aborted.status, AgentStatus::Aborted);
    assert_eq!(manager.status(&id), Some(AgentStatus::Running));
    assert_eq!(result(&manager, &child.id).await.text, "helped");
    manager.close(&person()).await;
}

#[tokio::test]
async fn a_parent_is_told_what_people_did_to_its_child() {
    let world = World::new();
    let manager = manager(&world, 4).await;
    let parent = running(&manager).await;
    let child = manager
        .spawn(&agent(&parent), toy("work"))
        .await
        .unwrap()
        .id;
    stands(&manager, &child, AgentStatus::Running).await;
    steer_until(
        &manager,
        steer(&child, "s1", "turn around"),
        SteerState::Answered,
    )
    .await
    .unwrap();
    let said = || world.fields("agent_text", &parent, "text").concat();
    eventually("the parent is told", || said().contains("turn around")).await;
    assert!(said().contains(child.as_str()));
    // A parent's own message is no person's.
    manager
        .steer(&agent(&parent), steer(&child, "s2", "faster"))
        .await
        .unwrap();
    assert_eq!(world.told("human_intervention").len(), 1);
    manager
        .abort(&person(), AbortParams { id: child })
        .await
        .unwrap();
    eventually("the parent is told of the end", || {
        said().contains("ended it")
    })
    .await;
    manager.close(&person()).await;
}

#[tokio::test]
async fn those_that_use_a_desktop_are_told_together() {
    let world = World::new();
    let manager = manager(&world, 4).await;
    let given = handover_protocol::SpawnParams {
        desktop: Some("d1".into()),
        ..toy("work")
    };
    let given = manager.spawn(&person(), given).await.unwrap().id;
    let (acted, other) = (running(&manager).await, running(&manager).await);
    stands(&manager, &given, AgentStatus::Running).await;
    manager.uses(&acted, &"d1".into());
    manager.tell_users(&"d1".into(), "control is back");
    for id in [&given, &acted] {
        let said = || world.fields("agent_text", id, "text").concat();
        eventually("both are told", || said().contains("control is back")).await;
    }
    assert!(
        !world
            .fields("agent_text", &other, "text")
            .concat()
            .contains("control")
    );
    let unknown = handover_protocol::SpawnParams {
        desktop: Some("d9".into()),
        ..toy("work")
    };
    let refusal = manager.spawn(&person(), unknown).await.unwrap_err();
    assert_eq!(refusal.code, ErrorCode::DesktopUnknown);
    manager.close(&person()).await;
}

#[tokio::test]
async fn a_steer_that_memory_has_forgotten_is_still_the_same_steer() {
    let world = World::new();
    let manager = manager(&world, 4).await;
    let id = running(&manager).await;
    for n in 0..300 {
        let params = steer(&id, &format!("s{n}"), "hello");
        steer_until(&manager, params, SteerState::Answered)
            .await
            .unwrap();
    }
    let again = manager.steer(&person(), steer(&id, "s0", "hello")).await;
    assert_eq!(again.unwrap().state, SteerState::Answered);
    assert_eq!(world.told("human_intervention").len(), 300);
    assert_eq!(world.steps(&id, "s0").len(), 4);
    manager.close(&person()).await;
}

#[tokio::test]
async fn one_program_has_no_two_messages_of_one_name_under_way() {
    let world = World::new();
    let manager = manager(&world, 4).await;
    let id = running(&manager).await;
    manager
        .steer(&person(), steer(&id, "s1", "child"))
        .await
        .unwrap();
    eventually("the child is listed", || manager.list().len() == 2).await;
    let child = manager.list()[1].id.clone();
    let refusal = manager.steer(&person(), steer(&child, "s1", "hi")).await;
    assert_eq!(refusal.unwrap_err().data["parameter"], "steerId");
    manager.close(&person()).await;
}
