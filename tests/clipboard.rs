//! K2: the clipboard follows control, in both directions, and is empty for whoever comes next.

use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::json;

use crate::support::{Display, LONG, SHORT, Session, Typed, eventually, holds_for};

/// What an application would paste: the text of a selection, or nothing.
fn selection(display: &Display, name: &str) -> String {
    let output = Command::new("xclip")
        .args(["-o", "-selection", name])
        .env("DISPLAY", &display.name)
        .env("XAUTHORITY", &display.authority)
        .stderr(Stdio::null())
        .output()
        .expect("xclip");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// An application of the desktop offers text.
fn copy(session: &Session, text: &str) {
    let file = session.place.path().join("copied");
    std::fs::write(&file, text).expect("a file");
    let command = json!(["xclip", "-selection", "clipboard", file]);
    session.wire().done(
        "desktop.launch",
        json!({"desktop": "d1", "command": command}),
    );
}

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
    let display = session.display();
    copy(&session, "before");
    let mut holder = session.take(json!({}));
    let mut agent_copy = session.place.command("xclip");
    agent_copy
        .args(["-selection", "clipboard"])
        .env("DISPLAY", &display.name)
        .env("XAUTHORITY", &display.authority);
    let mut child = agent_copy
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("xclip");
    std::io::Write::write_all(&mut child.stdin.take().expect("piped"), b"for the holder")
        .expect("xclip reads");
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
    let _ = child.wait();
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
