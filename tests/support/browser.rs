//! A person at a browser: noVNC in a headless Chromium, connected to a viewer's socket.

use std::io::Write;
use std::path::Path;
use std::process::ChildStdin;

use serde_json::{Value, json};

use super::agent::decode_base64;
use super::clock::LONG;
use super::command::Running;
use super::picture::Picture;
use super::place::Place;

/// The browser, moved one command a line (see `tests/tools/novnc_hands.mjs`).
pub struct Browser {
    hands: Running,
    input: ChildStdin,
    last: u64,
}

impl Browser {
    /// Opens the viewer's socket in noVNC and waits until it is connected.
    pub fn start(place: &Place, socket: &Path) -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let clients = root.join("target/clients/browser");
        assert!(
            clients.join("installed").exists(),
            "no noVNC: run `scripts/install-deps test` first"
        );
        let mut command = place.command("node");
        command
            .arg(root.join("tests/tools/novnc_hands.mjs"))
            .args([&clients, socket])
            // The browser's profile goes where the test's directories go, however the test ends.
            .env("TMPDIR", place.path());
        let (hands, input) = Running::start_with_input(&mut command);
        let browser = Self {
            hands,
            input,
            last: 0,
        };
        browser.result(0);
        browser
    }

    /// Presses the keys of a person's keyboard for `text`.
    pub fn types(&mut self, text: &str) {
        self.does(json!({"do": "type", "text": text}));
    }

    /// Clicks with the left button at a place of the desktop.
    pub fn clicks(&mut self, x: u16, y: u16) {
        self.does(json!({"do": "click", "at": [x, y]}));
    }

    /// Offers text of the person's clipboard.
    pub fn copies(&mut self, text: &str) {
        self.does(json!({"do": "copy", "text": text}));
    }

    /// What noVNC was told: `state`, `name` of the desktop, `clipboard` with all texts that came, and how many
    /// `connections` it has made.
    pub fn looks(&mut self) -> Value {
        self.does(json!({"do": "look"}))
    }

    /// What it shows.
    pub fn picture(&mut self) -> Picture {
        let png = self.does(json!({"do": "picture"}));
        Picture::read(&decode_base64(png.as_str().expect("base64")))
    }

    /// Closes the browser and waits for its clean end.
    pub fn leave(self) {
        drop(self.input);
        let outcome = self.hands.finish(LONG);
        assert_eq!(outcome.code, 0, "{outcome:?}");
    }

    fn does(&mut self, mut command: Value) -> Value {
        self.last += 1;
        command["id"] = json!(self.last);
        writeln!(self.input, "{command}").expect("the browser's hands read");
        self.result(self.last)
    }

    fn result(&self, id: u64) -> Value {
        let line = self
            .hands
            .line("the browser's answer", |line| line["id"] == id);
        assert!(line["error"].is_null(), "the browser failed: {line}");
        line["result"].clone()
    }
}
