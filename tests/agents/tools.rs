//! An agent that runs in a program with MCP has Handover's tools, and is known there as itself.

use handover_model::{Reply, Request};
use serde_json::{Value, json};

use crate::support::{LONG, Program, Shell, Stage};

const TASK: &str = "the-task";

/// What one of our tools answers to the program's model, which knows it as `tool`. The program asks
/// people before it uses its own shell.
fn answer(program: Program, tool: &str, arguments: Value) -> String {
    let stage = Stage::with(program, Shell::Asks, &[]);
    let call = Reply::tool(tool, arguments);
    stage.model.script(TASK, [call, Reply::text("seen")]);
    let agent = stage.spawn(TASK);
    let answered = |request: &Request| request.tool_results().next().is_some();
    let request = stage.model.await_request(answered, LONG);
    let request = request.expect("the tool's answer");
    stage.becomes(&agent, "done");
    request.tool_results().collect()
}

#[test]
fn codex_lists_its_agents() {
    let answer = answer(Program::Codex, "agent_list", json!({}));
    assert!(answer.contains("\"agents\""), "{answer}");
}

#[test]
fn claude_lists_its_agents() {
    let answer = answer(Program::Claude, "mcp__handover__agent_list", json!({}));
    assert!(answer.contains("\"agents\""), "{answer}");
}

/// What an agent may do with Handover is for Handover to say; nobody is asked each time.
#[test]
fn codex_asks_nobody() {
    let answer = answer(Program::Codex, "agent_abort", json!({"id": "nobody"}));
    assert!(answer.contains("caller_refused"), "{answer}");
}

#[test]
fn claude_asks_nobody() {
    let tool = "mcp__handover__agent_abort";
    let answer = answer(Program::Claude, tool, json!({"id": "nobody"}));
    assert!(answer.contains("caller_refused"), "{answer}");
}
