//! An agent program that repeats every line it reads, and the driver that makes an agent of it: what
//! is repeated has arrived, `end` ends the turn, `ask` asks for permission, `die` ends the program, and
//! after `stall` it reads no more.

use handover_agents::driver::{
    self, Capabilities, Child, Driver, Effect, Framing, Program, Steer, Task,
};
use handover_protocol::{AgentStatus, Refusal, SteerId, SteerState, SteerWhen};

/// The toy beside the real drivers.
pub fn create(name: &str, task: Task) -> Result<(Program, Box<dyn Driver>), Refusal> {
    if name != "toy" {
        return driver::create(name, task);
    }
    let script = "while read -r line; do case $line in *die*) exit 3;; *stall*) exec sleep 1000;; esac; echo \"$line\"; done";
    let program = Program {
        argv: ["bash", "-c", script].map(str::to_owned).to_vec(),
        env: Default::default(),
        framing: Framing::Lines,
    };
    let toy = Toy {
        prompt: task.prompt,
        under_way: Vec::new(),
        working: false,
    };
    Ok((program, Box::new(toy)))
}

#[derive(Debug)]
struct Toy {
    prompt: String,
    /// What the program has not repeated yet.
    under_way: Vec<SteerId>,
    working: bool,
}

fn receipt(steer: &SteerId, state: SteerState, reason: Option<&str>) -> Effect {
    Effect::Receipt {
        steer: steer.clone(),
        state,
        reason: reason.map(str::to_owned),
    }
}

impl Driver for Toy {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            not_steerable: None,
            when: &[SteerWhen::NextStep, SteerWhen::TurnEnd],
        }
    }

    fn begin(&mut self, out: &mut Vec<Effect>) {
        self.working = true;
        out.push(Effect::Ready);
        out.push(Effect::TurnBegan);
        out.push(Effect::Write(format!("- {}\n", self.prompt).into_bytes()));
    }

    fn output(&mut self, data: &[u8], out: &mut Vec<Effect>) {
        let line = String::from_utf8_lossy(data).into_owned();
        let Some((name, text)) = line.split_once(' ') else {
            return;
        };
        let id = SteerId(name.to_owned());
        if let Some(place) = self.under_way.iter().position(|known| *known == id) {
            self.under_way.remove(place);
            out.push(receipt(&id, SteerState::Inserted, None));
            // The program says nothing that would show this twice; the manager passes it over.
            out.push(receipt(&id, SteerState::Queued, None));
            out.push(receipt(&id, SteerState::Answered, None));
        }
        out.push(Effect::Text {
            child: None,
            text: format!("{text}\n"),
        });
        match text {
            "end" => {
                self.working = false;
                out.push(Effect::TurnEnded {
                    text: format!("after {name}"),
                    error: None,
                });
            }
            "ask" => out.push(Effect::Ask {
                question: "q1".to_owned(),
                what: "May I?".to_owned(),
            }),
            "child" => out.push(Effect::Child(child(AgentStatus::Running))),
            _ => {}
        }
    }

    fn steer(&mut self, steer: Steer, out: &mut Vec<Effect>) {
        if !self.working {
            self.working = true;
            out.push(Effect::TurnBegan);
        }
        self.under_way.push(steer.id.clone());
        out.push(Effect::Hand {
            bytes: format!("{} {}\n", steer.id, steer.text).into_bytes(),
            steer: steer.id,
        });
    }

    fn interrupt(&mut self, out: &mut Vec<Effect>) {
        out.push(Effect::Settled);
    }

    fn interrupt_child(&mut self, native: &str, out: &mut Vec<Effect>) -> bool {
        let own = native == "c1";
        if own {
            out.push(Effect::Child(child(AgentStatus::Aborted)));
        }
        own
    }

    fn decide(&mut self, question: &str, allow: bool, out: &mut Vec<Effect>) {
        out.push(Effect::Write(format!("{question} {allow}\n").into_bytes()));
    }

    fn ended(&mut self, _success: bool, out: &mut Vec<Effect>) {
        for id in self.under_way.drain(..) {
            out.push(receipt(&id, SteerState::Unknown, Some("the program ended")));
        }
    }
}

fn child(status: AgentStatus) -> Child {
    Child {
        native: "c1".to_owned(),
        parent: None,
        name: "helper".to_owned(),
        task: "to help".to_owned(),
        status,
        not_steerable: None,
        text: Some("helped".to_owned()),
    }
}
