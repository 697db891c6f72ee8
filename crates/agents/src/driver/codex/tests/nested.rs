use handover_protocol::SteerWhen;

use super::*;
use crate::driver::Steer;

fn put_child(stage: &mut Stage, child: &str, id: &str, text: &str) -> Vec<Value> {
    let steer = Steer {
        id: id.into(),
        text: text.to_owned(),
        when: SteerWhen::NextStep,
        child: Some(child.to_owned()),
    };
    stage.act(|driver, out| driver.steer(steer, out))
}

fn spawned(stage: &mut Stage, parent: &str, child: &str) {
    let item = json!({
        "type": "collabAgentToolCall", "id": "c", "tool": "spawnAgent", "prompt": "a part",
        "senderThreadId": parent, "receiverThreadIds": [child],
    });
    notice(
        stage,
        "item/completed",
        json!({"threadId": parent, "item": item}),
    );
}

/// A driver whose model has spawned `kid`, in its turn `k1`.
fn with_child() -> Stage {
    let mut stage = working();
    turn_started(&mut stage, "kid", "k1");
    spawned(&mut stage, MAIN, "kid");
    refuse(&mut stage, "thread/read", "no such method");
    stage
}

#[test]
fn the_subagent_of_a_real_run_is_listed_and_steered() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/transcripts/codex-0.171-nested-second-client.jsonl"
    );
    let text = std::fs::read_to_string(path).expect("the transcript");
    let mut stage = begun();
    let mut child = String::new();
    let mut turns = 0;
    for line in text.lines() {
        let line: Value = serde_json::from_str(line).expect("a line");
        let (owner, message) = (line["client"] == "owner", &line["msg"]);
        let method = message["method"].as_str().unwrap_or_default();
        match (line["dir"].as_str(), method) {
            // There the steer came from a second client, and its answer went there.
            (Some("->"), "turn/steer") => {
                let params = &message["params"];
                child = params["threadId"].as_str().expect("a thread").to_owned();
                let id = params["clientUserMessageId"].as_str().expect("an id");
                put_child(&mut stage, &child, id, "STEER-CHILD from human");
                let sent = last(&stage, "turn/steer");
                assert_eq!(sent["params"]["threadId"], params["threadId"]);
                assert_eq!(sent["params"]["expectedTurnId"], params["expectedTurnId"]);
                let turn = json!({"turnId": params["expectedTurnId"]});
                answer(&mut stage, "turn/steer", turn);
            }
            // That client asked what the driver asks, too.
            (Some("<-"), "") if !owner && message["id"] == 4 => {
                answer(&mut stage, "thread/read", message["result"].clone());
            }
            // What its owner did after the first turn is another story.
            (Some("->"), "turn/start") => turns += 1,
            (Some("<-"), _) if owner && turns < 2 => {
                let mut message = message.clone();
                if message.get("id") == Some(&json!(2)) || message.get("id") == Some(&json!(3)) {
                    message["id"] =
                        last(&stage, ["thread/start", "turn/start"][turns])["id"].clone();
                }
                stage.say(&message);
            }
            _ => {}
        }
    }
    assert_eq!(stage.receipts("human-1"), ALL_THE_WAY);
    assert_eq!(stage.tokens(Some(&child)), Some((20, 10)));
    assert!(stage.tokens(None).is_some());
    let listed = stage.children();
    let first = listed.first().expect("a subagent");
    assert_eq!((&first.native, &first.parent), (&child, &None));
    assert_eq!(first.name, "Chandrasekhar");
    assert_eq!(first.task, "do RUN-TOOL in child");
    assert_eq!(first.status, AgentStatus::Running);
    assert_eq!(first.not_steerable, None);
    let end = listed.last().expect("a subagent");
    assert_eq!(end.status, AgentStatus::Done);
    let text = "ACK[STEER-CHILD from human] final answer after steer.";
    assert_eq!(end.text.as_deref(), Some(text));
    assert_eq!(stage.ends().len(), 1);
    assert!(stage.ends()[0].0.starts_with("ACK[STEER-CHILD from human]"));
    let of_child =
        |effect: &&Effect| matches!(effect, Effect::Tool { child: Some(of), .. } if *of == child);
    assert_eq!(stage.effects.iter().filter(of_child).count(), 2);
}

#[test]
fn a_subagent_is_listed_by_the_name_that_the_program_gives_it() {
    let mut stage = working();
    spawned(&mut stage, MAIN, "kid");
    turn_started(&mut stage, "kid", "k1");
    assert_eq!(stage.children(), []);
    assert_eq!(count(&stage, "thread/read"), 1);
    let read = json!({"thread": {
        "id": "kid", "parentThreadId": MAIN, "agentNickname": "Noether", "preview": "ignored",
    }});
    answer(&mut stage, "thread/read", read);
    let listed = stage.children();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].name, "Noether");
    assert_eq!(listed[0].task, "a part");
}

