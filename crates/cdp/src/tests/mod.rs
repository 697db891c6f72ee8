//! The gate against a browser that is a script.

mod any_order;
mod built_in;
mod drain;
mod human_time;
mod stuck;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::{ClientId, Effect, Gate, Held, MAX_IN_FLIGHT, Permit, Refused, Verdict};

const ONE: ClientId = ClientId(1);
const TWO: ClientId = ClientId(2);

/// A gate with what it did so far.
struct World {
    gate: Gate,
    to_browser: Vec<Value>,
    /// The commands by which pages forget what they have said in human time. They get no answers.
    forgetting: Vec<Value>,
    to_client: BTreeMap<ClientId, Vec<Value>>,
    completed: BTreeSet<Permit>,
    ready: BTreeSet<ClientId>,
    permits: u64,
}

impl World {
    fn new() -> Self {
        Self {
            gate: Gate::new(),
            to_browser: Vec::new(),
            forgetting: Vec::new(),
            to_client: BTreeMap::new(),
            completed: BTreeSet::new(),
            ready: BTreeSet::new(),
            permits: 0,
        }
    }

    /// A world in which client one has a session, `s1`.
    fn with_session() -> Self {
        let mut world = Self::new();
        world.connect(ONE);
        world.attach(ONE, "s1");
        world.told(ONE);
        world.to_browser.clear();
        world
    }

    fn settle(&mut self) {
        let read = |bytes: &[u8]| serde_json::from_slice(bytes).expect("JSON");
        while let Some(effect) = self.gate.poll_effect() {
            match effect {
                Effect::ToBrowser(bytes) => {
                    let sent: Value = read(&bytes);
                    let method = sent["method"].as_str();
                    match method {
                        Some("Runtime.discardConsoleEntries" | "Log.clear") => {
                            self.forgetting.push(sent);
                        }
                        _ => self.to_browser.push(sent),
                    }
                }
                Effect::ToClient(client, bytes) => {
                    self.to_client.entry(client).or_default().push(read(&bytes));
                }
                Effect::Ready(client) => drop(self.ready.insert(client)),
                Effect::Close(_) => {}
                Effect::Complete(permit) => {
                    assert!(self.completed.insert(permit), "{permit:?} twice");
                }
            }
        }
    }

    /// Lets a client connect; its session is called `root-N`.
    fn connect(&mut self, client: ClientId) {
        self.gate.connect(client);
        self.settle();
        let asked = self.to_browser.pop().expect("a command");
        assert_eq!(asked["method"], "Target.attachToBrowserTarget");
        let session = format!("root-{}", client.0);
        self.says(json!({"id": asked["id"], "result": {"sessionId": session}}));
        assert!(self.ready.contains(&client));
    }

    /// The browser tells the client of a session.
    fn attach(&mut self, client: ClientId, session: &str) {
        let root = format!("root-{}", client.0);
        let params = json!({"sessionId": session, "targetInfo": {"type": "page", "targetId": format!("t-{session}")}, "waitingForDebugger": true});
        self.says(
            json!({"method": "Target.attachedToTarget", "params": params, "sessionId": root}),
        );
    }

    fn says(&mut self, message: Value) {
        self.gate.from_browser(message.to_string().as_bytes());
        self.settle();
    }

    fn asks(&mut self, client: ClientId, command: Value) -> Option<Held> {
        let verdict = self
            .gate
            .from_client(client, command.to_string().as_bytes());
        self.settle();
        match verdict {
            Verdict::Done => None,
            Verdict::NeedsPermit(held) => Some(held),
        }
    }

    /// A command that gets its permit.
    fn does(&mut self, client: ClientId, command: Value) -> Permit {
        let held = self.asks(client, command).expect("it needs a permit");
        self.permits += 1;
        let permit = Permit(self.permits);
        self.gate.permitted(&held, permit);
        self.settle();
        permit
    }

    fn last_command(&self) -> Value {
        self.to_browser.last().expect("a command").clone()
    }

    fn told(&mut self, client: ClientId) -> Vec<Value> {
        self.to_client.remove(&client).unwrap_or_default()
    }
}

