//! What did not come up in the transcripts.

use handover_protocol::SteerWhen;

use super::*;
use crate::driver::Steer;

/// pi 1.x at work on its first prompt.
fn working() -> Stage {
    let mut stage = prompted("go");
    answer_prompt(&mut stage, json!({"disposition": "started"}));
    stage.say(&event("agent_start"));
    stage.say(&user("message_end", "go"));
    stage
}

fn put(stage: &mut Stage, id: &str, text: &str) -> Vec<Value> {
    stage.act(|pi, out| pi.steer(steer(id, text), out))
}

#[test]
fn the_conversation_is_not_kept_unless_asked_for() {
    let argv = |args: &[&str]| create("pi", task("go", args)).expect("pi").0.argv;
    assert_eq!(argv(&[]), ["pi", "--mode", "rpc", "--no-session"]);
    assert_eq!(
        argv(&["--model", "m"]),
        ["pi", "--mode", "rpc", "--no-session", "--model", "m"]
    );
    assert_eq!(argv(&["--continue"]), ["pi", "--mode", "rpc", "--continue"]);
}

#[test]
fn a_task_that_pi_cannot_take_is_refused() {
    assert!(create("pi", task(" ", &[])).is_err());
    assert!(create("pi", task("go", &["--mode", "json"])).is_err());
    assert!(create("pi", task("go", &["-p"])).is_err());
}

#[test]
fn one_message_waits_for_the_answer_to_the_one_before() {
    let mut stage = working();
    assert_eq!(put(&mut stage, "a", "one").len(), 1);
    assert_eq!(put(&mut stage, "b", "two"), Vec::<Value>::new());
    stage.say(&queues(&["one"], &[]));
    let written = answer_prompt(&mut stage, json!({"disposition": "queued"}));
    assert_eq!(written[0]["message"], "two");
    assert_eq!(stage.receipts("a"), [Queued]);
    assert_eq!(stage.receipts("b"), []);
}

#[test]
fn a_hundred_messages_are_put_in_order() {
    let mut stage = working();
    for i in 0..100 {
        put(&mut stage, &format!("s{i}"), &format!("text {i}"));
    }
    for i in 0..100 {
        assert_eq!(last(&stage, "prompt")["message"], format!("text {i}"));
        answer_prompt(&mut stage, json!({"disposition": "queued"}));
    }
    for i in 0..100 {
        stage.say(&user("message_end", &format!("text {i}")));
        stage.say(&model("message_start", "", "pending"));
        stage.say(&model("message_end", "yes", "stop"));
    }
    for i in 0..100 {
        assert_eq!(
            stage.receipts(&format!("s{i}")),
            [Queued, Inserted, Sent, Answered]
        );
    }
}

#[test]
fn the_same_words_twice_are_two_messages() {
    let mut stage = working();
    // The prompt itself says the same.
    for id in ["a", "b"] {
        put(&mut stage, id, "again");
        stage.say(&queues(&["again"], &[]));
        answer_prompt(&mut stage, json!({"disposition": "queued"}));
    }
    stage.say(&queues(&["again", "again"], &[]));
    stage.say(&user("message_end", "again"));
    stage.say(&model("message_start", "", "pending"));
    stage.say(&model("message_end", "first", "stop"));
    assert_eq!(stage.receipts("a"), [Queued, Inserted, Sent, Answered]);
    assert_eq!(stage.receipts("b"), [Queued]);
    stage.say(&user("message_end", "again"));
    assert_eq!(stage.receipts("b"), [Queued, Inserted]);
}

#[test]
fn a_message_with_the_words_of_the_prompt_is_not_taken_for_it() {
    let mut stage = prompted("same");
    answer_prompt(&mut stage, json!({"disposition": "started"}));
    stage.say(&event("agent_start"));
    put(&mut stage, "s", "same");
    stage.say(&user("message_end", "same"));
    stage.say(&model("message_start", "", "pending"));
    stage.say(&model("message_end", "done", "toolUse"));
    assert_eq!(stage.receipts("s"), []);
}

#[test]
fn a_command_of_pi_is_followed_by_what_it_stands_for() {
    let mut stage = working();
    put(&mut stage, "s", "/skill:review now");
    stage.say(&queues(&["<skill>review</skill> now"], &[]));
    assert_eq!(stage.receipts("s"), [Queued]);
    stage.say(&user("message_end", "<skill>review</skill> now"));
    assert_eq!(stage.receipts("s"), [Queued, Inserted]);
}

