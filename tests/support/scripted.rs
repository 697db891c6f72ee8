//! Agents of the session that do what the test says: `command` with a shell, and a scripted `pi`.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::clock::{LONG, eventually};
use super::session::Session;
use super::wire::{Answer, Wire};

/// Asks for an agent, as a person's program that has said hello.
pub fn spawn(session: &Session, params: Value) -> Answer {
    let mut wire = Wire::connect(&session.socket());
    let hello = wire.done("hello", json!({"client": "tests", "protocol": 1}));
    spawn_on(&mut wire, &hello, params)
}

/// Asks for an agent on a connection that was greeted so.
pub fn spawn_on(wire: &mut Wire, hello: &Value, mut params: Value) -> Answer {
    params["caller"] = json!({"name": "tests", "token": hello["callerToken"]});
    wire.call("spawn", params)
}

/// An agent that is a shell: its id.
pub fn shell(session: &Session, script: &str) -> String {
    let params = json!({"driver": "command", "prompt": "", "args": ["sh", "-c", script]});
    id(&spawn(session, params).expect("spawned"))
}

fn id(spawned: &Value) -> String {
    spawned["id"].as_str().expect("an id").to_owned()
}

/// What `list` says of an agent.
pub fn agent(session: &Session, id: &str) -> Value {
    let listed = session.wire().done("list", json!({}));
    let agents = listed["agents"].as_array().expect("a list");
    let found = agents.iter().find(|agent| agent["id"] == id);
    found
        .unwrap_or_else(|| panic!("{id} is listed: {listed}"))
        .clone()
}

/// Waits until an agent has this status.
pub fn becomes(session: &Session, id: &str, status: &str) -> Value {
    eventually(&format!("{id} is {status}"), LONG, || {
        let agent = agent(session, id);
        (agent["status"] == status).then_some(agent)
    })
}

/// An agent whose program is the scripted `pi` (see `tests/tools/scripted_pi.py`).
pub struct Scripted {
    /// Its id.
    pub id: String,
    heard: PathBuf,
}

impl Scripted {
    /// Starts one; `more` is added to the parameters of `spawn`.
    pub fn start(session: &Session, prompt: &str, more: Value) -> Self {
        let bin = session.place.path().join("bin");
        fs::create_dir_all(&bin).expect("a directory");
        let program = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../tests/tools/scripted_pi.py"
        );
        // Another agent may have made it meanwhile.
        let _ = std::os::unix::fs::symlink(program, bin.join("pi"));
        let heard = tempfile::Builder::new()
            .prefix("heard")
            .tempfile_in(session.place.path())
            .expect("a file")
            .into_temp_path()
            .keep()
            .expect("kept");
        let path = std::env::var("PATH").expect("PATH");
        let mut params = json!({
            "driver": "pi",
            "prompt": prompt,
            "env": {"PATH": format!("{}:{path}", bin.display()), "PI_HEARD": heard},
        });
        let object = params.as_object_mut().expect("an object");
        object.extend(more.as_object().expect("an object").clone());
        let id = id(&spawn(session, params).expect("spawned"));
        Self { id, heard }
    }

    /// The messages that reached it, the task first.
    pub fn heard(&self) -> Vec<String> {
        let text = fs::read_to_string(&self.heard).expect("a file");
        let lines = text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok());
        lines.collect()
    }

    /// Waits until it has heard something with `words` in it.
    pub fn hears(&self, words: &str) -> String {
        eventually(&format!("{} hears {words:?}", self.id), LONG, || {
            self.heard().into_iter().find(|text| text.contains(words))
        })
    }
}
