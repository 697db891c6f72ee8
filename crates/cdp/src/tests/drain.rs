//! What is under way when a person asks for control.

use serde_json::{Value, json};

use super::{ONE, World};

fn methods(world: &World) -> Vec<&str> {
    let sent = world.to_browser.iter();
    sent.filter_map(|sent| sent["method"].as_str()).collect()
}

/// Answers what the gate has asked for by `method`, as many times as it has.
fn answer(world: &mut World, method: &str, result: Value) {
    let asked: Vec<Value> = world
        .to_browser
        .extract_if(.., |sent| sent["method"] == method)
        .collect();
    assert!(!asked.is_empty(), "{method}: {:?}", world.to_browser);
    for asked in asked {
        world.says(json!({"id": asked["id"], "result": result}));
    }
}

/// The page answers what it was told after the end of a script.
fn hears(world: &mut World) {
    let asked: Vec<Value> = world
        .to_browser
        .extract_if(.., |sent| sent["params"]["expression"] == "0")
        .collect();
    assert!(!asked.is_empty(), "{:?}", world.to_browser);
    for asked in asked {
        world.says(json!({"id": asked["id"], "result": {}}));
    }
}

fn script(expression: &str) -> Value {
    let params = json!({"expression": expression, "awaitPromise": true});
    json!({"id": 4, "method": "Runtime.evaluate", "params": params, "sessionId": "s1"})
}

/// Guards the page, in which there is this script, up to its breakpoints, which are not answered yet.
fn guard(world: &mut World, text: &str) {
    answer(
        world,
        "Target.attachToTarget",
        json!({"sessionId": "guard"}),
    );
    let parsed = |script: &str, resource: &str, length: usize| {
        let params = json!({"scriptId": script, "embedderName": resource, "length": length});
        json!({"method": "Debugger.scriptParsed", "params": params, "sessionId": "guard"})
    };
    world.says(parsed("8", "https://example.org/", text.len()));
    world.says(parsed("9", "", text.len()));
    answer(world, "Debugger.enable", json!({}));
    answer(
        world,
        "Debugger.getScriptSource",
        json!({"scriptSource": text}),
    );
    let place = json!({"scriptId": "9", "lineNumber": 0, "columnNumber": 3});
    answer(
        world,
        "Debugger.getPossibleBreakpoints",
        json!({"locations": [place, place]}),
    );
}

#[test]
fn a_script_that_waits_is_held_up_before_it_is_given_up() {
    let mut world = World::with_session();
    let loops = "(async () => { for (;;) await tick() })()";
    let permit = world.does(ONE, script(loops));
    let sent = world.last_command();
    world.gate.release();
    assert!(world.gate.is_busy());
    world.gate.cut_off();
    world.settle();
    // The end of a script where none runs would hit the person's next one.
    assert_eq!(
        methods(&world)[2..],
        [
            "Runtime.terminateExecution",
            "Runtime.evaluate",
            "Target.attachToTarget"
        ]
    );
    assert_eq!(world.to_browser[3]["params"]["expression"], "0");
    guard(&mut world, loops);
    world.gate.settle();
    world.settle();
    assert!(
        !world.completed.contains(&permit),
        "nothing holds it up yet"
    );
    answer(&mut world, "Debugger.setBreakpoint", json!({}));
    assert!(world.completed.contains(&permit) && !world.gate.is_busy());
    let told = world.told(ONE);
    assert_eq!(told[0]["error"]["data"]["code"], "interrupted_by_human");
    world.says(json!({"id": sent["id"], "result": {"result": {"value": "secret"}}}));
    assert!(world.told(ONE).is_empty());

    // Where it goes on, it ends; a pause of the page's own is none.
    world.gate.close();
    world.settle();
    for (places, ends) in [(json!(["p"]), true), (json!([]), false)] {
        let paused = json!({"hitBreakpoints": places});
        world.says(json!({"method": "Debugger.paused", "params": paused, "sessionId": "guard"}));
        let resumed = world.last_command();
        assert_eq!(resumed["method"], "Debugger.resume");
        assert_eq!(resumed["params"]["terminateOnResume"], ends);
    }
    world.gate.open();
    world.settle();
    let over = world.last_command();
    assert_eq!(over["method"], "Target.detachFromTarget");
    assert_eq!(over["params"]["sessionId"], "guard");
    assert!(world.told(ONE).is_empty(), "no client hears of a guard");
}