#[test]
fn numbers_and_sessions_are_each_clients_own() {
    let mut world = World::new();
    world.connect(ONE);
    world.connect(TWO);
    let command = json!({"id": 7, "method": "Page.navigate", "params": {"url": "x"}});
    let first = world.does(ONE, command.clone());
    let of_one = world.last_command();
    world.does(TWO, command);
    let of_two = world.last_command();
    assert_ne!(of_one["id"], of_two["id"]);
    assert_eq!(
        (&of_one["sessionId"], &of_two["sessionId"]),
        (&json!("root-1"), &json!("root-2"))
    );
    world.says(json!({"id": of_one["id"], "sessionId": "root-1", "result": {"frameId": "f"}}));
    assert_eq!(
        world.told(ONE),
        [json!({"id": 7, "result": {"frameId": "f"}})]
    );
    assert!(world.told(TWO).is_empty());
    assert!(world.completed.contains(&first));
    world
        .says(json!({"method": "Target.targetCreated", "params": {"a": 1}, "sessionId": "root-2"}));
    assert_eq!(
        world.told(TWO),
        [json!({"method": "Target.targetCreated", "params": {"a": 1}})]
    );
    assert!(world.told(ONE).is_empty());
}

#[test]
fn a_foreign_session_is_unknown() {
    let mut world = World::new();
    world.connect(ONE);
    world.connect(TWO);
    world.attach(ONE, "s1");
    world.told(ONE);
    for session in ["s1", "root-1", "none"] {
        let command = json!({"id": 1, "method": "Runtime.evaluate", "sessionId": session});
        assert!(world.asks(TWO, command).is_none());
        assert_eq!(world.told(TWO)[0]["error"]["code"], -32001, "{session}");
    }
}

#[test]
fn what_would_lead_past_the_gate_is_refused() {
    let mut world = World::new();
    world.connect(ONE);
    let before = world.to_browser.len();
    for command in [
        json!({"id": 1, "method": "Target.sendMessageToTarget", "params": {"message": "{}"}}),
        json!({"id": 1, "method": "Tethering.bind", "params": {"port": 1}}),
        json!({"id": 1, "method": "Browser.close"}),
        json!({"id": 1, "method": "Target.attachToTarget", "params": {"targetId": "t"}}),
        json!({"id": 1, "method": "Target.setAutoAttach", "params": {"autoAttach": true, "flatten": false}}),
        json!({"id": "1", "method": "Browser.getVersion"}),
        json!([{"id": 1, "method": "Browser.getVersion"}]),
    ] {
        assert!(world.asks(ONE, command.clone()).is_none(), "{command}");
        assert!(world.told(ONE)[0]["error"].is_object(), "{command}");
    }
    // One field twice: the browser might read the other.
    let twice = br#"{"id":1,"method":"Browser.getVersion","method":"Page.navigate"}"#;
    assert!(matches!(world.gate.from_client(ONE, twice), Verdict::Done));
    world.settle();
    assert!(world.told(ONE)[0]["error"].is_object());
    let flat =
        br#"{"id":1,"method":"Target.attachToTarget","params":{"flatten":true,"flatten":false}}"#;
    assert!(matches!(world.gate.from_client(ONE, flat), Verdict::Done));
    assert_eq!(world.to_browser.len(), before, "nothing has passed");
    // What the browser takes and the gate cannot note.
    for (method, params) in [
        // The person's pages would run the condition.
        (
            "Debugger.setBreakpointByUrl",
            r#"{"lineNumber":0,"urlRegex":".*","condition":"act()"}"#,
        ),
        (
            "Debugger.setBreakpoint",
            r#"{"condition":"","condition":"act()"}"#,
        ),
        // The script would begin when a slow page comes, in human time too.
        ("Page.reload", r#"{"scriptToEvaluateOnLoad":"act()"}"#),
        (
            "Page.reload",
            r#"{"scriptToEvaluateOnLoad":"","scriptToEvaluateOnLoad":"act()"}"#,
        ),
        ("Fetch.enable", "{}"),
        (
            "Input.dispatchKeyEvent",
            r#"{"type":"keyDown","key":"a","key":"a"}"#,
        ),
        (
            "Input.dispatchKeyEvent",
            r#"{"type":"keyDown","key":"a","windowsVirtualKeyCode":65.0}"#,
        ),
        (
            "Input.setIgnoreInputEvents",
            r#"{"ignore":true,"ignore":true}"#,
        ),
        ("Overlay.setInspectMode", r#"{"mode":["searchForNode"]}"#),
    ] {
        let command = format!(r#"{{"id":1,"method":"{method}","params":{params}}}"#);
        let verdict = world.gate.from_client(ONE, command.as_bytes());
        assert!(matches!(verdict, Verdict::Done), "{command}");
        world.settle();
        assert_eq!(
            world
                .told(ONE)
                .last()
                .map(|told| told["error"]["code"].clone()),
            Some(json!(-32602))
        );
    }
    let null = json!({"id": 1, "method": "Input.dispatchKeyEvent", "params": {"type": "keyDown", "key": "a", "code": null}});
    assert!(world.asks(ONE, null).is_some());
}

#[test]
fn a_refusal_says_why_and_what_to_do() {
    let mut world = World::new();
    world.connect(ONE);
    world.attach(ONE, "s1");
    world.told(ONE);
    let command = json!({"id": 3, "method": "Page.captureScreenshot", "sessionId": "s1"});
    let held = world.asks(ONE, command).expect("it needs a permit");
    let mut data = Map::new();
    data.insert("lease".into(), json!({"leaseId": "l-1"}));
    let refused = Refused {
        code: "human_control_active".into(),
        message: "wait".into(),
        data,
    };
    world.gate.refused(&held, &refused);
    world.settle();
    let error = json!({
        "code": -32050,
        "message": "wait [human_control_active]",
        "data": {"code": "human_control_active", "lease": {"leaseId": "l-1"}},
    });
    assert_eq!(
        world.told(ONE),
        [json!({"id": 3, "error": error, "sessionId": "s1"})]
    );
}

#[test]
fn in_human_time_nothing_is_held_up_or_shown() {
    let mut world = World::new();
    world.connect(ONE);
    world.attach(ONE, "s1");
    let stopped = json!({"requestId": "r1", "request": {"postData": "password"}});
    world.says(json!({"method": "Fetch.requestPaused", "params": stopped, "sessionId": "s1"}));
    world.told(ONE);
    world.to_browser.clear();
    world.gate.close();
    world.settle();
    let sent: Vec<&Value> = world
        .to_browser
        .iter()
        .map(|sent| &sent["method"])
        .collect();
    assert_eq!(
        sent,
        ["Fetch.continueRequest", "Runtime.runIfWaitingForDebugger"]
    );
    world.to_browser.clear();

    let stopped = json!({"requestId": "r2", "request": {"postData": "password"}});
    world.says(json!({"method": "Fetch.requestPaused", "params": stopped, "sessionId": "s1"}));
    world.says(json!({"method": "Runtime.consoleAPICalled", "params": {"args": ["secret"]}, "sessionId": "s1"}));
    world.says(json!({"method": "Page.loadEventFired", "params": {}, "sessionId": "s1"}));
    assert_eq!(world.last_command()["params"]["requestId"], "r2");
    let told = world.told(ONE);
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0]["method"], "Page.loadEventFired");

    // A tab of the person's own goes on, and is heard of afterwards; one that has gone never is.
    world.to_browser.clear();
    world.attach(ONE, "own");
    world.attach(ONE, "brief");
    assert_eq!(world.to_browser[0]["sessionId"], "own");
    assert_eq!(
        world.to_browser[0]["method"],
        "Runtime.runIfWaitingForDebugger"
    );
    let gone = json!({"sessionId": "brief"});
    world.says(
        json!({"method": "Target.detachedFromTarget", "params": gone, "sessionId": "root-1"}),
    );
    assert!(world.told(ONE).is_empty());
    world.gate.open();
    world.settle();
    let told = world.told(ONE);
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0]["params"]["sessionId"], "own");
    assert_eq!(told[0]["params"]["waitingForDebugger"], false);
}

