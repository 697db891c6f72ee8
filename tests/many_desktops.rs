//! Several desktops in a session and several sessions at once, without races for display numbers.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::{LONG, Place, Running, Session, Typed};

/// P6: ten desktops asked for at once on one session all come up, and each is its own.
#[test]
fn ten_desktops_at_once() {
    let session = Session::with(Place::new(), &[]);
    let ids: Vec<String> = thread::scope(|scope| {
        let making: Vec<_> = (0..10)
            .map(|_| {
                scope.spawn(|| {
                    let new = session
                        .wire()
                        .done("desktop.new", json!({"size": "320x240", "wm": "none"}));
                    new["id"].as_str().expect("an id").to_owned()
                })
            })
            .collect();
        making
            .into_iter()
            .map(|thread| thread.join().expect("made"))
            .collect()
    });
    let mut unique = ids.clone();
    unique.sort();
    unique.dedup();
    assert_eq!(unique.len(), 10, "{ids:?}");
    let mut wire = session.wire();
    for id in &ids {
        wire.done("desktop.click", json!({"desktop": id, "x": 5, "y": 5}));
    }
    // Which of several is meant must be said.
    let refused = wire.refused("desktop.click", json!({"x": 5, "y": 5}));
    assert!(refused.message.contains("d1"), "{refused:?}");
    assert!(
        ["bad_params", "desktop_unknown"].contains(&refused.code.as_str()),
        "{refused:?}"
    );
}

/// A window manager gives the keyboard to the windows that are opened after it has begun, however long that takes on
/// a busy machine: so a new desktop is there when it has.
#[test]
fn a_new_desktop_waits_for_its_window_manager() {
    let session = Session::with(Place::new(), &[]);
    let slow = session.place.path().join("slow");
    fs::write(&slow, "#!/bin/sh\nsleep 4\nexec openbox\n").expect("a script");
    fs::set_permissions(&slow, fs::Permissions::from_mode(0o755)).expect("a mode");
    let mut wire = session.wire();
    let params = json!({"size": "640x480", "wm": slow});
    wire.done("desktop.new", params);
    let typed = Typed::start(&session);
    wire.done("desktop.type", json!({"text": "at once"}));
    typed.becomes("at once");
    // One that ends is not waited for.
    let started = Instant::now();
    wire.done("desktop.new", json!({"size": "320x240", "wm": "true"}));
    assert!(started.elapsed() < Duration::from_secs(15));
}

/// P6: five sessions with a desktop each, started by five processes at once.
#[test]
fn five_sessions_at_once() {
    let place = Place::new();
    let starting: Vec<_> = (0..5)
        .map(|number| {
            let project = place.path().join(format!("p{number}"));
            std::fs::create_dir(&project).expect("a directory");
            let mut command = place.handover();
            Running::start(command.current_dir(&project).args([
                "up",
                "--json",
                "--desktop",
                "--size",
                "320x240",
            ]))
        })
        .collect();
    let said: Vec<_> = starting
        .into_iter()
        .map(|running| running.finish(LONG).done())
        .collect();
    for one in &said {
        let session = one["sessionId"].as_str().expect("an id");
        let mut command = place.handover();
        Running::start(command.args([
            "desktop",
            "click",
            "5",
            "5",
            "--json",
            "--session",
            session,
        ]))
        .finish(LONG)
        .done();
    }
    let mut command = place.handover();
    let ambiguous = Running::start(
        command
            .current_dir("/")
            .args(["desktop", "click", "5", "5", "--json"]),
    )
    .finish(LONG);
    assert_eq!(ambiguous.refused(), "session_ambiguous");
    let mut command = place.handover();
    let down = Running::start(command.args(["down", "--all", "--json"])).finish(LONG);
    assert_eq!(down.code, 0, "{down:?}");
}

/// A takeover of one desktop is nothing to another.
#[test]
fn desktops_are_taken_over_apart() {
    let session = Session::up();
    let mut wire = session.wire();
    let second = wire.done("desktop.new", json!({"size": "320x240"}))["id"].clone();
    let mut holder = session.take(json!({}));
    wire.done("desktop.click", json!({"desktop": second, "x": 5, "y": 5}));
    assert_eq!(
        wire.refused("desktop.click", json!({"desktop": "d1", "x": 5, "y": 5}))
            .code,
        "human_control_active"
    );
    wire.done("desktop.destroy", json!({"desktop": second}));
    assert_eq!(
        wire.refused("desktop.destroy", json!({"desktop": "d1"}))
            .code,
        "human_control_active"
    );
    holder.give_back();
    let refused = wire.refused("desktop.click", json!({"desktop": second, "x": 5, "y": 5}));
    assert!(
        ["desktop_unknown", "desktop_gone"].contains(&refused.code.as_str()),
        "{refused:?}"
    );
}

/// One session a project unless another is asked for.
#[test]
fn a_project_has_one_session_unless_told() {
    let session = Session::with(Place::new(), &[]);
    let mut command = session.place.handover();
    let refused = Running::start(command.args(["up", "--json"])).finish(LONG);
    assert_eq!(refused.refused(), "already_running");
    let mut command = session.place.handover();
    let second = Running::start(command.args(["up", "--json", "--new"]))
        .finish(LONG)
        .done();
    assert_ne!(second["sessionId"], session.said["sessionId"]);
}
