//! The gate against a browser that is a script, and in any order of what can happen.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::{Class, ClientId, Effect, Gate, Held, MAX_IN_FLIGHT, Permit, Refused, Verdict, class};

const ONE: ClientId = ClientId(1);
const TWO: ClientId = ClientId(2);

/// A gate with what it did so far.
struct World {
    gate: Gate,
    to_browser: Vec<Value>,
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
            to_client: BTreeMap::new(),
            completed: BTreeSet::new(),
            ready: BTreeSet::new(),
            permits: 0,
        }
    }

    fn settle(&mut self) {
        let read = |bytes: &[u8]| serde_json::from_slice(bytes).expect("JSON");
        while let Some(effect) = self.gate.poll_effect() {
            match effect {
                Effect::ToBrowser(bytes) => self.to_browser.push(read(&bytes)),
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
        let params = json!({"sessionId": session, "targetInfo": {"type": "page"}, "waitingForDebugger": true});
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
        "message": "wait",
        "data": {"code": "human_control_active", "lease": {"leaseId": "l-1"}},
    });
    assert_eq!(
        world.told(ONE),
        [json!({"id": 3, "error": error, "sessionId": "s1"})]
    );
}

#[test]
fn what_does_not_end_is_cut_off_and_its_late_answer_goes_nowhere() {
    let mut world = World::new();
    world.connect(ONE);
    world.attach(ONE, "s1");
    world.told(ONE);
    let script = json!({"id": 4, "method": "Runtime.evaluate", "params": {}, "sessionId": "s1"});
    let permit = world.does(ONE, script);
    let sent = world.last_command();
    assert!(world.gate.is_busy());
    world.gate.cut_off();
    world.settle();
    assert_eq!(world.last_command()["method"], "Runtime.terminateExecution");
    assert!(
        !world.completed.contains(&permit),
        "it may still end by itself"
    );
    world.gate.abandon();
    world.settle();
    // The end of a script that does not run would hit the person's next one.
    assert_eq!(world.last_command()["method"], "Runtime.evaluate");
    assert_eq!(world.last_command()["params"]["expression"], "0");
    assert!(world.completed.contains(&permit) && !world.gate.is_busy());
    let told = world.told(ONE);
    assert_eq!(told[0]["error"]["data"]["code"], "interrupted_by_human");
    world.says(json!({"id": sent["id"], "result": {"result": {"value": "secret"}}}));
    assert!(world.told(ONE).is_empty());
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

/// One thing that can happen.
#[derive(Debug, Clone)]
enum Step {
    Connect(u64),
    Disconnect(u64),
    Ask(u64, usize, usize),
    Grant(bool),
    Answer(usize),
    Attach(u64, usize),
    Detach(u64, usize),
    Event(usize, usize),
    CutOff,
    Abandon,
    Close,
    Open,
    Garbage(u64, Vec<u8>),
}

const METHODS: [&str; 6] = [
    "Runtime.evaluate",
    "Page.navigate",
    "Page.captureScreenshot",
    "Browser.getVersion",
    "Runtime.runIfWaitingForDebugger",
    "Browser.close",
];
const EVENTS: [&str; 4] = [
    "Fetch.requestPaused",
    "Runtime.consoleAPICalled",
    "Page.frameNavigated",
    "Debugger.paused",
];

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let client = 1u64..4;
    let step = prop_oneof![
        client.clone().prop_map(Step::Connect),
        client.clone().prop_map(Step::Disconnect),
        (client.clone(), 0..METHODS.len(), 0usize..4).prop_map(|(c, m, s)| Step::Ask(c, m, s)),
        any::<bool>().prop_map(Step::Grant),
        (0usize..8).prop_map(Step::Answer),
        (client.clone(), 0usize..3).prop_map(|(c, s)| Step::Attach(c, s)),
        (client.clone(), 0usize..3).prop_map(|(c, s)| Step::Detach(c, s)),
        (0usize..9, 0..EVENTS.len()).prop_map(|(s, e)| Step::Event(s, e)),
        Just(Step::CutOff),
        Just(Step::Abandon),
        Just(Step::Close),
        Just(Step::Open),
        (client, proptest::collection::vec(any::<u8>(), 0..40))
            .prop_map(|(c, b)| Step::Garbage(c, b)),
    ];
    proptest::collection::vec(step, 0..80)
}

