use handover_protocol::{SteerId, SteerWhen};
use proptest::prelude::*;

use super::*;
use crate::driver::honest::assert_honest;
use crate::driver::{Steer, replay};

#[derive(Clone, Debug)]
enum Step {
    Say(Value),
    /// Something about the message of one of the steers so far.
    About {
        steer: usize,
        what: &'static str,
    },
    Steer {
        when: SteerWhen,
        child: bool,
    },
    Interrupt,
}

fn said() -> impl Strategy<Value = Value> {
    let task = |subtype: &'static str| {
        json!({
            "type": "system", "subtype": subtype, "task_id": "kid",
            "task_type": "local_agent", "status": "completed",
        })
    };
    let reply = |id: &'static str| {
        let response = json!({"subtype": "success", "request_id": id, "response": {}});
        json!({"type": "control_response", "response": response})
    };
    let state = |state: &'static str| json!({"type": "system", "subtype": "session_state_changed", "state": state});
    prop::sample::select(vec![
        init(),
        reply("initialize"),
        reply("interrupt"),
        state("idle"),
        state("running"),
        task("task_started"),
        task("task_notification"),
        json!({"type": "result", "is_error": false}),
        json!({"type": "result", "is_error": true, "terminal_reason": "aborted_tools"}),
        json!({"type": "stream_event", "event": {"type": "message_start"}}),
        json!({"type": "nonsense"}),
        json!(7),
    ])
}

fn step() -> impl Strategy<Value = Step> {
    let what = prop::sample::select(vec![
        "queued",
        "started",
        "completed",
        "cancelled",
        "refused",
        "replay",
        "requesting",
        "answered",
        "aborted",
        "interrupted",
        "left",
    ]);
    let when = prop::sample::select(vec![
        SteerWhen::Now,
        SteerWhen::NextStep,
        SteerWhen::TurnEnd,
    ]);
    prop_oneof![
        6 => said().prop_map(Step::Say),
        8 => (0..12usize, what).prop_map(|(steer, what)| Step::About { steer, what }),
        4 => (when, prop::bool::weighted(0.1)).prop_map(|(when, child)| Step::Steer { when, child }),
        1 => Just(Step::Interrupt),
    ]
}

fn about(uuid: &Value, what: &str) -> Value {
    let result = |reason: &str| {
        json!({
            "type": "result", "is_error": false, "terminal_reason": reason,
            "user_message_uuids": [uuid],
        })
    };
    let receipt = |list: &str| {
        let response = json!({
            "subtype": "success", "request_id": "interrupt", "response": {list: [uuid]},
        });
        json!({"type": "control_response", "response": response})
    };
    match what {
        "replay" => json!({"type": "user", "isReplay": true, "uuid": uuid}),
        "requesting" => json!({
            "type": "system", "subtype": "status", "status": "requesting",
            "user_message_uuids": [uuid],
        }),
        "answered" => result("completed"),
        "aborted" => result("aborted_streaming"),
        "interrupted" => receipt("cancelled"),
        "left" => receipt("still_queued"),
        state => json!({"type": "command_lifecycle", "command_uuid": uuid, "state": state}),
    }
}

proptest! {
    /// Whatever Claude Code says, and in whatever order.
    #[test]
    fn receipts_are_honest(from_start in any::<bool>(), steps in prop::collection::vec(step(), 0..60)) {
        let mut stage = if from_start { begun() } else { working() };
        let mut steers: Vec<SteerId> = Vec::new();
        for step in steps {
            match step {
                Step::Say(message) => { stage.say(&message); }
                Step::About { steer, what } => {
                    let users = stage.written.iter().filter(|line| line["type"] == "user");
                    let Some(uuid) = users.map(|line| line["uuid"].clone()).nth(steer) else { continue };
                    stage.say(&about(&uuid, what));
                }
                Step::Steer { when, child } => {
                    let id = format!("s{}", steers.len());
                    steers.push(id.as_str().into());
                    let child = child.then(|| "kid".to_owned());
                    let steer = Steer { when, child, ..replay::steer(&id, "listen") };
                    stage.act(|driver, out| driver.steer(steer, out));
                }
                Step::Interrupt => { interrupt(&mut stage); }
            }
        }
        stage.act(|driver, out| driver.ended(false, out));
        assert_honest(&stage.effects, &steers);
    }
}
