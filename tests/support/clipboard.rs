//! The clipboard as the applications of a desktop have it.

use std::process::{Command, Stdio};

use x11rb::protocol::xproto::ConnectionExt as _;

use super::clock::{LONG, eventually};
use super::display::Display;
use super::session::Session;

/// What an application would paste: the text of a selection, or nothing.
pub fn selection(display: &Display, name: &str) -> String {
    let output = Command::new("xclip")
        .args(["-o", "-selection", name])
        .env("DISPLAY", &display.name)
        .env("XAUTHORITY", &display.authority)
        .stderr(Stdio::null())
        .output()
        .expect("xclip");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// An application of the desktop offers text, whoever is in control.
pub fn copy(session: &Session, text: &str) {
    let display = session.display();
    let file = session.place.path().join("copied");
    std::fs::write(&file, text).expect("a file");
    let x = display.connect();
    let clipboard = x
        .intern_atom(false, b"CLIPBOARD")
        .expect("sent")
        .reply()
        .expect("an atom")
        .atom;
    let owner = || {
        let owner = x.get_selection_owner(clipboard).expect("sent").reply();
        owner.expect("an owner").owner
    };
    let before = owner();
    // It leaves a process of its own behind, which answers for the text until other text replaces it.
    let done = session
        .place
        .command("xclip")
        .args(["-selection", "clipboard"])
        .arg(file)
        .env("DISPLAY", &display.name)
        .env("XAUTHORITY", &display.authority)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    assert!(
        done.expect("xclip").success(),
        "xclip did not take {text:?}"
    );
    // It is that process that says so to the display, perhaps only now.
    eventually("the text is offered", LONG, || {
        (![before, x11rb::NONE].contains(&owner())).then_some(())
    });
}
