use handover_protocol::SteerWhen;

use super::*;
use crate::driver::Steer;

#[test]
fn a_version_that_tells_itself_too_old_is_not_given_the_task() {
    let mut stage = begun();
    let version = json!({"claude_code_version": "2.1.331"});
    assert!(reply(&mut stage, "initialize", version).is_empty());
    let reason = "Claude Code 2.1.332 or later is needed; this is 2.1.331".to_owned();
    assert!(stage.effects.contains(&Effect::Fail(reason)));
    put(&mut stage, S);
    interrupt(&mut stage);
    assert_eq!(stage.receipts(S), [SteerState::Dropped]);
    assert_eq!(stage.count(&Effect::Settled), 1);
}

#[test]
fn a_program_that_does_not_start_says_why() {
    let mut stage = begun();
    let response = json!({"subtype": "error", "request_id": "initialize", "error": "no"});
    stage.say(&json!({"type": "control_response", "response": response}));
    let reason = "Claude Code does not start: no".to_owned();
    assert!(stage.effects.contains(&Effect::Fail(reason)));
}

#[test]
fn steers_wait_until_the_program_is_known_to_be_able() {
    let mut stage = begun();
    put(&mut stage, S);
    let written = initialized(&mut stage);
    assert_eq!(written[0]["message"]["content"], "do it");
    assert_eq!(written.len(), 1);
    put(&mut stage, S2);
    let written = stage.say(&init());
    let names: Vec<_> = written.iter().map(|line| &line["uuid"]).collect();
    assert_eq!(names, [S, S2]);
    let first = stage
        .effects
        .iter()
        .find(|effect| matches!(effect, Effect::Ready | Effect::Hand { .. }));
    assert_eq!(first, Some(&Effect::Ready));
}

#[test]
fn when_a_steer_is_put_is_said_in_the_programs_words() {
    let mut stage = working();
    let first = stage.driver.capabilities().when[0];
    assert_eq!(first, SteerWhen::NextStep);
    for (when, priority) in [
        (SteerWhen::Now, "now"),
        (SteerWhen::NextStep, "next"),
        (SteerWhen::TurnEnd, "later"),
    ] {
        let steer = Steer {
            when,
            ..steer(priority, "listen")
        };
        let written = stage.act(|driver, out| driver.steer(steer, out));
        assert_eq!(written[0]["priority"], priority);
    }
}

#[test]
fn the_turn_has_ended_when_the_program_is_idle() {
    let mut stage = working();
    result(&mut stage, "first", &[]);
    assert_eq!(stage.ends(), []);
    // A subagent has woken it.
    stage.say(&init());
    result(&mut stage, "second", &[]);
    idle(&mut stage);
    assert_eq!(stage.ends(), [("second".to_owned(), None)]);
    let began = |effect: &&Effect| **effect == Effect::TurnBegan;
    assert_eq!(stage.effects.iter().filter(began).count(), 1);
}

#[test]
fn the_turn_has_not_ended_while_a_steer_is_on_its_way() {
    let mut stage = working();
    result(&mut stage, "first", &[]);
    put(&mut stage, S);
    idle(&mut stage);
    assert_eq!(stage.ends(), []);
    lifecycle(&mut stage, S, "queued");
    lifecycle(&mut stage, S, "started");
    sent(&mut stage, &[S]);
    result(&mut stage, "second", &[S]);
    idle(&mut stage);
    assert_eq!(stage.receipts(S), ALL_THE_WAY);
    assert_eq!(stage.ends(), [("second".to_owned(), None)]);
    // The next steer begins the next turn.
    put(&mut stage, S2);
    lifecycle(&mut stage, S2, "queued");
    stage.say(&init());
    result(&mut stage, "third", &[S2]);
    idle(&mut stage);
    assert_eq!(stage.ends().len(), 2);
}

