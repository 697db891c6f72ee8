//! What pi writes: one JSON object a line. Only what the driver needs is read; lines of other kinds and
//! lines that are not what pi writes are passed over.

use handover_protocol::Tokens;
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;

use crate::driver::usage;

/// One line of pi.
#[derive(Debug)]
pub enum Said {
    /// The answer to a command of ours.
    Response(Response),
    /// pi works.
    AgentStart,
    /// pi has stopped working, but may go on by itself: after an error, or to shorten its context.
    AgentEnd(AgentEnd),
    /// pi works no more (since 1.0).
    AgentSettled,
    /// One answer of the model and the tools that it asked for.
    TurnEnd(TurnEnd),
    /// A message comes into the history.
    MessageStart(Message),
    /// A part of a message of the model.
    MessageUpdate(Update),
    /// The message is complete.
    MessageEnd(Message),
    /// A tool begins.
    ToolStart(Tool),
    /// A tool has ended.
    ToolEnd(Tool),
    /// What waits in pi's queues.
    Queues(Queues),
    /// pi waits to ask the model again after an error.
    RetryStart,
    /// It no longer does; without success it has given up.
    RetryEnd {
        /// Whether the model has answered.
        success: bool,
    },
    /// pi shortens its context.
    CompactionStart,
    /// It has.
    CompactionEnd {
        /// Whether it asks the model again at once.
        again: bool,
    },
    /// An extension of pi asks or tells something.
    Dialog(Dialog),
}

/// The answer to a command.
#[derive(Debug, Deserialize)]
pub struct Response {
    /// Ours.
    pub id: Option<String>,
    /// Whether it was done.
    pub success: bool,
    /// Why not.
    pub error: Option<String>,
    /// What came of it.
    #[serde(default)]
    pub data: Value,
}

/// The messages of one run.
#[derive(Debug, Default, Deserialize)]
pub struct AgentEnd {
    messages: Vec<Message>,
}

impl AgentEnd {
    /// The model's last message.
    pub fn last(&self) -> Option<&Message> {
        self.messages
            .iter()
            .rfind(|message| message.role == "assistant")
    }
}

/// The end of one answer.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnEnd {
    message: Message,
    #[serde(default)]
    tool_results: Vec<IgnoredAny>,
}

impl TurnEnd {
    /// Whether the run may be over now: no tool was used, and no error calls for another attempt.
    pub fn may_be_last(&self) -> bool {
        self.tool_results.is_empty() && self.message.outcome() != Outcome::Error
    }
}

/// A message of the history.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Message {
    /// `user`, `assistant` and others.
    pub role: String,
    #[serde(default)]
    content: Content,
    stop_reason: Option<String>,
    error_message: Option<String>,
    response_id: Option<String>,
    #[serde(default)]
    usage: Value,
}

/// How the model's message ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The model said all it wanted, or as much as it may.
    Complete,
    /// It was cut short on request.
    Aborted,
    /// The request failed.
    Error,
}

impl Message {
    /// Its text; that of several blocks follows each other, as pi itself joins them.
    pub fn text(&self) -> String {
        match &self.content {
            Content::Text(text) => text.clone(),
            Content::Blocks(blocks) => blocks
                .iter()
                .filter(|block| block.kind == "text")
                .filter_map(|block| block.text.as_deref())
                .collect(),
            Content::Other(_) => String::new(),
        }
    }

    /// How it ended, if it is one of the model's and has ended.
    pub fn outcome(&self) -> Outcome {
        match self.stop_reason.as_deref() {
            Some("aborted") => Outcome::Aborted,
            Some("stop" | "length" | "toolUse") => Outcome::Complete,
            _ => Outcome::Error,
        }
    }

    /// What the model took in and gave out for it, if pi says so.
    pub fn tokens(&self) -> Option<Tokens> {
        let input = usage::sum(&self.usage, &["input", "cacheRead", "cacheWrite"])?;
        let output = usage::sum(&self.usage, &["output"])?;
        Some(Tokens { input, output })
    }

    /// Whether something of it can only have come from the model's server.
    pub fn is_from_the_server(&self) -> bool {
        let Content::Blocks(blocks) = &self.content else {
            return self.response_id.is_some();
        };
        self.response_id.is_some()
            || blocks.iter().any(|block| {
                block.kind == "toolCall"
                    || [&block.text, &block.thinking]
                        .into_iter()
                        .flatten()
                        .any(|text| !text.is_empty())
            })
    }