#[test]
fn a_message_crossing_with_the_end_begins_the_turn_again() {
    let mut stage = working();
    put(&mut stage, "s", "late");
    stage.say(&model("message_end", "done", "stop"));
    stage.say(&event("agent_settled"));
    assert_eq!(stage.ends(), [], "pi has not said what becomes of it");
    answer_prompt(&mut stage, json!({"disposition": "started"}));
    stage.say(&event("agent_start"));
    stage.say(&user("message_end", "late"));
    stage.say(&model("message_start", "", "pending"));
    stage.say(&model("message_end", "more", "stop"));
    stage.say(&event("agent_settled"));
    assert_eq!(stage.receipts("s"), [Inserted, Sent, Answered]);
    assert_eq!(stage.ends(), [("more".to_owned(), None)]);
    assert_eq!(stage.count(&Effect::TurnBegan), 1);
}

#[test]
fn the_same_with_an_old_pi_that_was_not_at_its_end_after_all() {
    let mut stage = prompted("go");
    answer_prompt(&mut stage, Value::Null);
    stage.say(&event("agent_start"));
    stage.say(&json!({"type": "turn_end", "message": {"role": "assistant", "stopReason": "stop"}}));
    put(&mut stage, "s", "late");
    answer_state(&mut stage, false);
    stage.say(&queues(&["late"], &[]));
    answer_prompt(&mut stage, Value::Null);
    answer_state(&mut stage, true);
    put(&mut stage, "t", "later");
    assert_eq!(last(&stage, "prompt")["message"], "later");
}

#[test]
fn what_pi_refuses_is_dropped_with_its_reason() {
    let mut stage = working();
    put(&mut stage, "s", "no");
    let id = last(&stage, "prompt")["id"].clone();
    stage.say(&json!({
        "id": id, "type": "response", "command": "prompt", "success": false, "error": "not now",
    }));
    assert_eq!(stage.receipts("s"), [Dropped]);
    assert!(stage.effects.iter().any(|effect| matches!(
        effect,
        Effect::Receipt { reason: Some(reason), .. } if reason == "pi refused it: not now"
    )));
}

#[test]
fn a_steer_that_an_idle_pi_refuses_ends_its_turn_as_it_was() {
    let mut stage = working();
    stage.say(&model("message_end", "done", "stop"));
    stage.say(&event("agent_settled"));
    put(&mut stage, "s", "more");
    let id = last(&stage, "prompt")["id"].clone();
    stage.say(&json!({
        "id": id, "type": "response", "command": "prompt", "success": false, "error": "no key",
    }));
    assert_eq!(stage.receipts("s"), [Dropped]);
    let done = ("done".to_owned(), None);
    assert_eq!(stage.ends(), [done.clone(), done]);
}

#[test]
fn a_first_prompt_that_is_refused_is_a_failed_turn() {
    let mut stage = prompted("go");
    let id = last(&stage, "prompt")["id"].clone();
    stage.say(&json!({
        "id": id, "type": "response", "command": "prompt", "success": false,
        "error": "No model selected.",
    }));
    assert_eq!(
        stage.ends(),
        [(String::new(), Some("No model selected.".to_owned()))]
    );
    assert_eq!(stage.count(&Effect::TurnBegan), 1);
}

#[test]
fn a_prompt_that_an_extension_takes_is_the_whole_turn() {
    let mut stage = prompted("/hello");
    answer_prompt(&mut stage, json!({"disposition": "handled"}));
    assert_eq!(stage.ends(), [(String::new(), None)]);

    let mut old = prompted("/hello");
    answer_prompt(&mut old, Value::Null);
    put(&mut old, "s", "then this");
    assert_eq!(old.receipts("s"), []);
    answer_state(&mut old, false);
    assert_eq!(last(&old, "prompt")["message"], "then this");
}

#[test]
fn an_error_of_the_model_is_that_of_the_turn_once_pi_gives_up() {
    let mut stage = prompted("go");
    answer_prompt(&mut stage, Value::Null);
    stage.say(&event("agent_start"));
    put(&mut stage, "s", "steer");
    stage.say(&user("message_end", "steer"));
    for (attempt, last) in [(1, false), (2, true)] {
        stage.say(&model("message_start", "", "error"));
        stage.say(&json!({"type": "message_end", "message": {
            "role": "assistant", "content": [], "stopReason": "error", "errorMessage": "503 busy",
        }}));
        stage.say(&json!({"type": "agent_end", "messages": []}));
        if last {
            stage.say(&json!({"type": "auto_retry_end", "success": false, "attempt": attempt}));
        } else {
            stage.say(&json!({"type": "auto_retry_start", "attempt": attempt}));
            answer_state(&mut stage, false);
            assert_eq!(stage.ends(), [], "it tries again");
            answer_prompt(&mut stage, Value::Null);
            assert_eq!(put(&mut stage, "t", "meanwhile"), Vec::<Value>::new());
            let written = stage.say(&event("agent_start"));
            assert_eq!(written[0]["message"], "meanwhile");
        }
    }
    answer_prompt(&mut stage, Value::Null);
    answer_state(&mut stage, false);
    assert_eq!(stage.ends(), [(String::new(), Some("503 busy".to_owned()))]);
    assert_eq!(
        stage.receipts("s"),
        [Inserted, Unknown],
        "whether the server saw it, pi does not show"
    );
}