#[test]
fn a_turn_is_given_no_more_messages_than_the_program_lists() {
    let mut stage = working();
    let uuids: Vec<String> = (0..100)
        .map(|number| format!("00000000-0000-4000-8000-000000000{number:03}"))
        .collect();
    for uuid in &uuids {
        put(&mut stage, uuid);
    }
    let handed = |stage: &Stage| -> Vec<String> {
        let users = stage.written.iter().filter(|line| line["type"] == "user");
        let names = users.filter_map(|line| line["uuid"].as_str().map(str::to_owned));
        names.skip(1).collect()
    };
    let first = handed(&stage);
    assert_eq!(first, uuids[..59]);
    let names: Vec<&str> = first.iter().map(String::as_str).collect();
    result(&mut stage, "first", &names);
    assert_eq!(stage.ends(), []);
    assert_eq!(handed(&stage), uuids);
    idle(&mut stage);
    assert_eq!(stage.ends(), []);
    let rest: Vec<&str> = uuids[59..].iter().map(String::as_str).collect();
    result(&mut stage, "second", &rest);
    idle(&mut stage);
    assert_eq!(stage.ends(), [("second".to_owned(), None)]);
}

#[test]
fn a_turn_that_failed_answers_nothing() {
    let mut stage = working();
    put(&mut stage, S);
    lifecycle(&mut stage, S, "queued");
    lifecycle(&mut stage, S, "started");
    requesting(&mut stage, &[S]);
    assert_eq!(stage.receipts(S), ALL_THE_WAY[..2]);
    stage.say(&json!({"type": "system", "subtype": "api_retry", "error_status": 401}));
    stage.say(&json!({
        "type": "assistant", "error": "authentication_failed", "parent_tool_use_id": null,
        "message": {"id": "x", "content": [{"type": "text", "text": "API Error: 401"}]},
    }));
    stage.say(&json!({
        "type": "result", "is_error": true, "result": "API Error: 401",
        "terminal_reason": "completed", "user_message_uuids": [S],
    }));
    idle(&mut stage);
    assert_eq!(stage.receipts(S), ALL_THE_WAY[..3]);
    let (_, error) = stage.ends().pop().expect("an end");
    let expected = "Claude Code is not logged in (`claude auth login`): API Error: 401";
    assert_eq!(error.as_deref(), Some(expected));
}

#[test]
fn a_request_that_nobody_answered_is_not_claimed_to_have_been_sent() {
    let mut stage = working();
    put(&mut stage, S);
    lifecycle(&mut stage, S, "queued");
    lifecycle(&mut stage, S, "started");
    requesting(&mut stage, &[S]);
    stage.say(&json!({"type": "system", "subtype": "api_retry", "error_status": null}));
    let of_subagent = json!({
        "type": "stream_event", "parent_tool_use_id": "call", "event": {"type": "message_start"},
    });
    stage.say(&of_subagent);
    stage.say(&json!({"type": "result", "is_error": true, "result": "no connection"}));
    assert_eq!(stage.receipts(S), ALL_THE_WAY[..2]);
}

#[test]
fn a_steer_that_cuts_a_turn_short_does_not_answer_the_one_before() {
    let mut stage = working();
    for steer in [S, S2] {
        put(&mut stage, steer);
        lifecycle(&mut stage, steer, "queued");
    }
    lifecycle(&mut stage, S, "started");
    sent(&mut stage, &[S]);
    stage.say(&json!({
        "type": "result", "is_error": false, "result": "half", "subtype": "success",
        "terminal_reason": "aborted_streaming", "user_message_uuids": [S],
    }));
    lifecycle(&mut stage, S, "cancelled");
    assert_eq!(stage.ends(), []);
    lifecycle(&mut stage, S2, "started");
    sent(&mut stage, &[S2]);
    result(&mut stage, "whole", &[S2]);
    idle(&mut stage);
    assert_eq!(stage.receipts(S), ALL_THE_WAY[..3]);
    assert_eq!(stage.receipts(S2), ALL_THE_WAY);
    stage.act(|driver, out| driver.ended(true, out));
    assert_eq!(stage.receipts(S).last(), Some(&SteerState::Unknown));
}

#[test]
fn an_interrupt_before_the_task_was_given_has_nothing_to_wait_for() {
    let mut stage = begun();
    put(&mut stage, S);
    interrupt(&mut stage);
    assert_eq!(stage.count(&Effect::Settled), 1);
    assert_eq!(stage.receipts(S), [SteerState::Dropped]);
    assert!(initialized(&mut stage).is_empty());
}

