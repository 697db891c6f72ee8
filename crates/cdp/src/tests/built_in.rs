//! The browser's own pages are nobody's but a person's.

use serde_json::{Value, json};

use super::{ONE, World};

/// A world with a client.
fn world() -> World {
    let mut world = World::new();
    world.connect(ONE);
    world
}

/// The browser says where a target is.
fn is_at(world: &mut World, event: &str, kind: &str, url: &str) {
    let of = json!({"type": kind, "targetId": "t", "url": url});
    world.says(json!({"method": event, "params": {"targetInfo": of}}));
}

/// The browser tells the client of a session, `s`, with the target `t`.
fn attached(world: &mut World, kind: &str, url: &str) {
    let of = json!({"type": kind, "targetId": "t", "url": url});
    let params = json!({"sessionId": "s", "targetInfo": of, "waitingForDebugger": true});
    world.says(
        json!({"method": "Target.attachedToTarget", "params": params, "sessionId": "root-1"}),
    );
}

/// The error that a command gets without having reached the browser.
fn refused(world: &mut World, command: &Value) -> Value {
    world.told(ONE);
    let before = world.to_browser.len();
    if let Some(held) = world.asks(ONE, command.clone()) {
        world.permits += 1;
        let permit = crate::Permit(world.permits);
        world.gate.permitted(&held, permit);
        world.settle();
        assert!(world.completed.contains(&permit), "{command}");
    }
    assert_eq!(world.to_browser.len(), before, "{command} has passed");
    world.told(ONE)[0]["error"].clone()
}

#[test]
fn clients_open_no_page_of_the_browsers_own() {
    let mut world = world();
    for (method, url) in [
        ("Target.createTarget", "chrome://inspect/#remote-debugging"),
        (
            "Target.createTarget",
            "devtools://devtools/bundled/inspector.html",
        ),
        ("Page.navigate", " Chrome-Extension://abc/x.html"),
        ("Page.navigate", "view-source:chrome://settings"),
    ] {
        let command = json!({"id": 1, "method": method, "params": {"url": url}});
        let error = refused(&mut world, &command);
        assert_eq!(error["data"]["code"], "bad_params", "{url}");
        let text = error["message"].as_str().expect("a text");
        assert!(text.contains("web page"), "{text}");
    }
    let twice =
        br#"{"id":1,"method":"Page.navigate","params":{"url":"http://x/","url":"chrome://x"}}"#;
    assert!(matches!(
        world.gate.from_client(ONE, twice),
        crate::Verdict::Done
    ));
    let command =
        json!({"id": 1, "method": "Target.createTarget", "params": {"url": "http://chrome/"}});
    world.does(ONE, command);
}

#[test]
fn in_a_tab_with_a_page_of_the_browsers_own_clients_do_nothing_until_it_shows_another() {
    let mut world = world();
    assert_eq!(world.to_browser[0]["method"], "Target.setDiscoverTargets");
    attached(&mut world, "page", "http://x/");
    let evaluate = json!({"id": 2, "method": "Runtime.evaluate", "sessionId": "s"});
    world.does(ONE, evaluate.clone());
    is_at(
        &mut world,
        "Target.targetInfoChanged",
        "page",
        "chrome://inspect/",
    );
    for method in [
        "Runtime.evaluate",
        "Input.dispatchKeyEvent",
        "Page.reload",
        "DOM.getDocument",
    ] {
        let command = json!({"id": 2, "method": method, "sessionId": "s"});
        assert_eq!(refused(&mut world, &command)["data"]["code"], "bad_params");
    }
    let script = json!({"source": "act()", "runImmediately": true});
    let method = "Page.addScriptToEvaluateOnNewDocument";
    world.does(
        ONE,
        json!({"id": 3, "method": method, "params": script, "sessionId": "s"}),
    );
    assert_eq!(world.last_command()["params"], json!({"source": "act()"}));
    let away = json!({"url": "http://y/"});
    world.does(
        ONE,
        json!({"id": 4, "method": "Page.navigate", "params": away, "sessionId": "s"}),
    );
    is_at(&mut world, "Target.targetInfoChanged", "page", "http://y/");
    world.does(ONE, evaluate);
}

#[test]
fn nobody_is_attached_to_what_never_is_a_web_page() {
    for (kind, url) in [
        ("page", "devtools://devtools/bundled/devtools_app.html"),
        ("browser_ui", "chrome://omnibox-popup.top-chrome/"),
        ("service_worker", "chrome-extension://abc/worker.js"),
    ] {
        let mut world = world();
        attached(&mut world, kind, url);
        let last = world.last_command();
        assert_eq!(last["method"], "Target.detachFromTarget", "{url}");
        assert_eq!(last["params"], json!({"sessionId": "s"}));
        let evaluate = json!({"id": 1, "method": "Runtime.evaluate", "sessionId": "s"});
        assert_eq!(refused(&mut world, &evaluate)["code"], -32001);
        let attach = json!({"targetId": "t", "flatten": true});
        let attach = json!({"id": 2, "method": "Target.attachToTarget", "params": attach});
        assert_eq!(refused(&mut world, &attach)["data"]["code"], "bad_params");
        world.says(json!({"method": "Target.targetDestroyed", "params": {"targetId": "t"}}));
        world.does(ONE, attach);
    }
}

#[test]
fn what_pages_have_said_in_human_time_is_not_said_again() {
    let mut world = world();
    attached(&mut world, "page", "http://x/");
    world.gate.close();
    world.settle();
    assert!(world.forgetting.is_empty());
    world.gate.open();
    world.settle();
    let methods: Vec<&Value> = world
        .forgetting
        .iter()
        .map(|sent| &sent["method"])
        .collect();
    assert_eq!(methods, ["Runtime.discardConsoleEntries", "Log.clear"]);
    assert!(world.forgetting.iter().all(|sent| sent["sessionId"] == "s"));
}
