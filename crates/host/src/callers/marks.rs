//! Marks of known agent programs. An agent that was started outside of Handover is the likeliest
//! impostor of its user: whatever it runs carries the environment that its program sets.

use crate::system::process::{self, Stat};

/// Variables that agent programs set for what they run, and nobody sets for a person's shell.
const VARIABLES: &[&str] = &[
    // Claude Code
    "CLAUDECODE",
    "CLAUDE_CODE_ENTRYPOINT",
    // Codex
    "CODEX_SANDBOX",
    "CODEX_SANDBOX_NETWORK_DISABLED",
    "CODEX_CI",
    "CODEX_THREAD_ID",
    // Gemini CLI and its kin
    "GEMINI_CLI",
    "QWEN_CODE",
    // OpenCode, Crush, Amp, Goose
    "OPENCODE",
    "CRUSH",
    "AMP_CURRENT_THREAD_ID",
    "GOOSE_TERMINAL",
    // Cursor's and Copilot's command-line agents
    "CURSOR_AGENT",
    "COPILOT_CLI",
    // Cline, Augment
    "CLINE_ACTIVE",
    "AUGMENT_AGENT",
    // pi
    "PI_CODING_AGENT",
    // What some agree on
    "AI_AGENT",
    "AGENT",
];

/// Names of agent programs' own processes, which may clear the environment of what they run.
const NAMES: &[&str] = &[
    "claude",
    "codex",
    "gemini",
    "opencode",
    "goose",
    "crush",
    "aider",
    "cursor-agent",
];

/// Whether this variable marks what an agent program runs.
pub(crate) fn is_mark(variable: &str) -> bool {
    VARIABLES.contains(&variable)
}

/// The mark that `stat`, a caller or something above one, carries.
pub(super) fn mark_of(stat: &Stat) -> Option<String> {
    if NAMES.contains(&stat.name.as_str()) {
        return Some(stat.name.clone());
    }
    // What belongs to another user, such as the login above us, cannot be read and is no agent's.
    let environ = process::environ(stat.pid).ok()?;
    environ
        .into_iter()
        .find(|(name, value)| is_mark(name) && is_set(value))
        .map(|(name, _)| name)
}

fn is_set(value: &str) -> bool {
    !matches!(value, "" | "0" | "false")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_variable_marks_and_an_empty_one_does_not() {
        let mark = |value: &str| {
            let mut child = Command::new("sleep")
                .arg("60")
                .env_clear()
                .env("CLAUDECODE", value)
                .spawn()
                .unwrap();
            let mark = mark_of(&Stat::of(child.id()).unwrap());
            child.kill().unwrap();
            child.wait().unwrap();
            mark
        };
        assert_eq!(mark("1"), Some("CLAUDECODE".into()));
        assert_eq!(mark(""), None);
        assert_eq!(mark("0"), None);
    }
}
