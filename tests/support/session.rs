//! A live session of the real program.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use super::clock::{LONG, eventually};
use super::command::{Outcome, Running};
use super::display::Display;
use super::place::Place;
use super::processes;
use super::viewer::Viewer;
use super::wire::Wire;

/// A session in a place of its own. Ended, and all its processes killed, when dropped.
pub struct Session {
    /// Where it runs.
    pub place: Place,
    /// What `up --json` printed.
    pub said: Value,
}

impl Session {
    /// A session with one desktop, `d1`, of 800x600.
    pub fn up() -> Self {
        Self::with(Place::new(), &["--desktop", "--size", "800x600"])
    }

    /// A session in `place`, with options for `up`.
    pub fn with(place: Place, options: &[&str]) -> Self {
        let mut command = place.handover();
        let said = Running::start(command.args(["up", "--json"]).args(options))
            .finish(LONG)
            .done();
        Self { place, said }
    }

    /// Brings the session back after its host ended.
    pub fn again(&mut self) {
        let id = self.id();
        let mut command = self.place.handover();
        self.said = Running::start(command.args(["up", "--json", "--session", &id]))
            .finish(LONG)
            .done();
    }

    /// Its id.
    pub fn id(&self) -> String {
        self.said["sessionId"]
            .as_str()
            .expect("a session id")
            .to_owned()
    }

    /// The host's process id.
    pub fn host(&self) -> i32 {
        i32::try_from(self.said["pid"].as_i64().expect("a pid")).expect("a pid")
    }

    /// The attach socket.
    pub fn socket(&self) -> PathBuf {
        self.said["socketPath"].as_str().expect("a path").into()
    }

    /// Its directory of sockets.
    pub fn runtime(&self) -> PathBuf {
        self.said["runtimeDir"].as_str().expect("a path").into()
    }

    /// Its directory of state.
    pub fn state(&self) -> PathBuf {
        self.said["stateDir"].as_str().expect("a path").into()
    }

    /// Runs one command with `--json` to its end.
    pub fn cli(&self, arguments: &[&str]) -> Outcome {
        self.start(arguments).finish(LONG)
    }

    /// Starts one command with `--json`.
    pub fn start(&self, arguments: &[&str]) -> Running {
        Running::start(self.place.handover().arg("--json").args(arguments))
    }

    /// A new connection to the host that has said hello as a person's program.
    pub fn wire(&self) -> Wire {
        let mut wire = Wire::connect(&self.socket());
        wire.done("hello", json!({"client": "tests", "protocol": 1}));
        wire
    }

    /// A new viewer's socket and name on `d1`.
    pub fn view(&self) -> (PathBuf, String) {
        let opened = self.wire().done("view.open", json!({"desktop": "d1"}));
        let text = |name: &str| opened[name].as_str().expect("a text").to_owned();
        (text("socketPath").into(), text("viewer"))
    }

    /// A new viewer of `d1` and its name.
    pub fn viewer(&self) -> (Viewer, String) {
        let (path, name) = self.view();
        (Viewer::connect(&path), name)
    }

    /// A person in control of `d1` through a viewer, with `options` added to the acquire's parameters. Without a
    /// `ttlMs` among them control lasts longer than any test, since nobody here renews it.
    pub fn take(&self, options: Value) -> Holder {
        let (viewer, name) = self.viewer();
        viewer.first_frame();
        let mut wire = self.wire();
        let mut params = json!({"desktop": "d1", "viewer": name, "ttlMs": 300_000});
        params
            .as_object_mut()
            .expect("an object")
            .extend(options.as_object().expect("an object").clone());
        let granted = wire.done("control.acquire", params);
        Holder {
            wire,
            viewer,
            granted,
        }
    }

    /// `control.status` of `d1`.
    pub fn status(&self) -> Value {
        self.wire().done("control.status", json!({"desktop": "d1"}))
    }

    /// Waits until `d1` is under `control` in phase `steady`.
    pub fn becomes(&self, control: &str, bound: Duration) -> Value {
        eventually(&format!("control is {control}"), bound, || {
            let status = self.status();
            (status["control"] == control && status["phase"] == "steady").then_some(status)
        })
    }

    /// All events on record, oldest first.
    pub fn journal(&self) -> Vec<Value> {
        let page = self.wire().done("journal", json!({"limit": 10_000}));
        page["events"].as_array().expect("a list").clone()
    }

    /// The events of one kind.
    pub fn events(&self, kind: &str) -> Vec<Value> {
        self.journal()
            .into_iter()
            .filter(|event| event["kind"] == kind)
            .collect()
    }

    /// Waits until an event of `kind` is on record and returns the first.
    pub fn event(&self, kind: &str) -> Value {
        eventually(&format!("an event {kind}"), LONG, || {
            self.events(kind).into_iter().next()
        })
    }

    /// The process id of `d1`'s display server.
    pub fn display_server(&self) -> i32 {
        let is_server = |pid: &i32| {
            let line = processes::command_line(*pid);
            line.split(' ')
                .next()
                .is_some_and(|program| program.ends_with("vnc"))
                && line.contains("d1.rfb")
        };
        let below = self.place.processes().into_iter().find(is_server);
        below.expect("a display server")
    }

    /// The process id of `d1`'s keeper: the display server's parent.
    pub fn keeper(&self) -> i32 {
        let server = self.display_server();
        let found = self
            .place
            .processes()
            .into_iter()
            .find(|&pid| processes::children(pid).contains(&server));
        found.expect("a keeper")
    }

    /// How applications reach `d1`, learnt as they learn it: from their environment.
    pub fn display(&self) -> Display {
        let told = self.place.path().join("display");
        if !told.exists() {
            let tell = format!(
                "printf '%s\\n' \"$DISPLAY\" \"$XAUTHORITY\" >{0}.new && mv {0}.new {0}",
                told.display()
            );
            let command = json!(["sh", "-c", tell]);
            self.wire().done(
                "desktop.launch",
                json!({"desktop": "d1", "command": command}),
            );
        }
        let text = eventually("an application tells its display", LONG, || {
            fs::read_to_string(&told).ok()
        });
        let mut lines = text.lines().map(str::to_owned);
        Display {
            name: lines.next().expect("DISPLAY"),
            authority: lines.next().expect("XAUTHORITY").into(),
        }
    }
}

/// A person who controls a desktop.
pub struct Holder {
    /// The connection that acquired: when it closes, control ends.
    pub wire: Wire,
    /// The viewer to which the lease is bound.
    pub viewer: Viewer,
    /// What `control.acquire` answered.
    pub granted: Value,
}

impl Holder {
    /// The lease and its token, as parameters.
    pub fn proof(&self) -> Value {
        json!({"leaseId": self.granted["leaseId"], "token": self.granted["token"]})
    }

    /// Returns control and gives the answer.
    pub fn give_back(&mut self) -> Value {
        let proof = self.proof();
        self.wire.done("control.return", proof)
    }
}
