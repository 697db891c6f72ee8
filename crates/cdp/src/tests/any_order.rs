//! Any order of what can happen.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::World;
use crate::{Class, ClientId, Held, Permit, Refused, Verdict, class};

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
    Release,
    Settle,
    EndStuck,
    Crash(u64, usize),
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
        Just(Step::Release),
        Just(Step::Settle),
        Just(Step::EndStuck),
        (client.clone(), 0usize..3).prop_map(|(c, s)| Step::Crash(c, s)),
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
                Step::Release => world.gate.release(),
                Step::Settle => world.gate.settle(),
                Step::EndStuck => world.gate.end_stuck(),
                Step::Crash(client, number) => {
                    let target = format!("t-{}", session(client, number));
                    world.says(json!({"method": "Target.targetCrashed", "params": {"targetId": target}}));
                }
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
            if world.completed.len() < given.len() {
                prop_assert!(world.gate.is_busy(), "a permit is lost");
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
        // Once the browser has answered everything, nothing is held back for ever.
        let sent = world.to_browser.clone();
        world.gate.cut_off();
        world.settle();
        while let Some(command) = world.to_browser.pop() {
            let session = json!(format!("of-{}", command["id"]));
            world.says(json!({"id": command["id"], "result": {"sessionId": session}}));
        }
        prop_assert_eq!(&world.completed, &given);
        let acts = |sent: &&Value| {
            let own = ["Target.attachToBrowserTarget", "Runtime.terminateExecution", "Page.stopLoading"];
            sent["method"].as_str().is_some_and(|method| {
                class(method) != Class::Neutral && !own.contains(&method)
                    && METHODS.contains(&method) && sent["params"]["expression"] != "0"
            })
        };
        prop_assert!(sent.iter().filter(acts).count() <= allowed);
        prop_assert!(sent.iter().all(|sent| sent["method"] != "Browser.close"));
    }
}
