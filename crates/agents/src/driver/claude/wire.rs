//! What is written to Claude Code: one JSON object a line.

use std::collections::BTreeMap;

use crate::driver::json::line;
use handover_protocol::SteerWhen;
use serde_json::{Value, json};

use crate::driver::ToolServer;

/// The arguments of `claude` and what it is told by its environment.
pub(super) fn argv(tools: Option<&ToolServer>, args: Vec<String>) -> Vec<String> {
    let mut argv: Vec<String> = [
        "claude",
        "-p",
        "--input-format",
        "stream-json",
        "--output-format",
        "stream-json",
        "--verbose",
        "--replay-user-messages",
        "--include-partial-messages",
        "--forward-subagent-text",
    ]
    .map(str::to_owned)
    .to_vec();
    if let Some([program, rest @ ..]) = tools.map(|tools| &tools.command[..]) {
        let env = tools.map(|tools| tools.env.clone()).unwrap_or_default();
        let server = json!({"command": program, "args": rest, "env": env});
        let servers = json!({"mcpServers": {"handover": server}});
        argv.extend(["--mcp-config".to_owned(), servers.to_string()]);
        // What these tools may do is for Handover to say, not for a question to people each time.
        argv.extend(["--allowedTools", "mcp__handover"].map(str::to_owned));
    }
    // After the two above, which would take in anything that does not begin with a dash.
    argv.extend(["--permission-prompt-tool", "stdio"].map(str::to_owned));
    argv.extend(args);
    argv
}

/// Makes the program say when it goes to work and when it has nothing under way.
pub(super) fn env() -> BTreeMap<String, String> {
    let name = "CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS";
    BTreeMap::from([(name.to_owned(), "1".to_owned())])
}

/// A message, with its newline.
pub(super) fn user(uuid: &str, text: &str, when: SteerWhen) -> Vec<u8> {
    line(&json!({
        "type": "user",
        "message": {"role": "user", "content": text},
        "parent_tool_use_id": null,
        "session_id": "",
        "uuid": uuid,
        "priority": match when {
            SteerWhen::Now => "now",
            SteerWhen::NextStep => "next",
            SteerWhen::TurnEnd => "later",
        },
    }))
}

/// A request of ours, with its newline.
pub(super) fn request(id: &str, request: Value) -> Vec<u8> {
    line(&json!({"type": "control_request", "request_id": id, "request": request}))
}

/// Our answer to the program's request, with its newline.
pub(super) fn answer(id: &str, response: Value) -> Vec<u8> {
    let response = json!({"subtype": "success", "request_id": id, "response": response});
    line(&json!({"type": "control_response", "response": response}))
}

/// Our refusal of the program's request, with its newline.
pub(super) fn refuse(id: &str, error: &str) -> Vec<u8> {
    let response = json!({"subtype": "error", "request_id": id, "error": error});
    line(&json!({"type": "control_response", "response": response}))
}

/// The texts in the list at a JSON pointer.
pub(super) fn texts<'a>(value: &'a Value, pointer: &str) -> impl Iterator<Item = &'a str> {
    let list = value.pointer(pointer).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_tools_come_before_the_callers_arguments() {
        let tools = ToolServer {
            command: vec!["/opt/handover".to_owned(), "mcp".to_owned()],
            env: BTreeMap::from([("A".to_owned(), "b".to_owned())]),
        };
        let argv = argv(Some(&tools), vec!["--model".to_owned(), "m".to_owned()]);
        let at = argv.iter().position(|arg| arg == "--mcp-config");
        let config = at.and_then(|at| argv.get(at + 1)).expect("the servers");
        let config: Value = serde_json::from_str(config).expect("JSON");
        assert_eq!(
            config["mcpServers"]["handover"],
            json!({"command": "/opt/handover", "args": ["mcp"], "env": {"A": "b"}})
        );
        let end = ["--permission-prompt-tool", "stdio", "--model", "m"];
        assert_eq!(argv[argv.len() - 4..], end);
    }
}