#[test]
fn permits_end_with_the_session_and_with_the_client() {
    let mut world = World::new();
    world.connect(ONE);
    world.attach(ONE, "s1");
    let command = json!({"id": 1, "method": "Input.insertText", "sessionId": "s1"});
    let in_session = world.does(ONE, command.clone());
    let held = world.asks(ONE, command).expect("it needs a permit");
    world.says(json!({"method": "Target.detachedFromTarget", "params": {"sessionId": "s1"}, "sessionId": "root-1"}));
    assert!(world.completed.contains(&in_session));
    world.gate.permitted(&held, Permit(100));
    world.settle();
    assert!(
        world.completed.contains(&Permit(100)),
        "its session has gone"
    );

    let of_client = world.does(ONE, json!({"id": 2, "method": "Target.createTarget"}));
    world.gate.disconnect(ONE);
    world.settle();
    let left = world.last_command();
    assert_eq!(left["method"], "Target.detachFromTarget");
    assert!(
        !world.completed.contains(&of_client),
        "it may still be under way"
    );
    world.says(json!({"id": left["id"], "result": {}}));
    assert!(world.completed.contains(&of_client));
}

#[test]
fn too_many_unanswered_commands_are_refused() {
    let mut world = World::new();
    world.connect(ONE);
    for id in 0..MAX_IN_FLIGHT {
        world.does(ONE, json!({"id": id, "method": "Page.navigate"}));
    }
    assert!(
        world
            .asks(ONE, json!({"id": 0, "method": "Page.navigate"}))
            .is_none()
    );
    assert!(
        world.told(ONE)[0]["error"]["message"]
            .as_str()
            .is_some_and(|text| text.contains("unanswered"))
    );
}
