use handover_protocol::SteerWhen;

use super::*;
use crate::driver::Steer;

#[test]
fn a_turn_that_ended_under_a_steer_makes_it_a_turn_of_its_own() {
    let mut stage = working();
    put(&mut stage, "s");
    turn_completed(&mut stage, MAIN, "t1", "completed");
    // The steer is still on its way: nothing has ended.
    assert_eq!(stage.ends(), []);
    let written = refuse(&mut stage, "turn/steer", "no active turn to steer");
    assert_eq!(written.len(), 1);
    assert_eq!(written[0]["method"], "turn/start");
    assert_eq!(written[0]["params"]["clientUserMessageId"], "s");
    answer(&mut stage, "turn/start", json!({"turn": {"id": "t2"}}));
    inserted(&mut stage, MAIN, "s");
    said(&mut stage, MAIN, "m", "heard");
    turn_completed(&mut stage, MAIN, "t2", "completed");
    assert_eq!(stage.receipts("s"), ALL_THE_WAY);
    assert_eq!(stage.ends(), [("heard".to_owned(), None)]);
}

#[test]
fn a_turn_that_changed_under_a_steer_is_named_by_the_program() {
    let mut stage = working();
    put(&mut stage, "s");
    let found = "expected active turn id `t1` but found `t2`";
    let written = refuse(&mut stage, "turn/steer", found);
    assert_eq!(written[0]["method"], "turn/steer");
    assert_eq!(written[0]["params"]["expectedTurnId"], "t2");
}

#[test]
fn a_steer_is_not_tried_for_ever() {
    let mut stage = working();
    put(&mut stage, "s");
    for turn in ["t2", "t3", "t4"] {
        let found = format!("expected active turn id `x` but found `{turn}`");
        refuse(&mut stage, "turn/steer", &found);
    }
    assert_eq!(count(&stage, "turn/steer"), 3);
    assert_eq!(stage.receipts("s"), [SteerState::Dropped]);
    assert!(reason(&stage, "s").contains("but found `t4`"));
}

#[test]
fn another_refusal_drops_the_steer_with_the_programs_words() {
    let mut stage = working();
    put(&mut stage, "s");
    refuse(&mut stage, "turn/steer", "cannot steer a review turn");
    assert_eq!(reason(&stage, "s"), "cannot steer a review turn");
    put(&mut stage, "next");
    assert_eq!(count(&stage, "turn/steer"), 2);
}

#[test]
fn a_steer_that_its_turn_left_over_is_said_again() {
    let mut stage = working();
    put(&mut stage, "s");
    answer(&mut stage, "turn/steer", json!({"turnId": "t1"}));
    let written = turn_completed(&mut stage, MAIN, "t1", "completed");
    assert_eq!(written[0]["method"], "turn/start");
    assert_eq!(stage.ends(), []);
    // The same if the answer comes after the end of the turn.
    answer(&mut stage, "turn/start", json!({"turn": {"id": "t2"}}));
    turn_completed(&mut stage, MAIN, "t2", "completed");
    assert_eq!(count(&stage, "turn/start"), 3);
    turn_started(&mut stage, MAIN, "t3");
    turn_completed(&mut stage, MAIN, "t3", "completed");
    answer(&mut stage, "turn/start", json!({"turn": {"id": "t3"}}));
    assert_eq!(
        stage.receipts("s"),
        [SteerState::Queued, SteerState::Dropped]
    );
    assert_eq!(stage.ends().len(), 1);
}

#[test]
fn a_message_that_was_begun_before_does_not_answer_a_steer() {
    let mut stage = working();
    put(&mut stage, "s");
    answer(&mut stage, "turn/steer", json!({"turnId": "t1"}));
    let begun = json!({"type": "agentMessage", "id": "m", "text": ""});
    notice(
        &mut stage,
        "item/started",
        json!({"threadId": MAIN, "item": begun}),
    );
    inserted(&mut stage, MAIN, "s");
    let ended = json!({"type": "agentMessage", "id": "m", "text": "before"});
    notice(
        &mut stage,
        "item/completed",
        json!({"threadId": MAIN, "item": ended}),
    );
    assert_eq!(
        stage.receipts("s"),
        [SteerState::Queued, SteerState::Inserted]
    );
    said(&mut stage, MAIN, "m2", "after");
    assert_eq!(stage.receipts("s"), ALL_THE_WAY);
}

#[test]
fn what_is_in_the_history_is_sent_by_the_next_turn() {
    let mut stage = working();
    put(&mut stage, "s");
    answer(&mut stage, "turn/steer", json!({"turnId": "t1"}));
    inserted(&mut stage, MAIN, "s");
    turn_completed(&mut stage, MAIN, "t1", "failed");
    let known = [SteerState::Queued, SteerState::Inserted];
    assert_eq!(stage.receipts("s"), known);
    turn_started(&mut stage, MAIN, "t2");
    said(&mut stage, MAIN, "m", "heard");
    assert_eq!(stage.receipts("s"), ALL_THE_WAY);
}

