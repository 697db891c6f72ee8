//! How `codex app-server` is started.

use std::collections::BTreeMap;

use crate::driver::ToolServer;

/// What our tools need to know of the agent's environment: codex gives its MCP servers only what it
/// is told to.
const PASSED_ON: &[&str] = &[
    "HANDOVER_SESSION",
    "HANDOVER_AGENT",
    "XDG_RUNTIME_DIR",
    "XDG_STATE_HOME",
];

/// How long a tool may take, in seconds: a person may be asked, and people go home.
const TOOL_TIMEOUT: u32 = 86_400;

/// Program and arguments.
pub(super) fn argv(tools: Option<&ToolServer>, args: Vec<String>) -> Vec<String> {
    let mut argv = vec!["codex".to_owned(), "app-server".to_owned()];
    if let Some([program, rest @ ..]) = tools.map(|tools| &tools.command[..]) {
        let passed: Vec<String> = PASSED_ON.iter().map(|name| (*name).to_owned()).collect();
        let env = tools.map(|tools| table(&tools.env)).unwrap_or_default();
        for (key, value) in [
            ("command", string(program)),
            ("args", array(rest)),
            ("env", env),
            ("env_vars", array(&passed)),
            ("tool_timeout_sec", TOOL_TIMEOUT.to_string()),
            // What these tools may do is for Handover to say, not for a question to people each time.
            ("default_tools_approval_mode", string("approve")),
        ] {
            argv.push("-c".to_owned());
            argv.push(format!("mcp_servers.handover.{key}={value}"));
        }
    }
    argv.extend(args);
    argv
}

/// A basic string of TOML: JSON's, with the one character escaped that only TOML forbids.
fn string(text: &str) -> String {
    serde_json::Value::from(text)
        .to_string()
        .replace('\u{7f}', "\\u007f")
}

fn array(texts: &[String]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| string(text)).collect();
    format!("[{}]", texts.join(","))
}

fn table(pairs: &BTreeMap<String, String>) -> String {
    let pairs: Vec<String> = pairs
        .iter()
        .map(|(key, value)| format!("{}={}", string(key), string(value)))
        .collect();
    format!("{{{}}}", pairs.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_our_tools_then_the_callers_arguments() {
        let tools = ToolServer {
            command: vec!["/opt/hand over".to_owned(), "mcp".to_owned()],
            env: BTreeMap::from([("A.B".to_owned(), "say \"x\"\n\u{7f}".to_owned())]),
        };
        let argv = argv(
            Some(&tools),
            vec!["-c".to_owned(), "model=\"m\"".to_owned()],
        );
        assert_eq!(&argv[..3], ["codex", "app-server", "-c"]);
        assert_eq!(argv[3], r#"mcp_servers.handover.command="/opt/hand over""#);
        assert_eq!(argv[5], r#"mcp_servers.handover.args=["mcp"]"#);
        assert_eq!(
            argv[7],
            r#"mcp_servers.handover.env={"A.B"="say \"x\"\n\u007f"}"#
        );
        assert_eq!(argv[argv.len() - 2..], ["-c", "model=\"m\""]);
    }

    #[test]
    fn goes_without_tools() {
        assert_eq!(argv(None, Vec::new()), ["codex", "app-server"]);
    }
}
