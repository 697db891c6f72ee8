use handover_protocol::{SteerId, SteerWhen};
use proptest::prelude::*;

use super::*;
use crate::driver::honest::assert_honest;
use crate::driver::{Steer, replay};

#[derive(Clone, Debug)]
enum Step {
    Say(Value),
    Reply(Result<Value, &'static str>),
    Steer { at_end: bool, child: bool },
    Interrupt,
    InterruptChild,
}

fn thread() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![MAIN, "kid", "other"])
}

fn turn() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["t1", "t2", "t3"])
}

fn item() -> impl Strategy<Value = Value> {
    prop_oneof![
        (0..12usize)
            .prop_map(|number| json!({"type": "userMessage", "clientId": format!("s{number}")})),
        prop::sample::select(vec!["m1", "m2"])
            .prop_map(|id| json!({"type": "agentMessage", "id": id, "text": "x"})),
        Just(json!({"type": "reasoning", "id": "r"})),
        Just(json!({"type": "commandExecution", "id": "c", "command": "x"})),
        thread().prop_map(|parent| json!({
            "type": "collabAgentToolCall", "tool": "spawnAgent", "id": "c",
            "senderThreadId": parent, "receiverThreadIds": ["kid"],
        })),
    ]
}

fn said() -> impl Strategy<Value = Value> {
    let status = prop::sample::select(vec!["completed", "interrupted", "failed"]);
    prop_oneof![
        (thread(), turn()).prop_map(|(thread, turn)| json!({
            "method": "turn/started", "params": {"threadId": thread, "turn": {"id": turn}},
        })),
        (thread(), turn(), status).prop_map(|(thread, turn, status)| json!({
            "method": "turn/completed",
            "params": {"threadId": thread, "turn": {"id": turn, "status": status}},
        })),
        (thread(), item(), any::<bool>()).prop_map(|(thread, item, ended)| json!({
            "method": if ended { "item/completed" } else { "item/started" },
            "params": {"threadId": thread, "item": item},
        })),
        Just(json!({"nonsense": true})),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let result = turn()
        .prop_map(|turn| Ok(json!({"turnId": turn, "turn": {"id": turn}, "thread": {"id": MAIN}})));
    let error = prop::sample::select(vec![
        "no active turn to steer",
        "expected active turn id `x` but found `t3`",
        "something else",
    ]);
    prop_oneof![
        8 => said().prop_map(Step::Say),
        6 => prop_oneof![3 => result, 1 => error.prop_map(Err)].prop_map(Step::Reply),
        4 => (any::<bool>(), any::<bool>()).prop_map(|(at_end, child)| Step::Steer { at_end, child }),
        1 => Just(Step::Interrupt),
        1 => Just(Step::InterruptChild),
    ]
}

proptest! {
    /// Whatever codex says, and in whatever order.
    #[test]
    fn receipts_are_honest(from_start in any::<bool>(), steps in prop::collection::vec(step(), 0..60)) {
        let mut stage = if from_start { begun() } else { working() };
        let mut steers: Vec<SteerId> = Vec::new();
        let mut replied = 0;
        for step in steps {
            match step {
                Step::Say(message) => { stage.say(&message); }
                Step::Reply(result) => {
                    let open = stage.written.iter().filter_map(|line| line["id"].as_u64());
                    let Some(id) = open.filter(|id| *id > replied).min() else { continue };
                    replied = id;
                    stage.say(&match result {
                        Ok(result) => json!({"id": id, "result": result}),
                        Err(message) => json!({"id": id, "error": {"message": message}}),
                    });
                }
                Step::Steer { at_end, child } => {
                    let id = format!("s{}", steers.len());
                    steers.push(id.as_str().into());
                    let steer = Steer {
                        when: if at_end { SteerWhen::TurnEnd } else { SteerWhen::NextStep },
                        child: child.then(|| "kid".to_owned()),
                        ..replay::steer(&id, "listen")
                    };
                    stage.act(|driver, out| driver.steer(steer, out));
                }
                Step::Interrupt => { stage.act(|driver, out| driver.interrupt(out)); }
                Step::InterruptChild => {
                    stage.act(|driver, out| { driver.interrupt_child("kid", out); });
                }
            }
        }
        stage.act(|driver, out| driver.ended(false, out));
        assert_honest(&stage.effects, &steers);
    }
}
