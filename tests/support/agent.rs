//! An agent's program: the official Python MCP client in front of `handover mcp`.

use std::cell::RefCell;
use std::io::Write;
use std::path::Path;
use std::process::{ChildStdin, Command};

use serde_json::{Value, json};

use super::clock::{LONG, eventually};
use super::command::Running;
use super::place::Place;
use super::processes;
use super::session::Session;

/// The official client, driven from the test one command a line (see `tests/tools/mcp_client.py`).
pub struct Agent {
    client: Running,
    input: Option<ChildStdin>,
    last: RefCell<u64>,
}

impl Agent {
    /// Starts `handover mcp` for the session; `mode` is `legacy` or `auto`.
    pub fn start(session: &Session, mode: &str) -> Self {
        Self::with(&session.place, mode, &["--session", &session.id()])
    }

    /// Starts `handover mcp` in `place` with `options`.
    pub fn with(place: &Place, mode: &str, options: &[&str]) -> Self {
        let [python, client] = mcp_client();
        let mut command = place.command(&python);
        command
            .arg(client)
            .args([mode, PROGRAM, "mcp"])
            .args(options);
        Self::driven_by(&mut command)
    }

    /// The same within an agent that the session runs, and that agent's id. It is driven through two
    /// pipes with names.
    pub fn of_the_session(session: &Session) -> (Self, String) {
        let pipes = ["to-agent", "from-agent"].map(|name| session.place.path().join(name));
        for pipe in &pipes {
            let made = session.place.command("mkfifo").arg(pipe).status();
            assert!(made.expect("mkfifo").success());
        }
        let [input, output] = pipes.map(|pipe| pipe.to_string_lossy().into_owned());
        let [python, client] = mcp_client();
        let script = format!("exec {python} {client} legacy {PROGRAM} mcp <{input} >{output}");
        let run = ["agent", "run", "--driver", "command", "--name", "client"];
        let arguments = [&run[..], &["--", "sh", "-c", &script]].concat();
        let started = session.cli(&arguments).done();
        let relay = format!("cat {output} & exec cat >{input}");
        let agent = Self::driven_by(session.place.command("sh").args(["-c", &relay]));
        (agent, started["id"].as_str().expect("an id").to_owned())
    }

    /// Starts the scripted server of [`super::Relay`] behind `handover relay`; `mode` as for [`Self::start`].
    pub fn relayed(place: &Place, mode: &str) -> Self {
        let [python, client] = mcp_client();
        let mut command = place.command(&python);
        command
            .arg(client)
            .args([mode, PROGRAM, "relay", "--", "python3"]);
        command.arg(super::relay::server());
        command.arg(place.path().join("witness"));
        Self::greeted_by("relayed", &mut command)
    }

    fn driven_by(command: &mut Command) -> Self {
        Self::greeted_by("handover", command)
    }

    fn greeted_by(server: &str, command: &mut Command) -> Self {
        let (client, input) = Running::start_with_input(command);
        let agent = Self {
            client,
            input: Some(input),
            last: RefCell::new(0),
        };
        agent
            .client
            .line("the server greets", |line| line["server"] == server);
        agent
    }

    /// Calls a tool and waits for its result.
    pub fn call(&mut self, tool: &str, arguments: Value) -> Tool {
        let id = self.begin(tool, arguments);
        self.result(id)
    }

    /// Calls a tool that must do what it was asked.
    pub fn done(&mut self, tool: &str, arguments: Value) -> Tool {
        let result = self.call(tool, arguments);
        assert!(!result.is_error(), "{tool}: {result:?}");
        result
    }

