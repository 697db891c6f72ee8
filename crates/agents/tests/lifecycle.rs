//! From the queue to the result.

mod support;

use handover_agents::By;
use handover_protocol::{AbortParams, AgentId, AgentStatus, ErrorCode, SpawnParams};
use serde_json::json;
use support::{
    World, agent, appears, command, eventually, manager, person, result, shell, stands, toy,
};

#[tokio::test]
async fn a_command_reads_its_prompt_and_its_output_is_the_result() {
    let world = World::new();
    let manager = manager(&world, 4).await;
    let params = SpawnParams {
        prompt: "two\nlines".into(),
        ..command(&["tr", "a-z", "A-Z"])
    };
    let id = manager.spawn(&person(), params).await.unwrap().id;
    stands(&manager, &id, AgentStatus::Done).await;
    let found = result(&manager, &id).await;
    assert_eq!((found.text.as_str(), found.error), ("TWO\nLINES", None));
    assert!(found.finished_at.is_some());
    let output = std::fs::read(world.dir().join(format!("{id}.out"))).unwrap();
    assert_eq!(output, b"TWO\nLINES");
    assert_eq!(
        world.fields("agent_status", &id, "status"),
        ["queued", "starting", "running", "done"]
    );
    assert_eq!(world.fields("agent_text", &id, "text"), ["TWO\nLINES"]);
    let view = &manager.list()[0];
    assert_eq!(
        (view.name.as_str(), view.task.as_str()),
        ("tr", "two lines")
    );
}

#[tokio::test]
async fn a_command_that_fails_says_how_and_what_it_wrote() {
    let world = World::new();
    let manager = manager(&world, 4).await;
    let params = shell("echo part; echo oops >&2; exit 7");
    let id = manager.spawn(&person(), params).await.unwrap().id;
    stands(&manager, &id, AgentStatus::Failed).await;
    let found = result(&manager, &id).await;
    assert_eq!(found.text, "part\n");
    let error = found.error.unwrap();
    assert!(error.contains('7') && error.contains("oops"), "{error}");

    let missing = command(&["/no/such/program"]);
    let id = manager.spawn(&person(), missing).await.unwrap().id;
    stands(&manager, &id, AgentStatus::Failed).await;
    let error = result(&manager, &id).await.error.unwrap();
    assert!(error.contains("/no/such/program"), "{error}");
}

#[tokio::test]
async fn what_is_over_the_limit_waits_its_turn_and_can_be_cancelled() {
    let world = World::new();
    let manager = manager(&world, 1).await;
    let spawn = async |script: &str| manager.spawn(&person(), shell(script)).await.unwrap();
    let first = spawn("until [ -e go ]; do sleep 0.02; done").await;
    let second = spawn("echo second").await;
    let third = spawn("echo third").await;
    assert_eq!(second.status, AgentStatus::Queued);
    let params = AbortParams {
        id: second.id.clone(),
    };
    let aborted = manager.abort(&person(), params).await.unwrap();
    assert_eq!(aborted.status, AgentStatus::CancelledBeforeStart);
    assert_eq!(
        world.fields("agent_status", &second.id, "status"),
        ["queued", "cancelled-before-start"]
    );
    std::fs::write(world.dir().join("go"), "").unwrap();
    stands(&manager, &first.id, AgentStatus::Done).await;
    stands(&manager, &third.id, AgentStatus::Done).await;
    assert_eq!(result(&manager, &second.id).await.text, "");
}

#[tokio::test]
async fn the_queue_is_bounded() {
    let world = World::new();
    let manager = manager(&world, 1).await;
    let sleep = || command(&["sleep", "1000"]);
    for _ in 0..257 {
        manager.spawn(&person(), sleep()).await.unwrap();
    }
    let refusal = manager.spawn(&person(), sleep()).await.unwrap_err();
    assert_eq!(refusal.code, ErrorCode::QueueFull);
    manager.close(&person()).await;
    assert!(manager.list().iter().all(|view| matches!(
        view.status,
        AgentStatus::Aborted | AgentStatus::CancelledBeforeStart
    )));
}

