//! Whatever an agent writes, in any order, each steer has one receipt that only moves forward and ends.

use handover_protocol::SteerId;
use proptest::prelude::*;

use super::*;
use crate::driver::honest::assert_honest;

#[derive(Clone, Debug)]
enum Step {
    Garbage(Vec<u8>),
    Open(bool),
    Answer(u64, Value),
    Refuse(u64, i64),
    Ask(u64),
    Update(Value),
    Steer(&'static str, SteerWhen),
    Decide(u64, bool),
    Interrupt,
}

fn step() -> impl Strategy<Value = Step> {
    let when = vec![SteerWhen::NextStep, SteerWhen::TurnEnd, SteerWhen::Now];
    let results = vec![
        json!({"stopReason": "end_turn"}),
        json!({"stopReason": "cancelled"}),
        json!({"outcome": "injected"}),
        json!({"outcome": "promptRequired"}),
        json!({"outcome": "failed"}),
        json!({"sessionId": "s1"}),
        json!(null),
    ];
    let updates = vec![
        json!({"sessionUpdate": "agent_message_chunk", "content": {"text": "hi"}}),
        json!({"sessionUpdate": "tool_call", "toolCallId": "c", "status": "completed"}),
        json!(3),
    ];
    prop_oneof![
        2 => any::<bool>().prop_map(Step::Open),
        8 => (1..20u64, prop::sample::select(results)).prop_map(|(id, it)| Step::Answer(id, it)),
        2 => (1..20u64, prop::sample::select(vec![-32000, -32601, 1]))
            .prop_map(|(id, code)| Step::Refuse(id, code)),
        1 => (0..4u64).prop_map(Step::Ask),
        1 => prop::sample::select(updates).prop_map(Step::Update),
        5 => (prop::sample::select(vec!["a", "/b"]), prop::sample::select(when))
            .prop_map(|(text, when)| Step::Steer(text, when)),
        1 => (0..4u64, any::<bool>()).prop_map(|(id, allow)| Step::Decide(id, allow)),
        1 => Just(Step::Interrupt),
        1 => prop::collection::vec(any::<u8>(), 0..40).prop_map(Step::Garbage),
    ]
}

fn play(stage: &mut Stage, step: &Step, steers: &mut usize) {
    match step {
        Step::Garbage(bytes) => drop(stage.act(|acp, out| acp.output(bytes, out))),
        Step::Open(steers) => {
            let result = json!({
                "protocolVersion": 1, "_meta": {"steering": {"supported": steers}},
            });
            stage.say(&json!({"id": 1, "result": result}));
            stage.say(&json!({"id": 2, "result": {"sessionId": "s1"}}));
        }
        Step::Answer(id, result) => drop(stage.say(&json!({"id": id, "result": result}))),
        Step::Refuse(id, code) => {
            drop(stage.say(&json!({"id": id, "error": {"code": code, "message": "no"}})));
        }
        Step::Ask(id) => {
            let options = json!([{"optionId": "y", "kind": "allow_once"}]);
            stage.say(&json!({
                "id": id, "method": "session/request_permission", "params": {"options": options},
            }));
        }
        Step::Update(it) => drop(update(stage, it.clone())),
        Step::Steer(text, when) => {
            let id = format!("s{steers}");
            *steers += 1;
            put_when(stage, &id, text, *when);
        }
        Step::Decide(id, allow) => {
            stage.act(|acp, out| acp.decide(&id.to_string(), *allow, out));
        }
        Step::Interrupt => drop(stage.act(|acp, out| acp.interrupt(out))),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]
    #[test]
    fn receipts_move_forward_to_one_end(steps in prop::collection::vec(step(), 0..60)) {
        let mut stage = begin("go");
        let mut steers = 0;
        for step in &steps {
            play(&mut stage, step, &mut steers);
        }
        stage.act(|acp, out| acp.ended(true, out));
        let steers: Vec<SteerId> = (0..steers).map(|i| format!("s{i}").into()).collect();
        assert_honest(&stage.effects, &steers);
        let began = stage.count(&Effect::TurnBegan);
        prop_assert!(stage.ends().len() <= began);
    }
}
