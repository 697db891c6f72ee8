//! What every program must keep of the promise about aborts, each on the real program: that nothing
//! runs any more, and that nobody claims more than is known.

use std::fs;
use std::path::PathBuf;

use handover_model::{Hold, Reply};
use serde_json::{Value, json};

use super::gate::Gate;
use super::program::{Program, Shell};
use super::stage::Stage;
use crate::support::{LONG, eventually, stop};

const TASK: &str = "the-task";
const TEXT: &str = "turn-left-instead";

/// A shell script of which a second copy leaves its session and its parents; neither ends when asked.
const RESISTS: &str = r#"trap '' TERM HUP INT
[ -n "$1" ] || (setsid sh "$0" second &)
touch "$0-runs-${1:-first}"
while :; do sleep 0.05; done
"#;

fn abort(stage: &Stage, agent: &str) -> Value {
    stage.session.wire().done("abort", json!({"id": agent}))
}

fn ended(aborted: &Value) {
    assert_eq!(aborted["status"], "aborted", "{aborted}");
    assert_eq!(aborted["survivors"], json!([]), "{aborted}");
}

/// Tools that ignore every request to end, and have left the agent's session, end all the same.
pub fn of_tools_that_resist(program: Program) {
    let stage = Stage::new(program);
    let script = stage.session.place.path().join("resists");
    fs::write(&script, RESISTS).expect("a script");
    let runs = program.runs(Shell::Allowed, &format!("sh {}", script.display()));
    stage.model.script(TASK, [runs]);
    let agent = stage.spawn(TASK);
    for copy in ["first", "second"] {
        let mark = PathBuf::from(format!("{}-runs-{copy}", script.display()));
        eventually(&format!("the {copy} copy runs"), LONG, || {
            mark.exists().then_some(())
        });
    }
    ended(&abort(&stage, &agent));
    stage.nothing_runs(&script.display().to_string());
    assert_eq!(stage.status(&agent), "aborted");
}

/// A program that does not react is ended with its tools.
pub fn of_a_program_that_hangs(program: Program) {
    let stage = Stage::new(program);
    let gate = Gate::new(&stage.session.place);
    let runs = program.runs(Shell::Allowed, &gate.command());
    stage.model.script(TASK, [runs]);
    let agent = stage.spawn(TASK);
    gate.reached();
    let process = stage.process(&agent);
    stop(&[process]);
    stage.steers(&agent, "s1", TEXT);
    ended(&abort(&stage, &agent));
    stage.nothing_runs(&gate.mark());
    let end = stage.end("s1", TEXT);
    assert!(["unknown", "dropped"].contains(&end.as_str()), "{end}");
}

/// A steer that a request to the model holds when the abort comes is not said to be dropped.
pub fn while_the_model_is_asked(program: Program) {
    let stage = Stage::new(program);
    let (first, second) = (Hold::new(), Hold::new());
    let asked = second.clone();
    stage.model.rule(move |request| {
        let steered = request.is_turn() && request.holds(TEXT);
        steered.then(|| Reply::after(&asked).say("too late"))
    });
    let half = Reply::text("half a sentence ").hold(&first);
    stage.model.script(TASK, [half.say("and the rest")]);
    let agent = stage.spawn(TASK);
    assert!(first.reached(LONG), "the program asks its model");
    stage.steers(&agent, "s1", TEXT);
    stage.comes_to("s1", program.acknowledges());
    first.release();
    assert!(second.reached(LONG), "the program asks about the steer");
    ended(&abort(&stage, &agent));
    assert_eq!(stage.end("s1", TEXT), "unknown");
    second.release();
}

/// An agent that has hardly begun ends too, and its task never reaches the model afterwards.
pub fn at_the_start(program: Program) {
    let stage = Stage::new(program);
    let agent = stage.spawn(TASK);
    ended(&abort(&stage, &agent));
    let asked = stage.model.requests().len();
    let other = stage.spawn("another-task");
    stage.becomes(&other, "done");
    let later = &stage.model.requests()[asked..];
    assert!(
        !later.iter().any(|request| request.holds(TASK)),
        "what was aborted asks nothing any more"
    );
}
