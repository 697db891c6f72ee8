//! Colour, where it can be seen and is wanted.

use std::io::IsTerminal;

use handover_protocol::AgentStatus;

/// The colours of one output.
#[derive(Clone, Copy, Debug, Default)]
pub struct Style {
    coloured: bool,
}

/// A colour, as the terminal's own parameters name it.
pub type Paint = &'static str;

const RED: Paint = "31";
const GREEN: Paint = "32";
const YELLOW: Paint = "33";
const CYAN: Paint = "36";
const DIM: Paint = "2";

impl Style {
    /// That of standard output: coloured on a terminal that can, unless `NO_COLOR` is set.
    pub fn of_stdout() -> Self {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let dumb = set("TERM").is_none_or(|term| term == "dumb");
        Self {
            coloured: std::io::stdout().is_terminal() && set("NO_COLOR").is_none() && !dumb,
        }
    }

    /// Coloured wherever it goes.
    #[cfg(test)]
    pub fn coloured() -> Self {
        Self { coloured: true }
    }

    /// The colour of a status.
    pub fn status(self, status: AgentStatus) -> Option<Paint> {
        let paint = match status {
            AgentStatus::Running | AgentStatus::Starting => GREEN,
            AgentStatus::Waiting => YELLOW,
            AgentStatus::Queued => CYAN,
            AgentStatus::Failed | AgentStatus::Interrupted => RED,
            AgentStatus::Done | AgentStatus::Aborted | AgentStatus::CancelledBeforeStart => DIM,
        };
        self.coloured.then_some(paint)
    }

    /// The colour of what matters less.
    pub fn dim(self) -> Option<Paint> {
        self.coloured.then_some(DIM)
    }

    /// The colour of what a person should see.
    pub fn alert(self) -> Option<Paint> {
        self.coloured.then_some(YELLOW)
    }
}

/// `text` in that colour, if any.
pub fn painted(text: &str, paint: Option<Paint>) -> String {
    match paint {
        Some(paint) if !text.is_empty() => format!("\u{1b}[{paint}m{text}\u{1b}[0m"),
        _ => text.to_owned(),
    }
}
