//! A person's own screen: a second display with a window manager, where viewers open and hands are xdotool's.

use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;

use super::clock::{LONG, eventually};
use super::command::Running;
use super::display::own_number;
use super::place::Place;

/// A screen of its own, gone when dropped.
pub struct Seat {
    display: String,
    // Ended by being dropped, the window manager first.
    _manager: Running,
    _server: Running,
}

impl Seat {
    /// Starts the screen in `place`.
    pub fn start(place: &Place) -> Self {
        let display = format!(":{}", own_number());
        let server = plain_server(
            place,
            &display,
            "1000x800",
            &place.path().join("seat.rfb"),
            // A key that is held up on a busy machine must not repeat.
            &["-ac", "-r"],
        );
        let manager = Running::start(place.command("openbox").env("DISPLAY", &display));
        let seat = Self {
            display,
            _manager: manager,
            _server: server,
        };
        // A window that opens while the window manager begins may never be shown.
        eventually("the window manager", LONG, || {
            seat.hands(&["get_num_desktops"]).then_some(())
        });
        seat
    }

    /// The value of `DISPLAY` for programs on this screen.
    pub fn display(&self) -> &str {
        &self.display
    }

    /// Moves the person's hands; whether that was possible.
    pub fn hands(&self, acts: &[&str]) -> bool {
        let done = Command::new("xdotool")
            .args(acts)
            .env("DISPLAY", &self.display)
            .output()
            .expect("xdotool");
        done.status.success()
    }
}

/// Starts a display server that is no desktop of Handover's, and waits until it takes X clients and viewers.
pub fn plain_server(
    place: &Place,
    display: &str,
    size: &str,
    rfb: &Path,
    further: &[&str],
) -> Running {
    let mut server = place.command("Xtigervnc");
    server
        .args([display, "-geometry", size, "-depth", "24", "-rfbport", "-1"])
        .args(["-noreset", "-SecurityTypes", "None"])
        .args(["-nolisten", "tcp", "-nolisten", "local", "-rfbunixpath"])
        .arg(rfb)
        .args(further);
    let server = Running::start(&mut server);
    let socket = format!("/tmp/.X11-unix/X{}", &display[1..]);
    // The one for viewers comes later.
    for socket in [Path::new(&socket), rfb] {
        eventually("the display server", LONG, || {
            UnixStream::connect(socket).ok()
        });
    }
    server
}
