//! What the model answers to one request.

use serde_json::Value;

use crate::hold::Hold;
use crate::request::Request;
use crate::shell;

/// The answer to one request: text and tool calls in order, with places to wait between them, or a
/// refusal.
#[derive(Clone, Debug, Default)]
pub struct Reply {
    steps: Vec<Step>,
    refusal: Option<Refusal>,
}

#[derive(Clone, Debug)]
enum Step {
    Text(String),
    Hold(Hold),
    Shell(String),
    Tool { name: String, arguments: Value },
}

/// An answer other than 200.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    /// The HTTP status.
    pub(crate) status: u16,
    /// For people.
    pub(crate) message: String,
}

/// A step that can be sent: the tool has the name by which the program knows it.
#[derive(Clone, Debug)]
pub(crate) enum Part {
    /// Text, sent as one chunk.
    Text(String),
    /// Waits for the test.
    Hold(Hold),
    /// Calls a tool.
    Call { name: String, arguments: Value },
}

impl Reply {
    /// Says `text`, in one chunk.
    pub fn text(text: impl Into<String>) -> Self {
        Self::default().say(text)
    }

    /// Says `chunks`, each in a chunk of its own.
    pub fn stream<T: Into<String>>(chunks: impl IntoIterator<Item = T>) -> Self {
        chunks.into_iter().fold(Self::default(), Self::say)
    }

    /// Calls the program's own shell tool, whatever its name is there.
    pub fn shell(command: impl Into<String>) -> Self {
        Self::default().and_shell(command)
    }

    /// Calls the tool `name`.
    pub fn tool(name: impl Into<String>, arguments: Value) -> Self {
        Self::default().and_tool(name, arguments)
    }

    /// Refuses the request with an HTTP status, such as 401 or 500.
    pub fn refusal(status: u16, message: impl Into<String>) -> Self {
        Self {
            steps: Vec::new(),
            refusal: Some(Refusal {
                status,
                message: message.into(),
            }),
        }
    }

    /// Waits at `hold` before anything is sent.
    pub fn after(hold: &Hold) -> Self {
        Self::default().hold(hold)
    }

    /// Then says `text`.
    #[must_use]
    pub fn say(mut self, text: impl Into<String>) -> Self {
        self.steps.push(Step::Text(text.into()));
        self
    }

    /// Then waits at `hold`.
    #[must_use]
    pub fn hold(mut self, hold: &Hold) -> Self {
        self.steps.push(Step::Hold(hold.clone()));
        self
    }

    /// Then calls the program's own shell tool.
    #[must_use]
    pub fn and_shell(mut self, command: impl Into<String>) -> Self {
        self.steps.push(Step::Shell(command.into()));
        self
    }

    /// Then calls the tool `name`.
    #[must_use]
    pub fn and_tool(mut self, name: impl Into<String>, arguments: Value) -> Self {
        self.steps.push(Step::Tool {
            name: name.into(),
            arguments,
        });
        self
    }

    /// What is to be sent in answer to `request`.
    pub(crate) fn parts(self, request: &Request) -> Result<Vec<Part>, Refusal> {
        if let Some(refusal) = self.refusal {
            return Err(refusal);
        }
        let part = |step| match step {
            Step::Text(text) => Ok(Part::Text(text)),
            Step::Hold(hold) => Ok(Part::Hold(hold)),
            Step::Tool { name, arguments } => Ok(Part::Call { name, arguments }),
            Step::Shell(command) => {
                let (name, arguments) =
                    shell::call(&request.tools, &command).ok_or_else(|| Refusal {
                        status: 400,
                        message: format!("no known shell tool among {:?}", request.tools),
                    })?;
                Ok(Part::Call { name, arguments })
            }
        };
        self.steps.into_iter().map(part).collect()
    }
}
