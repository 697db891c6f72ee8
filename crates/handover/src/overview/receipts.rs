//! What is known of the latest messages to agents.

use std::collections::VecDeque;

use handover_protocol::{AgentId, Event, SteerId, SteerState};
use serde::de::DeserializeOwned;

use super::clean::clean;

/// Messages that are remembered for one session, the latest ones.
const MOST: usize = 64;

/// The most characters of a message that are kept.
const MOST_CHARS: usize = 200;

/// One message and the states that it was seen in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The message.
    pub steer: SteerId,
    /// To whom.
    pub agent: AgentId,
    /// The beginning of what it says, harmless; empty if that is not known.
    pub text: String,
    /// The states that the record shows, in their order. None is added that was not told.
    pub states: Vec<SteerState>,
    /// Why it was dropped, harmless.
    pub reason: Option<String>,
}

impl Receipt {
    /// Whether nothing more will be known of it.
    pub fn is_final(&self) -> bool {
        let end = |state: &SteerState| {
            matches!(
                state,
                SteerState::Answered | SteerState::Dropped | SteerState::Unknown
            )
        };
        self.states.last().is_some_and(end)
    }
}

/// The messages of one session.
#[derive(Debug, Default)]
pub struct Receipts {
    known: VecDeque<Receipt>,
}

impl Receipts {
    /// Takes in an event, which may be about something else.
    pub fn hear(&mut self, event: &Event) {
        let is_steer = event.kind == "steer";
        let is_said = event.kind == "human_intervention";
        let (Some(agent), Some(steer)) = (&event.agent, field::<SteerId>(event, "steerId")) else {
            return;
        };
        if !is_steer && !is_said {
            return;
        }
        let receipt = self.entry(steer, agent);
        if let Some(text) = field::<String>(event, "text") {
            receipt.text = clean(&text).chars().take(MOST_CHARS).collect();
        }
        if !is_steer {
            return;
        }
        if let Some(state) = field::<SteerState>(event, "state")
            && receipt.states.last() != Some(&state)
            && !receipt.is_final()
        {
            receipt.states.push(state);
        }
        if let Some(reason) = field::<String>(event, "reason") {
            receipt.reason = Some(clean(&reason).chars().take(MOST_CHARS).collect());
        }
    }

    fn entry(&mut self, steer: SteerId, agent: &AgentId) -> &mut Receipt {
        let known = self.known.iter().position(|receipt| receipt.steer == steer);
        let index = known.unwrap_or_else(|| {
            if self.known.len() >= MOST {
                self.known.pop_front();
            }
            self.known.push_back(Receipt {
                steer,
                agent: agent.clone(),
                text: String::new(),
                states: Vec::new(),
                reason: None,
            });
            self.known.len() - 1
        });
        &mut self.known[index]
    }

    /// Those to one agent, oldest first.
    pub fn of(&self, agent: &AgentId) -> impl Iterator<Item = &Receipt> {
        self.known
            .iter()
            .filter(move |receipt| receipt.agent == *agent)
    }
}

/// A member by name, if it is of that shape.
fn field<T: DeserializeOwned>(event: &Event, name: &str) -> Option<T> {
    T::deserialize(event.fields.get(name)?).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::event;
    use super::*;

    fn steer(seq: u64, id: &str, state: &str) -> Event {
        let mut event = event(seq, "steer", json!({"steerId": id, "state": state}));
        event.agent = Some("a1".into());
        event
    }

    #[test]
    fn only_what_was_told() {
        let mut receipts = Receipts::default();
        let mut said = event(
            1,
            "human_intervention",
            json!({"act": "steer", "text": "go\u{1b}", "steerId": "st-1"}),
        );
        said.agent = Some("a1".into());
        receipts.hear(&steer(1, "st-1", "accepted"));
        receipts.hear(&said);
        receipts.hear(&steer(3, "st-1", "handed"));
        receipts.hear(&steer(4, "st-1", "answered"));
        receipts.hear(&steer(5, "st-1", "handed"));
        let agent = "a1".into();
        let receipt = receipts.of(&agent).next().unwrap();
        assert_eq!(receipt.text, r"go\u{1b}");
        assert_eq!(
            receipt.states,
            [
                SteerState::Accepted,
                SteerState::Handed,
                SteerState::Answered
            ]
        );
        assert!(receipt.is_final());
        assert_eq!(receipts.of(&"a2".into()).count(), 0);
    }

    #[test]
    fn a_bounded_number() {
        let mut receipts = Receipts::default();
        for n in 0..200 {
            receipts.hear(&steer(n, &format!("st-{n}"), "accepted"));
        }
        assert_eq!(receipts.of(&"a1".into()).count(), MOST);
    }
}