#[test]
fn a_subagent_that_is_done_before_its_name_is_known_is_listed_all_the_same() {
    let mut stage = working();
    turn_started(&mut stage, "kid", "k1");
    turn_completed(&mut stage, "kid", "k1", "completed");
    spawned(&mut stage, MAIN, "kid");
    refuse(&mut stage, "thread/read", "no such method");
    let told: Vec<_> = stage.children().iter().map(|child| child.status).collect();
    assert_eq!(told, [AgentStatus::Running, AgentStatus::Done]);
    assert_eq!(stage.children()[0].name, "subagent");
}

#[test]
fn a_grandchild_has_its_parent() {
    let mut stage = with_child();
    turn_started(&mut stage, "grandkid", "g1");
    let read = json!({"thread": {"id": "grandkid", "parentThreadId": "kid"}});
    answer(&mut stage, "thread/read", read);
    let child = stage.children().pop().expect("listed");
    assert_eq!(child.native, "grandkid");
    assert_eq!(child.parent.as_deref(), Some("kid"));
}

#[test]
fn the_turn_has_not_ended_while_a_subagent_works() {
    let mut stage = with_child();
    said(&mut stage, MAIN, "m", "it works on it");
    turn_completed(&mut stage, MAIN, "t1", "completed");
    assert_eq!(stage.ends(), []);
    turn_completed(&mut stage, "kid", "k1", "completed");
    assert_eq!(stage.ends(), [("it works on it".to_owned(), None)]);
}

#[test]
fn a_thread_of_somebody_else_is_passed_over() {
    let mut stage = working();
    turn_started(&mut stage, "other", "o1");
    answer(
        &mut stage,
        "thread/read",
        json!({"thread": {"id": "other", "parentThreadId": null}}),
    );
    said(&mut stage, "other", "m", "nothing to do with it");
    said(&mut stage, MAIN, "m", "done");
    turn_completed(&mut stage, MAIN, "t1", "completed");
    assert_eq!(stage.children(), []);
    assert_eq!(stage.text(), "done");
    assert_eq!(stage.ends().len(), 1);
}

#[test]
fn a_subagent_is_interrupted_with_all_below_it_and_nothing_else() {
    let mut stage = with_child();
    turn_started(&mut stage, "grandkid", "g1");
    spawned(&mut stage, "kid", "grandkid");
    put_child(&mut stage, "kid", "s", "listen");
    let known = stage.act(|driver, out| assert!(driver.interrupt_child("kid", out)));
    let asked: Vec<_> = known.iter().map(|line| &line["params"]["turnId"]).collect();
    assert_eq!(asked, ["k1", "g1"]);
    turn_completed(&mut stage, "grandkid", "g1", "interrupted");
    turn_completed(&mut stage, "kid", "k1", "interrupted");
    // The steer is still on its way and could begin a turn.
    let child = stage.children().pop().expect("listed");
    assert_eq!(child.status, AgentStatus::Running);
    refuse(&mut stage, "turn/steer", "no active turn to steer");
    let child = stage.children().pop().expect("listed");
    assert_eq!(
        (child.native.as_str(), child.status),
        ("kid", AgentStatus::Aborted)
    );
    assert_eq!(count(&stage, "thread/backgroundTerminals/clean"), 2);
    assert_eq!(stage.count(&Effect::Settled), 0);
    stage.act(|driver, out| assert!(!driver.interrupt_child("nobody", out)));
    stage.act(|driver, out| assert!(!driver.interrupt_child(MAIN, out)));
}

#[test]
fn a_subagent_whose_thread_is_closed_has_ended() {
    let mut stage = with_child();
    notice(&mut stage, "thread/closed", json!({"threadId": "kid"}));
    notice(&mut stage, "thread/closed", json!({"threadId": "kid"}));
    let told: Vec<_> = stage.children().iter().map(|child| child.status).collect();
    assert_eq!(told, [AgentStatus::Running, AgentStatus::Aborted]);
    turn_completed(&mut stage, MAIN, "t1", "completed");
    assert_eq!(stage.ends().len(), 1);
}

#[test]
fn parents_in_a_circle_do_no_harm() {
    let mut stage = with_child();
    turn_started(&mut stage, "other", "o1");
    spawned(&mut stage, "kid", "other");
    spawned(&mut stage, "other", "kid");
    let asked = stage.act(|driver, out| assert!(driver.interrupt_child("kid", out)));
    assert_eq!(asked.len(), 2);
}

#[test]
fn a_steer_to_nobody_is_dropped() {
    let mut stage = working();
    put_child(&mut stage, "nobody", "s", "listen");
    assert_eq!(stage.receipts("s"), [SteerState::Dropped]);
}

#[test]
fn an_interrupt_ends_subagents_too() {
    let mut stage = with_child();
    stage.act(|driver, out| driver.interrupt(out));
    assert_eq!(count(&stage, "turn/interrupt"), 2);
    turn_completed(&mut stage, "kid", "k1", "interrupted");
    answer(&mut stage, "thread/backgroundTerminals/clean", json!({}));
    assert_eq!(stage.count(&Effect::Settled), 0);
    turn_completed(&mut stage, MAIN, "t1", "interrupted");
    refuse(
        &mut stage,
        "thread/backgroundTerminals/clean",
        "no such method",
    );
    assert_eq!(stage.count(&Effect::Settled), 1);
    assert_eq!(stage.ends(), []);
}
