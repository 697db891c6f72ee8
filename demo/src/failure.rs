//! Why the story did not happen.

use handover_protocol::Refusal;
use thiserror::Error;

use crate::mcp::McpError;
use crate::picture::PictureError;
use crate::screen::ScreenError;

/// A reason to end the demo with exit code 1.
#[derive(Debug, Error)]
pub enum Failure {
    /// The story took another turn than told.
    #[error("{0}")]
    Story(String),
    /// The agent's connection failed.
    #[error(transparent)]
    Mcp(#[from] McpError),
    /// A screenshot could not be read.
    #[error(transparent)]
    Picture(#[from] PictureError),
    /// The person's connection to the desktop failed.
    #[error(transparent)]
    Screen(#[from] ScreenError),
    /// The host refused the person.
    #[error("the host refused: {0}")]
    Refused(#[from] Refusal),
    /// The system refused something.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

impl Failure {
    /// The story took another turn, told in a sentence.
    pub fn new(told: impl Into<String>) -> Self {
        Self::Story(told.into())
    }
}
