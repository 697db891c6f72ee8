//! A session with one agent program, and the model that it talks to.

use std::collections::BTreeMap;
use std::time::Duration;

use handover_model::ModelServer;
use serde_json::{Value, json};

use super::program::{Program, Shell};
use crate::support::processes;
use crate::support::wire::{Answer, Wire};
use crate::support::{LONG, Place, Session, eventually};

/// The states of a receipt in their order; the last three are ends.
const STATES: [&str; 8] = [
    "accepted", "handed", "queued", "inserted", "sent", "answered", "dropped", "unknown",
];

/// A live session in which one agent program can be spawned.
pub struct Stage {
    /// The model, and the witness of what it was told.
    pub model: ModelServer,
    /// The session.
    pub session: Session,
    /// The program.
    pub program: Program,
}

impl Stage {
    /// A session in which `program` uses its shell freely.
    pub fn new(program: Program) -> Self {
        Self::with(program, Shell::Allowed, &[])
    }

    /// A session with `options` for `up`.
    pub fn with(program: Program, shell: Shell, options: &[&str]) -> Self {
        let model = ModelServer::start();
        let mut place = Place::new();
        program.prepare(&mut place, &model.url(), shell);
        Self {
            model,
            session: Session::with(place, options),
            program,
        }
    }

    /// Spawns an agent and gives its id.
    pub fn spawn(&self, prompt: &str) -> String {
        self.spawn_with(prompt, json!({}))
    }

    /// Spawns an agent with `more` parameters.
    pub fn spawn_with(&self, prompt: &str, more: Value) -> String {
        let mut wire = Wire::connect(&self.session.socket());
        let greeting = wire.done("hello", json!({"client": "tests", "protocol": 1}));
        let mut params = json!({
            "driver": self.program.driver(),
            "prompt": prompt,
            "args": self.program.arguments(),
            "caller": {"name": "tests", "token": greeting["callerToken"]},
        });
        params
            .as_object_mut()
            .expect("an object")
            .extend(more.as_object().expect("an object").clone());
        let spawned = wire.done("spawn", params);
        spawned["id"].as_str().expect("an id").to_owned()
    }

    /// The agents, as `list` tells them.
    pub fn agents(&self) -> Vec<Value> {
        let listed = self.session.wire().done("list", json!({}));
        listed["agents"].as_array().expect("a list").clone()
    }

    /// How the agent stands.
    pub fn status(&self, agent: &str) -> String {
        let agents = self.agents();
        let found = agents.iter().find(|one| one["id"] == agent);
        let found = found.unwrap_or_else(|| panic!("{agent} is not among {agents:?}"));
        found["status"].as_str().expect("a status").to_owned()
    }

    /// Waits until the agent stands so.
    pub fn becomes(&self, agent: &str, status: &str) {
        let mut last = String::new();
        let stands = || {
            last = self.status(agent);
            (last == status).then_some(())
        };
        eventually(&format!("{agent} is {status}"), LONG, stands);
    }

    /// Steers; the answer comes when the steer is stored.
    pub fn steer(&self, agent: &str, steer: &str, text: &str) -> Answer {
        let params = json!({"id": agent, "steerId": steer, "text": text});
        self.session.wire().call("steer", params)
    }

    /// Steers an agent that must take it.
    pub fn steers(&self, agent: &str, steer: &str, text: &str) {
        let answer = self.steer(agent, steer, text);
        let answer = answer.unwrap_or_else(|refused| panic!("steer was refused: {refused:?}"));
        assert_eq!(answer["steerId"], steer, "{answer}");
    }

    /// What `result` says.
    pub fn result(&self, agent: &str) -> Value {
        self.session.wire().done("result", json!({"id": agent}))
    }

