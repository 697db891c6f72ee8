//! What a driver wants done, done.

use handover_protocol::{AgentId, AgentStatus, SteerId, SteerState};

use super::activity::Tool;
use super::{Order, Run, Turn};
use crate::decision::decision;
use crate::driver::Effect;
use crate::environment::Asked;

impl Run {
    /// Does what the driver wants, in its order. Steers that are handed over at once are stored at
    /// once, before the first of them is written.
    pub(super) async fn apply(&mut self, effects: &mut Vec<Effect>) {
        let handed: Vec<(AgentId, SteerId)> = effects
            .iter()
            .filter_map(|effect| match effect {
                Effect::Hand { steer, .. } if self.input.is_some() => {
                    Some((self.receiver(steer), steer.clone()))
                }
                _ => None,
            })
            .collect();
        if !handed.is_empty() {
            self.manager.handed(&handed).await;
        }
        for effect in effects.drain(..) {
            self.apply_one(effect);
        }
    }

    fn apply_one(&mut self, effect: Effect) {
        match effect {
            Effect::Write(bytes) => self.write(bytes),
            Effect::Hand { steer, bytes } => {
                if self.input.is_none() {
                    let agent = self.receiver(&steer);
                    let reason = "its program takes no more input";
                    self.manager
                        .receipt(&agent, &steer, SteerState::Dropped, Some(reason));
                } else if !self.write_steer(bytes) {
                    let agent = self.receiver(&steer);
                    let reason = "its program takes no more input";
                    self.manager
                        .receipt(&agent, &steer, SteerState::Unknown, Some(reason));
                }
            }
            Effect::CloseInput => self.input = None,
            Effect::Ready => {
                if self.turn == Turn::Starting {
                    self.turn = Turn::Working;
                    self.manager.ready(&self.id, self.driver.capabilities());
                }
            }
            Effect::TurnBegan => {
                self.turn = Turn::Working;
                self.last = None;
                self.manager.set_status(&self.id, AgentStatus::Running);
            }
            Effect::TurnEnded { text, error } => {
                self.activity.flush(&self.manager);
                self.turn = Turn::Ended;
                self.manager.said(&self.id, &text);
                self.last = Some((text, error));
            }
            Effect::Settled => {
                if let Some(close) = &mut self.close {
                    close.settled();
                }
            }
            Effect::Receipt {
                steer,
                state,
                reason,
            } => {
                let agent = self.receiver(&steer);
                self.manager
                    .receipt(&agent, &steer, state, reason.as_deref());
                if crate::manager::receipt::is_final(state) {
                    self.receivers.remove(&steer);
                }
            }
            Effect::Text { child, text } => {
                let agent = self.speaker(child.as_deref());
                self.activity.text(&self.manager, agent, &text);
            }
            Effect::Tool {
                child,
                call,
                tool,
                ended,
                summary,
            } => {
                let agent = self.speaker(child.as_deref());
                let tool = Tool {
                    call,
                    tool,
                    ended,
                    summary,
                };
                self.activity.tool(&self.manager, agent, tool);
            }
            Effect::Tokens { child, tokens } => {
                let agent = match child {
                    None => Some(self.id.clone()),
                    Some(name) => self.manager.native(&self.id, &name),
                };
                if let Some(agent) = agent {
                    self.manager.counted(&agent, tokens);
                }
            }
            Effect::Ask { question, what } => self.ask(question, &what),
            Effect::AskWithdrawn { question } => {
                if let Some(asking) = self.questions.remove(&question) {
                    asking.abort();
                    self.asked_no_more(&question);
                }
            }
            Effect::Child(child) => self.manager.child(&self.id, child),
            Effect::Fail(reason) => self.fail(reason),
        }
    }

    fn write(&mut self, bytes: Vec<u8>) {
        if !self.write_steer(bytes) {
            self.fail("its program does not read what it is sent".to_owned());
        }
    }

    /// False if the program takes nothing any more.
    fn write_steer(&mut self, bytes: Vec<u8>) -> bool {
        match &mut self.input {
            Some(input) => input.write(bytes),
            // An answer to a program that was told to leave.
            None => true,
        }
    }

    /// The agent that a steer is for.
    fn receiver(&self, steer: &SteerId) -> AgentId {
        self.receivers.get(steer).unwrap_or(&self.id).clone()
    }

    /// The agent that says or does something: this one, or a subagent of its program.
    fn speaker(&self, child: Option<&str>) -> AgentId {
        child
            .and_then(|name| self.manager.native(&self.id, name))
            .unwrap_or_else(|| self.id.clone())
    }

    /// Asks people, on behalf of the program.
    fn ask(&mut self, question: String, what: &str) {
        let env = self.manager.inner.env.clone();
        let asked = env.ask(&self.id, self.desktop.as_ref(), what);
        let (id, decisions) = (self.id.clone(), self.decisions.clone());
        let name = question.clone();
        let asking = tokio::spawn(async move {
            let allow = match asked.await {
                Ok(Asked { request, answer }) => {
                    let asked = Order::Asked {
                        question: name.clone(),
                        request,
                    };
                    // The run may have ended.
                    let _ = decisions.send(asked).await;
                    answer.await.map(|answer| decision(&answer) == Some(true))
                }
                Err(reason) => {
                    tracing::warn!(agent = %id, reason, "people cannot be asked");
                    Some(false)
                }
            };
            // The run may have ended.
            let _ = decisions
                .send(Order::Decide {
                    question: name,
                    allow,
                })
                .await;
        });
        self.questions.insert(question, asking);
    }
}
