//! What the items of a turn mean.

use serde_json::Value;

use crate::driver::MAX_SUMMARY;
use crate::driver::json::text;
use crate::driver::shorten::{shorten, summary};

/// What an item shows.
#[derive(Debug, PartialEq)]
pub(super) enum Item<'a> {
    /// A message of ours is in the history.
    User {
        /// What we called it.
        client: Option<&'a str>,
    },
    /// The model says something.
    Message {
        /// The item's name.
        id: &'a str,
        /// All of it; empty while it begins.
        text: &'a str,
    },
    /// The model thinks.
    Thought,
    /// The model uses a tool.
    Tool {
        /// The item's name.
        id: &'a str,
        /// The tool.
        tool: String,
        /// What is done with it, in short.
        summary: Option<String>,
    },
    /// Nothing that came from the model.
    Other,
}

/// Reads an item.
pub(super) fn read(item: &Value) -> Item<'_> {
    let id = text(item, "/id").unwrap_or_default();
    let tool = |tool: &str, summary: Option<String>| Item::Tool {
        id,
        tool: tool.to_owned(),
        summary: summary.filter(|summary| !summary.is_empty()),
    };
    let short = |pointer: &str| text(item, pointer).map(|text| shorten(text, MAX_SUMMARY));
    match text(item, "/type").unwrap_or_default() {
        "userMessage" => Item::User {
            client: text(item, "/clientId"),
        },
        "agentMessage" => Item::Message {
            id,
            text: text(item, "/text").unwrap_or_default(),
        },
        "reasoning" | "plan" => Item::Thought,
        "commandExecution" => tool("shell", short("/command")),
        "fileChange" => tool("edit", Some(changed_files(item))),
        "mcpToolCall" => {
            let server = text(item, "/server").unwrap_or("mcp");
            let name = text(item, "/tool").unwrap_or_default();
            tool(&format!("{server}.{name}"), summary(&item["arguments"]))
        }
        "dynamicToolCall" => tool(
            text(item, "/tool").unwrap_or("tool"),
            summary(&item["arguments"]),
        ),
        "collabAgentToolCall" => tool(text(item, "/tool").unwrap_or("subagent"), short("/prompt")),
        "webSearch" => tool("webSearch", short("/query")),
        "imageView" => tool("imageView", short("/path")),
        "imageGeneration" => tool("imageGeneration", short("/revisedPrompt")),
        _ => Item::Other,
    }
}

/// The subagent that an item says was started: its thread, its parent's thread, and its task.
pub(super) fn spawned(item: &Value) -> Option<(&str, &str, &str)> {
    let spawn = text(item, "/type") == Some("collabAgentToolCall")
        && text(item, "/tool") == Some("spawnAgent");
    Some((
        text(item, "/receiverThreadIds/0").filter(|_| spawn)?,
        text(item, "/senderThreadId")?,
        text(item, "/prompt").unwrap_or_default(),
    ))
}

fn changed_files(item: &Value) -> String {
    let files = item.pointer("/changes").and_then(Value::as_array);
    let paths: Vec<&str> = files
        .into_iter()
        .flatten()
        .filter_map(|change| text(change, "/path"))
        .collect();
    shorten(&paths.join(" "), MAX_SUMMARY)
}