#[test]
fn a_script_that_cannot_be_held_up_is_waited_for() {
    let mut world = World::with_session();
    let permit = world.does(ONE, script("new Promise(() => {})"));
    world.gate.cut_off();
    world.settle();
    let attach = world.last_command();
    world.says(json!({"id": attach["id"], "error": {"code": -32602, "message": "no target"}}));
    world.gate.settle();
    world.settle();
    assert!(!world.completed.contains(&permit) && world.gate.is_busy());
    // The takeover has come to nothing; the next one tries again.
    world.gate.open();
    world.to_browser.clear();
    world.gate.cut_off();
    world.settle();
    guard(&mut world, "new Promise(() => {})");
    answer(&mut world, "Debugger.setBreakpoint", json!({}));
    assert!(world.completed.contains(&permit));
}

#[test]
fn a_script_goes_on_without_its_client_until_it_is_held_up() {
    let mut world = World::with_session();
    let permit = world.does(ONE, script("new Promise(() => {})"));
    world.gate.disconnect(ONE);
    world.settle();
    hears(&mut world);
    answer(&mut world, "Target.detachFromTarget", json!({}));
    assert!(!world.completed.contains(&permit) && world.gate.is_busy());
    world.gate.cut_off();
    world.settle();
    guard(&mut world, "new Promise(() => {})");
    answer(&mut world, "Debugger.setBreakpoint", json!({}));
    assert!(world.completed.contains(&permit) && !world.gate.is_busy());
    // With its page, such a script ends too.
    let mut world = World::with_session();
    let permit = world.does(ONE, script("new Promise(() => {})"));
    world.gate.disconnect(ONE);
    world.settle();
    hears(&mut world);
    answer(&mut world, "Target.detachFromTarget", json!({}));
    world.gate.cut_off();
    world.settle();
    answer(
        &mut world,
        "Target.attachToTarget",
        json!({"sessionId": "guard"}),
    );
    let gone = json!({"sessionId": "guard"});
    world.says(json!({"method": "Target.detachedFromTarget", "params": gone}));
    assert!(world.completed.contains(&permit));
}

#[test]
fn input_and_loading_are_waited_for_and_reading_is_not() {
    let mut world = World::with_session();
    let command = |id: u64, method: &str| json!({"id": id, "method": method, "sessionId": "s1"});
    let input = world.does(ONE, command(1, "Input.insertText"));
    let load = world.does(ONE, command(2, "Page.navigate"));
    let other = world.does(ONE, command(3, "DOM.setAttributeValue"));
    let reads = world.does(ONE, command(4, "Page.captureScreenshot"));
    world.gate.cut_off();
    world.settle();
    for cuts in ["Runtime.terminateExecution", "Page.stopLoading"] {
        assert!(methods(&world).contains(&cuts), "{cuts}");
    }
    world.gate.settle();
    world.settle();
    assert!(world.completed.contains(&reads));
    for waits in [input, load, other] {
        assert!(!world.completed.contains(&waits) && world.gate.is_busy());
    }
    for ended in ["Input.insertText", "Page.navigate", "DOM.setAttributeValue"] {
        answer(&mut world, ended, json!({}));
    }
    assert!(!world.gate.is_busy());
}

