//! Subagents that a program starts by itself are agents too: listed below it, steered directly where
//! the program's protocol has a way, and else with the reason why not.

use std::time::Duration;

use handover_model::{Hold, Outcome, Reply, Request};
use serde_json::{Value, json};

use crate::support::{Gate, LONG, Program, Stage, eventually, holds_for};

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

/// The name that codex gave the subagent which it started, as its model was told.
fn spawned_by_codex(request: &Request) -> Option<String> {
    let result = request
        .tool_results()
        .find(|result| result.contains("agent_id"))?;
    let result: Value = serde_json::from_str(result).ok()?;
    Some(result["agent_id"].as_str()?.to_owned())
}

#[test]
fn a_subagent_that_codex_closes_has_ended_and_nobody_waits_for_it() {
    let stage = Stage::new(Program::Codex);
    let gate = Gate::new(&stage.session.place);
    let hold = Hold::new();
    let errand = [Reply::shell(gate.command()), Reply::text("never said")];
    stage.model.script(ERRAND, errand);
    let close = {
        let hold = hold.clone();
        move |request: &Request| {
            let target =
                spawned_by_codex(request).filter(|_| request.tool_results().count() == 1)?;
            Some(Reply::after(&hold).and_tool("close_agent", json!({"target": target})))
        }
    };
    stage.model.rule(close);
    let replies = [codex_spawns(), Reply::text("closed it")];
    stage.model.script(TASK, replies);
    let agent = stage.spawn(TASK);
    gate.reached();
    hold.release();
    stage.becomes(&agent, "done");
    assert_eq!(stage.result(&agent)["text"], "closed it");
    let mut agents = stage.agents().into_iter();
    let child = agents.find(|one| one["parent"] == agent.as_str());
    assert_eq!(child.expect("a subagent")["status"], "aborted");
    stage.nothing_runs(&gate.mark());
}

/// An agent whose turn has ended is not done while a subagent of its still works.
fn outlived(program: Program, spawns: Reply) {
    let (stage, agent, child, gate, hold) = nested(program, spawns);
    hold.release();
    let said_its_last = |request: &Request| {
        let told = request.holds(TASK) && request.tool_results().next().is_some();
        told && request.outcome == Outcome::Whole
    };
    let turn = stage.model.await_request(said_its_last, LONG);
    assert!(turn.is_some(), "the parent's turn ends");
    let both_work = || stage.status(&agent) == "running" && stage.status(id(&child)) == "running";
    holds_for("both work", Duration::from_millis(500), both_work);
    gate.open();
    stage.becomes(id(&child), "done");
    stage.becomes(&agent, "done");
    assert!(stage.model.answered(ERRAND));
}

#[test]
fn a_subagent_of_codex_outlives_its_parents_turn() {
    outlived(Program::Codex, codex_spawns());
}

#[test]
fn a_subagent_of_claude_outlives_its_parents_turn() {
    outlived(Program::Claude, claude_spawns());
}