#[test]
fn a_failure_that_only_the_end_of_the_run_tells_is_told() {
    let mut stage = prompted("go");
    answer_prompt(&mut stage, Value::Null);
    stage.say(&event("agent_start"));
    stage.say(&json!({"type": "agent_end", "messages": [{
        "role": "assistant", "content": [{"type": "text", "text": ""}],
        "stopReason": "error", "errorMessage": "broken",
    }]}));
    answer_state(&mut stage, false);
    assert_eq!(stage.ends(), [(String::new(), Some("broken".to_owned()))]);
}

#[test]
fn nothing_is_put_to_pi_while_it_shortens_its_context() {
    let mut stage = working();
    put(&mut stage, "a", "crossing");
    stage.say(&event("compaction_start"));
    let id = last(&stage, "prompt")["id"].clone();
    stage.say(&json!({
        "id": id, "type": "response", "command": "prompt", "success": false, "error": "compacting",
    }));
    assert_eq!(stage.receipts("a"), [], "it is put to pi again");
    assert_eq!(put(&mut stage, "b", "meanwhile"), Vec::<Value>::new());
    let written = stage.say(&json!({"type": "compaction_end", "willRetry": false}));
    assert_eq!(written[0]["message"], "crossing");
}

#[test]
fn what_pi_leaves_in_its_queue_is_cleared_and_dropped() {
    let mut stage = working();
    put(&mut stage, "s", "left");
    stage.say(&queues(&["left"], &[]));
    answer_prompt(&mut stage, json!({"disposition": "queued"}));
    stage.say(&model("message_end", "done", "stop"));
    let written = stage.say(&event("agent_settled"));
    assert_eq!(written, [json!({"type": "clear_queue"})]);
    assert_eq!(stage.receipts("s"), [Queued, Dropped]);
}

#[test]
fn a_message_at_once_cuts_the_run_short_and_comes_next() {
    let mut stage = working();
    put(&mut stage, "q", "queued");
    stage.say(&queues(&["queued"], &[]));
    let put_now = |stage: &mut Stage, id: &str, text: &str| {
        let steer = Steer {
            when: SteerWhen::Now,
            ..steer(id, text)
        };
        stage.act(|pi, out| pi.steer(steer, out))
    };
    assert_eq!(
        put_now(&mut stage, "n", "now"),
        Vec::<Value>::new(),
        "pi has not answered"
    );
    put(&mut stage, "l", "later");
    let written = answer_prompt(&mut stage, json!({"disposition": "queued"}));
    assert_eq!(written.len(), 1);
    assert_eq!(written[0]["type"], "abort");
    assert_eq!(put_now(&mut stage, "m", "also now"), Vec::<Value>::new());
    // As it answers an abort: with what was queued in its history, and nothing sent.
    stage.say(&user("message_end", "queued"));
    stage.say(&model("message_start", "", "aborted"));
    stage.say(&model("message_end", "", "aborted"));
    let written = stage.say(&event("agent_settled"));
    assert_eq!(written[0]["message"], "now");
    answer_prompt(&mut stage, json!({"disposition": "started"}));
    stage.say(&event("agent_start"));
    assert_eq!(last(&stage, "prompt")["message"], "also now");
    stage.say(&user("message_end", "now"));
    stage.say(&model("message_start", "", "pending"));
    stage.say(&model("message_end", "yes", "stop"));
    assert_eq!(stage.receipts("n"), [Inserted, Sent, Answered]);
    assert_eq!(stage.receipts("q"), [Queued, Inserted, Sent, Answered]);
    assert_eq!(stage.count(&Effect::TurnBegan), 1);
    assert_eq!(stage.ends(), []);
}

#[test]
fn a_message_at_once_to_an_idle_pi_is_just_the_next() {
    let mut stage = working();
    stage.say(&model("message_end", "done", "stop"));
    stage.say(&event("agent_settled"));
    let now = Steer {
        when: SteerWhen::Now,
        ..steer("n", "now")
    };
    let written = stage.act(|pi, out| pi.steer(now, out));
    assert_eq!(written[0]["message"], "now");
}

