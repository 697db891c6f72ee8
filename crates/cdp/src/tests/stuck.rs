//! What does not end though it was cut off.

use serde_json::{Value, json};

use super::{ONE, TWO, World};

fn xhr(id: u64, session: &str) -> Value {
    let params = json!({"expression": "const asks = new XMLHttpRequest(); asks.open('GET', '/', false); asks.send()"});
    json!({"id": id, "method": "Runtime.evaluate", "params": params, "sessionId": session})
}

fn crashes(world: &mut World, session: &str) {
    let params = json!({"targetId": format!("t-{session}"), "status": "crashed"});
    world.says(json!({"method": "Target.targetCrashed", "params": params}));
}

/// The sessions in which `method` was sent, which is forgotten then.
fn sent(world: &mut World, method: &str) -> Vec<Value> {
    let sent = world
        .to_browser
        .extract_if(.., |sent| sent["method"] == method);
    sent.map(|sent| sent["sessionId"].clone()).collect()
}

/// Answers the gate, which attaches to a page.
fn attached(world: &mut World, target: &str, session: &str) {
    let asked: Vec<Value> = world
        .to_browser
        .extract_if(.., |sent| {
            sent["method"] == "Target.attachToTarget" && sent["params"]["targetId"] == target
        })
        .collect();
    let asked = asked.last().expect("it attaches");
    world.says(json!({"id": asked["id"], "result": {"sessionId": session}}));
}

#[test]
fn a_page_that_hears_nothing_is_crashed_and_loaded_anew() {
    let mut world = World::with_session();
    world.attach(ONE, "idle");
    world.told(ONE);
    let permit = world.does(ONE, xhr(4, "s1"));
    let asked = world.last_command();
    world.gate.cut_off();
    world.gate.settle();
    world.settle();
    assert!(world.gate.is_busy() && world.told(ONE).is_empty());
    world.to_browser.clear();
    world.gate.end_stuck();
    world.settle();
    let told = world.told(ONE);
    assert_eq!(told[0]["id"], 4);
    assert_eq!(told[0]["error"]["data"]["code"], "interrupted_by_human");
    // In the command's own session, the only one that it hears; and no other page.
    assert_eq!(sent(&mut world, "Page.crash"), ["s1"]);
    assert!(sent(&mut world, "Page.reload").is_empty());
    assert!(!world.completed.contains(&permit), "nobody has said so yet");
    world.gate.end_stuck();
    world.settle();
    assert!(sent(&mut world, "Page.crash").is_empty(), "once is enough");
    crashes(&mut world, "s1");
    assert!(world.completed.contains(&permit) && !world.gate.is_busy());
    // What clients have registered is out before it loads.
    assert!(sent(&mut world, "Target.attachToTarget").is_empty());
    world.gate.close();
    world.settle();
    attached(&mut world, "t-s1", "own");
    assert_eq!(sent(&mut world, "Page.reload"), ["own"]);
    let detach = world.last_command();
    assert_eq!(detach["params"]["sessionId"], "own");
    world.says(json!({"id": asked["id"], "error": {"code": -32000, "message": "Target crashed"}}));
    assert!(world.told(ONE).is_empty(), "it is too late");
    // One that crashes again is left to the person.
    crashes(&mut world, "s1");
    assert!(sent(&mut world, "Target.attachToTarget").is_empty());
}

#[test]
fn nothing_is_crashed_where_nothing_is_stuck() {
    let mut world = World::with_session();
    let other = json!({"id": 2, "method": "Target.createTarget"});
    let of_browser = world.does(ONE, other);
    world.gate.cut_off();
    world.gate.settle();
    world.gate.end_stuck();
    world.settle();
    assert!(sent(&mut world, "Page.crash").is_empty());
    assert!(world.told(ONE).is_empty() && !world.completed.contains(&of_browser));
    // A page that crashes by itself is left as it is.
    crashes(&mut world, "s1");
    world.gate.close();
    world.settle();
    assert!(sent(&mut world, "Target.attachToTarget").is_empty());
}

#[test]
fn a_takeover_that_came_to_nothing_leaves_no_crashed_page() {
    let mut world = World::with_session();
    world.does(ONE, xhr(4, "s1"));
    world.gate.cut_off();
    world.gate.end_stuck();
    world.gate.open();
    world.settle();
    world.to_browser.clear();
    crashes(&mut world, "s1");
    attached(&mut world, "t-s1", "own");
    assert_eq!(sent(&mut world, "Page.reload"), ["own"]);
}