#[tokio::test]
async fn agents_start_agents_below_themselves_within_limits() {
    let world = World::new();
    let manager = manager(&world, 64).await;
    let sleep = || command(&["sleep", "1000"]);
    let top = manager.spawn(&person(), sleep()).await.unwrap().id;
    let mut above = top.clone();
    for depth in 1..=3 {
        let below = manager.spawn(&agent(&above), sleep()).await.unwrap().id;
        let listed = manager.list();
        let view = listed.iter().find(|view| view.id == below).unwrap();
        assert_eq!((view.depth, view.parent.as_ref()), (depth, Some(&above)));
        above = below;
    }
    let deeper = manager.spawn(&agent(&above), sleep()).await.unwrap_err();
    assert_eq!(deeper.code, ErrorCode::QueueFull);
    assert!(deeper.message.contains("deep"), "{}", deeper.message);
    for _ in 1..16 {
        manager.spawn(&agent(&top), sleep()).await.unwrap();
    }
    let more = manager.spawn(&agent(&top), sleep()).await.unwrap_err();
    assert!(more.message.contains("children"), "{}", more.message);

    let stranger = SpawnParams {
        parent: Some(top.clone()),
        ..sleep()
    };
    let refusal = manager.spawn(&agent(&above), stranger).await.unwrap_err();
    assert_eq!(refusal.code, ErrorCode::CallerRefused);
    let unknown = By {
        source: handover_protocol::Source::Agent,
        ..person()
    };
    let refusal = manager.spawn(&unknown, sleep()).await.unwrap_err();
    assert_eq!(refusal.code, ErrorCode::CallerRefused);

    let params = AbortParams { id: top.clone() };
    let aborted = manager.abort(&person(), params).await.unwrap();
    assert_eq!(aborted.descendants.len(), 18);
    let all_over = |state: &handover_protocol::AgentState| state.status == AgentStatus::Aborted;
    assert!(aborted.descendants.iter().all(all_over));
    let refusal = manager.spawn(&agent(&top), sleep()).await.unwrap_err();
    assert_eq!(refusal.code, ErrorCode::AgentNotRunning);
}

#[tokio::test]
async fn agents_are_not_started_faster_than_the_rate() {
    let world = World::new();
    let manager = manager(&world, 64).await;
    let top = manager
        .spawn(&person(), command(&["sleep", "1000"]))
        .await
        .unwrap()
        .id;
    let mut refused = None;
    // As many at once as it may have children, so that slow processes do not make it slower than the rate.
    'all: for _ in 0..8 {
        let mut children = Vec::new();
        for _ in 0..16 {
            match manager.spawn(&agent(&top), command(&["true"])).await {
                Err(refusal) if refusal.data.contains_key("retryAfterMs") => {
                    refused = Some(refusal);
                    break 'all;
                }
                Ok(child) => children.push(child.id),
                Err(other) => panic!("{other:?}"),
            }
        }
        for child in children {
            stands(&manager, &child, AgentStatus::Done).await;
        }
    }
    assert_eq!(refused.unwrap().code, ErrorCode::QueueFull);
    manager.close(&person()).await;
}

#[tokio::test]
async fn a_turn_that_ends_while_something_is_awaited_keeps_the_agent() {
    let world = World::new();
    let manager = manager(&world, 4).await;
    world.waits(true);
    let id = manager.spawn(&person(), toy("end")).await.unwrap().id;
    stands(&manager, &id, AgentStatus::Waiting).await;
    assert_eq!(result(&manager, &id).await.text, "after -");
    // The hand-back starts the next turn.
    assert!(manager.tell(&id, "go on"));
    stands(&manager, &id, AgentStatus::Running).await;
    world.waits(false);
    manager.reconsider();
    assert!(manager.tell(&id, "end"));
    stands(&manager, &id, AgentStatus::Done).await;
    assert!(result(&manager, &id).await.text.starts_with("after st-"));
}

