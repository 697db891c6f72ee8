//! L1, L2: however the program that controls a desktop for a person ends, the person's input ends with it and
//! the desktop goes back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::json;

use crate::support::{
    LONG, Outcome, Recorder, Running, SHORT, Session, Signal, Takeover, Viewer, alive,
    check_exclusion, command_line, eventually, holds_for, takeovers, wall_ms,
};

const AGENT: u32 = b'a' as u32;
const PERSON: u32 = b'h' as u32;

/// A person at a terminal: `watch --control` and a viewer of their own on the socket that it names.
struct Person {
    controller: Running,
    viewer: Viewer,
}

fn takes_control(session: &Session, options: &[&str]) -> Person {
    let controller = session.start(&[&["watch", "--control"], options].concat());
    let told = controller.line("where to connect a viewer", |line| {
        line["socketPath"].is_string()
    });
    let viewer = Viewer::connect(told["socketPath"].as_str().expect("a path").as_ref());
    session.becomes("human", LONG);
    Person { controller, viewer }
}

/// What a way to end showed.
struct Story {
    outcome: Outcome,
    takeover: Takeover,
    /// From the signal, or the end of a program that is killed, to the last key of the person that the display
    /// received, by its own time, in milliseconds.
    dead_after: f64,
}

/// A person types without pause while an agent tries to type without pause, and the controller gets `signal`.
fn ends_by(signal: Signal, options: &[&str]) -> Story {
    let session = Arc::new(Session::up());
    let recorder = Recorder::everything(&session.display());
    let Person { controller, viewer } = takes_control(&session, options);
    let stop = Arc::new(AtomicBool::new(false));
    let agent = {
        let (session, stop) = (Arc::clone(&session), Arc::clone(&stop));
        thread::spawn(move || {
            let mut wire = session.wire();
            while !stop.load(Ordering::Relaxed) {
                let _ = wire.call("desktop.type", json!({"text": "aaa"}));
                thread::sleep(Duration::from_millis(1));
            }
        })
    };
    let typing = {
        let stop = Arc::clone(&stop);
        thread::spawn(move || {
            while !stop.load(Ordering::Relaxed)
                && viewer
                    .send(&[4, 1, 0, 0, 0, 0, 0, b'h', 4, 0, 0, 0, 0, 0, 0, b'h'])
                    .is_ok()
            {
                thread::sleep(Duration::from_millis(1));
            }
            viewer
        })
    };
    eventually("the person types", SHORT, || {
        (recorder.presses(PERSON) > 50).then_some(())
    });
    assert_eq!(recorder.presses(AGENT), 0);
    controller.signal(signal);
    if signal == Signal::KILL {
        // Its connection stands until the kernel has ended it.
        let pid = controller.pid();
        eventually("it has ended", SHORT, || (!alive(pid)).then_some(()));
    }
    let sent = wall_ms();
    eventually("the agent types again", LONG, || {
        (recorder.presses(AGENT) > 20).then_some(())
    });
    if signal == Signal::STOP {
        // A late renewal by the one that slept must change nothing.
        controller.signal(Signal::CONT);
        holds_for(
            "the agent is in control",
            Duration::from_millis(500),
            || session.status()["control"] == "agent",
        );
    }
    stop.store(true, Ordering::Relaxed);
    agent.join().expect("the agent");
    drop(typing.join().expect("the person"));
    let outcome = controller.finish(LONG);
    let seen = recorder.seen();
    let mut records = takeovers(&session.journal());
    check_exclusion(&seen, &records, AGENT, PERSON);
    let last = seen.iter().rev().find(|seen| {
        seen.what
            == crate::support::What::Key {
                down: true,
                keysym: PERSON,
            }
    });
    let dead_after = last.expect("the person typed").after - sent;
    assert_eq!(records.len(), 1, "{records:?}");
    eventually("nothing is held", SHORT, || {
        recorder.held().is_empty().then_some(())
    });
    Story {
        outcome,
        takeover: records.remove(0),
        dead_after,
    }
}

#[test]
fn killed() {
    let story = ends_by(Signal::KILL, &[]);
    assert_eq!(story.takeover.how, "recovered");
    // At once, and not with its time: that is half a minute.
    assert!(
        story.dead_after < 2000.0,
        "input lived on for {} ms",
        story.dead_after
    );
}