#[test]
fn a_page_that_had_crashed_before_is_loaded_anew_so_that_it_answers() {
    let mut world = World::with_session();
    let crash = json!({"id": 1, "method": "Page.crash", "sessionId": "s1"});
    let crash = world.does(ONE, crash);
    let crashed = world.last_command();
    crashes(&mut world, "s1");
    let permit = world.does(ONE, xhr(2, "s1"));
    let asked = world.last_command();
    world.gate.cut_off();
    world.settle();
    world.to_browser.clear();
    world.gate.end_stuck();
    world.settle();
    assert!(sent(&mut world, "Page.crash").is_empty());
    attached(&mut world, "t-s1", "own");
    assert_eq!(sent(&mut world, "Page.reload"), ["own"]);
    for (asked, permit) in [(crashed, crash), (asked, permit)] {
        assert!(!world.completed.contains(&permit));
        world.says(
            json!({"id": asked["id"], "error": {"code": -32000, "message": "Target crashed"}}),
        );
        assert!(world.completed.contains(&permit));
    }
}

#[test]
fn the_page_of_a_client_that_has_left_is_crashed_too() {
    let mut world = World::with_session();
    let permit = world.does(ONE, xhr(4, "s1"));
    world.gate.disconnect(ONE);
    world.settle();
    // Its sessions stay for as long as the page does not answer.
    assert!(sent(&mut world, "Target.detachFromTarget").is_empty());
    let told = world.last_command();
    assert_eq!(told["params"]["expression"], "0");
    world.gate.cut_off();
    world.gate.end_stuck();
    world.settle();
    assert_eq!(sent(&mut world, "Page.crash"), ["s1"]);
    crashes(&mut world, "s1");
    assert!(world.completed.contains(&permit) && !world.gate.is_busy());
    world.says(json!({"id": told["id"], "error": {"code": -32000, "message": "Target crashed"}}));
    assert_eq!(sent(&mut world, "Target.detachFromTarget").len(), 1);
    // So they do not if the session ends.
    world.connect(TWO);
    world.attach(TWO, "s2");
    world.does(TWO, xhr(4, "s2"));
    world.gate.disconnect(TWO);
    world.settle();
    let params = json!({"sessionId": "s2"});
    world.says(
        json!({"method": "Target.detachedFromTarget", "params": params, "sessionId": "root-2"}),
    );
    assert_eq!(world.last_command()["method"], "Target.detachFromTarget");
}

#[test]
fn what_the_browser_itself_loads_ends_with_its_session() {
    let mut world = World::with_session();
    let loads = json!({"id": 3, "method": "Network.loadNetworkResource", "sessionId": "s1"});
    let permit = world.does(ONE, loads);
    world.gate.cut_off();
    world.gate.end_stuck();
    world.settle();
    assert!(sent(&mut world, "Page.crash").is_empty());
    let detach = world.last_command();
    assert_eq!(detach["method"], "Target.detachFromTarget");
    assert_eq!(detach["sessionId"], "root-1");
    assert!(!world.completed.contains(&permit));
    let params = json!({"sessionId": "s1"});
    world.says(
        json!({"method": "Target.detachedFromTarget", "params": params, "sessionId": "root-1"}),
    );
    assert!(world.completed.contains(&permit));
    let told = world.told(ONE);
    assert_eq!(told[0]["error"]["data"]["code"], "interrupted_by_human");
    assert_eq!(told[1]["method"], "Target.detachedFromTarget");
    assert_eq!(told.len(), 2);
}

#[test]
fn the_page_of_a_worker_is_crashed() {
    let mut world = World::with_session();
    let params = json!({"sessionId": "w1", "targetInfo": {"type": "worker", "targetId": "t-w1"}, "waitingForDebugger": false});
    world.says(json!({"method": "Target.attachedToTarget", "params": params, "sessionId": "s1"}));
    let permit = world.does(ONE, xhr(4, "w1"));
    world.gate.cut_off();
    world.gate.end_stuck();
    world.settle();
    assert_eq!(sent(&mut world, "Page.crash"), ["s1"]);
    crashes(&mut world, "s1");
    let params = json!({"sessionId": "w1"});
    world.says(json!({"method": "Target.detachedFromTarget", "params": params, "sessionId": "s1"}));
    assert!(world.completed.contains(&permit));
}
