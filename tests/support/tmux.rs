//! A real terminal: a tmux server of its own, with one window in which a shell runs.

use std::process::Command;
use std::time::Duration;

use super::clock::eventually;
use super::place::Place;
use super::processes::{self, Signal};

/// A shell in a window of a tmux server that ends with the test.
pub struct Tmux<'a> {
    place: &'a Place,
    server: i32,
}

impl<'a> Tmux<'a> {
    /// Opens a window of this size and waits for the shell's prompt.
    pub fn open(place: &'a Place, columns: u16, rows: u16) -> Self {
        let mut tmux = Self { place, server: 0 };
        let [columns, rows] = [columns, rows].map(|count| count.to_string());
        tmux.run(&[
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            &columns,
            "-y",
            &rows,
            "env",
            "PS1=$ ",
            "bash",
            "--norc",
            "--noprofile",
        ]);
        tmux.server = tmux.format("#{pid}").parse().expect("a pid");
        tmux.shows("$", Duration::from_secs(20));
        tmux
    }

    fn command(&self) -> Command {
        let mut tmux = self.place.command("tmux");
        // The socket is below the place, where nobody else's is.
        tmux.env("TMUX_TMPDIR", self.place.path())
            // As a user's terminal has; bash counts the columns of what is typed by it.
            .env("LC_ALL", "C.UTF-8")
            .env_remove("TMUX")
            .env_remove("NO_COLOR")
            .args(["-u", "-L", "top"]);
        tmux
    }

    fn run(&self, arguments: &[&str]) -> String {
        let output = self.command().args(arguments).output().expect("tmux runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(
            output.status.success(),
            "tmux {arguments:?}: {}",
            text(&output.stderr)
        );
        text(&output.stdout)
    }

    /// A line that tmux makes of its own facts, such as `#{pane_title}`.
    pub fn format(&self, format: &str) -> String {
        self.run(&["display-message", "-p", format])
            .trim_end()
            .to_owned()
    }

    /// Presses keys by their names, such as `Enter` or `C-z`.
    pub fn keys(&self, keys: &[&str]) {
        self.run(&[&["send-keys"], keys].concat());
    }

    /// Types a text.
    pub fn write(&self, text: &str) {
        self.run(&["send-keys", "-l", text]);
    }

    /// Sends bytes as a terminal would, all at once.
    pub fn send(&self, bytes: &str) {
        let bytes: Vec<String> = bytes.bytes().map(|byte| format!("{byte:02x}")).collect();
        let bytes: Vec<&str> = bytes.iter().map(String::as_str).collect();
        self.run(&[&["send-keys", "-H"], &bytes[..]].concat());
    }

    /// Types a line at the shell.
    pub fn line(&self, text: &str) {
        self.write(text);
        self.keys(&["Enter"]);
    }

    /// What is on the screen.
    pub fn screen(&self) -> String {
        self.run(&["capture-pane", "-p"])
    }

    /// The same with the colours as escape sequences.
    pub fn painted(&self) -> String {
        self.run(&["capture-pane", "-p", "-e"])
    }

    /// Changes the size of the window.
    pub fn resize(&self, columns: u16, rows: u16) {
        let [columns, rows] = [columns, rows].map(|count| count.to_string());
        self.run(&["resize-window", "-x", &columns, "-y", &rows]);
    }

    /// Waits until the screen fits, and gives it.
    pub fn until(&self, what: &str, bound: Duration, fits: impl Fn(&str) -> bool) -> String {
        let mut last = String::new();
        let started = std::time::Instant::now();
        loop {
            let screen = self.screen();
            if fits(&screen) {
                return screen;
            }
            if screen != last {
                last = screen;
            }
            assert!(
                started.elapsed() < bound,
                "not within {bound:?}: {what}\n{last}"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until a text is on the screen.
    pub fn shows(&self, text: &str, bound: Duration) -> String {
        self.until(&format!("the screen shows {text:?}"), bound, |screen| {
            screen.contains(text)
        })
    }

    /// Whether a program has the alternate screen.
    pub fn is_full_screen(&self) -> bool {
        self.format("#{alternate_on}") == "1"
    }

    /// The process below the shell.
    pub fn program(&self) -> i32 {
        let shell = self.format("#{pane_pid}").parse().expect("a pid");
        eventually("a program runs", Duration::from_secs(20), || {
            processes::children(shell).first().copied()
        })
    }
}

impl Drop for Tmux<'_> {
    fn drop(&mut self) {
        if self.server > 0 {
            processes::signal(self.server, Signal::KILL);
        }
    }
}