proptest! {
    /// Whatever happens: nothing that needs a permit passes without one, every permit is given back exactly
    /// once, nobody gets what is another's, and nothing that shows a page is told in human time.
    #[test]
    fn no_order_of_events_breaks_the_gate(steps in steps()) {
        let mut world = World::new();
        let mut held: Vec<Held> = Vec::new();
        let mut given = BTreeSet::new();
        let mut connected = BTreeSet::new();
        let mut allowed = 0usize;
        let mut closed = false;
        let session = |client: u64, number: usize| format!("s{client}-{number}");
        for step in steps {
            let before: BTreeMap<ClientId, usize> =
                world.to_client.iter().map(|(client, told)| (*client, told.len())).collect();
            let mut is_event = None;
            match step {
                Step::Connect(client) => {
                    if connected.insert(client) && !world.ready.contains(&ClientId(client)) {
                        world.connect(ClientId(client));
                    }
                }
                Step::Disconnect(client) => world.gate.disconnect(ClientId(client)),
                Step::Ask(client, method, number) => {
                    let mut command = json!({"id": 1, "method": METHODS[method], "params": {}});
                    if number > 0 {
                        command["sessionId"] = json!(session(client, number - 1));
                    }
                    held.extend(world.asks(ClientId(client), command));
                }
                Step::Grant(granted) => {
                    if let Some(command) = held.pop() {
                        // The arbiter gives none while a person is in control.
                        if granted && !closed {
                            world.permits += 1;
                            let permit = Permit(world.permits);
                            given.insert(permit);
                            allowed += 1;
                            world.gate.permitted(&command, permit);
                        } else {
                            world.gate.refused(&command, &Refused {
                                code: "paused".into(), message: String::new(), data: Map::new(),
                            });
                        }
                    }
                }
                Step::Answer(index) => {
                    if index < world.to_browser.len() {
                        let command = world.to_browser.remove(index);
                        world.says(json!({"id": command["id"], "result": {"of": command["sessionId"]}}));
                    }
                }
                Step::Attach(client, number) => world.attach(ClientId(client), &session(client, number)),
                Step::Detach(client, number) => {
                    let params = json!({"sessionId": session(client, number)});
                    world.says(json!({
                        "method": "Target.detachedFromTarget", "params": params,
                        "sessionId": format!("root-{client}"),
                    }));
                }
                Step::Event(number, event) => {
                    is_event = Some(EVENTS[event]);
                    let within = session(number as u64 / 3 + 1, number % 3);
                    world.says(json!({
                        "method": EVENTS[event], "params": {"requestId": "r"}, "sessionId": within,
                    }));
                }
                Step::CutOff => world.gate.cut_off(),
                Step::Abandon => world.gate.abandon(),
                Step::Close => { closed = true; world.gate.close() }
                Step::Open => { closed = false; world.gate.open() }
                Step::Garbage(client, bytes) => {
                    if let Verdict::NeedsPermit(command) = world.gate.from_client(ClientId(client), &bytes) {
                        held.push(command);
                    }
                }
            }
            world.settle();
            prop_assert_eq!(world.gate.is_closed(), closed);
            prop_assert!(world.completed.is_subset(&given));
            if closed {
                prop_assert!(!world.gate.is_busy());
                prop_assert_eq!(&world.completed, &given);
            }
            for (client, told) in &world.to_client {
                let new = &told[before.get(client).copied().unwrap_or(0)..];
                for message in new {
                    let owner = format!("s{}-", client.0);
                    prop_assert!(message["sessionId"].as_str().is_none_or(|named| named.starts_with(&owner)));
                    if closed && is_event.is_some() {
                        prop_assert_eq!(&message["method"], "Page.frameNavigated");
                    }
                }
            }
        }
        let acts = |sent: &&Value| {
            let own = ["Target.attachToBrowserTarget", "Runtime.terminateExecution", "Page.stopLoading"];
            sent["method"].as_str().is_some_and(|method| {
                class(method) != Class::Neutral && !own.contains(&method)
                    && METHODS.contains(&method) && sent["params"]["expression"] != "0"
            })
        };
        prop_assert!(world.to_browser.iter().filter(acts).count() <= allowed);
        prop_assert!(world.to_browser.iter().all(|sent| sent["method"] != "Browser.close"));
    }
}