#[test]
fn what_is_held_down_is_let_go_before_control_is_granted() {
    let mut world = World::with_session();
    let key = |id: u64, kind: &str| {
        let params = json!({"type": kind, "key": "Shift", "code": "ShiftLeft"});
        json!({"id": id, "method": "Input.dispatchKeyEvent", "params": params, "sessionId": "s1"})
    };
    let pressed = world.does(ONE, key(1, "keyDown"));
    answer(&mut world, "Input.dispatchKeyEvent", json!({}));
    assert_eq!(
        world.told(ONE),
        [json!({"id": 1, "result": {}, "sessionId": "s1"})]
    );
    assert!(!world.completed.contains(&pressed), "it is still held");
    // The client lets go by itself.
    let released = world.does(ONE, key(2, "keyUp"));
    answer(&mut world, "Input.dispatchKeyEvent", json!({}));
    assert!(world.completed.contains(&pressed) && world.completed.contains(&released));
    world.told(ONE);

    let pressed = world.does(ONE, key(3, "keyDown"));
    answer(&mut world, "Input.dispatchKeyEvent", json!({}));
    world.told(ONE);
    world.gate.release();
    world.settle();
    let release = world.last_command();
    assert_eq!(release["params"]["type"], "keyUp");
    assert_eq!(release["params"]["code"], "ShiftLeft");
    assert!(world.gate.is_busy() && !world.completed.contains(&pressed));
    world.says(json!({"id": release["id"], "result": {}}));
    assert!(world.completed.contains(&pressed) && !world.gate.is_busy());
    assert!(world.told(ONE).is_empty());

    // So it is when the client leaves.
    world.does(ONE, key(4, "keyDown"));
    world.gate.disconnect(ONE);
    world.settle();
    let [.., release, detach] = &world.to_browser[..] else {
        panic!("{:?}", world.to_browser);
    };
    assert_eq!(release["params"]["type"], "keyUp");
    assert_eq!(detach["method"], "Target.detachFromTarget");
}

#[test]
fn what_keeps_things_from_a_person_is_off_in_human_time_and_on_again_after_it() {
    let mut world = World::with_session();
    let on = [
        ("Input.setIgnoreInputEvents", json!({"ignore": true})),
        ("Input.setInterceptDrags", json!({"enabled": true})),
        (
            "Page.setInterceptFileChooserDialog",
            json!({"enabled": true, "cancel": true}),
        ),
        (
            "Overlay.setInspectMode",
            json!({"mode": "searchForNode", "highlightConfig": {"showInfo": true}}),
        ),
    ];
    for (method, params) in &on {
        world.does(
            ONE,
            json!({"id": 1, "method": method, "params": params, "sessionId": "s1"}),
        );
    }
    world.to_browser.clear();
    world.gate.close();
    world.settle();
    for (method, params) in &on {
        let mut sent = world.to_browser.iter();
        let off = sent.find(|sent| sent["method"] == *method).expect(method);
        assert_ne!(off["params"], *params);
    }
    world.to_browser.clear();
    world.gate.open();
    world.settle();
    for (method, params) in &on {
        let mut sent = world.to_browser.iter();
        let on = sent.find(|sent| sent["method"] == *method).expect(method);
        assert_eq!(on["params"], *params);
    }
}

#[test]
fn what_a_browser_records_ends_before_a_person_acts() {
    let mut world = World::with_session();
    for (client, session) in [(ONE, Some("s1")), (ONE, None)] {
        for command in ["Tracing.start", "Tracing.end", "Tracing.start"] {
            let mut command = json!({"id": 1, "method": command, "params": {}});
            command["sessionId"] = session.into();
            world.does(client, command);
        }
    }
    world.to_browser.clear();
    world.gate.close();
    world.settle();
    let ended = world.to_browser.iter();
    let ended: Vec<&Value> = ended
        .filter(|sent| sent["method"] == "Tracing.end")
        .map(|sent| &sent["sessionId"])
        .collect();
    assert_eq!(ended, ["root-1", "s1"]);
    world.says(
        json!({"method": "Tracing.dataCollected", "params": {"value": [1]}, "sessionId": "s1"}),
    );
    assert!(world.told(ONE).is_empty());
}

