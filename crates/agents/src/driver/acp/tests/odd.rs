//! What did not come up in the transcripts.

use super::*;
use crate::driver::ToolServer;

fn failures(stage: &Stage) -> Vec<&str> {
    stage
        .effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Fail(reason) => Some(reason.as_str()),
            _ => None,
        })
        .collect()
}

fn ask(stage: &mut Stage, id: u64, options: Value) -> Vec<Value> {
    stage.say(&json!({
        "jsonrpc": "2.0", "id": id, "method": "session/request_permission",
        "params": {
            "sessionId": "s1",
            "toolCall": {"toolCallId": "c1", "title": "rm -r x", "kind": "execute"},
            "options": options,
        },
    }))
}

fn once() -> Value {
    json!([
        {"optionId": "a", "name": "Always", "kind": "allow_always"},
        {"optionId": "y", "name": "Yes", "kind": "allow_once"},
        {"optionId": "n", "name": "No", "kind": "reject_once"},
    ])
}

#[test]
fn a_task_without_a_command_or_a_prompt_is_refused() {
    assert!(create("acp", task("go", &[])).is_err());
    assert!(create("acp", task(" ", &["agent"])).is_err());
    let (program, _) = create("acp", task("go", &["agent", "--acp"])).expect("acp");
    assert_eq!(program.argv, ["agent", "--acp"]);
}

#[test]
fn an_agent_is_offered_no_files_and_no_terminal_and_given_our_tools() {
    let mut with_tools = task("go", &["agent"]);
    with_tools.tools = Some(ToolServer {
        command: vec!["handover".to_owned(), "mcp".to_owned()],
        env: [("HANDOVER_AGENT".to_owned(), "abc234".to_owned())].into(),
    });
    let mut stage = Stage::begin("acp", with_tools, key);
    let offered = &stage.written[0]["params"]["clientCapabilities"];
    assert_eq!(offered["fs"]["readTextFile"], false);
    assert_eq!(offered["terminal"], false);
    answer_last(&mut stage, "initialize", json!({"protocolVersion": 1}));
    assert_eq!(
        last(&stage, "session/new")["params"],
        json!({"cwd": "/home/user/project", "mcpServers": [{
            "name": "handover", "command": "handover", "args": ["mcp"],
            "env": [{"name": "HANDOVER_AGENT", "value": "abc234"}],
        }]})
    );
    let refused = stage.say(&json!({
        "jsonrpc": "2.0", "id": "f", "method": "fs/read_text_file", "params": {},
    }));
    assert_eq!(refused[0]["error"]["code"], -32601);
    assert_eq!(refused[0]["id"], "f");
}

#[test]
fn an_agent_that_wants_a_login_fails_with_how_to() {
    let mut stage = begin("go");
    let logins = json!([{"id": "key", "name": "API key"}, {"id": "web", "name": "Web login"}]);
    answer_last(
        &mut stage,
        "initialize",
        json!({"protocolVersion": 1, "authMethods": logins}),
    );
    refuse_last(&mut stage, "session/new", -32000, "Authentication required");
    let failures = failures(&stage);
    assert_eq!(failures.len(), 1);
    assert!(
        failures[0].contains("Authentication required")
            && failures[0].contains("(it offers: API key, Web login)"),
        "{failures:?}"
    );

    let mut late = plain();
    refuse_last(&mut late, "session/prompt", -32000, "Login expired");
    assert!(
        matches!(late.effects.last(), Some(Effect::Fail(reason)) if reason.contains("expired"))
    );
}

#[test]
fn an_agent_of_another_version_fails() {
    let mut stage = begin("go");
    answer_last(&mut stage, "initialize", json!({"protocolVersion": 2}));
    assert_eq!(
        failures(&stage),
        ["the agent speaks version 2 of the agent client protocol, and Handover speaks 1"]
    );
    let mut stage = begin("go");
    refuse_last(&mut stage, "initialize", -32603, "broken");
    assert_eq!(failures(&stage), ["the agent opens no session: broken"]);
}

