//! A1: the agent program pi, driven for real: its model is a script of the test, and no receipt claims more than
//! that model was sent.

use handover_model::{Hold, Reply};
use serde_json::json;

use crate::support::{Gate, LONG, Program, Shell, Stage, aborts, receipts};

const TASK: &str = "the-task";
const NOTE: &str = "logged in; go on with the form";

receipts!(Program::Pi);
receipts!(Program::Pi, [at_once]);
aborts!(Program::Pi);

#[test]
fn pi_is_the_one_that_the_tests_know() {
    Program::Pi.is("0.73.1");
}

/// A turn that ends while a person has the agent's desktop is not the end: the return is told in the
/// agent's own context, and it goes on by itself.
#[test]
fn it_waits_for_its_desktop_and_goes_on_by_itself() {
    let options = ["--desktop", "--size", "320x240"];
    let stage = Stage::with(Program::Pi, Shell::Allowed, &options);
    let hold = Hold::new();
    stage
        .model
        .script(TASK, [Reply::after(&hold).say("I wait")]);
    let agent = stage.spawn_with(TASK, json!({"desktop": "d1"}));
    assert!(hold.reached(LONG), "the program asks its model");
    let mut holder = stage.session.take(json!({}));
    hold.release();
    stage.becomes(&agent, "waiting");
    let mut proof = holder.proof();
    proof["note"] = json!(NOTE);
    holder.wire.done("control.return", proof);
    stage.becomes(&agent, "done");
    assert!(stage.model.answered(NOTE));
}

/// What a person did to one of its own agents is told in its context.
#[test]
fn it_is_told_of_the_end_of_its_own_agents() {
    let stage = Stage::new(Program::Pi);
    let gate = Gate::new(&stage.session.place);
    let script = [Reply::shell(gate.command()), Reply::text("done")];
    stage.model.script(TASK, script);
    let parent = stage.spawn(TASK);
    gate.reached();
    let sleeper = json!({
        "driver": "command", "args": ["sleep", "1000"], "parent": parent, "name": "sleeper",
    });
    let child = stage.spawn_with("", sleeper);
    stage.becomes(&child, "running");
    let aborted = stage.session.wire().done("abort", json!({"id": child}));
    assert_eq!(aborted["status"], "aborted", "{aborted}");
    gate.open();
    stage.becomes(&parent, "done");
    let told = format!("Your agent {child} (sleeper): a person ended it.");
    assert!(
        stage.model.saw(&told),
        "{:?}",
        stage.model.requests().last()
    );
}
