//! What real agents said.

use super::*;
use crate::driver::replay::{Line, transcript};

/// Where the client wrote this text, or this method.
fn place(lines: &[Line], what: &str) -> usize {
    lines
        .iter()
        .position(|line| match line {
            Line::Sent(message) => text(message) == what || message["method"] == what,
            Line::Said(_) => false,
        })
        .unwrap_or_else(|| panic!("nobody wrote {what}"))
}

fn play(stage: &mut Stage, lines: &[Line]) {
    stage.play("id", lines);
}

/// The open question.
fn asked(stage: &Stage) -> (String, String) {
    stage
        .effects
        .iter()
        .rev()
        .find_map(|effect| match effect {
            Effect::Ask { question, what } => Some((question.clone(), what.clone())),
            _ => None,
        })
        .expect("a question")
}

#[test]
fn gemini_gets_a_steer_when_its_turn_has_ended() {
    let lines = transcript("acp-gemini-second-prompt.jsonl");
    let asks = lines
        .iter()
        .position(
            |line| matches!(line, Line::Said(it) if it["method"] == "session/request_permission"),
        )
        .expect("a question")
        + 1;
    let next = place(&lines, "STEER-ONE change course");
    let mut stage = begin("RUN-TOOL please");
    play(&mut stage, &lines[..asks]);
    let (question, what) = asked(&stage);
    assert_eq!(
        what,
        "sleep 4; echo tool-done\n[current working directory /home/user/project-acp]"
    );
    let written = stage.act(|acp, out| acp.decide(&question, true, out));
    let once = json!({"outcome": {"outcome": "selected", "optionId": "proceed_once"}});
    assert_eq!(written[0]["result"], once);
    assert_eq!(
        put(&mut stage, "s", "STEER-ONE change course"),
        Vec::<Value>::new(),
        "a second prompt would cancel the first"
    );
    play(&mut stage, &lines[asks..next]);
    assert_eq!(
        text(stage.written.last().expect("it")),
        "STEER-ONE change course"
    );
    assert_eq!(stage.receipts("s"), []);
    assert_eq!(stage.ends(), []);
    play(&mut stage, &lines[next..]);
    assert_eq!(stage.receipts("s"), [Answered]);
    let answer = "ACK[STEER-ONE change course] final answer after steer.";
    assert_eq!(stage.ends(), [(answer.to_owned(), None)]);
    let tool = |ended, summary: Option<&str>| Effect::Tool {
        child: None,
        call: Some("run_shell_command__run_shell_command_1795960211181_0".to_owned()),
        tool: "execute".to_owned(),
        ended,
        summary: summary.map(str::to_owned),
    };
    assert_eq!(
        stage.count(&tool(false, Some("sleep 4; echo tool-done"))),
        1
    );
    assert_eq!(stage.count(&tool(true, None)), 1);
}

#[test]
fn an_interrupt_cancels_and_settles_when_the_prompt_is_answered() {
    for name in ["acp-gemini-cancel.jsonl", "acp-codex-cancel.jsonl"] {
        let lines = transcript(name);
        let cancel = place(&lines, "session/cancel");
        let mut stage = begin("SLOW-TEXT please");
        play(&mut stage, &lines[..cancel]);
        put_when(&mut stage, "s", "kept", SteerWhen::TurnEnd);
        let written = stage.act(|acp, out| acp.interrupt(out));
        assert_eq!(written.len(), 1, "{name}");
        assert_eq!(written[0]["method"], "session/cancel");
        assert_eq!(stage.count(&Effect::Settled), 0);
        play(&mut stage, &lines[cancel..cancel + 4]);
        assert_eq!(stage.count(&Effect::Settled), 1, "{name}");
        assert_eq!(stage.receipts("s"), [Dropped]);
        assert_eq!(stage.ends(), []);
    }
}

#[test]
fn what_an_agent_takes_into_its_turn_is_queued_and_no_more() {
    let lines = transcript("acp-claude-steering-extension.jsonl");
    let (one, second) = (
        place(&lines, "STEER-ONE change course"),
        place(&lines, "SLOW-TEXT please"),
    );
    let mut stage = begin("RUN-TOOL please");
    play(&mut stage, &lines[..one]);
    let written = put(&mut stage, "s", "STEER-ONE change course");
    assert_eq!(written[0]["method"], "_session/steering");
    assert_eq!(
        written[0]["params"]["_meta"]["steering"]["idleBehavior"],
        "promptRequired"
    );
    play(&mut stage, &lines[one..second]);
    assert_eq!(stage.receipts("s"), [Queued, Unknown]);
    assert_eq!(stage.tokens(None), Some((20, 10)));
    let answer = "ACK[STEER-ONE change course] final answer after steer.";
    assert_eq!(stage.ends(), [(answer.to_owned(), None)]);

    // The same, cancelled at once: the model never saw it, and nothing says so.
    let (again, then) = (
        place(&lines, "RUN-TOOL again"),
        place(&lines, "STEER-THEN-CANCEL"),
    );
    let mut stage = begin("RUN-TOOL again");
    play(&mut stage, &lines[..place(&lines, "RUN-TOOL please")]);
    stage.act(|acp, out| acp.output(b"not JSON", out));
    play(&mut stage, &lines[again..then]);
    put(&mut stage, "s", "STEER-THEN-CANCEL");
    stage.play("id", &lines[then..then + 2]);
    stage.act(|acp, out| acp.interrupt(out));
    play(&mut stage, &lines[then + 2..]);
    assert_eq!(stage.receipts("s"), [Queued, Unknown]);
    assert_eq!(stage.count(&Effect::Settled), 1);
}

#[test]
fn an_agent_that_joins_prompts_answers_each() {
    let mut lines = transcript("acp-claude-second-prompt.jsonl");
    for line in &mut lines {
        // As before it knew the extension.
        if let Line::Said(message) = line
            && let Some(result) = message.get_mut("result").and_then(Value::as_object_mut)
            && result.contains_key("agentInfo")
        {
            result.remove("_meta");
        }
    }
    let second = place(&lines, "STEER-ONE change course");
    let mut stage = begin("RUN-TOOL please");
    play(&mut stage, &lines[..second]);
    let written = put(&mut stage, "s", "STEER-ONE change course");
    assert_eq!(written[0]["method"], "session/prompt");
    play(&mut stage, &lines[second..]);
    assert_eq!(stage.receipts("s"), [Answered]);
    assert_eq!(stage.tokens(None), Some((20, 10)), "of both answers");
    assert_eq!(stage.ends().len(), 1, "one turn for people");
    assert_eq!(stage.count(&Effect::TurnBegan), 1);
}

#[test]
fn pi_acp_is_given_the_next_prompt_after_its_turn() {
    let lines = transcript("acp-pi-second-prompt.jsonl");
    let second = place(&lines, "STEER-ONE change course");
    let mut stage = begin("RUN-TOOL please");
    play(&mut stage, &lines[..second]);
    assert_eq!(
        put(&mut stage, "s", "STEER-ONE change course"),
        Vec::<Value>::new()
    );
    let answered = lines
        .iter()
        .position(|line| matches!(line, Line::Said(message) if message["id"] == 3))
        .expect("the answer to the first prompt");
    play(&mut stage, &lines[second + 1..=answered]);
    assert_eq!(
        text(&last(&stage, "session/prompt")),
        "STEER-ONE change course"
    );
    play(&mut stage, &lines[second..=second]);
    play(&mut stage, &lines[answered + 1..]);
    assert_eq!(stage.receipts("s"), [Answered]);
}
