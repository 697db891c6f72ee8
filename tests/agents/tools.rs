//! An agent that runs in a program with MCP has Handover's tools, and is known there as itself.

use handover_model::{Reply, Request};
use serde_json::json;

use crate::support::{LONG, Program, Stage};

const TASK: &str = "the-task";

/// The program's model lists the agents below it, with our tool by the program's name for it.
fn lists_its_agents(program: Program, tool: &str) {
    let stage = Stage::new(program);
    let call = Reply::tool(tool, json!({}));
    stage.model.script(TASK, [call, Reply::text("seen")]);
    let agent = stage.spawn(TASK);
    let answered = |request: &Request| request.tool_results().next().is_some();
    let answered = stage.model.await_request(answered, LONG);
    let request = answered.expect("the tool's answer");
    let results: Vec<&str> = request.tool_results().collect();
    assert!(
        results.iter().any(|result| result.contains("\"agents\"")),
        "{results:?}"
    );
    stage.becomes(&agent, "done");
}

#[test]
fn of_codex() {
    lists_its_agents(Program::Codex, "agent_list");
}

#[test]
fn of_claude() {
    lists_its_agents(Program::Claude, "mcp__handover__agent_list");
}
