use super::*;
use crate::driver::replay::{Line, transcript};

/// Plays a transcript. Its client's steers and turns are put to the driver as steers, its interrupts
/// as interrupts; what it asked otherwise, and the answers, are left out. That client gave no names to
/// the messages of its turns; those after the first get the driver's.
fn play(name: &str) -> Stage {
    let mut stage = begun();
    let mut begun_turns = 0;
    let mut left_out = Vec::new();
    for line in &transcript(name) {
        match line {
            Line::Sent(request) => {
                let text = request.pointer("/params/input/0/text");
                let id = request.pointer("/params/clientUserMessageId");
                let text = text.and_then(Value::as_str).unwrap_or_default();
                match request["method"].as_str().unwrap_or_default() {
                    "initialize" | "initialized" | "thread/start" => {}
                    "thread/backgroundTerminals/clean" => {}
                    "turn/start" if begun_turns == 0 => begun_turns = 1,
                    "turn/start" => {
                        stage.act(|driver, out| driver.steer(steer(text, text), out));
                    }
                    "turn/steer" if id.is_some() => {
                        let id = id.and_then(Value::as_str).unwrap_or_default();
                        stage.act(|driver, out| driver.steer(steer(id, text), out));
                    }
                    "turn/interrupt" if stage.ends().is_empty() => {
                        stage.act(|driver, out| driver.interrupt(out));
                    }
                    _ => {
                        left_out.push(request["id"].clone());
                        continue;
                    }
                }
            }
            Line::Said(message) if unnamed_message(message) && ends_or_settled(&stage) => {
                let mut message = message.clone();
                message["params"]["item"]["clientId"] =
                    message["params"]["item"]["content"][0]["text"].clone();
                stage.say(&message);
                continue;
            }
            Line::Said(message) => {
                if message.get("method").is_none() && left_out.contains(&message["id"]) {
                    continue;
                }
            }
        }
        stage.play("id", [line]);
        // That client did not end what its turns had started.
        if name == "codex-0.171-interrupt.jsonl"
            && stage.count(&Effect::Settled) < count(&stage, CLEAN)
        {
            answer(&mut stage, CLEAN, json!({}));
        }
    }
    stage
}

fn unnamed_message(message: &Value) -> bool {
    message.pointer("/params/item/clientId") == Some(&Value::Null)
}

fn ends_or_settled(stage: &Stage) -> bool {
    !stage.ends().is_empty() || stage.count(&Effect::Settled) > 0
}

const CLEAN: &str = "thread/backgroundTerminals/clean";

#[test]
fn a_steer_during_a_tool_is_seen_all_the_way() {
    let mut stage = play("codex-0.171-steer-during-tool.jsonl");
    assert_eq!(stage.receipts("human-msg-1"), ALL_THE_WAY);
    let answer = "ACK[STEER-ONE change course] final answer after steer.";
    assert_eq!(stage.ends(), [(answer.to_owned(), None)]);
    assert_eq!(stage.text(), answer);
    let turn = json!("01a2278d-5719-7352-92d4-05ad7ff9b673");
    assert_eq!(last(&stage, "turn/steer")["params"]["expectedTurnId"], turn);
    let tools: Vec<_> = stage
        .effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Tool {
                tool,
                ended,
                summary,
                ..
            } => Some((tool.as_str(), *ended, summary.as_deref())),
            _ => None,
        })
        .collect();
    let command = Some("/bin/bash -lc 'sleep 4; echo tool-done'");
    assert_eq!(tools, [("shell", false, command), ("shell", true, command)]);
    assert_eq!(stage.tokens(None), Some((20, 10)));
    stage.act(|driver, out| driver.ended(true, out));
    assert_eq!(stage.receipts("human-msg-1").len(), ALL_THE_WAY.len());
}

#[test]
fn the_events_of_a_run_come_in_order() {
    let stage = play("codex-0.171-steer-during-tool.jsonl");
    assert_eq!(stage.course(), ["ready", "began", "ended"]);
}

#[test]
fn a_steer_that_was_taken_and_then_interrupted_is_dropped() {
    let stage = play("codex-0.171-interrupt.jsonl");
    assert_eq!(
        stage.receipts("human-msg-3"),
        [SteerState::Queued, SteerState::Dropped]
    );
    assert!(reason(&stage, "human-msg-3").contains("interrupted"));
    assert_eq!(stage.count(&Effect::Settled), 2);
    assert_eq!(count(&stage, "turn/interrupt"), 2);
    // The turns that its client began later are those of steers to an idle program.
    assert_eq!(count(&stage, "turn/start"), 3);
    assert_eq!(stage.ends(), [("quick answer".to_owned(), None)]);
}

#[test]
fn an_interrupt_ends_what_the_turn_had_started() {
    let stage = play("codex-0.171-interrupt-then-clean.jsonl");
    assert_eq!(count(&stage, "turn/interrupt"), 1);
    assert_eq!(count(&stage, CLEAN), 1);
    assert_eq!(stage.count(&Effect::Settled), 1);
    assert_eq!(stage.ends(), []);
}