#[tokio::test]
async fn what_is_awaited_no_more_ends_the_agent() {
    let world = World::new();
    let manager = manager(&world, 4).await;
    world.waits(true);
    let id = manager.spawn(&person(), toy("end")).await.unwrap().id;
    stands(&manager, &id, AgentStatus::Waiting).await;
    world.waits(false);
    manager.reconsider();
    stands(&manager, &id, AgentStatus::Done).await;
}

#[tokio::test]
async fn bad_input_names_the_offender() {
    let world = World::new();
    let manager = manager(&world, 4).await;
    let long = "n".repeat(101);
    let cases = [
        ("name", json!({"name": long})),
        ("name", json!({"name": "two\nlines"})),
        ("cwd", json!({"cwd": "relative"})),
        ("cwd", json!({"cwd": "/no/such/directory"})),
        ("display", json!({"display": true})),
        ("args", json!({"args": []})),
        ("args", json!({"args": ["a\0b"]})),
        ("env", json!({"env": {"": "x"}})),
        ("env", json!({"env": {"A=B": "x"}})),
        ("env", json!({"env": {"A": "\0"}})),
    ];
    for (parameter, wrong) in cases {
        let mut params = serde_json::to_value(command(&["true"])).unwrap();
        let wrong = wrong.as_object().unwrap().clone();
        params.as_object_mut().unwrap().extend(wrong);
        let params: SpawnParams = serde_json::from_value(params).unwrap();
        let refusal = manager.spawn(&person(), params).await.unwrap_err();
        assert_eq!(refusal.code, ErrorCode::BadParams);
        assert_eq!(refusal.data["parameter"], parameter, "{refusal:?}");
    }
    let unknown = SpawnParams {
        driver: "emacs".to_owned(),
        ..command(&["true"])
    };
    let refusal = manager.spawn(&person(), unknown).await.unwrap_err();
    assert!(
        refusal.data["drivers"]
            .as_array()
            .unwrap()
            .contains(&json!("command"))
    );
    let refusal = manager
        .result(handover_protocol::ResultParams {
            id: AgentId("nobody".to_owned()),
        })
        .await
        .unwrap_err();
    assert_eq!(refusal.code, ErrorCode::AgentUnknown);
    assert!(manager.list().is_empty());
    assert!(world.told("agent_spawned").is_empty());
}

#[tokio::test]
async fn what_a_dead_host_left_is_interrupted_and_its_receipts_are_closed() {
    let world = World::new();
    let before = manager(&world, 1).await;
    let running = before.spawn(&person(), toy("work")).await.unwrap().id;
    let queued = before.spawn(&person(), toy("later")).await.unwrap().id;
    stands(&before, &running, AgentStatus::Running).await;
    let key = |steer: &str| format!("steer/{running}/{steer}");
    world.put(&key("s1"), json!({"state": "accepted"}));
    world.put(&key("s2"), json!({"state": "inserted"}));
    world.put(&key("s3"), json!({"state": "answered"}));

    let next = world.after_a_crash();
    let after = manager(&next, 1).await;
    for id in [&running, &queued] {
        stands(&after, id, AgentStatus::Interrupted).await;
        assert!(result(&after, id).await.error.is_some());
    }
    let state = |steer: &str| next.get(&key(steer)).unwrap()["state"].clone();
    assert_eq!(
        [state("s1"), state("s2"), state("s3")],
        ["dropped", "unknown", "answered"]
    );
    // The names go on from where they were.
    let third = after.spawn(&person(), command(&["true"])).await.unwrap().id;
    assert_eq!(after.list().last().unwrap().id, third);
    before.close(&person()).await;
}

#[tokio::test]
async fn a_full_disk_refuses_new_agents_and_ends_running_ones() {
    let world = World::new();
    let manager = manager(&world, 4).await;
    let id = manager.spawn(&person(), toy("work")).await.unwrap().id;
    stands(&manager, &id, AgentStatus::Running).await;
    world.full(true);
    let refusal = manager.spawn(&person(), toy("more")).await.unwrap_err();
    assert_eq!(refusal.code, ErrorCode::StorageFailed);
    let steered = manager
        .steer(&person(), support::steer(&id, "s1", "hello"))
        .await;
    assert_eq!(steered.unwrap_err().code, ErrorCode::StorageFailed);
    assert_eq!(manager.list().len(), 1);
    let aborted = manager.abort(&person(), AbortParams { id }).await.unwrap();
    assert_eq!(aborted.status, AgentStatus::Aborted);
}

