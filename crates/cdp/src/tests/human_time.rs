//! What clients have left behind, and what of human time is left for them.

use serde_json::{Value, json};

use super::{ONE, World};

const ADD: &str = "Page.addScriptToEvaluateOnNewDocument";
const REMOVE: &str = "Page.removeScriptToEvaluateOnNewDocument";

/// A client registers a script, which the browser names. The client's name for it.
fn add(world: &mut World, params: Value, name: &str) -> Value {
    world.does(
        ONE,
        json!({"id": 1, "method": ADD, "params": params, "sessionId": "s1"}),
    );
    let sent = world.to_browser.pop().expect("a command");
    assert_eq!(sent["params"], params);
    world.says(json!({"id": sent["id"], "result": {"identifier": name}, "sessionId": "s1"}));
    world.told(ONE)[0]["result"]["identifier"].clone()
}

/// What the gate has sent, each with its parameters.
fn sent(world: &mut World) -> Vec<(Value, Value, Value)> {
    let sent = std::mem::take(&mut world.to_browser);
    let sent = sent.into_iter();
    sent.map(|sent| {
        (
            sent["method"].clone(),
            sent["params"].clone(),
            sent["id"].clone(),
        )
    })
    .collect()
}

#[test]
fn scripts_for_new_documents_are_out_while_a_person_is_in_control() {
    let mut world = World::with_session();
    let plain = json!({"source": "act()", "runImmediately": true});
    let apart = json!({"source": "look()", "worldName": "tool"});
    let first = add(&mut world, plain, "1");
    let second = add(&mut world, apart.clone(), "2");
    world.gate.close();
    world.settle();
    let stand_in = json!({"source": "", "worldName": "tool"});
    let out = sent(&mut world);
    let of_documents: Vec<_> = out
        .iter()
        .filter(|(method, ..)| method == ADD || method == REMOVE)
        .collect();
    assert_eq!(
        (&of_documents[0].0, &of_documents[0].1),
        (&json!(REMOVE), &json!({"identifier": "1"}))
    );
    assert_eq!(
        (&of_documents[1].0, &of_documents[1].1),
        (&json!(ADD), &stand_in)
    );
    assert_eq!(
        (&of_documents[2].0, &of_documents[2].1),
        (&json!(REMOVE), &json!({"identifier": "2"}))
    );
    world.says(json!({"id": of_documents[1].2, "result": {"identifier": "3"}}));

    world.gate.open();
    world.settle();
    let back = sent(&mut world);
    let what: Vec<_> = back
        .iter()
        .map(|(method, params, _)| (method.clone(), params.clone()))
        .collect();
    assert_eq!(
        what,
        [
            // Not again in the documents that there are.
            (json!(ADD), json!({"source": "act()"})),
            (json!(ADD), apart),
            (json!(REMOVE), json!({"identifier": "3"})),
        ]
    );
    world.says(json!({"id": back[0].2, "result": {"identifier": "2"}}));
    world.says(json!({"id": back[1].2, "result": {"identifier": "4"}}));

    // The client's own names go on.
    assert_ne!(first, second);
    for (name, browsers) in [(first, "2"), (second.clone(), "4"), (second, "")] {
        let params = json!({"identifier": name});
        let remove = json!({"id": 2, "method": REMOVE, "params": params, "sessionId": "s1"});
        world.does(ONE, remove);
        assert_eq!(
            world.last_command()["params"],
            json!({"identifier": browsers})
        );
    }
    assert!(world.told(ONE).is_empty(), "the browser answers");
}

#[test]
fn a_script_that_is_named_too_late_is_taken_out() {
    let mut world = World::with_session();
    let name = add(&mut world, json!({"source": "act()"}), "1");
    world.gate.close();
    world.gate.open();
    world.settle();
    let (method, _, again) = sent(&mut world).pop().expect("a command");
    assert_eq!(method, ADD);
    // Another person is in control before the browser has answered.
    world.gate.close();
    world.settle();
    world.to_browser.clear();
    world.says(json!({"id": again, "result": {"identifier": "1"}}));
    assert_eq!(world.last_command()["method"], REMOVE);
    world.gate.open();
    world.settle();
    let (.., again) = sent(&mut world).pop().expect("a command");
    // Nor does one come back that its client has taken out meanwhile.
    let params = json!({"identifier": name});
    let permit = world.does(
        ONE,
        json!({"id": 5, "method": REMOVE, "params": params, "sessionId": "s1"}),
    );
    assert!(world.completed.contains(&permit));
    assert_eq!(
        world.told(ONE),
        [json!({"id": 5, "result": {}, "sessionId": "s1"})]
    );
    world.says(json!({"id": again, "result": {"identifier": "1"}}));
    assert_eq!(world.last_command()["method"], REMOVE);
}

