//! Colours: the sixteen that every terminal has, or none at all.

use handover_protocol::{AgentStatus, Control};
use ratatui::style::{Color, Modifier, Style};

use crate::overview::Tone;

/// How things look.
#[derive(Clone, Copy, Debug)]
pub struct Paint {
    coloured: bool,
}

impl Paint {
    /// As the environment wants it: no colours where `NO_COLOR` is set.
    pub fn from_env() -> Self {
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self {
            coloured: !no_color,
        }
    }

    /// Without colours.
    pub const fn none() -> Self {
        Self { coloured: false }
    }

    fn colour(self, colour: Color) -> Style {
        if self.coloured {
            Style::new().fg(colour)
        } else {
            Style::new()
        }
    }

    /// What matters less.
    pub fn dim(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// What names a part of the screen.
    pub fn title(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// What a person is asked for.
    pub fn alert(self) -> Style {
        self.colour(Color::Yellow).add_modifier(Modifier::BOLD)
    }

    /// What went wrong.
    pub fn trouble(self) -> Style {
        self.colour(Color::Red)
    }

    /// What is selected.
    pub fn selected(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// The name of a key.
    pub fn key(self) -> Style {
        self.colour(Color::Cyan).add_modifier(Modifier::BOLD)
    }

    /// How an agent stands.
    pub fn status(self, status: AgentStatus) -> Style {
        match status {
            AgentStatus::Running | AgentStatus::Starting => self.colour(Color::Green),
            AgentStatus::Waiting => self.colour(Color::Yellow),
            AgentStatus::Queued => self.colour(Color::Cyan),
            AgentStatus::Failed | AgentStatus::Interrupted => self.trouble(),
            AgentStatus::Done | AgentStatus::Aborted | AgentStatus::CancelledBeforeStart => {
                self.dim()
            }
        }
    }

    /// Who may act on a desktop.
    pub fn control(self, control: Control) -> Style {
        match control {
            Control::Agent => self.colour(Color::Green),
            Control::Human => self.alert(),
            Control::Paused => self.colour(Color::Magenta),
        }
    }

    /// A line of what happened.
    pub fn tone(self, tone: Tone) -> Style {
        match tone {
            Tone::Said | Tone::Status(None) => Style::new(),
            Tone::Deed | Tone::Receipt => self.dim(),
            Tone::Status(Some(status)) => self.status(status),
            Tone::Person => self.colour(Color::Yellow),
            Tone::Trouble => self.trouble(),
        }
    }
}
