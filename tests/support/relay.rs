//! A client of `handover relay` that writes JSON-RPC lines itself, in front of a scripted server.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ChildStdin;

use serde_json::{Value, json};

use super::clock::{LONG, SHORT, eventually};
use super::command::{Outcome, Running};
use super::place::Place;
use super::processes;

/// `handover relay` with `tests/tools/relayed_server.py` behind it.
pub struct Relay {
    relay: Running,
    input: Option<ChildStdin>,
    witness: PathBuf,
}

impl Relay {
    /// Starts it with `options` for `handover relay`, which precede the server, and waits until the server answers.
    pub fn start(place: &Place, options: &[&str]) -> Self {
        let mut relay = Self::begin(place, options, &[]);
        relay.write(r#"{"jsonrpc":"2.0","id":"up","method":"ping"}"#);
        relay.answer(&json!("up"));
        relay
    }

    /// Starts it before a server of somebody else's, greets that, and waits for its answer.
    pub fn before(place: &Place, server: &[&str]) -> Self {
        let mut command = place.handover();
        command.args(["relay", "--"]).args(server);
        let (relay, input) = Running::start_with_input(&mut command);
        let mut relay = Self {
            relay,
            input: Some(input),
            witness: place.path().join("witness"),
        };
        relay.greet();
        relay
    }

    /// Says `initialize` as a client does, waits for the answer and confirms it.
    pub fn greet(&mut self) {
        let params = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "promises", "version": "1"},
        });
        let greeting =
            json!({"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": params});
        self.write(&greeting.to_string());
        let answer = self.answer(&json!("hello"));
        assert!(answer["result"].is_object(), "{answer}");
        self.write(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    }

    /// Starts it with further environment variables, and waits for nothing.
    pub fn begin(place: &Place, options: &[&str], environment: &[(&str, &str)]) -> Self {
        let witness = place.path().join("witness");
        let mut command = place.handover();
        command.arg("relay").args(options).args(["--", "python3"]);
        command.arg(server()).arg(&witness);
        command.envs(environment.iter().copied());
        let (relay, input) = Running::start_with_input(&mut command);
        Self {
            relay,
            input: Some(input),
            witness,
        }
    }

    /// Writes one line.
    pub fn write(&mut self, line: &str) {
        let input = self.input.as_mut().expect("an open input");
        writeln!(input, "{line}").expect("the relay reads");
    }

    /// Calls a tool under an id.
    pub fn begin_call(&mut self, id: u64, tool: &str, arguments: Value) {
        let params = json!({"name": tool, "arguments": arguments});
        let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
        self.write(&call.to_string());
    }

    /// Calls a tool under an id and waits for the response.
    pub fn call(&mut self, id: u64, tool: &str, arguments: Value) -> Value {
        self.begin_call(id, tool, arguments);
        self.answer(&json!(id))
    }

    /// Calls a tool that must do what it was asked.
    pub fn done(&mut self, id: u64, tool: &str, arguments: Value) {
        let answer = self.call(id, tool, arguments);
        assert!(answer["result"].is_object(), "{tool}: {answer}");
    }

    /// Calls a tool that must be refused, and returns the error.
    pub fn refused(&mut self, id: u64, tool: &str) -> Value {
        let answer = self.call(id, tool, json!({}));
        assert_eq!(answer["error"]["code"], -32050, "{tool}: {answer}");
        answer["error"].clone()
    }

    /// Waits for the response under an id.
    pub fn answer(&self, id: &Value) -> Value {
        self.relay.line("a response", |line| {
            line["id"] == *id && line["method"].is_null()
        })
    }

    /// What the relay has written to its client so far.
    pub fn said(&self) -> String {
        self.relay.out()
    }

    /// The lines that the server has read.
    pub fn reached(&self) -> String {
        std::fs::read_to_string(&self.witness).unwrap_or_default()
    }

    /// What the server's tools have done.
    pub fn acts(&self) -> String {
        let acts = self.witness.with_extension("acts");
        std::fs::read_to_string(acts).unwrap_or_default()
    }

    /// Waits until a tool has done something.
    pub fn acted(&self, what: &str) {
        eventually(&format!("the server does: {what}"), LONG, || {
            self.acts().contains(what).then_some(())
        });
    }

    /// Waits until a tool has done something so many times.
    pub fn acted_times(&self, what: &str, times: usize) {
        eventually(
            &format!("the server does {times} times: {what}"),
            LONG,
            || (self.acts().matches(what).count() >= times).then_some(()),
        );
    }

    /// Waits until the relay has said such a line after the first `said` bytes.
    pub fn said_more(&self, said: usize, wanted: impl Fn(&Value) -> bool) {
        eventually("a further line", LONG, || {
            let more = self.said()[said..].to_owned();
            let mut lines = more
                .lines()
                .filter_map(|line| serde_json::from_str(line).ok());
            lines.any(|line| wanted(&line)).then_some(())
        });
    }

    /// Waits until the relay has said a line that satisfies `wanted`.
    pub fn says(&self, wanted: impl Fn(&Value) -> bool) -> Value {
        self.relay.line("a line", wanted)
    }

    /// The pid of the relay.
    pub fn pid(&self) -> i32 {
        self.relay.pid()
    }

    /// The pid of the server.
    pub fn server(&self) -> i32 {
        eventually("the server runs", LONG, || {
            let below = processes::descendants(self.pid());
            below
                .into_iter()
                .find(|&pid| processes::command_line(pid).contains("relayed_server"))
        })
    }

    /// Everything below the relay: its keeper, the server, and what that has started.
    pub fn below(&self) -> Vec<i32> {
        processes::descendants(self.pid())
    }

    /// Closes its input, as a client that leaves does.
    pub fn close(&mut self) {
        drop(self.input.take());
    }

    /// Waits for its end.
    pub fn finish(mut self) -> Outcome {
        self.close();
        self.relay.finish(LONG)
    }
}

/// Waits until none of the processes is left.
pub fn all_gone(processes: &[i32]) {
    eventually("nothing is left of the server", SHORT, || {
        processes
            .iter()
            .all(|&pid| !processes::alive(pid))
            .then_some(())
    });
}

/// The scripted server.
pub(super) fn server() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/tools/relayed_server.py")
}
