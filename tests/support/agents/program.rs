//! The agent programs: where they are, and what makes them talk to a model on loopback.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use handover_model::Reply;
use serde_json::json;

use crate::support::{LONG, Place, Running};

/// An agent program that `scripts/install-deps` puts below `target/clients/agents`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// pi, over its RPC mode and OpenAI chat completions.
    Pi,
    /// codex, over its app-server and OpenAI responses.
    Codex,
    /// Claude Code, over stream-json and Anthropic messages.
    Claude,
    /// Gemini CLI, over the agent client protocol and Gemini.
    Gemini,
}

/// Whether a program may use its shell without asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shell {
    /// It uses it.
    Allowed,
    /// It asks for permission first.
    Asks,
}

impl Program {
    /// The driver that runs it.
    pub fn driver(self) -> &'static str {
        match self {
            Self::Pi => "pi",
            Self::Codex => "codex",
            Self::Claude => "claude",
            Self::Gemini => "acp",
        }
    }

    /// The first state after `handed` that its protocol shows of a steer that has not arrived.
    pub fn acknowledges(self) -> &'static str {
        match self {
            Self::Pi | Self::Codex | Self::Claude => "queued",
            // One prompt at a time: the next is not handed over before the turn has ended.
            Self::Gemini => "accepted",
        }
    }

    /// Its program file.
    ///
    /// # Panics
    /// When it is not installed.
    pub fn executable(self) -> PathBuf {
        let (directory, name) = match self {
            Self::Pi => ("pi", "pi"),
            Self::Codex => ("codex", "codex"),
            Self::Claude => ("claude", "claude"),
            Self::Gemini => ("gemini", "gemini"),
        };
        Self::installed(&format!("{directory}/node_modules/.bin/{name}"))
    }

    /// A file below the directory into which `scripts/install-deps agents` installs programs.
    ///
    /// # Panics
    /// When it is not there.
    pub fn installed(path: &str) -> PathBuf {
        let program = agents().join(path);
        assert!(
            program.exists(),
            "{} is not there: run `scripts/install-deps agents` first",
            program.display()
        );
        program
    }

    /// The arguments with which it is spawned.
    pub fn arguments(self) -> Vec<String> {
        let executable = || self.executable().to_string_lossy().into_owned();
        let strings = |list: &[&str]| list.iter().map(|&text| text.to_owned()).collect();
        match self {
            Self::Pi => strings(&["--provider", "scripted", "--model", "scripted"]),
            Self::Codex | Self::Claude => Vec::new(),
            // Naming the model keeps it from asking the model which model to ask.
            Self::Gemini => strings(&[&executable(), "--acp", "--model", "scripted"]),
        }
    }

    /// Checks that it runs and is of `version`, the one that the tests know.
    pub fn is(self, version: &str) {
        let mut place = Place::new();
        self.prepare(&mut place, "http://127.0.0.1:9", Shell::Allowed);
        let mut command = place.command(&self.executable().to_string_lossy());
        let said = Running::start(command.arg("--version")).finish(LONG);
        // Some write it to one output, some to the other.
        let both = said.out.clone() + &said.err;
        assert!(said.code == 0 && both.contains(version), "{said:?}");
    }

    /// The model's reply that makes it run `command`.
    pub fn runs(self, shell: Shell, command: &str) -> Reply {
        match (self, shell) {
            // It asks when the model does.
            (Self::Codex, Shell::Asks) => Reply::tool(
                "exec_command",
                json!({
                    "cmd": command,
                    "sandbox_permissions": "require_escalated",
                    "justification": "a step of the test",
                }),
            ),
            _ => Reply::shell(command),
        }
    }

    /// Makes `place` one in which the program talks to the model at `url`.
    pub fn prepare(self, place: &mut Place, url: &str, shell: Shell) {
        let mut path = vec![self.executable().parent().expect("a directory").to_owned()];
        // A node that is new enough for all of them, where the system's own is not.
        path.push(agents().join("node/bin"));
        path.extend(env::split_paths(&env::var_os("PATH").unwrap_or_default()));
        place.set(
            "PATH",
            env::join_paths(path).expect("a path without colons"),
        );
        // Of its own, for codex leaves things undone when its home is below the directory for
        // temporary files.
        let temporary = place.path().join("t");
        fs::create_dir(&temporary).expect("a directory");
        place.set("TMPDIR", temporary);
        match self {
            Self::Pi => prepare_pi(place, url, shell),
            Self::Codex => prepare_codex(place, url, shell),
            Self::Claude => prepare_claude(place, url, shell),
            Self::Gemini => prepare_gemini(place, url, shell),
        }
    }
}

fn prepare_pi(place: &mut Place, url: &str, shell: Shell) {
    let models = json!({"providers": {"scripted": {
        "baseUrl": format!("{url}/v1"),
        "api": "openai-completions",
        "apiKey": "dummy",
        "models": [{"id": "scripted", "name": "scripted"}],
    }}});
    write(place, ".pi/agent/models.json", &models.to_string());
    if shell == Shell::Asks {
        write(place, ".pi/agent/extensions/asks.ts", PI_ASKS);
    }
    place.set("PI_OFFLINE", "1");
}

/// pi itself asks for nothing; its extensions may.
const PI_ASKS: &str = r#"
export default function (pi) {
    pi.on("tool_call", async (event, context) => {
        const allowed = await context.ui.confirm("May it?", event.toolName);
        return allowed ? undefined : { block: true, reason: "it may not" };
    });
}
"#;

fn prepare_codex(place: &mut Place, url: &str, shell: Shell) {
    let (approval, sandbox) = match shell {
        Shell::Allowed => ("never", "danger-full-access"),
        Shell::Asks => ("on-request", "read-only"),
    };
    let config = format!(
        r#"
model = "scripted"
model_provider = "scripted"
approval_policy = "{approval}"
sandbox_mode = "{sandbox}"

[model_providers.scripted]
name = "scripted"
base_url = "{url}/v1"
wire_api = "responses"
requires_openai_auth = false
"#
    );
    write(place, ".codex/config.toml", &config);
    place.set("CODEX_HOME", place.path().join(".codex"));
}

fn prepare_claude(place: &mut Place, url: &str, shell: Shell) {
    let allowed = match shell {
        Shell::Allowed => json!(["Bash"]),
        Shell::Asks => json!([]),
    };
    let settings = json!({"permissions": {"allow": allowed}});
    write(place, ".claude/settings.json", &settings.to_string());
    place.set("CLAUDE_CONFIG_DIR", place.path().join(".claude"));
    place.set("ANTHROPIC_BASE_URL", url);
    place.set("ANTHROPIC_API_KEY", "dummy");
    place.set("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
    place.set("DISABLE_AUTOUPDATER", "1");
}

fn prepare_gemini(place: &mut Place, url: &str, shell: Shell) {
    let mode = match shell {
        Shell::Allowed => json!({"tools": {"allowed": ["run_shell_command"]}}),
        Shell::Asks => json!({}),
    };
    write(place, ".gemini/settings.json", &mode.to_string());
    place.set("GEMINI_API_KEY", "dummy");
    place.set("GOOGLE_GEMINI_BASE_URL", url);
}

fn agents() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/clients/agents")
}

fn write(place: &Place, path: &str, text: &str) {
    let path = place.path().join(path);
    fs::create_dir_all(path.parent().expect("a directory")).expect("directories");
    fs::write(path, text).expect("a file");
}
