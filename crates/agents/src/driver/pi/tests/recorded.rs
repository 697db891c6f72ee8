//! What real programs said.

use super::*;

/// The lines before the client wrote this text or command, and those from there on.
fn split(lines: &[Line], what: &str) -> (Vec<Line>, Vec<Line>) {
    let at = lines
        .iter()
        .position(|line| match line {
            Line::Sent(message) => message["message"] == what || message["type"] == what,
            Line::Said(_) => false,
        })
        .unwrap_or_else(|| panic!("nobody wrote {what}"));
    (lines[..at].to_vec(), lines[at..].to_vec())
}

/// Plays a transcript with a steer during a tool.
fn steered_during_tool(name: &str) -> Stage {
    let lines = transcript(name);
    let (before, after) = split(&lines, "STEER-ONE change course");
    let (after, _) = split(&after, "STEER-IDLE hello");
    let mut stage = prompted("RUN-TOOL please");
    assert_eq!(stage.program.framing, Framing::Lines);
    stage.play("id", &before);
    let written = stage.act(|pi, out| pi.steer(steer("s", "STEER-ONE change course"), out));
    assert_eq!(written[0]["streamingBehavior"], "steer");
    assert!(
        matches!(&stage.effects.last(), Some(Effect::Hand { steer, .. }) if steer.as_str() == "s"),
    );
    stage.play("id", &after);
    stage
}

#[test]
fn a_steer_during_a_tool_is_queued_inserted_sent_and_answered() {
    for name in ["pi-0.73", "pi-1.6"] {
        let mut stage = steered_during_tool(&format!("{name}-steer-during-tool.jsonl"));
        assert_eq!(
            stage.receipts("s"),
            [Queued, Inserted, Sent, Answered],
            "{name}"
        );
        if name == "pi-0.73" {
            assert_eq!(stage.ends(), [], "it may go on by itself");
            answer_state(&mut stage, false);
        }
        let text = "ACK[STEER-ONE change course] final answer after steer.";
        assert_eq!(stage.ends(), [(text.to_owned(), None)], "{name}");
        assert_eq!(stage.text(), text, "{name}");
        assert_eq!(stage.count(&Effect::TurnBegan), 1, "{name}");
        assert_eq!(stage.tokens(None), Some((20, 10)), "{name}");
        let tool = |ended, summary: Option<&str>| Effect::Tool {
            child: None,
            call: stage.effects.iter().find_map(|effect| match effect {
                Effect::Tool { call, .. } => call.clone(),
                _ => None,
            }),
            tool: "bash".to_owned(),
            ended,
            summary: summary.map(str::to_owned),
        };
        let command = Some("sleep 4; echo tool-done");
        assert_eq!(stage.count(&tool(false, command)), 1, "{name}");
        assert_eq!(stage.count(&tool(true, None)), 1, "{name}");
    }
}

#[test]
fn a_steer_while_idle_is_a_prompt_of_its_own() {
    let mut stage = steered_during_tool("pi-1.6-steer-during-tool.jsonl");
    let written = stage.act(|pi, out| pi.steer(steer("i", "STEER-IDLE hello"), out));
    assert_eq!(written.len(), 1);
    assert_eq!(written[0]["type"], "prompt");
    assert_eq!(stage.count(&Effect::TurnBegan), 2, "before pi says so");
    answer_prompt(&mut stage, json!({"disposition": "started"}));
    stage.say(&event("agent_start"));
    stage.say(&user("message_end", "STEER-IDLE hello"));
    stage.say(&model("message_start", "", "pending"));
    stage.say(&model("message_end", "hello", "stop"));
    stage.say(&event("agent_settled"));
    assert_eq!(stage.receipts("i"), [Inserted, Sent, Answered]);
    assert_eq!(stage.ends()[1], ("hello".to_owned(), None));
    assert_eq!(stage.count(&Effect::TurnBegan), 2);
}

/// Plays the second half of a transcript: a tool, a steer, an abort.
fn steered_then_aborted(name: &str, take_back: bool) -> Stage {
    let lines = transcript(name);
    let (_, lines) = split(&lines, "RUN-TOOL again");
    let (before, after) = split(&lines, "STEER-QUEUED-THEN-ABORT");
    let (queued, after) = split(&after, "abort");
    let (after, _) = split(&after, "get_state");
    let mut stage = prompted("RUN-TOOL again");
    stage.play("id", &before);
    stage.act(|pi, out| pi.steer(steer("s", "STEER-QUEUED-THEN-ABORT"), out));
    stage.play("id", &queued);
    let written = stage.act(|pi, out| pi.interrupt(out));
    let kinds: Vec<&str> = written.iter().filter_map(|m| m["type"].as_str()).collect();
    assert_eq!(kinds, ["clear_queue", "abort", "get_state"]);
    if take_back {
        stage.say(&queues(&[], &[]));
        stage.say(&json!({
            "id": written[0]["id"],
            "type": "response",
            "command": "clear_queue",
            "success": true,
            "data": {"steering": ["STEER-QUEUED-THEN-ABORT"], "followUp": []},
        }));
    } else {
        stage.say(&json!({
            "type": "response",
            "command": "clear_queue",
            "success": false,
            "error": "Unknown command: clear_queue",
        }));
    }
    answer_state(&mut stage, true);
    assert!(!stage.effects.contains(&Effect::Settled));
    stage.play("id", &after);
    stage
}

#[test]
fn a_steer_that_an_abort_swallows_is_inserted_and_dropped_but_never_sent() {
    for name in ["pi-0.73-abort.jsonl", "pi-1.6-abort.jsonl"] {
        let stage = steered_then_aborted(name, false);
        assert_eq!(stage.receipts("s"), [Queued, Inserted, Dropped], "{name}");
        assert_eq!(stage.effects.last(), Some(&Effect::Settled), "{name}");
        assert_eq!(stage.ends(), [], "{name}");
    }
}

#[test]
fn a_steer_that_pi_gives_back_is_dropped() {
    let stage = steered_then_aborted("pi-1.6-abort.jsonl", true);
    assert_eq!(stage.receipts("s"), [Queued, Dropped]);
    assert_eq!(stage.count(&Effect::Settled), 1);
}

#[test]
fn an_abort_ends_a_text_and_settles_once() {
    for name in ["pi-0.73-abort.jsonl", "pi-1.6-abort.jsonl"] {
        let lines = transcript(name);
        let (before, after) = split(&lines, "abort");
        let (after, _) = split(&after, "RUN-TOOL again");
        let mut stage = prompted("SLOW-TEXT please");
        stage.play("id", &before);
        stage.act(|pi, out| pi.interrupt(out));
        stage.play("id", &after);
        assert_eq!(stage.text(), "word00 word01 word02 word03 word04 word05");
        assert_eq!(stage.count(&Effect::Settled), 1, "{name}");
        assert_eq!(stage.ends(), [], "{name}");
        stage.act(|pi, out| pi.interrupt(out));
        assert_eq!(stage.count(&Effect::Settled), 2, "at once when quiet");
    }
}
