//! The browser, moved one command a line (see `tests/tools/console_hands.mjs`).

use std::cell::{Cell, RefCell};
use std::io::Write;
use std::path::Path;
use std::process::ChildStdin;
use std::rc::Rc;

use serde_json::{Value, json};

use super::page::Page;
use crate::support::{Console, Place, Running, Session, Signal, command_line, signal};

/// A headless Chromium. Ended when it and all its tabs are dropped.
pub struct Chromium {
    hands: Rc<Hands>,
}

/// What moves it.
pub struct Hands {
    running: Running,
    input: RefCell<ChildStdin>,
    last: Cell<u64>,
}

impl Chromium {
    /// Starts it.
    pub fn start(place: &Place) -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let clients = root.join("target/clients/browser");
        assert!(
            clients.join("node_modules/axe-core").exists(),
            "no browser's tools: run `scripts/install-deps test` first"
        );
        let mut command = place.command("node");
        command
            .arg(root.join("tests/tools/console_hands.mjs"))
            .arg(&clients)
            // The browser's profile goes where the test's directories go, however the test ends.
            .env("TMPDIR", place.path());
        let (running, input) = Running::start_with_input(&mut command);
        let hands = Hands {
            running,
            input: RefCell::new(input),
            last: Cell::new(0),
        };
        hands.result(0);
        Self {
            hands: Rc::new(hands),
        }
    }

    /// A tab at `address`, a link or the first page, of a person with a window of 1280x800.
    pub fn opens(&self, address: &str) -> Page {
        let (tab, status) = self.opens_as("one", address, json!({}));
        assert_eq!(status, 200, "the link lets in");
        tab.shows("home");
        tab
    }

    /// A tab at `address` of the person `person`, with further parameters of the command `open`; and the
    /// status of the answer.
    pub fn opens_as(&self, person: &str, address: &str, more: Value) -> (Page, u64) {
        let tab = Page::new(Rc::clone(&self.hands));
        let mut command = json!({
            "do": "open",
            "person": person,
            "address": address,
            "options": {"viewport": {"width": 1280, "height": 800}},
        });
        let object = command.as_object_mut().expect("an object");
        object.extend(more.as_object().expect("an object").clone());
        let status = tab.does(command).as_u64().expect("a status");
        (tab, status)
    }

    /// A tab at the desktop `d1` of `session`, for which `url` is a link.
    pub fn at_desktop(&self, url: &str, session: &Session) -> Page {
        self.at_desktop_with(url, session, json!({}))
    }

    /// The same, where control is taken with `terms` added to the parameters of `control.acquire`.
    pub fn at_desktop_with(&self, url: &str, session: &Session, terms: Value) -> Page {
        let (tab, status) = self.opens_as("one", url, json!({"terms": terms}));
        assert_eq!(status, 200, "the link lets in");
        tab.shows("home");
        tab.goes_to_desktop(session);
        tab
    }

    /// A further tab of the same person at the desktop `d1`, likewise.
    pub fn another_at_desktop(&self, console: &Console, session: &Session, terms: Value) -> Page {
        self.at_desktop_with(&format!("{}/", console.origin()), session, terms)
    }
}

impl Hands {
    /// Has one command done and gives its result.
    pub fn does(&self, mut command: Value) -> Value {
        self.last.set(self.last.get() + 1);
        let id = self.last.get();
        command["id"] = json!(id);
        writeln!(self.input.borrow_mut(), "{command}").expect("the browser's hands read");
        self.result(id)
    }

    /// A number that no other tab has.
    pub fn number(&self) -> u64 {
        self.last.set(self.last.get() + 1);
        self.last.get()
    }

    fn result(&self, id: u64) -> Value {
        let line = self
            .running
            .line("the browser's answer", |line| line["id"] == id);
        assert!(line["error"].is_null(), "the browser failed: {line}");
        line["result"].clone()
    }
}

/// The processes that run the pages of the browsers in `place`.
fn renderers(place: &Place) -> Vec<i32> {
    let mut all = place.processes();
    all.retain(|&pid| command_line(pid).contains("--type=renderer"));
    all
}

/// Puts all pages of `place` to sleep, as a laptop does that is closed, until what is answered is dropped.
pub fn asleep(place: &Place) -> Asleep {
    let asleep = Asleep(renderers(place));
    assert!(!asleep.0.is_empty(), "there are pages");
    for &pid in &asleep.0 {
        signal(pid, Signal::STOP);
    }
    asleep
}

/// Pages that sleep.
pub struct Asleep(Vec<i32>);

impl Drop for Asleep {
    fn drop(&mut self) {
        for &pid in &self.0 {
            signal(pid, Signal::CONT);
        }
    }
}
