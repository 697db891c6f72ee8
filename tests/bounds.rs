//! What is asked for beyond a bound is refused at once, by a message that names the bound; what is just within it
//! is done.

use serde_json::{Value, json};

use crate::support::{LONG, Session, Signal, Wire, eventually, signal, stop};

/// Actions that may wait on one desktop.
const QUEUED: usize = 64;

/// A call that is over a bound: `bad_params`, and the bound is in the message.
fn over(wire: &mut Wire, method: &str, params: Value, bound: &str) {
    let refused = wire.refused(method, params);
    assert_eq!(
        (refused.number, refused.code.as_str()),
        (-32602, "bad_params"),
        "{method}: {refused:?}"
    );
    assert!(refused.message.contains(bound), "{method}: {refused:?}");
}

/// The display answers nothing: one action is under way, as many as may wait do, and the others are refused
/// while it is still silent. What was taken into the queue is done later, in full.
#[test]
fn a_full_queue_refuses_at_once() {
    const SURPLUS: usize = 5;
    let session = Session::up();
    let mut agent = session.wire();
    agent.done("desktop.click", json!({"x": 5, "y": 5}));
    stop(&[session.display_server()]);
    let click = |agent: &mut Wire| agent.send("desktop.click", json!({"x": 5, "y": 5}));
    let taken: Vec<u64> = (0..=QUEUED).map(|_| click(&mut agent)).collect();
    let surplus: Vec<u64> = (0..SURPLUS).map(|_| click(&mut agent)).collect();
    for id in surplus {
        let refused = agent.answer(id).expect_err("the queue is full");
        assert_eq!(
            (refused.number, refused.code.as_str()),
            (-32000, "queue_full"),
            "{refused:?}"
        );
        assert!(refused.message.contains("64"), "{refused:?}");
    }
    signal(session.display_server(), Signal::CONT);
    for id in taken {
        let done = agent.answer(id);
        assert!(done.is_ok(), "{done:?}");
    }
    agent.done("desktop.click", json!({"x": 5, "y": 5}));
}

#[test]
fn words_that_people_and_agents_give() {
    let session = Session::up();
    let mut wire = session.wire();
    let what = |bytes: usize| json!({"what": "w".repeat(bytes)});
    over(&mut wire, "control.permit", what(257), "256");
    // In bytes: 86 characters of three bytes each are 258.
    over(
        &mut wire,
        "control.permit",
        json!({"what": "漢".repeat(86)}),
        "256",
    );
    over(&mut wire, "control.permit", what(0), "256");
    let permit = wire.done("control.permit", what(256))["permit"].clone();
    wire.done("control.complete", json!({"permit": permit}));

    let reason = |chars: usize| json!({"reason": "漢".repeat(chars)});
    over(&mut wire, "request_human", reason(8001), "8000");
    let question = json!({"reason": "stuck", "question": "q".repeat(8001)});
    over(&mut wire, "request_human", question, "8000");
    let id = wire.done("request_human", reason(8000))["requestId"].clone();
    let answer = json!({"requestId": id, "text": "a".repeat(8001)});
    over(&mut wire, "answer", answer, "8000");
}

#[test]
fn one_action() {
    let session = Session::up();
    let mut wire = session.wire();
    let text = json!({"text": "x".repeat(100_001)});
    over(&mut wire, "desktop.type", text, "100000");
    for steps in [json!({"dy": 201}), json!({"dx": -201})] {
        over(&mut wire, "desktop.scroll", steps, "200");
    }
    wire.done("desktop.scroll", json!({"dx": -200}));
    wire.done("desktop.scroll", json!({"dy": 200}));
}

#[test]
fn one_launch() {
    let session = Session::up();
    let mut wire = session.wire();
    let words = |count: usize| {
        let mut command = vec!["true".to_owned()];
        command.resize(count, "w".to_owned());
        json!({"command": command})
    };
    over(&mut wire, "desktop.launch", words(4097), "4096");
    wire.done("desktop.launch", words(4096));
    // The variables of the environment count too, their names and their values.
    let mut both = words(4095);
    both["env"] = json!({"A": "b"});
    over(&mut wire, "desktop.launch", both, "4096");
    let word = |bytes: usize| json!({"command": ["true", "w".repeat(bytes)]});
    over(&mut wire, "desktop.launch", word((128 << 10) + 1), "131072");
    // The kernel counts the zero byte at the end.
    wire.done("desktop.launch", word((128 << 10) - 1));
}

#[test]
fn the_wait_for_the_person_in_control() {
    let session = Session::up();
    let mut holder = session.take(json!({}));
    let mut other = session.wire();
    let wait = |ms: u64| json!({"desktop": "d1", "waitMs": ms});
    over(&mut other, "control.request", wait(600_001), "600000");
    assert_eq!(session.status()["control"], "human");
    let asked = other.send("control.request", wait(600_000));
    // Within the bound the call waits for the holder's word.
    let proof = holder.proof();
    eventually("the request can be refused", LONG, || {
        holder.wire.call("control.refuse", proof.clone()).ok()
    });
    assert!(other.answer(asked).is_err());
}
