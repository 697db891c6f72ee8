//! How each program names its shell tool.

use serde_json::{Value, json};

/// The call of the first known shell tool among `offered` that runs `command`.
pub(crate) fn call(offered: &[String], command: &str) -> Option<(String, Value)> {
    let arguments = |name: &str| match name {
        "bash" => Some(json!({"command": command})),
        "Bash" | "run_shell_command" => {
            Some(json!({"command": command, "description": "a step of the test"}))
        }
        // Waits for the end of the command and not only for its first seconds.
        "exec_command" => Some(json!({"cmd": command, "yield_time_ms": 30_000})),
        "shell" => Some(json!({"command": ["sh", "-c", command]})),
        "shell_command" => Some(json!({"command": command})),
        _ => None,
    };
    offered
        .iter()
        .find_map(|name| Some((name.clone(), arguments(name)?)))
}
