//! A steer is put to a program when it was asked for, where the program's protocol can.

use handover_model::{Hold, Reply};
use serde_json::json;

use crate::support::{Gate, LONG, Program, Stage};

const TASK: &str = "the-task";
const TEXT: &str = "turn-left-instead";

fn steer(stage: &Stage, agent: &str, when: &str) {
    let params = json!({"id": agent, "steerId": "s1", "text": TEXT, "when": when});
    stage.session.wire().done("steer", params);
}

/// A steer for the end of the turn is not in what the model is asked after the tool, but in the turn
/// after that.
fn at_the_end_of_the_turn(program: Program) {
    let stage = Stage::new(program);
    let gate = Gate::new(&stage.session.place);
    let script = [
        Reply::shell(gate.command()),
        Reply::text("after the tool"),
        Reply::text("and then"),
    ];
    stage.model.script(TASK, script);
    let agent = stage.spawn(TASK);
    gate.reached();
    steer(&stage, &agent, "turn_end");
    gate.open();
    assert_eq!(stage.end("s1", TEXT), "answered");
    stage.becomes(&agent, "done");
    let requests = stage.model.requests();
    let mut steps = requests.iter().filter(|request| request.is_turn());
    let after_the_tool = steps.find(|request| request.tool_results().next().is_some());
    let after_the_tool = after_the_tool.expect("a step after the tool");
    assert!(!after_the_tool.holds(TEXT), "{:?}", after_the_tool.messages);
    assert_eq!(stage.result(&agent)["text"], "and then");
}

#[test]
fn codex_at_the_end_of_the_turn() {
    at_the_end_of_the_turn(Program::Codex);
}

#[test]
fn claude_at_the_end_of_the_turn() {
    at_the_end_of_the_turn(Program::Claude);
}

/// A steer that is to be put at once does not wait for the model to end what it says.
#[test]
fn claude_at_once() {
    let stage = Stage::new(Program::Claude);
    let hold = Hold::new();
    let half = Reply::text("half a sentence ").hold(&hold);
    let heard = Reply::text("heard at once");
    stage.model.script(TASK, [half, heard]);
    let agent = stage.spawn(TASK);
    assert!(hold.reached(LONG), "the program asks its model");
    steer(&stage, &agent, "now");
    assert_eq!(stage.end("s1", TEXT), "answered");
    stage.becomes(&agent, "done");
    assert_eq!(stage.result(&agent)["text"], "heard at once");
}
