//! Whatever pi writes, in any order, each steer has one receipt that only moves forward and ends.

use handover_protocol::{SteerId, SteerWhen};
use proptest::prelude::*;

use super::*;
use crate::driver::Steer;
use crate::driver::honest::assert_honest;

#[derive(Clone, Debug)]
enum Step {
    Said(Value),
    Garbage(Vec<u8>),
    AnswerPrompt(&'static str),
    AnswerState(bool),
    AnswerAbort,
    Steer(&'static str, SteerWhen),
    Interrupt,
}

fn step() -> impl Strategy<Value = Step> {
    let text = prop::sample::select(vec!["a", "b", "go", "/c", "expanded"]);
    let texts = prop::collection::vec(text.clone(), 0..3);
    let when = prop::sample::select(vec![
        SteerWhen::NextStep,
        SteerWhen::TurnEnd,
        SteerWhen::Now,
    ]);
    let stop = prop::sample::select(vec!["stop", "toolUse", "aborted", "error", "pending"]);
    let kind = prop::sample::select(vec!["message_start", "message_end"]);
    prop_oneof![
        4 => (text.clone(), when).prop_map(|(text, when)| Step::Steer(text, when)),
        4 => (kind.clone(), text.clone()).prop_map(|(kind, text)| Step::Said(user(kind, text))),
        6 => (kind, prop::sample::select(vec!["", "x"]), stop)
            .prop_map(|(kind, text, stop)| Step::Said(model(kind, text, stop))),
        3 => (texts.clone(), texts).prop_map(|(a, b)| Step::Said(queues(&a, &b))),
        4 => prop::sample::select(vec![
            "agent_start", "agent_end", "agent_settled", "turn_end", "auto_retry_start",
            "auto_retry_end", "compaction_start", "compaction_end", "tool_execution_start",
        ])
        .prop_map(|kind| Step::Said(event(kind))),
        6 => prop::sample::select(vec!["", "started", "queued", "handled", "refused"])
            .prop_map(Step::AnswerPrompt),
        4 => any::<bool>().prop_map(Step::AnswerState),
        2 => Just(Step::AnswerAbort),
        1 => Just(Step::Interrupt),
        1 => prop::collection::vec(any::<u8>(), 0..40).prop_map(Step::Garbage),
    ]
}

fn play(stage: &mut Stage, step: &Step, steers: &mut usize) {
    let written = |stage: &Stage, kind: &str| {
        let found = stage.written.iter().rfind(|m| m["type"] == kind);
        found.map_or(Value::Null, |message| message["id"].clone())
    };
    match step {
        Step::Said(message) => drop(stage.say(message)),
        Step::Garbage(bytes) => drop(stage.act(|pi, out| pi.output(bytes, out))),
        Step::AnswerPrompt(how) => {
            let id = written(stage, "prompt");
            stage.say(&json!({
                "type": "response", "id": id, "command": "prompt", "success": *how != "refused",
                "data": {"disposition": if how.is_empty() { Value::Null } else { json!(how) }},
            }));
        }
        Step::AnswerState(streaming) => drop(answer_state(stage, *streaming)),
        Step::AnswerAbort => {
            let id = written(stage, "abort");
            stage.say(&json!({"type": "response", "id": id, "command": "abort", "success": true}));
        }
        Step::Steer(text, when) => {
            let id = format!("s{steers}");
            *steers += 1;
            let steer = Steer {
                when: *when,
                ..steer(&id, text)
            };
            stage.act(|pi, out| pi.steer(steer, out));
        }
        Step::Interrupt => drop(stage.act(|pi, out| pi.interrupt(out))),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]
    #[test]
    fn receipts_move_forward_to_one_end(steps in prop::collection::vec(step(), 0..60)) {
        let mut stage = Stage::begin("pi", task("go", &[]), key);
        let mut steers = 0;
        for step in &steps {
            play(&mut stage, step, &mut steers);
        }
        stage.act(|pi, out| pi.ended(true, out));
        let steers: Vec<SteerId> = (0..steers).map(|i| format!("s{i}").into()).collect();
        assert_honest(&stage.effects, &steers);
        let began = stage.count(&Effect::TurnBegan);
        prop_assert!(stage.ends().len() <= began);
    }
}
