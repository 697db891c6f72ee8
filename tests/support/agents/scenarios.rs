//! What every program must keep of the promise about receipts, each on the real program. The model's
//! own record is the witness.

use handover_model::{Hold, Reply, Role};
use serde_json::{Value, json};

use super::gate::Gate;
use super::program::{Program, Shell};
use super::stage::Stage;
use crate::support::wire::Refused;
use crate::support::{LONG, Signal, eventually, signal};

/// What the prompt of every agent here says, so that the model knows the script.
const TASK: &str = "the-task";
/// What is steered where there is one steer.
const TEXT: &str = "turn-left-instead";

/// An agent whose tool runs, and the gate that ends it.
fn in_a_tool(stage: &Stage) -> (String, Gate) {
    let gate = Gate::new(&stage.session.place);
    let runs = stage.program.runs(Shell::Allowed, &gate.command());
    stage
        .model
        .script(TASK, [runs, Reply::text("after the tool")]);
    let agent = stage.spawn(TASK);
    gate.reached();
    (agent, gate)
}

/// A steer during a tool arrives after it.
pub fn during_a_tool(program: Program) {
    let stage = Stage::new(program);
    let (agent, gate) = in_a_tool(&stage);
    stage.steers(&agent, "s1", TEXT);
    stage.comes_to("s1", program.acknowledges());
    gate.open();
    assert_eq!(stage.end("s1", TEXT), "answered");
    stage.becomes(&agent, "done");
    assert!(!stage.result(&agent)["text"].to_string().is_empty());
}

/// A steer while the model streams its answer arrives, now or when the answer has ended.
pub fn during_text(program: Program) {
    let stage = Stage::new(program);
    let hold = Hold::new();
    let half = Reply::text("half a sentence ").hold(&hold);
    stage.model.script(TASK, [half.say("and the rest")]);
    let agent = stage.spawn(TASK);
    assert!(hold.reached(LONG), "the program asks its model");
    stage.steers(&agent, "s1", TEXT);
    stage.comes_to("s1", program.acknowledges());
    hold.release();
    assert_eq!(stage.end("s1", TEXT), "answered");
    stage.becomes(&agent, "done");
}

/// A steer at once does not wait for what the model is saying: that is never said to its end.
pub fn at_once(program: Program) {
    let stage = Stage::new(program);
    let hold = Hold::new();
    let half = Reply::text("half a sentence ").hold(&hold);
    stage.model.script(TASK, [half.say("and the rest")]);
    let agent = stage.spawn(TASK);
    assert!(hold.reached(LONG), "the program asks its model");
    let steer = json!({"id": agent, "steerId": "s1", "text": TEXT, "when": "now"});
    stage.session.wire().done("steer", steer);
    assert_eq!(stage.end("s1", TEXT), "answered");
    stage.becomes(&agent, "done");
    hold.release();
}

/// A steer to an agent whose turn has ended, but not its work, is its next turn.
pub fn while_waiting(program: Program) {
    let stage = Stage::with(program, Shell::Allowed, &["--desktop", "--size", "320x240"]);
    let hold = Hold::new();
    stage
        .model
        .script(TASK, [Reply::after(&hold).say("the first turn")]);
    let agent = stage.spawn_with(TASK, json!({"desktop": "d1"}));
    assert!(hold.reached(LONG), "the program asks its model");
    let mut wire = stage.session.wire();
    wire.done("control.pause", json!({"desktop": "d1"}));
    hold.release();
    stage.becomes(&agent, "waiting");
    stage.steers(&agent, "s1", TEXT);
    assert_eq!(stage.end("s1", TEXT), "answered");
    stage.becomes(&agent, "waiting");
    wire.done("control.resume", json!({"desktop": "d1"}));
    stage.becomes(&agent, "done");
}