#[test]
fn an_abort_before_pi_has_begun_waits_for_it() {
    let mut stage = prompted("go");
    assert_eq!(
        stage.act(|pi, out| pi.interrupt(out)),
        Vec::<Value>::new(),
        "it would find nothing to end"
    );
    let written = answer_prompt(&mut stage, json!({"disposition": "started"}));
    assert_eq!(written[1]["type"], "abort");

    let mut unborn = Stage::begin("pi", task("go", &[]), key);
    unborn.act(|pi, out| pi.interrupt(out));
    assert!(unborn.effects.contains(&Effect::Settled));
    assert_eq!(answer_state(&mut unborn, false), Vec::<Value>::new());
}

#[test]
fn of_a_request_that_was_aborted_before_the_abort_was_taken_nothing_is_known() {
    let mut stage = working();
    put(&mut stage, "s", "in flight");
    answer_prompt(&mut stage, json!({"disposition": "queued"}));
    stage.say(&user("message_end", "in flight"));
    let written = stage.act(|pi, out| pi.interrupt(out));
    answer_state(&mut stage, true);
    stage.say(&model("message_start", "", "aborted"));
    stage.say(&model("message_end", "", "aborted"));
    stage.say(&json!({
        "id": written[1]["id"], "type": "response", "command": "abort", "success": true,
    }));
    assert_eq!(stage.receipts("s"), [Queued, Inserted, Unknown]);
}

#[test]
fn what_the_model_began_to_answer_was_sent() {
    let mut stage = working();
    put(&mut stage, "s", "seen");
    answer_prompt(&mut stage, json!({"disposition": "queued"}));
    stage.say(&user("message_end", "seen"));
    stage.say(&model("message_start", "", "pending"));
    stage.say(&json!({
        "type": "message_update",
        "assistantMessageEvent": {"type": "text_delta", "delta": "I"},
    }));
    stage.act(|pi, out| pi.ended(false, out));
    assert_eq!(stage.receipts("s"), [Queued, Inserted, Sent, Unknown]);
}

#[test]
fn a_crash_leaves_what_was_kept_dropped_and_the_rest_unknown() {
    let mut stage = working();
    put(&mut stage, "a", "handed");
    put(&mut stage, "b", "kept");
    stage.act(|pi, out| pi.ended(false, out));
    assert_eq!(stage.receipts("a"), [Unknown]);
    assert_eq!(stage.receipts("b"), [Dropped]);
}

#[test]
fn a_question_is_put_to_people_and_answered_as_they_say() {
    let mut stage = working();
    let ask = |stage: &mut Stage, id: &str, dialog: Value| {
        let mut dialog = dialog;
        dialog["type"] = json!("extension_ui_request");
        dialog["id"] = json!(id);
        stage.say(&dialog)
    };
    ask(
        &mut stage,
        "q1",
        json!({"method": "confirm", "title": "Run rm?", "message": "all of it"}),
    );
    ask(
        &mut stage,
        "q2",
        json!({"method": "select", "title": "Which?", "options": ["Block", "Allow once"]}),
    );
    let asked: Vec<&str> = stage
        .effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Ask { what, .. } => Some(what.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(
        asked,
        ["Run rm?\nall of it", "Which?\n(yes chooses \"Allow once\")"]
    );
    assert_eq!(
        stage.act(|pi, out| pi.decide("q1", false, out)),
        [json!({"type": "extension_ui_response", "id": "q1", "cancelled": true})]
    );
    assert_eq!(
        stage.act(|pi, out| pi.decide("q2", true, out)),
        [json!({"type": "extension_ui_response", "id": "q2", "value": "Allow once"})]
    );
    // What yes and no cannot answer is cancelled, and no person is asked.
    for dialog in [
        json!({"method": "select", "title": "Colour?", "options": ["red", "blue"]}),
        json!({"method": "input", "title": "Name?"}),
    ] {
        let written = ask(&mut stage, "q3", dialog);
        assert_eq!(written[0]["cancelled"], true);
    }
    assert_eq!(
        ask(
            &mut stage,
            "q4",
            json!({"method": "notify", "message": "hi"})
        ),
        Vec::<Value>::new()
    );
    // One that nobody answered is withdrawn when pi stops.
    ask(
        &mut stage,
        "q5",
        json!({"method": "confirm", "title": "Sure?"}),
    );
    stage.say(&event("agent_settled"));
    let withdrawn = Effect::AskWithdrawn {
        question: "q5".to_owned(),
    };
    assert!(stage.effects.contains(&withdrawn));
}

#[test]
fn open_questions_are_bounded() {
    let mut stage = working();
    for i in 0..40 {
        stage.say(&json!({
            "type": "extension_ui_request", "id": format!("q{i}"), "method": "confirm",
            "title": "?",
        }));
    }
    let asked = stage
        .effects
        .iter()
        .filter(|effect| matches!(effect, Effect::Ask { .. }))
        .count();
    assert_eq!(asked, super::super::dialog::MAX_OPEN);
}
