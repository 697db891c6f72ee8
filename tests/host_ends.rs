//! When the host dies or stops, nobody acts; when it comes back, the desktop and its programs are the same ones.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::scripted::{agent as listed, becomes, shell};
use crate::support::{
    Holder, LONG, Place, Recorder, SHORT, Session, Signal, Typed, What, alive, check_exclusion,
    eventually, holds_for, signal, stop, takeovers, wall_ms,
};

const AGENT: u32 = b'a' as u32;
const PERSON: u32 = b'h' as u32;

/// What the terminal has got of a key, once the display hands out no more of it and the terminal has read it all.
fn all_of_it(typed: &Typed, recorder: &Recorder, keysym: u32) -> String {
    let mut last = (0, Instant::now());
    eventually("typing stops", LONG, || {
        let presses = recorder.presses(keysym);
        if presses != last.0 {
            last = (presses, Instant::now());
        }
        let text = typed.text();
        (text.len() == presses && last.1.elapsed() > Duration::from_millis(500)).then_some(text)
    })
}

/// Killed with a person's input and an agent's call in flight.
#[test]
fn killed_in_human_time() {
    let mut session = Session::up();
    let typed = Typed::start(&session);
    let recorder = Recorder::everything(&session.display());
    let Holder { wire, viewer, .. } = session.take(json!({}));
    viewer.pointer(1, 100, 60);
    viewer.key(0xFFE1, true);
    let wanted = [
        What::Key {
            down: true,
            keysym: 0xFFE1,
        },
        What::Button {
            down: true,
            number: 1,
        },
    ];
    let started = Instant::now();
    while !wanted.iter().all(|what| recorder.held().contains(what)) {
        assert!(started.elapsed() < SHORT, "not held: {:?}", recorder.seen());
        std::thread::sleep(Duration::from_millis(5));
    }
    let bytes = [4, 1, 0, 0, 0, 0, 0, b'h', 4, 0, 0, 0, 0, 0, 0, b'h'].repeat(500);
    viewer.send(&bytes).expect("sent");
    signal(session.host(), Signal::KILL);
    eventually("the viewer's connection is closed", SHORT, || {
        (!viewer.open()).then_some(())
    });
    // The display may still work through what it was handed before, at most 32 messages, and lets go of
    // what was held.
    let died = wall_ms();
    let text = all_of_it(&typed, &recorder, PERSON);
    let late = recorder.since(died).len();
    assert!(late <= 40, "{late} events of 1000 after the host's death");
    holds_for("nothing is typed", Duration::from_millis(500), || {
        typed.text() == text
    });
    drop((wire, viewer));

    session.again();
    session.becomes("agent", SHORT);
    eventually("nothing is held", SHORT, || {
        recorder.held().is_empty().then_some(())
    });
    assert!(alive(typed.pid), "the program on the desktop has gone");
    assert_eq!(typed.text(), text);
    session
        .wire()
        .done("desktop.type", json!({"text": "after"}));
    typed.becomes(&format!("{text}after"));
    let records = takeovers(&session.journal());
    assert_eq!(records.len(), 1);
    assert_eq!(records[0].how, "recovered");
    check_exclusion(&recorder.seen(), &records, AGENT, PERSON);
}

/// A display that is held up sees late that the former host's connections have ended. It has none of a stranger's.
#[test]
fn killed_while_the_display_is_held_up() {
    let mut session = Session::up();
    let (viewer, _) = session.viewer();
    viewer.first_frame();
    let server = session.display_server();
    stop(&[server]);
    let host = session.host();
    signal(host, Signal::KILL);
    eventually("the host is dead", SHORT, || (!alive(host)).then_some(()));
    let id = session.id();
    let up = session.start(&["up", "--session", &id]);
    holds_for("the display is held up", Duration::from_secs(6), || {
        alive(up.pid())
    });
    signal(server, Signal::CONT);
    session.said = up.finish(LONG).done();
    session.becomes("agent", SHORT);
    assert!(session.events("foreign_connection").is_empty());
    let mut agent = session.wire();
    agent.done("desktop.screenshot", json!({}));
    agent.done("desktop.click", json!({"x": 5, "y": 5}));
}

