//! Plays what real programs once said to drivers, for their tests.
//!
//! A transcript was recorded by another client than the driver, so its requests carry other ids. A
//! [`Stage`] pairs each request of the transcript with the driver's own of the same kind, in order, and
//! puts the driver's id into the program's answer.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;

use handover_protocol::{SteerId, SteerState, SteerWhen};
use serde_json::Value;

use super::{Child, Driver, Effect, Program, Steer, Task};

/// One line of a transcript.
#[derive(Clone, Debug)]
pub enum Line {
    /// The client wrote it to the program.
    Sent(Value),
    /// The program wrote it to its standard output.
    Said(Value),
}

/// A transcript of `tests/transcripts`, without its notes and what went to standard error.
pub fn transcript(name: &str) -> Vec<Line> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/transcripts")
        .join(name);
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines()
        .filter_map(|line| {
            let line: Value = serde_json::from_str(line).expect("a line of a transcript");
            let message = line["msg"].clone();
            match line["dir"].as_str() {
                Some("->") => Some(Line::Sent(message)),
                Some("<-") if message.get("eof").is_none() => Some(Line::Said(message)),
                _ => None,
            }
        })
        .collect()
}

/// A steer as the manager gives it to a driver.
pub fn steer(id: &str, text: &str) -> Steer {
    Steer {
        id: id.into(),
        text: text.to_owned(),
        when: SteerWhen::NextStep,
        child: None,
    }
}

/// A task with this prompt and these arguments.
pub fn task(prompt: &str, args: &[&str]) -> Task {
    Task {
        prompt: prompt.to_owned(),
        args: args.iter().map(|&arg| arg.to_owned()).collect(),
        cwd: "/home/user/project".into(),
        tools: None,
    }
}

/// What pairs a request of the transcript with one of the driver: its kind and its id. None for what is
/// not a request that is answered.
pub type Key = fn(&Value) -> Option<(String, Value)>;

/// A driver and what came of it.
pub struct Stage {
    /// The driver.
    pub driver: Box<dyn Driver>,
    /// The program it wants.
    pub program: Program,
    /// All effects so far.
    pub effects: Vec<Effect>,
    /// All lines that the driver wrote, as JSON.
    pub written: Vec<Value>,
    seen: usize,
    key: Key,
    unpaired: BTreeMap<String, VecDeque<Value>>,
    ids: Vec<(Value, Value)>,
}

impl Stage {
    /// A driver that has begun.
    pub fn begin(driver: &str, task: Task, key: Key) -> Self {
        let (program, driver) = super::create(driver, task).expect("the driver");
        let mut stage = Self {
            driver,
            program,
            effects: Vec::new(),
            written: Vec::new(),
            seen: 0,
            key,
            unpaired: BTreeMap::new(),
            ids: Vec::new(),
        };
        stage.act(|driver, out| driver.begin(out));
        stage
    }

    /// Does something with the driver; answers what it wrote meanwhile.
    pub fn act(&mut self, act: impl FnOnce(&mut dyn Driver, &mut Vec<Effect>)) -> Vec<Value> {
        act(self.driver.as_mut(), &mut self.effects);
        let first = self.written.len();
        for effect in &self.effects[self.seen..] {
            let (Effect::Write(bytes) | Effect::Hand { bytes, .. }) = effect else {
                continue;
            };
            assert_eq!(bytes.last(), Some(&b'\n'), "whole lines");
            for line in bytes.split(|&byte| byte == b'\n') {
                if line.is_empty() {
                    continue;
                }
                let message: Value = serde_json::from_slice(line).expect("JSON");
                if let Some((kind, id)) = (self.key)(&message) {
                    self.unpaired.entry(kind).or_default().push_back(id);
                }
                self.written.push(message);
            }
        }
        self.seen = self.effects.len();
        self.written[first..].to_vec()
    }

    /// The program says this, ids and all.
    pub fn say(&mut self, message: &Value) -> Vec<Value> {
        let line = message.to_string();
        self.act(|driver, out| driver.output(line.as_bytes(), out))
    }

    /// Plays lines of a transcript. A request of the client there is taken for the oldest of the same
    /// kind that the driver made; `field` names the id in the program's answers.
    pub fn play<'a>(&mut self, field: &str, lines: impl IntoIterator<Item = &'a Line>) {
        for line in lines {
            match line {
                Line::Sent(message) => {
                    let Some((kind, id)) = (self.key)(message) else {
                        continue;
                    };
                    if let Some(own) = self.unpaired.entry(kind).or_default().pop_front() {
                        self.ids.push((id, own));
                    }
                }
                Line::Said(message) => {
                    let mut message = message.clone();
                    // A request of the program has a name of the program's.
                    if message.get("method").is_none()
                        && let Some(id) = message.get_mut(field)
                        && let Some((_, own)) = self.ids.iter().rfind(|(other, _)| other == id)
                    {
                        *id = own.clone();
                    }
                    self.say(&message);
                }
            }
        }
    }

    /// The receipts of a steer, in order.
    pub fn receipts(&self, steer: &str) -> Vec<SteerState> {
        let steer = SteerId::from(steer);
        self.effects
            .iter()
            .filter_map(|effect| match effect {
                Effect::Receipt {
                    steer: of, state, ..
                } if *of == steer => Some(*state),
                _ => None,
            })
            .collect()
    }

    /// The ends of turns that were told: what was said, and the error.
    pub fn ends(&self) -> Vec<(String, Option<String>)> {
        self.effects
            .iter()
            .filter_map(|effect| match effect {
                Effect::TurnEnded { text, error } => Some((text.clone(), error.clone())),
                _ => None,
            })
            .collect()
    }

    /// The subagents that were told of, in order.
    pub fn children(&self) -> Vec<Child> {
        self.effects
            .iter()
            .filter_map(|effect| match effect {
                Effect::Child(child) => Some(child.clone()),
                _ => None,
            })
            .collect()
    }

    /// How often this was wanted.
    pub fn count(&self, wanted: &Effect) -> usize {
        self.effects
            .iter()
            .filter(|effect| *effect == wanted)
            .count()
    }

    /// Readiness, turns and quiet, in order.
    pub fn course(&self) -> Vec<&'static str> {
        self.effects
            .iter()
            .filter_map(|effect| match effect {
                Effect::Ready => Some("ready"),
                Effect::TurnBegan => Some("began"),
                Effect::TurnEnded { .. } => Some("ended"),
                Effect::Settled => Some("settled"),
                _ => None,
            })
            .collect()
    }

    /// What the program, or a subagent of its own, took in and gave out as it was told last.
    pub fn tokens(&self, of: Option<&str>) -> Option<(u64, u64)> {
        self.effects.iter().rev().find_map(|effect| match effect {
            Effect::Tokens { child, tokens } if child.as_deref() == of => {
                Some((tokens.input, tokens.output))
            }
            _ => None,
        })
    }

    /// What the program said to people, joined.
    pub fn text(&self) -> String {
        self.effects
            .iter()
            .filter_map(|effect| match effect {
                Effect::Text { child: None, text } => Some(text.as_str()),
                _ => None,
            })
            .collect()
    }
}
