//! What a program asked the model.

use std::time::Instant;

use serde_json::Value;

use crate::api::Api;

/// Whose words a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The program's instructions.
    System,
    /// The user's: the prompt, a steer, what the program adds in the user's name.
    User,
    /// A tool's result.
    Tool,
    /// The model's own, from former replies; a tool call is its name and arguments.
    Assistant,
}

/// One piece of text in a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Whose words it is.
    pub role: Role,
    /// The words.
    pub text: String,
}

/// How the answer to a request went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Under way.
    Open,
    /// Sent to its last byte.
    Whole,
    /// The program closed the connection first.
    Cut,
    /// Answered with an error, as the script wanted.
    Refused,
}

/// One request on record.
#[derive(Clone, Debug)]
pub struct Request {
    /// Its place in the order of arrival, from 0.
    pub number: usize,
    /// When it had arrived whole.
    pub at: Instant,
    /// Method and path, with the query.
    pub line: String,
    /// The protocol it speaks, if it is one for the model.
    pub api: Option<Api>,
    /// Its body; `Null` where that is no JSON.
    pub body: Value,
    /// What the model reads in it, in order.
    pub messages: Vec<Message>,
    /// Names of the tools that it offers.
    pub tools: Vec<String>,
    /// How its answer went.
    pub outcome: Outcome,
}

impl Request {
    /// Whether it is a step of an agent's work, not a side request for a title or a count.
    pub fn is_turn(&self) -> bool {
        self.api.is_some() && !self.tools.is_empty()
    }

    /// Whether `text` occurs in what the program says, the model's own words aside.
    pub fn holds(&self, text: &str) -> bool {
        let told = |message: &&Message| message.role != Role::Assistant;
        self.messages
            .iter()
            .filter(told)
            .any(|message| message.text.contains(text))
    }

    /// The user's words, oldest first.
    pub fn user(&self) -> impl DoubleEndedIterator<Item = &str> {
        let users = |message: &&Message| message.role == Role::User;
        self.messages
            .iter()
            .filter(users)
            .map(|message| message.text.as_str())
    }

    /// Results of tools, oldest first.
    pub fn tool_results(&self) -> impl DoubleEndedIterator<Item = &str> {
        let results = |message: &&Message| message.role == Role::Tool;
        self.messages
            .iter()
            .filter(results)
            .map(|message| message.text.as_str())
    }
}