#[test]
fn scripts_for_new_documents_are_bounded() {
    let mut world = World::with_session();
    for number in 0..256 {
        add(&mut world, json!({"source": ""}), &number.to_string());
    }
    let one_more = json!({"id": 1, "method": ADD, "params": {"source": ""}, "sessionId": "s1"});
    let permit = world.does(ONE, one_more);
    assert!(world.completed.contains(&permit));
    assert!(world.told(ONE)[0]["error"].is_object());
}

#[test]
fn requests_of_human_time_are_not_read_afterwards() {
    let mut world = World::with_session();
    let request = |name: &str| {
        let params = json!({"requestId": name, "request": {"postData": "password"}});
        json!({"method": "Network.requestWillBeSent", "params": params, "sessionId": "s1"})
    };
    world.says(request("before"));
    world.gate.close();
    world.says(request("persons"));
    world.gate.open();
    world.settle();
    world.told(ONE);
    let read = |name: &str, method: &str| {
        let params = json!({"requestId": name});
        json!({"id": 1, "method": method, "params": params, "sessionId": "s1"})
    };
    for method in [
        "Network.getRequestPostData",
        "Network.getResponseBody",
        "Network.replayXHR",
        "Network.streamResourceContent",
    ] {
        assert!(world.asks(ONE, read("before", method)).is_some());
        assert!(
            world.asks(ONE, read("persons", method)).is_none(),
            "{method}"
        );
        assert_eq!(world.told(ONE)[0]["error"]["code"], -32000);
    }
    // One field twice: the browser might read the other.
    let twice = br#"{"id":1,"method":"Network.getRequestPostData","params":{"requestId":"before","requestId":"persons"},"sessionId":"s1"}"#;
    assert!(matches!(
        world.gate.from_client(ONE, twice),
        crate::Verdict::Done
    ));
    // The browser forgets them with this.
    world.does(
        ONE,
        json!({"id": 2, "method": "Network.disable", "sessionId": "s1"}),
    );
    assert!(
        world
            .asks(ONE, read("persons", "Network.getResponseBody"))
            .is_some()
    );
}

#[test]
fn a_trace_ends_with_the_agents_control() {
    let mut world = World::with_session();
    world.does(ONE, json!({"id": 1, "method": "Tracing.start"}));
    world.gate.close();
    world.settle();
    let sent = world.last_command();
    let ended = world
        .to_browser
        .iter()
        .find(|sent| sent["method"] == "Tracing.end");
    assert_eq!(ended.expect("an end")["sessionId"], "root-1", "{sent}");
    let streamed = json!({"stream": "1"});
    world.says(
        json!({"method": "Tracing.tracingComplete", "params": streamed, "sessionId": "root-1"}),
    );
    assert!(world.told(ONE).is_empty());
}

#[test]
fn the_developer_tools_are_nobodys_page() {
    let mut world = World::with_session();
    for command in [
        json!({"id": 1, "method": "Target.openDevTools", "params": {"targetId": "t"}}),
        json!({"id": 1, "method": "Target.createTarget", "params": {"url": "devtools://devtools/bundled/inspector.html"}}),
        json!({"id": 1, "method": "Page.navigate", "params": {"url": " DevTools://devtools/x"}, "sessionId": "s1"}),
        json!({"id": 1, "method": "Extensions.loadUnpacked", "params": {"path": "/tmp"}}),
    ] {
        assert!(world.asks(ONE, command.clone()).is_none(), "{command}");
        let told = world.told(ONE);
        assert_eq!(told[0]["error"]["data"]["code"], "bad_params", "{command}");
    }
    // A person has opened them, and the client is attached to all that there is.
    let of = json!({"type": "page", "targetId": "d", "url": "devtools://devtools/bundled/devtools_app.html"});
    let params = json!({"sessionId": "tools", "targetInfo": of, "waitingForDebugger": true});
    world.says(
        json!({"method": "Target.attachedToTarget", "params": params, "sessionId": "root-1"}),
    );
    let last = world.last_command();
    assert_eq!(last["method"], "Target.detachFromTarget");
    assert_eq!(last["params"], json!({"sessionId": "tools"}));
    assert_eq!(world.told(ONE)[0]["method"], "Target.attachedToTarget");
    let evaluate = json!({"id": 2, "method": "Runtime.evaluate", "sessionId": "tools"});
    assert!(world.asks(ONE, evaluate).is_none());
    assert_eq!(world.told(ONE)[0]["error"]["code"], -32001);
    let gone = json!({"sessionId": "tools"});
    world.says(
        json!({"method": "Target.detachedFromTarget", "params": gone, "sessionId": "root-1"}),
    );
    assert_eq!(world.told(ONE)[0]["method"], "Target.detachedFromTarget");
}

const SET: &str = "Page.setWebLifecycleState";

/// A client sets the state of a page that is, or is not, shown then.
fn set_state(world: &mut World, session: &str, state: &str, shown: &str) {
    world.does(
        ONE,
        json!({"id": 1, "method": SET, "params": {"state": state}, "sessionId": session}),
    );
    let mut asked = world.to_browser.pop().expect("a command");
    if state == "frozen" {
        assert_eq!(asked["method"], "Runtime.evaluate");
        let value = json!({"result": {"type": "string", "value": shown}});
        world.says(json!({"id": asked["id"], "result": value, "sessionId": session}));
        asked = world.to_browser.pop().expect("the command itself");
    }
    assert_eq!(asked["params"]["state"], state);
    world.says(json!({"id": asked["id"], "result": {}, "sessionId": session}));
}

