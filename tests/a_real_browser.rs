//! The story of a takeover with noVNC in a real browser: one connection from beginning to end, whose input
//! counts exactly while its person is in control.

use std::time::Duration;

use serde_json::json;

use crate::support::{
    Browser, LONG, Picture, Recorder, Session, Typed, What, copy, eventually, holds_for, selection,
    wall_ms,
};

/// How long nothing may happen after input that is dropped.
const QUIET: Duration = Duration::from_millis(500);
/// The end of a click.
const RELEASE: What = What::Button {
    down: false,
    number: 1,
};

#[test]
fn a_person_acts_through_novnc_in_chromium() {
    let session = Session::up();
    let display = session.display();
    let (socket, viewer) = session.view();
    let mut browser = Browser::start(&session.place, &socket);
    shows_the_desktop(&mut browser, &session);
    let empty = browser.picture();
    let typed = Typed::start(&session);
    shows_the_desktop(&mut browser, &session);
    let changed = empty.difference(&browser.picture());
    assert!(changed > 0.05, "no terminal in the browser: {changed}");

    let recorder = Recorder::everything(&display);
    assert_eq!(browser.looks()["name"], "d1 - agent in control");
    is_ignored(&mut browser, &session, &recorder);

    let mut person = session.wire();
    let lease = person.done(
        "control.acquire",
        json!({"desktop": "d1", "viewer": viewer, "ttlMs": 300_000}),
    );
    let holder = session.status()["lease"]["holder"].clone();
    let in_control = format!("d1 - {} in control", holder.as_str().expect("a holder"));
    is_named(&mut browser, &in_control);
    browser.types("Hands on Xterm é €@");
    typed.becomes("Hands on Xterm é €@");
    browser.clicks(120, 100);
    eventually("the click reaches the desktop", LONG, || {
        (recorder.count(RELEASE) == 1).then_some(())
    });
    browser.copies("Grüße, 漢字");
    eventually("the browser's text is on the desktop", LONG, || {
        (selection(&display, "clipboard") == "Grüße, 漢字").then_some(())
    });
    copy(&session, "vom Desktop: ü, 字");
    eventually("the desktop's text is in the browser", LONG, || {
        (browser.looks()["clipboard"] == json!(["vom Desktop: ü, 字"])).then_some(())
    });

    person.done(
        "control.return",
        json!({"leaseId": lease["leaseId"], "token": lease["token"]}),
    );
    is_named(&mut browser, "d1 - agent in control");
    for name in ["clipboard", "primary"] {
        assert_eq!(selection(&display, name), "", "{name} after the end");
    }
    is_ignored(&mut browser, &session, &recorder);
    session
        .wire()
        .done("desktop.type", json!({"text": " and the agent's"}));
    typed.becomes("Hands on Xterm é €@ and the agent's");

    // What is new on the screen still comes, on the connection of the beginning.
    let command = json!(["xterm", "-geometry", "60x10+300+300", "-bg", "navy"]);
    session.wire().done(
        "desktop.launch",
        json!({"desktop": "d1", "command": command}),
    );
    eventually("the new window in the browser", LONG, || {
        (empty.difference(&browser.picture()) > changed * 1.5).then_some(())
    });
    shows_the_desktop(&mut browser, &session);
    let seen = browser.looks();
    assert_eq!(
        (&seen["state"], &seen["connections"]),
        (&json!("connected"), &json!(1))
    );
    browser.leave();
}

/// Waits until the browser shows what the host's own picture of the desktop shows.
fn shows_the_desktop(browser: &mut Browser, session: &Session) {
    let mut agent = session.wire();
    eventually("the browser shows the desktop", LONG, || {
        let taken = agent.done("desktop.screenshot", json!({}));
        let file = std::fs::read(taken["path"].as_str().expect("a path")).expect("the picture");
        // The pointer and a blinking cursor may be anywhere.
        (browser.picture().difference(&Picture::read(&file)) < 0.01).then_some(())
    });
}

/// Waits until the desktop's name in the browser is `name`.
fn is_named(browser: &mut Browser, name: &str) {
    eventually("the desktop's name in the browser", LONG, || {
        (browser.looks()["name"] == name).then_some(())
    });
}

/// Keys, clicks and clipboard of the browser come to nothing, and it is told nothing of the desktop's clipboard.
fn is_ignored(browser: &mut Browser, session: &Session, recorder: &Recorder) {
    let display = session.display();
    let told = browser.looks()["clipboard"].clone();
    let begun = wall_ms();
    browser.types("Not é");
    browser.clicks(130, 110);
    copy(session, "of the desktop");
    browser.copies("of the browser");
    holds_for("the browser only watches", QUIET, || {
        recorder.since(begun).is_empty()
            && selection(&display, "clipboard") == "of the desktop"
            && browser.looks()["clipboard"] == told
    });
}