    /// Calls a tool that must refuse, and returns the structured refusal.
    pub fn refused(&mut self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments);
        assert!(result.is_error(), "{tool} was not refused: {result:?}");
        result.structured().clone()
    }

    /// Calls a tool that must be answered with an error of the protocol, and returns its text.
    pub fn failed(&mut self, tool: &str) -> String {
        let id = self.begin(tool, json!({}));
        let failed = |line: &Value| line["id"] == id && line["error"].is_string();
        let line = self.client.line("an error", failed);
        line["error"].as_str().unwrap_or_default().to_owned()
    }

    /// Kills the client, which has no time to tell its server.
    pub fn kill(self) {
        self.client.signal(processes::Signal::KILL);
    }

    /// Begins a call and returns its number.
    pub fn begin(&mut self, tool: &str, arguments: Value) -> u64 {
        let id = self.number();
        self.tell(&json!({"id": id, "do": "call", "tool": tool, "arguments": arguments}));
        id
    }

    /// Waits for the result of a call.
    pub fn result(&self, id: u64) -> Tool {
        let line = self.client.line("a result", |line| {
            line["id"] == id && (line["result"].is_object() || line["error"].is_string())
        });
        assert!(line["error"].is_null(), "a protocol error: {line}");
        Tool(line["result"].clone())
    }

    /// Gives up a call.
    pub fn cancel(&mut self, id: u64) {
        self.tell(&json!({"id": id, "do": "cancel"}));
        self.client.line("a cancelled call", |line| {
            line["id"] == id && line["cancelled"] == true
        });
    }

    /// The tools.
    pub fn tools(&mut self) -> Vec<Value> {
        let id = self.number();
        self.tell(&json!({"id": id, "do": "list"}));
        let line = self.client.line("the tools", |line| line["id"] == id);
        line["result"].as_array().expect("a list").clone()
    }

    /// Makes the person at the client answer the next question.
    pub fn answer(&mut self, text: &str) {
        self.tell(&json!({"do": "answer", "text": text}));
    }

    /// Waits until the client has said a line that satisfies `wanted`.
    pub fn says(&self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        self.client.line(what, wanted)
    }

    /// The process id of `handover mcp`.
    pub fn server(&self) -> i32 {
        eventually("the server runs", LONG, || {
            processes::children(self.client.pid()).pop()
        })
    }

    /// Ends the client's input, upon which it closes the server's, and waits for its clean end.
    pub fn leave(mut self) {
        drop(self.input.take());
        let outcome = self.client.finish(LONG);
        assert_eq!(outcome.code, 0, "{outcome:?}");
    }

    fn number(&self) -> u64 {
        *self.last.borrow_mut() += 1;
        *self.last.borrow()
    }

    fn tell(&mut self, command: &Value) {
        let input = self.input.as_mut().expect("an open input");
        writeln!(input, "{command}").expect("the client reads");
    }
}

/// The Python that has the official client, and the program that drives it.
fn mcp_client() -> [String; 2] {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let python = root.join("target/clients/bin/python");
    assert!(
        python.exists(),
        "no MCP client: run `scripts/install-deps test` first"
    );
    let client = root.join("tests/tools/mcp_client.py");
    [python, client].map(|path| path.to_string_lossy().into_owned())
}

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_handover");

/// What a tool answered.
#[derive(Debug)]
pub struct Tool(Value);

impl Tool {
    /// Whether the tool says that it failed.
    pub fn is_error(&self) -> bool {
        self.0["isError"] == true
    }

    /// The structured part.
    pub fn structured(&self) -> &Value {
        &self.0["structuredContent"]
    }

    /// The bytes of the PNG pictures.
    pub fn pictures(&self) -> Vec<Vec<u8>> {
        let images = self.content().filter(|part| part["type"] == "image");
        images
            .map(|part| {
                assert_eq!(part["mimeType"], "image/png");
                decode_base64(part["data"].as_str().expect("data"))
            })
            .collect()
    }

    fn content(&self) -> impl Iterator<Item = &Value> {
        self.0["content"].as_array().expect("content").iter()
    }
}

/// The bytes that base64 text stands for.
pub(super) fn decode_base64(text: &str) -> Vec<u8> {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD
        .decode(text)
        .expect("base64")
}