/// A button that the killed host held is released though no other host comes, and where it is.
#[test]
fn killed_with_a_button_held() {
    let session = Session::up();
    let recorder = Recorder::everything(&session.display());
    let holder = session.take(json!({}));
    holder.viewer.pointer(1, 200, 200);
    holder.viewer.pointer(1, 240, 260);
    let display = session.display();
    eventually("the button is held, and dragged", SHORT, || {
        (recorder.held().len() == 1 && display.pointer().0 == (240, 260)).then_some(())
    });
    signal(session.host(), Signal::KILL);
    eventually("the button is released", SHORT, || {
        recorder.held().is_empty().then_some(())
    });
    assert_eq!(display.pointer().0, (240, 260));
}

/// Killed while an agent types: the rest is never typed.
#[test]
fn killed_in_agent_time() {
    let mut session = Session::up();
    let typed = Typed::start(&session);
    let recorder = Recorder::everything(&session.display());
    let mut agent = session.wire();
    agent.send(
        "desktop.type",
        json!({"text": "a".repeat(5000), "method": "keys"}),
    );
    eventually("typing has begun", SHORT, || {
        (!typed.text().is_empty()).then_some(())
    });
    signal(session.host(), Signal::KILL);
    assert!(agent.closed(SHORT), "the connection stands");
    let text = all_of_it(&typed, &recorder, AGENT);
    assert!(text.len() < 5000);
    session.again();
    holds_for("nothing is typed", Duration::from_millis(300), || {
        typed.text() == text
    });
    session.wire().done("control.acquire", json!({}));
}

/// Stopped for longer than the lease lives, with a person's keys waiting in its sockets: they are dropped.
#[test]
fn stopped_for_longer_than_the_lease_lives() {
    let session = Session::up();
    let recorder = Recorder::everything(&session.display());
    // Long enough for the person to begin.
    let holder = session.take(json!({"ttlMs": 8000}));
    holder.viewer.tap("h");
    eventually("the person types", SHORT, || {
        (recorder.presses(PERSON) == 1).then_some(())
    });
    stop(&[session.host()]);
    holder.viewer.tap("hhhhhhhhhhhhhhhhhhhh");
    holds_for("nobody acts", Duration::from_millis(9000), || {
        recorder.presses(PERSON) == 1
    });
    signal(session.host(), Signal::CONT);
    session.becomes("agent", LONG);
    holds_for("what waited is dropped", Duration::from_millis(300), || {
        recorder.presses(PERSON) == 1
    });
    let records = takeovers(&session.journal());
    assert_eq!(records[0].how, "timeout");
    check_exclusion(&recorder.seen(), &records, AGENT, PERSON);
}

/// Stopped for less than the lease lives: the person goes on.
#[test]
fn stopped_for_a_moment() {
    let session = Session::up();
    let recorder = Recorder::everything(&session.display());
    let mut holder = session.take(json!({"ttlMs": 20_000}));
    stop(&[session.host()]);
    holder.viewer.tap("h");
    signal(session.host(), Signal::CONT);
    eventually("the person types", SHORT, || {
        (recorder.presses(PERSON) == 1).then_some(())
    });
    holder.give_back();
}

/// Controllers and callers of a host that dies get an error at once and do not hang.
#[test]
fn callers_of_a_dead_host_are_told() {
    let session = Session::up();
    let controller = session.start(&["watch", "--control", "--viewer", "none"]);
    session.becomes("human", LONG);
    signal(session.host(), Signal::KILL);
    let outcome = controller.finish(LONG);
    assert!([1, 3].contains(&outcome.code), "{outcome:?}");
    // By name: without, the only other session of this user would be meant.
    let id = session.id();
    let outcome = session.cli(&["desktop", "click", "5", "5", "--session", &id]);
    assert_eq!(outcome.code, 3, "{outcome:?}");
}