/// A queued agent is no place for a steer: it is refused, and nothing of it arrives later.
pub fn while_queued(program: Program) {
    let stage = Stage::with(program, Shell::Allowed, &["--max-agents", "1"]);
    let hold = Hold::new();
    stage.model.script(TASK, [Reply::after(&hold).say("done")]);
    let first = stage.spawn(TASK);
    assert!(hold.reached(LONG), "the program asks its model");
    let second = stage.spawn("the-second-task");
    let refused = refused(stage.steer(&second, "s1", TEXT));
    assert_eq!(refused.code, "agent_not_running", "{refused:?}");
    assert_eq!(refused.data["status"], "queued", "{refused:?}");
    hold.release();
    stage.becomes(&first, "done");
    stage.becomes(&second, "done");
    assert!(stage.model.answered("the-second-task") && !stage.model.saw(TEXT));
    assert!(stage.receipts().is_empty());
}

/// An agent whose program asks whether it may run a command, the command's gate, and the request that
/// people have got.
fn asking(stage: &Stage) -> (String, Gate, Value) {
    let gate = Gate::new(&stage.session.place);
    gate.open();
    let asks = stage.program.runs(Shell::Asks, &gate.command());
    stage
        .model
        .script(TASK, [asks, Reply::text("after the tool")]);
    let agent = stage.spawn(TASK);
    let request = eventually("a request for permission", LONG, || {
        let listed = stage.session.wire().done("list", json!({}));
        let requests = listed["requests"].as_array().expect("a list").clone();
        let own = |request: &Value| request["agent"] == agent.as_str();
        requests.into_iter().find(own)
    });
    stage.becomes(&agent, "waiting");
    assert!(!gate.has_begun(), "nothing runs before it is allowed");
    (agent, gate, request["requestId"].clone())
}

/// A program that asks for permission is a request for people; what is steered meanwhile is refused
/// and never lands in its question.
pub fn while_it_asks(program: Program) {
    let stage = Stage::with(program, Shell::Asks, &[]);
    let (agent, gate, request) = asking(&stage);
    let refused = refused(stage.steer(&agent, "s1", TEXT));
    assert_eq!(refused.code, "not_steerable", "{refused:?}");
    assert_eq!(refused.data["requestId"], request, "{refused:?}");
    let answer = json!({"requestId": request, "text": "yes"});
    stage.session.wire().done("answer", answer);
    stage.becomes(&agent, "done");
    assert!(gate.has_begun() && !stage.model.saw(TEXT));
    assert!(stage.receipts().is_empty());
}

/// A person's no is a no.
pub fn when_it_may_not(program: Program) {
    let stage = Stage::with(program, Shell::Asks, &[]);
    let (agent, gate, request) = asking(&stage);
    let answer = json!({"requestId": request, "text": "no"});
    stage.session.wire().done("answer", answer);
    stage.becomes(&agent, "done");
    assert!(!gate.has_begun(), "it ran what it may not");
}

/// An abort takes back what has not arrived, and leaves no process.
pub fn then_abort(program: Program) {
    let stage = Stage::new(program);
    let (agent, gate) = in_a_tool(&stage);
    stage.steers(&agent, "s1", TEXT);
    stage.comes_to("s1", program.acknowledges());
    let aborted = stage.session.wire().done("abort", json!({"id": agent}));
    assert_eq!(aborted["status"], "aborted", "{aborted}");
    assert_eq!(aborted["survivors"], json!([]), "{aborted}");
    stage.nothing_runs(&gate.mark());
    assert_eq!(stage.end("s1", TEXT), "dropped");
    let asked = stage.model.requests().len();
    assert_eq!(stage.status(&agent), "aborted");
    assert_eq!(
        stage.model.requests().len(),
        asked,
        "it asks nothing any more"
    );
}

/// What the model has seen is not taken back by an abort, and not answered either.
pub fn seen_then_abort(program: Program) {
    let stage = Stage::new(program);
    let hold = Hold::new();
    let half = Reply::text("half a sentence ").hold(&hold);
    stage
        .model
        .rule(move |request| request.holds(TEXT).then(|| half.clone()));
    let (agent, gate) = in_a_tool(&stage);
    stage.steers(&agent, "s1", TEXT);
    gate.open();
    assert!(hold.reached(LONG), "the model sees it");
    let aborted = stage.session.wire().done("abort", json!({"id": agent}));
    assert_eq!(aborted["status"], "aborted", "{aborted}");
    assert_eq!(stage.end("s1", TEXT), "unknown");
}