#[tokio::test]
async fn an_abort_reaches_what_ignores_it() {
    let world = World::new();
    let manager = manager(&world, 4).await;
    let deaf = shell("trap '' TERM; touch deaf; while :; do sleep 1; done");
    let id = manager.spawn(&person(), deaf).await.unwrap().id;
    appears(&world.dir().join("deaf")).await;
    let params = AbortParams { id: id.clone() };
    let aborted = manager.abort(&person(), params.clone()).await.unwrap();
    assert_eq!(aborted.status, AgentStatus::Aborted);
    assert_eq!(aborted.survivors, [0u32; 0]);
    let told = world.told("human_intervention");
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].fields["act"], "abort");
    let again = manager.abort(&person(), params).await.unwrap_err();
    assert_eq!(again.code, ErrorCode::AgentNotRunning);
    assert_eq!(again.data["status"], "aborted");
    // A refused act is never announced.
    assert_eq!(world.told("human_intervention").len(), 1);
}

#[tokio::test]
async fn text_without_end_is_bounded_in_the_record() {
    let world = World::new();
    let manager = manager(&world, 4).await;
    let id = manager
        .spawn(&person(), shell("yes | head -c 8000000"))
        .await;
    let id = id.unwrap().id;
    stands(&manager, &id, AgentStatus::Done).await;
    let recorded = world.fields("agent_text", &id, "text");
    assert!(recorded.iter().all(|text| text.len() <= 4096));
    let bytes: usize = recorded.iter().map(String::len).sum();
    assert!(bytes < 7_000_000, "{bytes}");
    let text = result(&manager, &id).await.text;
    assert!(text.len() <= (1 << 20) + 100 && text.ends_with("y\n"));
    let size = std::fs::metadata(world.dir().join(format!("{id}.out")));
    assert_eq!(size.unwrap().len(), 8_000_000);
    eventually("nothing is left", || manager.list().len() == 1).await;
}

#[tokio::test]
async fn what_is_aborted_while_it_waits_never_begins_whoever_ends_meanwhile() {
    let world = World::new();
    let manager = manager(&world, 1).await;
    for round in 0..20 {
        let first = manager
            .spawn(&person(), command(&["true"]))
            .await
            .unwrap()
            .id;
        let script = format!("touch begun{round}; sleep 1000");
        let second = manager.spawn(&person(), shell(&script)).await.unwrap().id;
        let params = AbortParams { id: second.clone() };
        let aborted = manager.abort(&person(), params).await.unwrap();
        stands(&manager, &first, AgentStatus::Done).await;
        let begun = world.fields("agent_status", &second, "status");
        let began = begun.contains(&"starting".to_owned());
        let expected = if began {
            AgentStatus::Aborted
        } else {
            AgentStatus::CancelledBeforeStart
        };
        assert_eq!(aborted.status, expected, "{begun:?}");
        assert!(began || !world.dir().join(format!("begun{round}")).exists());
    }
}

#[tokio::test]
async fn a_turn_that_comes_while_the_disk_is_full_waits_for_the_disk() {
    let world = World::new();
    let manager = manager(&world, 1).await;
    let first = manager
        .spawn(&person(), shell("until [ -e go ]; do sleep 0.02; done"))
        .await
        .unwrap()
        .id;
    let second = manager.spawn(&person(), command(&["true"])).await.unwrap();
    world.full(true);
    std::fs::write(world.dir().join("go"), "").unwrap();
    stands(&manager, &first, AgentStatus::Done).await;
    assert_eq!(manager.status(&second.id), Some(AgentStatus::Queued));
    world.full(false);
    stands(&manager, &second.id, AgentStatus::Done).await;
}