/// What the gate asks of the browser itself, with its number.
fn asked(world: &mut World) -> Vec<(Value, Value, Value)> {
    let mut asked = sent(world);
    asked.retain(|(method, ..)| {
        method == SET
            || method
                .as_str()
                .is_some_and(|method| method.starts_with("Target."))
    });
    asked
}

#[test]
fn what_clients_have_frozen_is_active_again_and_nothing_else() {
    let mut world = World::with_session();
    for session in ["s2", "s3", "s4", "s5"] {
        world.attach(ONE, session);
    }
    for (session, state, shown) in [
        ("s1", "frozen", "visible"),
        // It is hidden by that.
        ("s1", "frozen", "hidden"),
        // The browser does not show it again for that.
        ("s1", "active", ""),
        ("s2", "frozen", "hidden"),
        ("s2", "active", ""),
        ("s4", "frozen", "visible"),
        ("s5", "frozen", "hidden"),
    ] {
        set_state(&mut world, session, state, shown);
    }
    world.says(json!({"method": "Target.targetDestroyed", "params": {"targetId": "t-s4"}}));
    // The one who froze it leaves; it stays frozen.
    world.says(json!({"method": "Target.detachedFromTarget", "params": {"sessionId": "s1"}, "sessionId": "root-1"}));
    world.to_browser.clear();

    world.gate.close();
    world.settle();
    let attaches = asked(&mut world);
    let targets: Vec<_> = attaches
        .iter()
        .map(|(method, params, _)| (method.clone(), params["targetId"].clone()))
        .collect();
    let attach = json!("Target.attachToTarget");
    assert_eq!(
        targets,
        [
            (attach.clone(), json!("t-s1")),
            (attach.clone(), json!("t-s5"))
        ]
    );
    let active = |session: &str| {
        [
            (json!(SET), json!({"state": "active"})),
            (
                json!("Target.detachFromTarget"),
                json!({"sessionId": session}),
            ),
        ]
    };
    let activate = (json!("Target.activateTarget"), json!({"targetId": "t-s1"}));
    let what = |asked: &[(Value, Value, Value)]| -> Vec<(Value, Value)> {
        let asked = asked.iter();
        asked
            .map(|(method, params, _)| (method.clone(), params.clone()))
            .collect()
    };
    // One that was not in front stays behind.
    world.says(json!({"id": attaches[1].2, "result": {"sessionId": "own5"}}));
    assert_eq!(what(&asked(&mut world)), active("own5"));
    world.says(json!({"id": attaches[0].2, "result": {"sessionId": "own1"}}));
    let begun = asked(&mut world);
    assert_eq!(what(&begun[..2]), active("own1"));
    assert_eq!(what(&begun[2..3])[0], activate);
    assert_eq!(begun[3].0, "Target.createTarget");
    world.says(json!({"id": begun[3].2, "result": {"targetId": "cover"}}));
    let close = (json!("Target.closeTarget"), json!({"targetId": "cover"}));
    assert_eq!(what(&asked(&mut world)), [activate, close]);

    // Once is enough.
    world.gate.open();
    world.gate.close();
    world.settle();
    assert!(asked(&mut world).is_empty());
}

#[test]
fn a_page_is_not_frozen_once_control_is_about_to_leave() {
    let mut world = World::with_session();
    let freeze = json!({"id": 7, "method": SET, "params": {"state": "frozen"}, "sessionId": "s1"});
    let permit = world.does(ONE, freeze);
    let look = world.to_browser.pop().expect("a question");
    world.gate.cut_off();
    world.settle();
    world.to_browser.clear();
    assert!(world.gate.is_busy());
    let value = json!({"result": {"type": "string", "value": "visible"}});
    world.says(json!({"id": look["id"], "result": value, "sessionId": "s1"}));
    assert!(world.to_browser.is_empty(), "{:?}", world.to_browser);
    assert!(world.completed.contains(&permit));
    assert!(!world.gate.is_busy());
    let told = world.told(ONE);
    assert_eq!(told[0]["error"]["data"]["code"], "interrupted_by_human");
}

#[test]
fn a_state_that_cannot_be_read_is_not_set() {
    let mut world = World::with_session();
    let twice = r#"{"id":1,"method":"Page.setWebLifecycleState","params":{"state":"active","state":"frozen"},"sessionId":"s1"}"#;
    assert!(matches!(
        world.gate.from_client(ONE, twice.as_bytes()),
        crate::Verdict::Done
    ));
    world.settle();
    assert_eq!(world.told(ONE)[0]["error"]["code"], -32602);
    assert!(world.to_browser.is_empty());
}