/// What a program that is killed had been handed is unknown, and its tools end with it.
pub fn then_crash(program: Program) {
    let stage = Stage::new(program);
    let (agent, gate) = in_a_tool(&stage);
    stage.steers(&agent, "s1", TEXT);
    stage.comes_to("s1", program.acknowledges());
    signal(stage.process(&agent), Signal::KILL);
    let end = stage.end("s1", TEXT);
    let handed = stage.receipts()["s1"].iter().any(|state| state == "handed");
    assert_eq!(end, if handed { "unknown" } else { "dropped" });
    stage.becomes(&agent, "failed");
    stage.nothing_runs(&gate.mark());
    assert!(!stage.model.saw(TEXT));
}

/// A host that is killed takes its agents with it, and the next one says so: what had been handed is
/// unknown, what had not is dropped.
pub fn then_host_crash(program: Program) {
    let mut stage = Stage::new(program);
    let (agent, gate) = in_a_tool(&stage);
    stage.steers(&agent, "s1", TEXT);
    stage.comes_to("s1", program.acknowledges());
    signal(stage.session.host(), Signal::KILL);
    stage.nothing_runs(&gate.mark());
    stage.session.again();
    let end = stage.end("s1", TEXT);
    let handed = stage.receipts()["s1"].iter().any(|state| state == "handed");
    assert_eq!(end, if handed { "unknown" } else { "dropped" });
    assert_eq!(stage.status(&agent), "interrupted");
    assert!(!stage.model.saw(TEXT));
}

/// The same steer again is the same steer.
pub fn twice(program: Program) {
    let stage = Stage::new(program);
    let (agent, gate) = in_a_tool(&stage);
    stage.steers(&agent, "s1", TEXT);
    stage.steers(&agent, "s1", TEXT);
    gate.open();
    assert_eq!(stage.end("s1", TEXT), "answered");
    stage.becomes(&agent, "done");
    // Also when there is nobody left to send it to.
    let again = stage.steer(&agent, "s1", TEXT).expect("the same steer");
    assert_eq!(again["state"], "answered", "{again}");
    let last = stage.model.requests().pop().expect("a request");
    let told = last.user().filter(|text| text.contains(TEXT)).count();
    assert_eq!(told, 1, "{:?}", last.messages);
}

/// A hundred steers at once all arrive, in the order in which they were sent.
pub fn a_hundred(program: Program) {
    let stage = Stage::new(program);
    let (agent, gate) = in_a_tool(&stage);
    let steers: Vec<(String, String)> = (0..100)
        .map(|number| (format!("s{number}"), format!("steer-{number:03};")))
        .collect();
    let mut wire = stage.session.wire();
    let send = |(steer, text): &(String, String)| {
        wire.send(
            "steer",
            json!({"id": agent, "steerId": steer, "text": text}),
        )
    };
    let sent: Vec<u64> = steers.iter().map(send).collect();
    for id in sent {
        wire.answer(id).expect("a steer is taken");
    }
    gate.open();
    let steers: Vec<(&str, &str)> = steers
        .iter()
        .map(|(steer, text)| (steer.as_str(), text.as_str()))
        .collect();
    let ends = stage.ends(&steers);
    let mut others = steers.iter().zip(ends);
    let other = others.find(|(_, end)| end != "answered");
    assert_eq!(other, None, "{:?}", stage.receipts());
    let texts: Vec<&str> = steers.iter().map(|&(_, text)| text).collect();
    assert_eq!(order_of_arrival(&stage), texts);
    stage.becomes(&agent, "done");
}

/// The numbered steers in the order in which the model first saw each.
fn order_of_arrival(stage: &Stage) -> Vec<String> {
    let mut order = Vec::<String>::new();
    for request in stage.model.requests() {
        let told = |message: &&handover_model::Message| message.role != Role::Assistant;
        for message in request.messages.iter().filter(told) {
            for (at, _) in message.text.match_indices("steer-") {
                let steer: String = message.text[at..]
                    .chars()
                    .take("steer-000;".len())
                    .collect();
                if !order.contains(&steer) {
                    order.push(steer);
                }
            }
        }
    }
    order
}

fn refused(answer: Result<Value, Refused>) -> Refused {
    answer.expect_err("a steer that must be refused")
}