    /// All receipts: the states of each steer in the order of the record.
    pub fn receipts(&self) -> BTreeMap<String, Vec<String>> {
        let params = json!({"kinds": ["steer"], "limit": 10_000});
        let page = self.session.wire().done("journal", params);
        let mut receipts = BTreeMap::<String, Vec<String>>::new();
        for event in page["events"].as_array().expect("a list") {
            let text = |name: &str| event[name].as_str().expect("a text").to_owned();
            receipts
                .entry(text("steerId"))
                .or_default()
                .push(text("state"));
        }
        receipts
    }

    /// Waits until the receipt has come to `state` or beyond.
    pub fn comes_to(&self, steer: &str, state: &str) {
        let wanted = rank(state);
        eventually(&format!("{steer} is {state}"), LONG, || {
            let receipts = self.receipts();
            let states = receipts.get(steer)?;
            states
                .iter()
                .any(|state| rank(state) >= wanted)
                .then_some(())
        });
    }

    /// Waits for the end of each receipt and checks it against the model's record: the receipt moves
    /// only forward, to one end; what it claims the model saw, the model saw; and what it says was
    /// dropped, the model never saw. Gives the ends.
    pub fn ends(&self, steers: &[(&str, &str)]) -> Vec<String> {
        let mut receipts = BTreeMap::new();
        let over = |states: &Vec<String>| states.iter().any(|state| is_end(state));
        eventually(
            &format!("the ends of {} receipts", steers.len()),
            // Some programs take one message a turn.
            LONG + Duration::from_millis(500) * u32::try_from(steers.len()).expect("a few"),
            || {
                receipts = self.receipts();
                let all = steers
                    .iter()
                    .all(|(steer, _)| receipts.get(*steer).is_some_and(over));
                all.then_some(())
            },
        );
        let end = |&(steer, text): &(&str, &str)| {
            let states = &receipts[steer];
            assert_eq!(states[0], "accepted", "{steer}: {states:?}");
            assert!(
                states
                    .windows(2)
                    .all(|pair| rank(&pair[0]) < rank(&pair[1]) && !is_end(&pair[0])),
                "{steer} moves only forward, to one end: {states:?}"
            );
            let end = states.last().expect("an end").clone();
            let seen = self.model.saw(text);
            if end == "answered" || states.iter().any(|state| state == "sent") {
                assert!(seen, "{steer} claims what the model never saw: {states:?}");
            }
            if end == "answered" {
                assert!(
                    self.model.answered(text),
                    "{steer} was not answered: {states:?}"
                );
            }
            if end == "dropped" {
                assert!(!seen, "{steer} was not dropped: {states:?}");
            }
            end
        };
        steers.iter().map(end).collect()
    }

    /// The end of one receipt, checked likewise.
    pub fn end(&self, steer: &str, text: &str) -> String {
        self.ends(&[(steer, text)]).remove(0)
    }

    /// The process that the agent's keeper started.
    pub fn process(&self, agent: &str) -> i32 {
        let mark = format!("HANDOVER_AGENT={agent}");
        let of_agent: Vec<i32> = processes::all()
            .into_iter()
            .filter(|&pid| processes::alive(pid) && processes::mentions(pid, &mark))
            .collect();
        let below: Vec<i32> = of_agent
            .iter()
            .flat_map(|&pid| processes::children(pid))
            .collect();
        let top = of_agent.iter().find(|pid| !below.contains(pid));
        *top.expect("the agent runs")
    }

    /// Waits until no process has `mark` in its command line.
    pub fn nothing_runs(&self, mark: &str) {
        eventually(&format!("nothing runs with {mark}"), LONG, || {
            let mut all = processes::all().into_iter();
            let runs =
                |pid: i32| processes::alive(pid) && processes::command_line(pid).contains(mark);
            (!all.any(runs)).then_some(())
        });
    }
}

fn rank(state: &str) -> usize {
    let place = STATES.iter().position(|known| *known == state);
    place.unwrap_or_else(|| panic!("{state} is no state of a receipt"))
}

fn is_end(state: &str) -> bool {
    rank(state) >= rank("answered")
}
