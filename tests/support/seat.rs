//! A person's own screen: a second display with a window manager, where viewers open and hands are xdotool's.

use std::process::Command;

use super::clock::{LONG, eventually};
use super::command::Running;
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
        let mut server = place.command("Xtigervnc");
        server.args([
            "-displayfd",
            "1",
            "-geometry",
            "1000x800",
            "-depth",
            "24",
            "-rfbport",
            "-1",
            "-noreset",
        ]);
        // `-displayfd` finds out by the abstract socket that a number is taken; without that one it would take over
        // the file of another server's socket, of another test or even of the person who runs the tests.
        server.args(["-SecurityTypes", "None", "-nolisten", "tcp", "-ac"]);
        server
            .arg("-rfbunixpath")
            .arg(place.path().join("seat.rfb"));
        let server = Running::start(&mut server);
        let number = eventually("a free display number", LONG, || {
            server.out().trim().parse::<u32>().ok()
        });
        let display = format!(":{number}");
        let manager = Running::start(place.command("openbox").env("DISPLAY", &display));
        Self {
            display,
            _manager: manager,
            _server: server,
        }
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
