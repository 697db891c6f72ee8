//! P1, P2, P4: the pointer goes where it was sent, drags from where to where it was asked, and scrolls the way
//! it was asked. One coordinate space: the framebuffer's pixels.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Recorder, SHORT, Session, What, eventually};

/// What a window received from one act, motion left out.
fn received(act: &str, params: Value, wanted: usize) -> Vec<(What, (i16, i16))> {
    let session = Session::up();
    let recorder = Recorder::window(&session.display());
    session.wire().done(act, params);
    let seen = eventually(&format!("{wanted} events of {act}"), SHORT, || {
        let seen: Vec<_> = recorder
            .seen()
            .into_iter()
            .filter(|seen| seen.what != What::Motion)
            .collect();
        (seen.len() >= wanted).then_some(seen)
    });
    seen.into_iter().map(|seen| (seen.what, seen.at)).collect()
}

fn button(number: u32, down: bool, at: (i16, i16)) -> (What, (i16, i16)) {
    (What::Button { down, number }, at)
}

#[test]
fn a_click() {
    let at = (123, 45);
    assert_eq!(
        received("desktop.click", json!({"x": 123, "y": 45}), 2),
        [button(1, true, at), button(1, false, at)]
    );
}

#[test]
fn a_click_with_the_right_button_in_the_last_corner() {
    let at = (799, 599);
    let seen = received("desktop.click", json!({"x": 799, "y": 599, "button": 3}), 2);
    assert_eq!(seen, [button(3, true, at), button(3, false, at)]);
}

#[test]
fn a_double_click() {
    let at = (10, 20);
    let seen = received("desktop.double_click", json!({"x": 10, "y": 20}), 4);
    assert_eq!(
        seen,
        [
            button(1, true, at),
            button(1, false, at),
            button(1, true, at),
            button(1, false, at)
        ]
    );
}

#[test]
fn a_drag() {
    let seen = received(
        "desktop.drag",
        json!({"from": [100, 110], "to": [300, 50]}),
        2,
    );
    assert_eq!(
        seen,
        [button(1, true, (100, 110)), button(1, false, (300, 50))]
    );
}

/// Positive is right and down; one step is one turn of the wheel.
#[test]
fn scrolling() {
    let at = (400, 300);
    for (delta, number) in [
        (json!({"dy": 3}), 5),
        (json!({"dy": -3}), 4),
        (json!({"dx": 3}), 7),
        (json!({"dx": -3}), 6),
    ] {
        let mut params = json!({"x": 400, "y": 300});
        params
            .as_object_mut()
            .expect("an object")
            .extend(delta.as_object().expect("an object").clone());
        let seen = received("desktop.scroll", params, 6);
        let step = [button(number, true, at), button(number, false, at)];
        assert_eq!(seen, step.repeat(3), "{delta}");
    }
}

/// P2: a point outside is an error that states the size.
#[test]
fn a_point_outside() {
    let session = Session::up();
    let mut agent = session.wire();
    for (method, params) in [
        ("desktop.click", json!({"x": 800, "y": 5})),
        ("desktop.move", json!({"x": 5, "y": 600})),
        ("desktop.move", json!({"x": -1, "y": 5})),
        ("desktop.double_click", json!({"x": 70_000, "y": 5})),
        ("desktop.scroll", json!({"x": 800, "y": 5, "dy": 1})),
        ("desktop.drag", json!({"from": [5, 5], "to": [5, 600]})),
    ] {
        let refused = agent.refused(method, params);
        assert_eq!(refused.code, "out_of_bounds", "{method}");
        assert!(refused.message.contains("800x600"), "{refused:?}");
    }
}

/// P4: acting where the pointer is already completes at once.
#[test]
fn acting_at_the_present_place() {
    let session = Session::up();
    let mut agent = session.wire();
    agent.done("desktop.move", json!({"x": 50, "y": 50}));
    for (method, params) in [
        ("desktop.move", json!({"x": 50, "y": 50})),
        ("desktop.click", json!({"x": 50, "y": 50})),
        ("desktop.scroll", json!({"x": 50, "y": 50, "dy": 1})),
        ("desktop.scroll", json!({"dy": 1})),
        ("desktop.drag", json!({"from": [50, 50], "to": [50, 50]})),
    ] {
        // A busy machine may hold up any one of them, but not every one.
        let mut takes = || {
            let started = Instant::now();
            agent.done(method, params.clone());
            started.elapsed()
        };
        let at_once = (0..5).any(|_| takes() < Duration::from_secs(2));
        assert!(at_once, "{method} never takes less than two seconds");
    }
}

/// P7: the display keeps the pointer and its state when its last client leaves.
#[test]
fn the_display_does_not_reset() {
    let session = Session::with(
        crate::support::Place::new(),
        &["--desktop", "--size", "640x480"],
    );
    let display = session.display();
    session
        .wire()
        .done("desktop.move", json!({"x": 333, "y": 222}));
    for _ in 0..3 {
        let x = display.connect();
        let root = x11rb::connection::Connection::setup(&x).roots[0].root;
        let at = x11rb::protocol::xproto::ConnectionExt::query_pointer(&x, root)
            .expect("sent")
            .reply()
            .expect("reply");
        assert_eq!((at.root_x, at.root_y), (333, 222));
    }
}
