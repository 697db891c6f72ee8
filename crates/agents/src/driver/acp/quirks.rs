//! What agents do with a message that comes while they work. The protocol leaves it open, and each does
//! something else, as seen on the wire (see the transcripts). None of them shows the message's way to
//! the model, so no more is claimed than their answers say.

use handover_protocol::SteerWhen;
use serde_json::Value;

/// How a message is put to an agent that works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steering {
    /// Not at all: it becomes a prompt of its own when the turn has ended. Shown: its answer.
    ///
    /// Right for all that are not known, and for these: Gemini CLI cancels its turn when a second
    /// prompt comes, even in the middle of a tool; codex-acp of Zed never answers the second; pi-acp
    /// and others queue it themselves, where nobody could tell whether an abort came before it.
    Waits,
    /// As a second prompt, which the agent takes into its turn after the step. Shown: its answer.
    Joins,
    /// With `_session/steering`, where advertised. Shown: that the agent took it, never what became of
    /// it: cancelled at once, it never reaches the model.
    Extension,
}

/// Agents that take a second prompt into their turn, by the beginning of the name that they give
/// themselves.
const JOINS: [&str; 2] = ["@agentclientprotocol/claude-agent-acp", "opencode"];

impl Steering {
    /// What is known of the agent that calls itself `name`.
    pub fn of(name: &str, has_extension: bool) -> Self {
        let name = name.to_ascii_lowercase();
        if has_extension {
            Self::Extension
        } else if JOINS.iter().any(|known| name.starts_with(known)) {
            Self::Joins
        } else {
            Self::Waits
        }
    }

    /// When a message can be put to it. At once is always possible: its turn is cancelled first.
    pub fn when(self) -> &'static [SteerWhen] {
        match self {
            Self::Waits => &[SteerWhen::TurnEnd, SteerWhen::Now],
            Self::Joins | Self::Extension => {
                &[SteerWhen::NextStep, SteerWhen::TurnEnd, SteerWhen::Now]
            }
        }
    }
}

/// Whether the agent itself says this, in a message that is not the model's: claude-agent-acp marks
/// its notices.
pub fn is_notice(update: &Value) -> bool {
    update["_meta"]["claudeCode"]["kind"] == "informational"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_that_nobody_knows_is_never_given_two_prompts() {
        assert_eq!(Steering::of("gemini-cli", false), Steering::Waits);
        assert_eq!(Steering::of("pi-acp", false), Steering::Waits);
        assert_eq!(Steering::of("", false), Steering::Waits);
    }

    #[test]
    fn what_an_agent_advertises_comes_before_what_is_known_of_it() {
        let claude = "@agentclientprotocol/claude-agent-acp";
        assert_eq!(Steering::of(claude, true), Steering::Extension);
        assert_eq!(Steering::of(claude, false), Steering::Joins);
        assert_eq!(Steering::of("OpenCode", false), Steering::Joins);
    }
}