#[test]
fn a_turn_that_fails_or_stops_short_says_why() {
    let mut stage = plain();
    let id = last(&stage, "session/prompt")["id"].clone();
    let error = json!({"code": -32603, "message": "Internal error", "data": {"details": "503"}});
    stage.say(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
    assert_eq!(
        stage.ends(),
        [(String::new(), Some("Internal error: 503".to_owned()))]
    );
    for stop in ["refusal", "max_tokens", "cancelled"] {
        let mut stage = plain();
        says(&mut stage, "half");
        end_prompt(&mut stage, stop);
        let error = format!("the agent stopped: {stop}");
        assert_eq!(stage.ends(), [("half".to_owned(), Some(error))]);
    }
}

#[test]
fn steers_wait_and_are_put_one_at_a_time_in_order() {
    let mut stage = plain();
    for i in 0..100 {
        assert_eq!(
            put(&mut stage, &format!("s{i}"), &format!("text {i}")),
            Vec::<Value>::new()
        );
    }
    for i in 0..100 {
        let written = end_prompt(&mut stage, "end_turn");
        assert_eq!(written.len(), 1);
        assert_eq!(text(&written[0]), format!("text {i}"));
    }
    says(&mut stage, "done");
    end_prompt(&mut stage, "end_turn");
    for i in 0..100 {
        assert_eq!(stage.receipts(&format!("s{i}")), [Answered]);
    }
    assert_eq!(stage.ends(), [("done".to_owned(), None)]);
}

#[test]
fn a_steer_at_once_cancels_and_comes_next() {
    let mut stage = plain();
    put(&mut stage, "later", "later");
    let written = put_when(&mut stage, "now", "now", SteerWhen::Now);
    assert_eq!(written[0]["method"], "session/cancel");
    assert_eq!(
        put_when(&mut stage, "then", "then", SteerWhen::Now),
        Vec::<Value>::new()
    );
    let written = end_prompt(&mut stage, "cancelled");
    assert_eq!(text(&written[0]), "now");
    assert_eq!(text(&end_prompt(&mut stage, "end_turn")[0]), "then");
    assert_eq!(text(&end_prompt(&mut stage, "end_turn")[0]), "later");
    end_prompt(&mut stage, "end_turn");
    assert_eq!(stage.receipts("now"), [Answered]);
    assert_eq!(stage.ends(), [(String::new(), None)]);
    assert_eq!(stage.count(&Effect::TurnBegan), 1);
}

#[test]
fn when_is_what_the_agent_can() {
    let when = |stage: &Stage| -> Capabilities { stage.driver.capabilities() };
    assert_eq!(when(&plain()).when, [SteerWhen::TurnEnd, SteerWhen::Now]);
    assert_eq!(when(&steering()).when[0], SteerWhen::NextStep);
}

#[test]
fn a_message_that_the_agent_does_not_take_into_its_turn_becomes_a_prompt() {
    let mut stage = steering();
    put(&mut stage, "s", "late");
    answer_last(
        &mut stage,
        "_session/steering",
        json!({"outcome": "promptRequired"}),
    );
    assert_eq!(stage.receipts("s"), []);
    let written = end_prompt(&mut stage, "end_turn");
    assert_eq!(written[0]["method"], "session/prompt");
    end_prompt(&mut stage, "end_turn");
    assert_eq!(stage.receipts("s"), [Answered]);

    // The turn ended before the agent said so.
    let mut stage = steering();
    put(&mut stage, "s", "late");
    end_prompt(&mut stage, "end_turn");
    assert_eq!(stage.ends(), [], "it may still go on");
    answer_last(
        &mut stage,
        "_session/steering",
        json!({"outcome": "promptRequired"}),
    );
    assert_eq!(text(&last(&stage, "session/prompt")), "late");

    // It only says that it can.
    let mut stage = steering();
    put(&mut stage, "s", "text");
    refuse_last(&mut stage, "_session/steering", -32601, "Method not found");
    assert_eq!(stage.receipts("s"), []);
    assert_eq!(text(&end_prompt(&mut stage, "end_turn")[0]), "text");

    let mut stage = steering();
    put(&mut stage, "s", "text");
    answer_last(
        &mut stage,
        "_session/steering",
        json!({"outcome": "failed", "reason": "compacting"}),
    );
    assert_eq!(stage.receipts("s"), [Dropped]);
}

#[test]
fn a_command_of_the_agent_is_not_said_to_be_answered_by_the_model() {
    let mut stage = plain();
    put(&mut stage, "s", "/help");
    end_prompt(&mut stage, "end_turn");
    end_prompt(&mut stage, "end_turn");
    assert_eq!(stage.receipts("s"), [Unknown]);
}

#[test]
fn a_question_is_answered_with_the_least_that_was_allowed() {
    let chosen = |stage: &mut Stage, allow| {
        let written = stage.act(|acp, out| acp.decide("7", allow, out));
        written[0]["result"]["outcome"].clone()
    };
    let mut stage = plain();
    ask(&mut stage, 7, once());
    assert_eq!(chosen(&mut stage, true)["optionId"], "y");
    ask(&mut stage, 7, once());
    assert_eq!(chosen(&mut stage, false)["optionId"], "n");
    ask(
        &mut stage,
        7,
        json!([{"optionId": "a", "name": "Always", "kind": "allow_always"}]),
    );
    assert!(stage.effects.iter().any(|effect| matches!(
        effect,
        Effect::Ask { what, .. } if what == "rm -r x\n(yes allows it from now on)"
    )));
    assert_eq!(chosen(&mut stage, false)["outcome"], "cancelled");
    let written = ask(&mut stage, 7, json!([]));
    assert_eq!(written[0]["result"]["outcome"]["outcome"], "cancelled");
}

#[test]
fn open_questions_end_with_the_interrupt_and_are_bounded() {
    let mut stage = plain();
    for id in 10..50 {
        ask(&mut stage, id, once());
    }
    let asked = |stage: &Stage| {
        let is_ask = |effect: &&Effect| matches!(effect, Effect::Ask { .. });
        stage.effects.iter().filter(is_ask).count()
    };
    assert_eq!(asked(&stage), super::super::questions::MAX_OPEN);
    let written = stage.act(|acp, out| acp.interrupt(out));
    assert_eq!(written[0]["method"], "session/cancel");
    assert_eq!(written[1]["result"]["outcome"]["outcome"], "cancelled");
    assert_eq!(written.len(), 1 + super::super::questions::MAX_OPEN);
    // One that crossed with it.
    let written = ask(&mut stage, 60, once());
    assert_eq!(written[0]["result"]["outcome"]["outcome"], "cancelled");
}

#[test]
fn the_result_is_the_last_message_and_bounded() {
    let mut stage = plain();
    says(&mut stage, "first I look");
    let call =
        json!({"sessionUpdate": "tool_call", "toolCallId": "c", "kind": "read", "title": "a"});
    update(&mut stage, call);
    says(&mut stage, "it is ");
    says(&mut stage, "done");
    end_prompt(&mut stage, "end_turn");
    assert_eq!(stage.ends(), [("it is done".to_owned(), None)]);
    // The call that nobody ended has ended with the turn.
    assert!(
        stage
            .effects
            .iter()
            .any(|effect| matches!(effect, Effect::Tool { ended: true, .. }))
    );

    let mut stage = plain();
    let long = "ä".repeat(super::super::turns::MAX_RESULT);
    says(&mut stage, &long);
    says(&mut stage, &long);
    end_prompt(&mut stage, "end_turn");
    let (text, _) = &stage.ends()[0];
    assert!(text.ends_with("\n[more is in the output file]"));
    assert!(text.len() < super::super::turns::MAX_RESULT + 100);
}

#[test]
fn a_notice_of_the_agent_is_told_and_is_no_result() {
    let mut stage = plain();
    says(&mut stage, "done");
    let notice = json!({
        "sessionUpdate": "agent_message_chunk",
        "content": {"type": "text", "text": "a new version is out"},
        "_meta": {"claudeCode": {"kind": "informational", "level": "warning"}},
    });
    update(&mut stage, notice);
    end_prompt(&mut stage, "end_turn");
    assert_eq!(stage.text(), "donea new version is out");
    assert_eq!(stage.ends(), [("done".to_owned(), None)]);
}

#[test]
fn news_of_another_session_is_passed_over() {
    let mut stage = plain();
    stage.say(
        &json!({"jsonrpc": "2.0", "method": "session/update", "params": {
            "sessionId": "other",
            "update": {"sessionUpdate": "agent_message_chunk", "content": {"text": "hi"}},
        }}),
    );
    assert_eq!(stage.text(), "");
}

#[test]
fn a_crash_leaves_what_was_kept_dropped_and_the_rest_unknown() {
    let mut stage = steering();
    put(&mut stage, "a", "injected");
    answer_last(
        &mut stage,
        "_session/steering",
        json!({"outcome": "injected"}),
    );
    put(&mut stage, "b", "unanswered");
    put(&mut stage, "c", "kept");
    stage.act(|acp, out| acp.ended(false, out));
    assert_eq!(stage.receipts("a"), [Queued, Unknown]);
    assert_eq!(stage.receipts("b"), [Unknown]);
    assert_eq!(stage.receipts("c"), [Dropped]);
}

#[test]
fn an_interrupt_before_the_session_opens_settles_and_sends_no_prompt() {
    let mut stage = begin("go");
    stage.act(|acp, out| acp.interrupt(out));
    assert_eq!(stage.count(&Effect::Settled), 1);
    answer_last(&mut stage, "initialize", json!({"protocolVersion": 1}));
    let written = answer_last(&mut stage, "session/new", json!({"sessionId": "s1"}));
    assert_eq!(written, Vec::<Value>::new());
}

#[test]
fn what_is_of_no_known_shape_ends_nothing() {
    let mut stage = plain();
    stage.say(&json!({"jsonrpc": "2.0", "id": 99, "error": "x"}));
    stage.say(
        &json!({"jsonrpc": "2.0", "id": "q", "method": "session/request_permission", "params": [1]}),
    );
    stage.say(&json!({"jsonrpc": "2.0", "id": 1, "result": [1]}));
    assert_eq!(stage.ends().len(), 0);
    answer_last(&mut stage, "session/prompt", json!({}));
    assert_eq!(stage.ends().len(), 1);
}

#[test]
fn a_turn_that_ends_without_saying_how_answers_nothing() {
    let mut stage = plain();
    end_prompt(&mut stage, "end_turn");
    put(&mut stage, "a", "hello");
    answer_last(&mut stage, "session/prompt", json!({}));
    assert_eq!(stage.receipts("a").last(), Some(&Unknown));
}
