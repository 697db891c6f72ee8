//! Subagents that a program starts by itself are agents too: listed below it, steered directly where
//! the program's protocol has a way, and else with the reason why not.

use handover_model::{Hold, Reply};
use serde_json::{Value, json};

use crate::support::{Gate, LONG, Program, Stage, eventually};

const TASK: &str = "the-task";
const ERRAND: &str = "the-errand";
const TEXT: &str = "turn-left-instead";

/// A program whose agent has started a subagent with `call`: the parent's id, the subagent as it is
/// listed, the gate at which its tool stands, and the hold at which the parent does.
fn nested(program: Program, call: Reply) -> (Stage, String, Value, Gate, Hold) {
    let stage = Stage::new(program);
    let (gate, hold) = (Gate::new(&stage.session.place), Hold::new());
    let child = [
        Reply::shell(gate.command()),
        Reply::text("the errand is done"),
    ];
    stage.model.script(ERRAND, child);
    let done = Reply::after(&hold).say("the task is done");
    stage.model.script(TASK, [call, done]);
    let agent = stage.spawn(TASK);
    gate.reached();
    let listed = eventually("a subagent is listed", LONG, || {
        let mut agents = stage.agents().into_iter();
        agents.find(|one| one["parent"] == agent.as_str())
    });
    assert_eq!(listed["depth"], 1, "{listed}");
    assert_eq!(listed["type"], program.driver(), "{listed}");
    assert_eq!(listed["status"], "running", "{listed}");
    (stage, agent, listed, gate, hold)
}

/// The reply that makes codex start a subagent.
fn codex_spawns() -> Reply {
    Reply::tool("spawn_agent", json!({"message": ERRAND}))
}

/// The reply that makes Claude Code start a subagent.
fn claude_spawns() -> Reply {
    let call = json!({
        "description": "an errand", "prompt": ERRAND, "subagent_type": "general-purpose",
    });
    Reply::tool("Agent", call)
}

fn id(agent: &Value) -> &str {
    agent["id"].as_str().expect("an id")
}

#[test]
fn codex_subagents_are_steered_directly() {
    let (stage, agent, child, gate, hold) = nested(Program::Codex, codex_spawns());
    assert!(child["notSteerable"].is_null(), "{child}");
    stage.steers(id(&child), "s1", TEXT);
    stage.comes_to("s1", "queued");
    gate.open();
    assert_eq!(stage.end("s1", TEXT), "answered");
    let told = stage.model.requests();
    let mut told = told
        .iter()
        .filter(|request| request.user().any(|text| text == TEXT));
    assert!(
        told.all(|request| request.holds(ERRAND)),
        "only the subagent is told"
    );
    stage.becomes(id(&child), "done");
    assert_eq!(stage.result(id(&child))["text"], "the errand is done");
    hold.release();
    stage.becomes(&agent, "done");
}

#[test]
fn claude_subagents_are_listed_and_say_why_they_take_nothing() {
    let (stage, agent, child, gate, hold) = nested(Program::Claude, claude_spawns());
    let why = child["notSteerable"].as_str().expect("a reason");
    let refused = stage.steer(id(&child), "s1", TEXT).expect_err("a refusal");
    assert_eq!(refused.code, "not_steerable", "{refused:?}");
    assert!(refused.message.contains(why), "{refused:?}");
    gate.open();
    stage.becomes(id(&child), "done");
    hold.release();
    stage.becomes(&agent, "done");
    assert!(!stage.model.saw(TEXT));
}

/// A subagent is ended without its parent: its tool's processes are gone, and the parent goes on.
fn aborted_alone(program: Program, spawns: Reply) {
    let (stage, agent, child, gate, hold) = nested(program, spawns);
    let aborted = stage
        .session
        .wire()
        .done("abort", json!({"id": id(&child)}));
    assert_eq!(aborted["status"], "aborted", "{aborted}");
    stage.nothing_runs(&gate.mark());
    assert_eq!(stage.status(&agent), "running");
    hold.release();
    stage.becomes(&agent, "done");
    assert_eq!(stage.status(id(&child)), "aborted");
}

/// A subagent ends with its parent, and is named among those that did.
fn aborted_with_its_parent(program: Program, spawns: Reply) {
    let (stage, agent, child, gate, _hold) = nested(program, spawns);
    let aborted = stage.session.wire().done("abort", json!({"id": agent}));
    let below = json!([{"id": id(&child), "status": "aborted"}]);
    assert_eq!(aborted["descendants"], below, "{aborted}");
    assert_eq!(aborted["survivors"], json!([]), "{aborted}");
    stage.nothing_runs(&gate.mark());
}

#[test]
fn a_subagent_of_codex_is_aborted_alone() {
    aborted_alone(Program::Codex, codex_spawns());
}

#[test]
fn a_subagent_of_claude_is_aborted_alone() {
    aborted_alone(Program::Claude, claude_spawns());
}

#[test]
fn a_subagent_of_codex_is_aborted_with_its_parent() {
    aborted_with_its_parent(Program::Codex, codex_spawns());
}

#[test]
fn a_subagent_of_claude_is_aborted_with_its_parent() {
    aborted_with_its_parent(Program::Claude, claude_spawns());
}