#[test]
fn a_hundred_steers_go_one_after_the_other() {
    let mut stage = working();
    let ids: Vec<String> = (0..100).map(|number| format!("s{number}")).collect();
    for id in &ids {
        put(&mut stage, id);
    }
    assert_eq!(count(&stage, "turn/steer"), 1);
    for _ in &ids {
        answer(&mut stage, "turn/steer", json!({"turnId": "t1"}));
    }
    let written: Vec<_> = stage
        .written
        .iter()
        .filter_map(|line| line["params"]["clientUserMessageId"].as_str())
        .collect();
    assert_eq!(written, ids);
}

#[test]
fn the_same_steer_twice_is_one() {
    let mut stage = working();
    put(&mut stage, "s");
    put(&mut stage, "s");
    answer(&mut stage, "turn/steer", json!({"turnId": "t1"}));
    assert_eq!(count(&stage, "turn/steer"), 1);
}

#[test]
fn a_steer_for_the_end_of_the_turn_waits_for_it() {
    let mut stage = working();
    let at_end = Steer {
        when: SteerWhen::TurnEnd,
        ..steer("end", "then this")
    };
    stage.act(|driver, out| driver.steer(at_end, out));
    put(&mut stage, "now");
    assert_eq!(
        last(&stage, "turn/steer")["params"]["clientUserMessageId"],
        "now"
    );
    answer(&mut stage, "turn/steer", json!({"turnId": "t1"}));
    inserted(&mut stage, MAIN, "now");
    let written = turn_completed(&mut stage, MAIN, "t1", "completed");
    assert_eq!(written[0]["method"], "turn/start");
    assert_eq!(written[0]["params"]["clientUserMessageId"], "end");
    assert_eq!(stage.ends(), []);
}

#[test]
fn a_steer_while_the_program_starts_follows_the_task() {
    let mut stage = begun();
    put(&mut stage, "s");
    assert_eq!(stage.written.len(), 1);
    stage.say(&json!({"id": 1, "result": {}}));
    stage.say(&json!({"id": 2, "result": {"thread": {"id": MAIN}}}));
    assert_eq!(
        last(&stage, "turn/start")["params"]["input"][0]["text"],
        "do it"
    );
    answer(&mut stage, "turn/start", json!({"turn": {"id": "t1"}}));
    assert_eq!(
        last(&stage, "turn/steer")["params"]["clientUserMessageId"],
        "s"
    );
}

#[test]
fn a_program_that_does_not_start_says_why() {
    let mut stage = begun();
    refuse(&mut stage, "initialize", "config.toml is broken");
    let reason = "codex does not start: config.toml is broken".to_owned();
    assert!(stage.effects.contains(&Effect::Fail(reason)));
    put(&mut stage, "s");
    stage.act(|driver, out| driver.interrupt(out));
    assert_eq!(stage.receipts("s"), [SteerState::Dropped]);
    assert_eq!(stage.count(&Effect::Settled), 1);
}

#[test]
fn a_first_turn_that_is_refused_is_no_run() {
    let mut stage = begun();
    stage.say(&json!({"id": 1, "result": {}}));
    stage.say(&json!({"id": 2, "result": {"thread": {"id": MAIN}}}));
    refuse(&mut stage, "turn/start", "no model");
    let reason = "codex began no turn: no model".to_owned();
    assert!(stage.effects.contains(&Effect::Fail(reason)));
}

#[test]
fn a_turn_that_failed_tells_its_error() {
    for (info, expected) in [
        (json!("other"), "401"),
        (
            json!("unauthorized"),
            "codex is not logged in (`codex login`): 401",
        ),
        (
            json!({"httpConnectionFailed": {"httpStatusCode": 401}}),
            "codex is not logged in (`codex login`): 401",
        ),
        (
            json!({"httpConnectionFailed": {"httpStatusCode": 500}}),
            "401",
        ),
    ] {
        let mut stage = working();
        let error = json!({"message": "401", "codexErrorInfo": info});
        let turn = json!({"id": "t1", "status": "failed", "error": error});
        notice(
            &mut stage,
            "turn/completed",
            json!({"threadId": MAIN, "turn": turn}),
        );
        assert_eq!(stage.ends(), [(String::new(), Some(expected.to_owned()))]);
    }
}

