//! L4, L2: a reload, a broken network or a second copy of the tab does not lose control; a page that is gone or
//! sleeps does.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::web::{Cable, Chromium, Desk, asleep};
use crate::support::{Console, LONG, Recorder, Session, Typed, eventually, holds_for, wall_ms};

const QUIET: Duration = Duration::from_millis(500);

/// The lease and the epoch of `d1`.
fn lease(session: &Session) -> (Value, Value) {
    let status = session.status();
    assert_eq!(status["control"], "human", "{status}");
    (status["lease"]["leaseId"].clone(), status["epoch"].clone())
}

#[test]
fn a_reload_keeps_control() {
    let desk = Desk::up();
    let session = &desk.session;
    let typed = Typed::start(session);
    let tab = desk.tab();
    tab.takes();
    tab.types("a");
    typed.becomes("a");
    let before = lease(session);
    for text in ["ab", "abc"] {
        tab.reloads();
        tab.shows("held");
        tab.sees();
        assert_eq!(lease(session), before);
        tab.types(&text[text.len() - 1..]);
        typed.becomes(text);
    }
    tab.returns();
    // What has been returned does not come back.
    tab.reloads();
    tab.shows("take-control");
    holds_for("it is not taken again", QUIET, || {
        session.status()["control"] == "agent"
    });
}

#[test]
fn a_broken_network_keeps_control() {
    let session = Session::up();
    let typed = Typed::start(&session);
    let console = Console::start(&session.place, &[]);
    let cable = Cable::lay(&console.address());
    let chromium = Chromium::start(&session.place);
    let terms = json!({"lingerMs": 30_000});
    let tab = chromium.at_desktop_with(&cable.over(&console.url()), &session, terms);
    tab.takes();
    tab.types("a");
    typed.becomes("a");
    let before = lease(&session);
    tab.fills("note", "half a no");
    cable.pull();
    tab.shows("lost");
    tab.types("lost");
    cable.plug();
    // As a browser tells its pages: their next try by themselves may be seconds away, and the lease does not wait.
    tab.evaluates("dispatchEvent(new Event('online'))");
    tab.shows("held");
    tab.sees();
    assert_eq!(lease(&session), before);
    tab.types("b");
    typed.becomes("ab");
    // What was half written is there, after a reload too.
    assert_eq!(tab.text("note"), "half a no");
    tab.reloads();
    tab.shows("held");
    tab.sees();
    assert_eq!(tab.text("note"), "half a no");
    tab.returns();
    assert_eq!(session.event("takeover_return")["note"], "half a no");
    tab.takes();
    assert_eq!(tab.text("note"), "", "a note is for one takeover");
    tab.returns();
}

/// A network that goes away without a word is noticed before the lease is over.
#[test]
fn a_silent_network_keeps_control() {
    let session = Session::up();
    let typed = Typed::start(&session);
    let console = Console::start(&session.place, &[]);
    let cable = Cable::lay(&console.address());
    let chromium = Chromium::start(&session.place);
    let tab = chromium.at_desktop(&cable.over(&console.url()), &session);
    tab.takes();
    let before = lease(&session);
    let viewer = || session.status()["lease"]["viewer"].clone();
    let old = viewer();
    cable.go_quiet();
    // How long the page says that the connection broke is up to the network.
    eventually("control goes on with another picture", LONG, || {
        assert_eq!(lease(&session), before);
        (viewer() != old).then_some(())
    });
    tab.shows("held");
    tab.sees();
    assert_eq!(lease(&session), before);
    tab.types("a");
    typed.becomes("a");
    tab.returns();
}

#[test]
fn a_closed_page_gives_control_back() {
    let desk = Desk::up();
    let session = &desk.session;
    let tab = desk.tab();
    tab.takes();
    let closed = Instant::now();
    tab.closes();
    session.becomes("agent", LONG);
    let took = closed.elapsed();
    // What the app asks the host for, and the slack of a busy machine.
    assert!(took < Duration::from_secs(10 + 10), "after {took:?}");
}

/// A tab that is duplicated starts with what the other remembers, and still leaves it alone.
#[test]
fn a_copy_of_the_tab_does_not_fight() {
    let desk = Desk::up();
    let session = &desk.session;
    let typed = Typed::start(session);
    let tab = desk.tab();
    tab.takes();
    let before = lease(session);
    let copy = tab.duplicates();
    copy.sees();
    copy.says("holder", "in control");
    copy.types("not me");
    tab.comes_to_front();
    tab.types("a");
    typed.becomes("a");
    // Both come anew, and the one that has control keeps it.
    copy.reloads();
    tab.reloads();
    tab.shows("held");
    copy.says("holder", "in control");
    assert_eq!(lease(session), before);
    tab.sees();
    tab.types("b");
    typed.becomes("ab");
    copy.closes();
    assert_eq!(lease(session), before);
    tab.returns();
}

/// C1: control that ended while the page slept is not taken for one that goes on.
#[test]
fn a_sleeping_page_loses_control_and_says_so() {
    let desk = Desk::up();
    let session = &desk.session;
    // Longer than a busy machine needs to put it to sleep.
    let terms = json!({"ttlMs": 10_000});
    let tab = desk.tab_with(terms);
    let recorder = Recorder::everything(&session.display());
    tab.takes();
    let sleeping = asleep(&session.place);
    session.becomes("agent", LONG);
    drop(sleeping);
    tab.shows("after");
    tab.shows("take-control");
    tab.says("after", "control");
    let begun = wall_ms();
    tab.types("late");
    holds_for("what is typed late goes nowhere", QUIET, || {
        recorder.since(begun).is_empty()
    });
    tab.takes();
    tab.returns();
}