/// Stopped for longer than its lease lives.
#[test]
fn stopped() {
    let story = ends_by(Signal::STOP, &["--ttl", "5s"]);
    assert_eq!(story.takeover.how, "timeout");
    assert!(
        story.dead_after < 10_000.0,
        "input lived on for {} ms",
        story.dead_after
    );
    assert_eq!(story.outcome.code, 1, "{:?}", story.outcome);
}

#[test]
fn interrupted_by_ctrl_c() {
    let story = ends_by(Signal::INT, &[]);
    assert_eq!(story.takeover.how, "cancelled");
    assert_eq!(story.outcome.code, 130, "{:?}", story.outcome);
}

/// What the terminal's end comes to for the programs in it.
#[test]
fn hung_up() {
    let story = ends_by(Signal::HUP, &[]);
    assert_eq!(story.takeover.how, "cancelled");
}

#[test]
fn terminated() {
    assert_eq!(ends_by(Signal::TERM, &[]).takeover.how, "cancelled");
}

/// Ctrl-Z returns control before the program sleeps.
#[test]
fn suspended_by_ctrl_z() {
    let session = Session::up();
    let person = takes_control(&session, &[]);
    person.controller.signal(Signal::TSTP);
    session.becomes("agent", SHORT);
    let records = takeovers(&session.journal());
    assert!(
        ["return", "cancelled"].contains(&records[0].how.as_str()),
        "{records:?}"
    );
    person.controller.signal(Signal::CONT);
}

/// The person closes the viewer: a return, with the hand-back printed.
#[test]
fn the_viewer_is_closed() {
    let session = Session::up();
    let Person { controller, viewer } = takes_control(&session, &["--note", "done with it"]);
    viewer.close();
    let outcome = controller.finish(LONG);
    assert_eq!(outcome.code, 0, "{outcome:?}");
    session.becomes("agent", SHORT);
    let end = session.event("takeover_return");
    assert!(end["heldMs"].is_u64(), "{end}");
    assert!(
        outcome.out.contains("heldMs"),
        "the hand-back is not printed: {outcome:?}"
    );
}

/// Nobody connects a viewer: control goes back with a clear error.
#[test]
fn nobody_comes() {
    let session = Session::up();
    let outcome = session.cli(&["watch", "--control", "--wait", "1s"]);
    assert_eq!(outcome.code, 1, "{outcome:?}");
    session.becomes("agent", SHORT);
}

/// A viewer that is not there is found out before control changes hands.
#[test]
fn a_viewer_that_is_not_installed() {
    let session = Session::up();
    let outcome = session.cli(&["watch", "--control", "--viewer", "no-such-viewer"]);
    assert_eq!(outcome.code, 1, "{outcome:?}");
    assert_eq!(outcome.refused(), "bad_params", "{outcome:?}");
    assert!(outcome.out.contains("no-such-viewer"), "{outcome:?}");
    assert!(takeovers(&session.journal()).is_empty());
}

/// Control without a viewer, for as long as the program runs.
#[test]
fn control_without_a_viewer() {
    let session = Session::up();
    let controller = session.start(&["watch", "--control", "--viewer", "none"]);
    session.becomes("human", LONG);
    let mut agent = session.wire();
    holds_for("nobody else acts", Duration::from_secs(1), || {
        agent.refused("desktop.click", json!({"x": 5, "y": 5})).code == "human_control_active"
    });
    controller.signal(Signal::INT);
    assert_eq!(controller.finish(LONG).code, 130);
    session.becomes("agent", SHORT);
}

/// The terminal itself goes away, with a real terminal's end: control ends as by Ctrl-C.
#[test]
fn the_terminal_is_closed() {
    let session = Session::up();
    let watch = format!("{} watch --control --json", env!("CARGO_BIN_EXE_handover"));
    let mut terminal = session.place.command("script");
    let terminal = Running::start(terminal.args(["-qec", &watch, "/dev/null"]));
    session.becomes("human", LONG);
    terminal.signal(Signal::KILL);
    session.becomes("agent", SHORT);
    let records = takeovers(&session.journal());
    assert!(
        ["cancelled", "recovered"].contains(&records[0].how.as_str()),
        "{records:?}"
    );
    eventually("the controller has ended", SHORT, || {
        let watching = session
            .place
            .processes()
            .into_iter()
            .any(|pid| command_line(pid).contains(" watch --control"));
        (!watching).then_some(())
    });
}