#[test]
fn a_script_that_was_compiled_before_is_waited_for() {
    let mut world = World::with_session();
    let text = "(async () => { for (;;) await tick() })()";
    let compile = json!({"id": 1, "method": "Runtime.compileScript", "params": {"expression": text}, "sessionId": "s1"});
    world.does(ONE, compile);
    answer(
        &mut world,
        "Runtime.compileScript",
        json!({"scriptId": "9"}),
    );
    let run = json!({"id": 2, "method": "Runtime.runScript", "params": {"scriptId": "9", "awaitPromise": true}, "sessionId": "s1"});
    let permit = world.does(ONE, run);
    world.gate.cut_off();
    world.settle();
    // It is held up, but what else its parameters stand for is not known.
    guard(&mut world, text);
    answer(&mut world, "Debugger.setBreakpoint", json!({}));
    assert!(world.gate.is_busy() && !world.completed.contains(&permit));
    answer(&mut world, "Runtime.runScript", json!({"result": {}}));
    assert!(world.completed.contains(&permit));
}

#[test]
fn a_client_learns_of_a_dialog_of_human_time_if_it_is_still_open() {
    let mut world = World::with_session();
    let opening = json!({"method": "Page.javascriptDialogOpening", "params": {"message": "secret"}, "sessionId": "s1"});
    let closed = json!({"method": "Page.javascriptDialogClosed", "params": {"result": true, "userInput": "secret"}, "sessionId": "s1"});
    world.says(opening.clone());
    assert_eq!(world.told(ONE).len(), 1);
    world.gate.close();
    world.says(closed.clone());
    let told = world.told(ONE);
    assert_eq!(told[0]["params"]["userInput"], "", "{told:?}");
    world.says(opening.clone());
    world.says(closed);
    world.says(opening.clone());
    world.says(json!({"method": "DOM.childNodeInserted", "params": {}, "sessionId": "s1"}));
    assert!(world.told(ONE).is_empty());
    world.gate.open();
    world.settle();
    let updated = json!({"method": "DOM.documentUpdated", "params": {}, "sessionId": "s1"});
    assert_eq!(world.told(ONE), [updated, opening]);
}

#[test]
fn a_tab_of_the_person_and_the_page_in_it_are_let_go() {
    let mut world = World::with_session();
    world.gate.close();
    world.settle();
    world.to_browser.clear();
    let attached = |session: &str, kind: &str, within: &str| {
        let params = json!({"sessionId": session, "targetInfo": {"type": kind, "targetId": session}, "waitingForDebugger": false});
        json!({"method": "Target.attachedToTarget", "params": params, "sessionId": within})
    };
    world.says(attached("tab", "tab", "root-1"));
    world.says(attached("page", "page", "tab"));
    assert_eq!(
        methods(&world),
        [
            "Target.setAutoAttach",
            "Runtime.runIfWaitingForDebugger",
            "Runtime.runIfWaitingForDebugger"
        ]
    );
    assert!(world.told(ONE).is_empty());
    world.gate.open();
    world.settle();
    let told = world.told(ONE);
    let told: Vec<&Value> = told
        .iter()
        .map(|told| &told["params"]["sessionId"])
        .collect();
    assert_eq!(told, ["tab"], "it attaches to the page by itself");
    assert_eq!(world.last_command()["params"]["autoAttach"], false);
}

#[test]
fn what_was_cut_off_is_not_counted_as_unanswered() {
    let mut world = World::with_session();
    let command = json!({"id": 1, "method": "Page.getLayoutMetrics", "sessionId": "s1"});
    for _ in 0..16 {
        for _ in 0..crate::MAX_IN_FLIGHT {
            world.does(ONE, command.clone());
        }
        assert!(world.asks(ONE, command.clone()).is_none());
        world.gate.cut_off();
        world.gate.settle();
        world.gate.open();
        world.settle();
    }
    assert!(
        world.asks(ONE, command).is_none(),
        "what the browser never answers is bounded too"
    );
}
