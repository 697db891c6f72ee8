use super::*;
use crate::driver::replay::{Line, transcript};

/// Plays a transcript. Its client's messages after the first are put to the driver as steers of the
/// same name; its interrupts and stops are the driver's.
fn play(name: &str) -> Stage {
    let mut stage = begun();
    let mut names: Vec<(String, String)> = Vec::new();
    let mut prompted = false;
    for line in &transcript(name) {
        match line {
            Line::Sent(message) if message["type"] == "user" => {
                let uuid = message["uuid"].as_str().expect("a name");
                if prompted {
                    put(&mut stage, uuid);
                } else {
                    prompted = true;
                    let own = stage.written.last().expect("the task")["uuid"].clone();
                    names.push((uuid.to_owned(), own.as_str().expect("a name").to_owned()));
                }
            }
            Line::Sent(message) => {
                let id = message["request_id"].as_str().expect("a name").to_owned();
                let request = &message["request"];
                match request["subtype"].as_str().expect("a request") {
                    "initialize" => names.push((id, "initialize".to_owned())),
                    "interrupt" => {
                        names.push((id, "interrupt".to_owned()));
                        interrupt(&mut stage);
                    }
                    "stop_task" => {
                        let task = request["task_id"].as_str().expect("a task");
                        stage.act(|driver, out| assert!(driver.interrupt_child(task, out)));
                    }
                    "cancel_async_message" => {}
                    other => panic!("{other}"),
                }
            }
            Line::Said(message) => {
                let mut line = message.to_string();
                for (theirs, own) in &names {
                    line = line.replace(theirs, own);
                }
                stage.act(|driver, out| driver.output(line.as_bytes(), out));
            }
        }
    }
    stage
}

#[test]
fn a_steer_during_a_tool_is_seen_all_the_way() {
    let stage = play("claude-2.1.332-steer-during-tool.jsonl");
    let steer = "77ca069b-e606-4f7d-8b15-c46888bf40d7";
    assert_eq!(stage.receipts(steer), ALL_THE_WAY);
    let answer = "ACK[STEER-ONE change course] final answer after steer.";
    assert_eq!(stage.ends(), [(answer.to_owned(), None)]);
    assert_eq!(stage.text(), answer);
    let tools: Vec<_> = stage
        .effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Tool { tool, ended, .. } => Some((tool.as_str(), *ended)),
            _ => None,
        })
        .collect();
    assert_eq!(tools, [("Bash", false), ("Bash", true)]);
    assert_eq!(stage.tokens(None), Some((20, 10)));
}

#[test]
fn the_events_of_a_run_come_in_order() {
    let stage = play("claude-2.1.332-steer-during-tool.jsonl");
    assert_eq!(stage.course(), ["ready", "began", "ended"]);
}

#[test]
fn a_steer_that_was_retracted_is_dropped_and_so_is_one_that_was_interrupted() {
    let stage = play("claude-2.1.332-retract.jsonl");
    let end = [SteerState::Queued, SteerState::Dropped];
    assert_eq!(stage.receipts("6890d58a-3c0e-4a3f-a5cf-34cfb8b398f1"), end);
    assert_eq!(stage.receipts("1ccf96a4-7c12-4e5f-8c96-476454e0c83f"), end);
    assert_eq!(stage.count(&Effect::Settled), 1);
    // The turn that was cut short had been sent, and nothing answered it.
    let cut_short = stage.receipts("a1b5765b-dd99-4196-aa62-ca351b600a47");
    assert_eq!(cut_short, ALL_THE_WAY[..3]);
}

#[test]
fn what_an_interrupt_leaves_on_the_queue_is_taken_back_and_told_if_it_runs() {
    let stage = play("claude-2.1.332-interrupt.jsonl");
    let left = "83d92783-6338-42ae-bc12-2f55b9acc508";
    let taken_back = stage.written.iter().any(|line| {
        line["request"]["subtype"] == "cancel_async_message"
            && line["request"]["message_uuid"] == left
    });
    assert!(taken_back);
    // There nobody took it back, and it ran.
    assert_eq!(stage.receipts(left), ALL_THE_WAY);
    assert_eq!(stage.count(&Effect::Settled), 3);
    // More than the turns themselves say: the first was cut short.
    assert_eq!(stage.tokens(None), Some((30, 24)));
    let interrupts = |line: &&Value| line["request"]["subtype"] == "interrupt";
    let written: Vec<_> = stage.written.iter().filter(interrupts).collect();
    assert_eq!(written.len(), 3);
    assert_eq!(written[0]["request"]["cancel_queued"], true);
}

#[test]
fn subagents_are_listed_with_the_reason_why_they_cannot_be_steered() {
    let stage = play("claude-2.1.332-nested.jsonl");
    let listed = stage.children();
    let told: Vec<_> = listed
        .iter()
        .map(|child| (child.native.as_str(), child.status))
        .collect();
    let (first, second) = ("a916098a8c8a949ba", "af51724646cab9a20");
    let (running, stopped) = (AgentStatus::Running, AgentStatus::Aborted);
    assert_eq!(
        told,
        [(first, running), (second, running), (second, stopped)]
    );
    assert_eq!(listed[0].name, "child job");
    assert_eq!(listed[0].task, "do RUN-TOOL in child");
    assert_eq!(listed[0].parent, None);
    let reason = "Claude Code has no way to address a running subagent";
    assert_eq!(listed[0].not_steerable.as_deref(), Some(reason));
    let of_child =
        |effect: &&Effect| matches!(effect, Effect::Tool { child: Some(of), .. } if of == first);
    assert_eq!(stage.effects.iter().filter(of_child).count(), 2);
    // What its subagents took is among it.
    assert_eq!(stage.tokens(None), Some((70, 35)));
    // Its parent's turns ended while the first still worked.
    assert_eq!(stage.ends(), []);
}

#[test]
fn an_older_version_is_refused_with_the_version_that_is_needed() {
    let stage = play("claude-2.1.197-steer-during-tool.jsonl");
    let failed: Vec<_> = stage
        .effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Fail(reason) => Some(reason.as_str()),
            _ => None,
        })
        .collect();
    let reason = "Claude Code 2.1.332 or later is needed; this is 2.1.197";
    assert_eq!(failed, [reason]);
    assert!(!stage.effects.contains(&Effect::Ready));
}
