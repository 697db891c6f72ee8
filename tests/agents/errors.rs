//! What the model's provider refuses is told as the agent's error.

use handover_model::Reply;

use crate::support::{Program, Stage};

const TASK: &str = "the-task";

fn refused(program: Program, status: u16, told: &str) {
    let stage = Stage::new(program);
    let refusal = Reply::refusal(status, "there is no such model");
    stage
        .model
        .rule(move |request| request.is_turn().then(|| refusal.clone()));
    let agent = stage.spawn(TASK);
    stage.becomes(&agent, "failed");
    let result = stage.result(&agent);
    let error = result["error"].as_str().expect("an error");
    assert!(error.contains(told), "{error}");
}

#[test]
fn codex_has_no_such_model() {
    refused(Program::Codex, 400, "there is no such model");
}

#[test]
fn claude_has_no_such_model() {
    refused(Program::Claude, 400, "there is no such model");
}

#[test]
fn codex_is_not_logged_in() {
    refused(Program::Codex, 401, "codex login");
}
