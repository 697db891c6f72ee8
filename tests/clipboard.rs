//! K2: the clipboard follows control, in both directions, and is empty for whoever comes next.

use std::time::Duration;

use serde_json::json;
use x11rb::connection::Connection as _;
use x11rb::protocol::xproto::{AtomEnum, ConnectionExt as _, PropMode};
use x11rb::wrapper::ConnectionExt as _;

use crate::support::{LONG, SHORT, Session, Typed, copy, eventually, holds_for, selection};

/// The holder's text reaches applications; a watcher's does not; both selections are empty after the end.
#[test]
fn from_the_holder_to_the_desktop() {
    let session = Session::up();
    let display = session.display();
    let (watcher, _) = session.viewer();
    watcher.first_frame();
    let mut holder = session.take(json!({}));
    watcher.cut_text("from a watcher");
    holder.viewer.cut_text("from the holder");
    eventually("the holder's text", SHORT, || {
        (selection(&display, "clipboard") == "from the holder").then_some(())
    });
    watcher.cut_text("from a watcher");
    holds_for(
        "the watcher's text is not there",
        Duration::from_millis(300),
        || selection(&display, "clipboard") != "from a watcher",
    );
    holder.give_back();
    for name in ["clipboard", "primary"] {
        assert_eq!(selection(&display, name), "", "{name} after the end");
    }
}

/// What an application copies in human time reaches the holder and no watcher; the next holder does not get it.
#[test]
fn from_the_desktop_to_the_holder() {
    let session = Session::up();
    let (watcher, _) = session.viewer();
    watcher.first_frame();
    copy(&session, "before");
    let mut holder = session.take(json!({}));
    copy(&session, "for the holder");
    eventually("the holder is told", SHORT, || {
        (!holder.viewer.shown().cut.is_empty()).then_some(())
    });
    holder.give_back();
    let told = holder.viewer.shown().cut.len();
    copy(&session, "after");
    let next = session.take(json!({}));
    holds_for("nobody else is told", Duration::from_millis(500), || {
        let leaked = next
            .viewer
            .shown()
            .cut
            .iter()
            .any(|cut| cut.windows(14).any(|part| part == b"for the holder"));
        watcher.shown().cut.is_empty() && !leaked && holder.viewer.shown().cut.len() <= told + 1
    });
}

/// C2: a paste that an agent has offered and no application has taken is withdrawn when a person takes over.
#[test]
fn a_pending_paste_is_withdrawn() {
    let session = Session::up();
    let display = session.display();
    let mut agent = session.wire();
    // Nothing has the focus that would take it.
    let call = agent.send(
        "desktop.type",
        json!({"text": "p".repeat(500), "method": "paste"}),
    );
    let mut holder = session.take(json!({}));
    assert_ne!(selection(&display, "clipboard"), "p".repeat(500));
    assert_ne!(selection(&display, "primary"), "p".repeat(500));
    let _ = agent.answer(call);
    let typed_by_person = {
        holder.give_back();
        selection(&display, "clipboard")
    };
    assert_ne!(typed_by_person, "p".repeat(500));
}

/// An agent's long text leaves the clipboard as it was.
#[test]
fn an_agents_paste_restores_the_clipboard() {
    let session = Session::up();
    let typed = Typed::start(&session);
    copy(&session, "mine");
    let display = session.display();
    eventually("copied", LONG, || {
        (selection(&display, "clipboard") == "mine").then_some(())
    });
    session
        .wire()
        .done("desktop.type", json!({"text": "é".repeat(200)}));
    typed.becomes(&"é".repeat(200));
    eventually("as before", SHORT, || {
        (selection(&display, "clipboard") == "mine").then_some(())
    });
}

/// C5: an application has the display to itself when control ends, so nothing can be cleared: the desktop is shown as
/// unavailable, and the agent is not back before all is cleared.
#[test]
fn control_is_not_back_before_the_clipboard_is_cleared() {
    let session = Session::up();
    let display = session.display();
    let mut holder = session.take(json!({}));
    let x = display.connect();
    let root = x.setup().roots[0].root;
    let buffer = AtomEnum::CUT_BUFFER0;
    x.change_property8(
        PropMode::REPLACE,
        root,
        buffer,
        AtomEnum::STRING,
        b"a person's",
    )
    .expect("sent");
    x.grab_server().expect("sent").check().expect("granted");
    let proof = holder.proof();
    let returning = holder.wire.send("control.return", proof);
    eventually("the desktop is shown as unavailable", LONG, || {
        let status = session.status();
        (status["control"] == "paused" && status["pauseReason"] == "display_unavailable")
            .then_some(())
    });
    let refused = session.wire().refused("desktop.type", json!({"text": "a"}));
    assert_eq!(refused.code, "display_unavailable");
    x.ungrab_server().expect("sent").check().expect("done");
    if let Err(refused) = holder.wire.answer(returning) {
        assert_eq!(refused.code, "display_unavailable");
    }
    session.becomes("agent", LONG);
    let left = x
        .get_property(false, root, buffer, AtomEnum::ANY, 0, 16)
        .expect("sent")
        .reply()
        .expect("a property");
    assert_eq!(left.value, b"");
}