#[test]
fn an_interrupt_is_settled_when_nothing_it_stopped_is_left() {
    let mut stage = working();
    put(&mut stage, S);
    lifecycle(&mut stage, S, "queued");
    interrupt(&mut stage);
    interrupt(&mut stage);
    put(&mut stage, S2);
    assert_eq!(stage.receipts(S2), [SteerState::Dropped]);
    let receipt = json!({"still_queued": [], "cancelled": [S]});
    reply(&mut stage, "interrupt", receipt);
    assert_eq!(stage.receipts(S), [SteerState::Queued, SteerState::Dropped]);
    assert_eq!(stage.count(&Effect::Settled), 0);
    stage.say(&json!({"type": "result", "is_error": true, "terminal_reason": "aborted_tools"}));
    idle(&mut stage);
    assert_eq!(stage.count(&Effect::Settled), 1);
    assert_eq!(stage.ends(), []);
    let interrupts = |line: &&Value| line["request"]["subtype"] == "interrupt";
    assert_eq!(stage.written.iter().filter(interrupts).count(), 1);
}

#[test]
fn an_interrupt_while_idle_is_settled_by_its_answer() {
    let mut stage = working();
    result(&mut stage, "done", &[]);
    idle(&mut stage);
    interrupt(&mut stage);
    reply(&mut stage, "interrupt", json!({"still_queued": []}));
    assert_eq!(stage.count(&Effect::Settled), 1);
    assert_eq!(stage.ends().len(), 1);
}

#[test]
fn no_steer_reaches_a_subagent() {
    let mut stage = working();
    let to_child = Steer {
        child: Some("kid".to_owned()),
        ..steer(S, "listen")
    };
    let written = stage.act(|driver, out| driver.steer(to_child, out));
    assert_eq!(written, Vec::<Value>::new());
    assert_eq!(stage.receipts(S), [SteerState::Dropped]);
    stage.act(|driver, out| assert!(!driver.interrupt_child("kid", out)));
}

#[test]
fn a_subagent_says_what_it_says_and_its_parent_does_not() {
    let mut stage = working();
    stage.say(&json!({
        "type": "system", "subtype": "task_started", "task_type": "local_agent",
        "task_id": "kid", "description": "a part", "prompt": "do a part",
    }));
    let content = json!([{"type": "text", "text": "found"}]);
    for agent in ["kid", "nobody"] {
        stage.say(&json!({
            "type": "assistant", "parent_tool_use_id": "call", "agent_id": agent,
            "message": {"id": "x", "content": content},
        }));
    }
    assert_eq!(stage.text(), "");
    let said: Vec<_> = stage
        .effects
        .iter()
        .filter(|effect| matches!(effect, Effect::Text { .. }))
        .collect();
    let child = Some("kid".to_owned());
    let text = "found".to_owned();
    assert_eq!(said, [&Effect::Text { child, text }]);
}

#[test]
fn a_message_that_did_not_come_in_parts_is_passed_on_whole() {
    let mut stage = working();
    let content = json!([{"type": "text", "text": "all at once"}]);
    stage.say(&json!({
        "type": "assistant", "parent_tool_use_id": null,
        "message": {"id": "x", "content": content},
    }));
    assert_eq!(stage.text(), "all at once");
}

#[test]
fn a_program_that_ends_leaves_no_steer_open_and_keeps_its_result() {
    let mut stage = working();
    put(&mut stage, S);
    result(&mut stage, "done", &[]);
    stage.act(|driver, out| driver.ended(true, out));
    assert_eq!(stage.receipts(S), [SteerState::Unknown]);
    assert_eq!(stage.ends(), [("done".to_owned(), None)]);

    let mut cut_short = working();
    cut_short.act(|driver, out| driver.ended(false, out));
    assert_eq!(cut_short.ends(), []);
}

#[test]
fn a_driver_without_a_prompt_is_refused() {
    let refusal = crate::driver::create("claude", task("", &[])).expect_err("a refusal");
    assert_eq!(refusal.code, handover_protocol::ErrorCode::BadParams);
}

#[test]
fn a_turn_has_begun_when_its_message_is_started() {
    let mut stage = working();
    result(&mut stage, "done", &[]);
    idle(&mut stage);
    put(&mut stage, S);
    lifecycle(&mut stage, S, "queued");
    let before = stage.count(&Effect::TurnBegan);
    lifecycle(&mut stage, S, "started");
    assert_eq!(stage.count(&Effect::TurnBegan), before + 1);
    stage.say(&init());
    assert_eq!(stage.count(&Effect::TurnBegan), before + 1, "once a turn");
}