#[test]
fn an_interrupt_before_the_first_turn_has_nothing_to_wait_for() {
    let mut stage = begun();
    put(&mut stage, "s");
    stage.act(|driver, out| driver.interrupt(out));
    assert_eq!(stage.count(&Effect::Settled), 1);
    assert_eq!(stage.receipts("s"), [SteerState::Dropped]);
    stage.say(&json!({"id": 1, "result": {}}));
    stage.say(&json!({"id": 2, "result": {"thread": {"id": MAIN}}}));
    assert_eq!(count(&stage, "turn/start"), 0);
}

#[test]
fn an_interrupt_waits_for_a_turn_that_has_no_name_yet() {
    let mut stage = begun();
    stage.say(&json!({"id": 1, "result": {}}));
    stage.say(&json!({"id": 2, "result": {"thread": {"id": MAIN}}}));
    stage.act(|driver, out| driver.interrupt(out));
    assert_eq!(stage.count(&Effect::Settled), 0);
    let written = answer(&mut stage, "turn/start", json!({"turn": {"id": "t1"}}));
    assert_eq!(written[0]["method"], "turn/interrupt");
    put(&mut stage, "s");
    assert_eq!(stage.receipts("s"), [SteerState::Dropped]);
    turn_completed(&mut stage, MAIN, "t1", "interrupted");
    answer(&mut stage, "thread/backgroundTerminals/clean", json!({}));
    assert_eq!(stage.count(&Effect::Settled), 1);
}

#[test]
fn an_interrupt_that_finds_no_turn_is_settled() {
    let mut stage = working();
    stage.act(|driver, out| driver.interrupt(out));
    stage.act(|driver, out| driver.interrupt(out));
    assert_eq!(count(&stage, "turn/interrupt"), 1);
    refuse(&mut stage, "turn/interrupt", "no active turn to interrupt");
    answer(&mut stage, "thread/backgroundTerminals/clean", json!({}));
    assert_eq!(stage.count(&Effect::Settled), 1);
    stage.act(|driver, out| driver.interrupt(out));
    assert_eq!(stage.count(&Effect::Settled), 2);
}

#[test]
fn an_interrupt_that_comes_after_the_end_of_the_turn_changes_nothing_of_it() {
    let mut stage = working();
    said(&mut stage, MAIN, "m", "done");
    stage.act(|driver, out| driver.interrupt(out));
    turn_completed(&mut stage, MAIN, "t1", "completed");
    refuse(&mut stage, "turn/interrupt", "no active turn to interrupt");
    answer(&mut stage, "thread/backgroundTerminals/clean", json!({}));
    assert_eq!(stage.count(&Effect::Settled), 1);
    put(&mut stage, "s");
    assert_eq!(
        last(&stage, "turn/start")["params"]["clientUserMessageId"],
        "s"
    );
}

#[test]
fn an_interrupt_of_a_turn_that_is_refused_is_over() {
    let mut stage = working();
    turn_completed(&mut stage, MAIN, "t1", "completed");
    put(&mut stage, "s");
    stage.act(|driver, out| driver.interrupt(out));
    assert_eq!(stage.count(&Effect::Settled), 0);
    refuse(&mut stage, "turn/start", "no model");
    assert_eq!(stage.receipts("s"), [SteerState::Dropped]);
    assert_eq!(stage.count(&Effect::Settled), 1);
    put(&mut stage, "next");
    assert_eq!(
        last(&stage, "turn/start")["params"]["clientUserMessageId"],
        "next"
    );
}

#[test]
fn a_permission_is_asked_and_goes_with_its_turn() {
    let mut stage = working();
    let params = json!({"threadId": MAIN, "command": "make"});
    let method = "item/commandExecution/requestApproval";
    stage.say(&json!({"id": 0, "method": method, "params": params}));
    let written = stage.act(|driver, out| driver.decide("0", false, out));
    assert_eq!(written[0]["result"]["decision"], "decline");
    stage.say(&json!({"id": 1, "method": method, "params": params}));
    turn_completed(&mut stage, MAIN, "t1", "interrupted");
    let question = "1".to_owned();
    assert!(stage.effects.contains(&Effect::AskWithdrawn { question }));
}

#[test]
fn a_program_that_ends_leaves_no_steer_open() {
    let mut stage = working();
    put(&mut stage, "handed");
    put(&mut stage, "kept");
    stage.act(|driver, out| driver.ended(false, out));
    assert_eq!(stage.receipts("handed"), [SteerState::Unknown]);
    assert_eq!(stage.receipts("kept"), [SteerState::Dropped]);
    assert_eq!(stage.ends(), []);
}

#[test]
fn a_driver_without_a_prompt_is_refused() {
    let refusal = crate::driver::create("codex", task("", &[])).expect_err("a refusal");
    assert_eq!(refusal.code, handover_protocol::ErrorCode::BadParams);
}