/// The orderly end leaves no process, socket or lock behind, and a live session of the same directory is left alone.
#[test]
fn down_leaves_nothing() {
    let session = Session::up();
    let typed = Typed::start(&session);
    let outcome = session.cli(&["down"]);
    assert_eq!(outcome.code, 0, "{outcome:?}");
    eventually("every process has ended", LONG, || {
        session.place.processes().is_empty().then_some(())
    });
    assert!(!alive(typed.pid));
    assert!(
        !session.runtime().exists(),
        "the runtime directory is still there"
    );
    let listed = session.cli(&["sessions"]);
    assert!(!listed.out.contains("\"live\":true"), "{listed:?}");
}

/// A8: the end does not wait for clients that never read.
#[test]
fn down_does_not_wait_for_deaf_clients() {
    let session = Session::up();
    let mut deaf: Vec<_> = (0..50).map(|_| session.wire()).collect();
    for wire in &mut deaf {
        wire.send("subscribe", json!({"since": 0}));
        for _ in 0..60 {
            wire.send("journal", json!({}));
        }
    }
    let outcome = session.cli(&["down"]);
    assert_eq!(outcome.code, 0, "{outcome:?}");
    assert!(outcome.took < SHORT, "took {:?}", outcome.took);
    eventually("every process has ended", LONG, || {
        session.place.processes().is_empty().then_some(())
    });
}

/// A session does not end under a person's hands, unless that is what is wanted.
#[test]
fn down_in_human_time() {
    let session = Session::up();
    let recorder = Recorder::everything(&session.display());
    let holder = session.take(json!({}));
    holder.viewer.key(0xFFE1, true);
    eventually("Shift is held", SHORT, || {
        (recorder.held().len() == 1).then_some(())
    });
    assert_eq!(session.cli(&["down"]).refused(), "human_lease_held");
    assert_eq!(session.status()["control"], "human");
    let id = session.id();
    assert_eq!(session.cli(&["down", "--force"]).code, 0);
    eventually("every process has ended", LONG, || {
        session.place.processes().is_empty().then_some(())
    });
    let log = session.cli(&["log", "--session", &id]);
    assert!(log.out.contains("takeover_revoked"), "{log:?}");
}

/// One command takes every desktop from everybody.
#[test]
fn stop_all_pauses_everything() {
    let session = Session::up();
    session
        .wire()
        .done("desktop.new", json!({"size": "320x240"}));
    let mut holder = session.take(json!({}));
    assert_eq!(session.cli(&["stop-all"]).code, 0);
    let proof = holder.proof();
    assert_eq!(
        holder.wire.refused("control.renew", proof).code,
        "lease_stale"
    );
    let list = session.wire().done("list", json!({}));
    for desktop in list["desktops"].as_array().expect("a list") {
        assert_eq!(desktop["control"], "paused", "{list}");
    }
}

/// A desktop without a host ends by itself after a time.
#[test]
fn orphaned_desktops_end() {
    let session = Session::with(
        Place::new(),
        &["--desktop", "--size", "320x240", "--orphan-timeout", "1s"],
    );
    let server = session.display_server();
    signal(session.host(), Signal::KILL);
    eventually("the display server ends", LONG, || {
        (!alive(server)).then_some(())
    });
    eventually("every process has ended", LONG, || {
        session.place.processes().is_empty().then_some(())
    });
}

/// L7: what ends the forgotten ends nothing while a person is in control, however long they do nothing,
/// and an agent that waits for them waits on.
#[test]
fn a_person_who_does_nothing_loses_nothing() {
    let session = Session::with(
        Place::new(),
        &["--desktop", "--size", "320x240", "--orphan-timeout", "1s"],
    );
    let (server, keeper) = (session.display_server(), session.keeper());
    let agent = shell(&session, "exec sleep 600");
    becomes(&session, &agent, "running");
    let mut holder = session.take(json!({}));
    holds_for("all is as it was", Duration::from_secs(4), || {
        alive(server) && alive(keeper) && session.status()["control"] == "human"
    });
    assert_eq!(listed(&session, &agent)["status"], "running");
    holder.give_back();
    assert_eq!(session.status()["control"], "agent");
    assert!(alive(server) && alive(keeper));
}