    /// Why the request failed.
    pub fn error(&self) -> String {
        self.error_message
            .clone()
            .unwrap_or_else(|| "the request to the model failed".to_owned())
    }
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Blocks(Vec<Block>),
    Other(IgnoredAny),
}

impl Default for Content {
    fn default() -> Self {
        Self::Blocks(Vec::new())
    }
}

#[derive(Debug, Deserialize)]
struct Block {
    #[serde(default, rename = "type")]
    kind: String,
    text: Option<String>,
    thinking: Option<String>,
}

/// A part of the model's message.
#[derive(Debug, Deserialize)]
pub struct Update {
    #[serde(rename = "assistantMessageEvent")]
    event: Part,
}

#[derive(Debug, Deserialize)]
struct Part {
    #[serde(rename = "type")]
    kind: String,
    delta: Option<String>,
}

impl Update {
    /// Whether the model's server has sent it.
    pub fn is_from_the_server(&self) -> bool {
        ["text_", "thinking_", "toolcall_"]
            .iter()
            .any(|kind| self.event.kind.starts_with(kind))
    }

    /// The text that it adds to the message.
    pub fn into_text(self) -> Option<String> {
        (self.event.kind == "text_delta")
            .then_some(self.event.delta)
            .flatten()
            .filter(|text| !text.is_empty())
    }
}

/// A use of a tool.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tool {
    /// pi's name for the call.
    pub tool_call_id: Option<String>,
    /// The tool.
    pub tool_name: String,
    /// What it is called with.
    #[serde(default)]
    pub args: Value,
}

/// Everything that waits.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Queues {
    /// For the next step.
    pub steering: Vec<String>,
    /// For the end of the run.
    pub follow_up: Vec<String>,
}

/// What an extension of pi asks or tells.
#[derive(Debug, Deserialize)]
pub struct Dialog {
    /// pi's name for it.
    pub id: String,
    /// `confirm`, `select`, `input`, `editor`; others want no answer.
    pub method: String,
    /// What it is about.
    pub title: Option<String>,
    /// The same at length.
    pub message: Option<String>,
    /// Between what to choose.
    #[serde(default)]
    pub options: Vec<String>,
}

#[derive(Deserialize)]
struct Kind<'a> {
    #[serde(borrow, rename = "type")]
    kind: std::borrow::Cow<'a, str>,
}

#[derive(Deserialize)]
struct Carrier {
    message: Message,
}

#[derive(Deserialize)]
struct Retry {
    success: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Compaction {
    #[serde(default)]
    will_retry: bool,
}

/// Reads a line. The kind is found before anything is kept, since most lines are of no interest and
/// some are long.
pub fn read(line: &[u8]) -> Option<Said> {
    fn parse<T: DeserializeOwned>(line: &[u8]) -> Option<T> {
        serde_json::from_slice(line).ok()
    }
    let kind: Kind<'_> = serde_json::from_slice(line).ok()?;
    Some(match kind.kind.as_ref() {
        "response" => Said::Response(parse(line)?),
        "agent_start" => Said::AgentStart,
        // That it has ended matters more than with what.
        "agent_end" => Said::AgentEnd(parse(line).unwrap_or_default()),
        "agent_settled" => Said::AgentSettled,
        "turn_end" => Said::TurnEnd(parse(line)?),
        "message_start" => Said::MessageStart(parse::<Carrier>(line)?.message),
        "message_update" => Said::MessageUpdate(parse(line)?),
        "message_end" => Said::MessageEnd(parse::<Carrier>(line)?.message),
        "tool_execution_start" => Said::ToolStart(parse(line)?),
        "tool_execution_end" => Said::ToolEnd(parse(line)?),
        "queue_update" => Said::Queues(parse(line)?),
        "auto_retry_start" => Said::RetryStart,
        "auto_retry_end" => Said::RetryEnd {
            success: parse::<Retry>(line)?.success,
        },
        "compaction_start" => Said::CompactionStart,
        "compaction_end" => Said::CompactionEnd {
            again: parse::<Compaction>(line)?.will_retry,
        },
        "extension_ui_request" => Said::Dialog(parse(line)?),
        _ => return None,
    })
}
