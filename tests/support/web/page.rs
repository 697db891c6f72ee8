//! One page of the console in the browser. What is on the page is named by its `data-testid`.

use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use serde_json::{Value, json};

use super::chromium::Hands;
use crate::support::Session;

/// A page in a tab of its own. It stays open when dropped, until its browser ends.
pub struct Page {
    hands: Rc<Hands>,
    name: String,
}

impl Page {
    /// One that is not open yet.
    pub fn new(hands: Rc<Hands>) -> Self {
        let name = hands.number().to_string();
        Self { hands, name }
    }

    /// Has a command of `console_hands.mjs` done in this tab.
    pub fn does(&self, mut command: Value) -> Value {
        command["tab"] = json!(self.name);
        self.hands.does(command)
    }

    /// Clicks on it, as soon as that can be done.
    pub fn clicks(&self, what: &str) {
        self.does(json!({"do": "click", "what": what}));
    }

    /// Writes `text` into a field.
    pub fn fills(&self, what: &str, text: &str) {
        self.does(json!({"do": "fill", "what": what, "text": text}));
    }

    /// Waits until it is there to be seen.
    pub fn shows(&self, what: &str) {
        self.does(json!({"do": "wait", "what": what}));
    }

    /// Waits until it is not to be seen any more.
    pub fn hides(&self, what: &str) {
        self.does(json!({"do": "wait", "what": what, "state": "hidden"}));
    }

    /// Waits until its text contains `words`.
    pub fn says(&self, what: &str, words: &str) {
        self.does(json!({"do": "says", "what": what, "words": words}));
    }

    /// How many are called so.
    pub fn count(&self, what: &str) -> u64 {
        let count = self.does(json!({"do": "count", "what": what}));
        count.as_u64().expect("a number")
    }

    /// Whether it is to be seen now.
    pub fn has(&self, what: &str) -> bool {
        self.does(json!({"do": "has", "what": what})) == true
    }

    /// Its text, or what stands in the field.
    pub fn text(&self, what: &str) -> String {
        let text = self.does(json!({"do": "text", "what": what}));
        text.as_str().expect("a text").to_owned()
    }

    /// An attribute of it.
    pub fn attribute(&self, what: &str, name: &str) -> String {
        let value = self.does(json!({"do": "attribute", "what": what, "name": name}));
        value.as_str().unwrap_or_default().to_owned()
    }

    /// What a script says in the page.
    pub fn evaluates(&self, script: &str) -> Value {
        self.does(json!({"do": "evaluate", "script": script}))
    }

    /// Presses the keys of a person's keyboard for `text`.
    pub fn types(&self, text: &str) {
        self.does(json!({"do": "type", "text": text}));
    }

    /// Presses and releases keys by Playwright's names, such as `Control+KeyC`.
    pub fn presses(&self, keys: &str) {
        self.does(json!({"do": "press", "keys": keys}));
    }

    /// Presses one key and holds it.
    pub fn holds(&self, key: &str) {
        self.does(json!({"do": "key", "key": key, "down": true}));
    }

    /// Lets go of a key.
    pub fn lets_go(&self, key: &str) {
        self.does(json!({"do": "key", "key": key, "down": false}));
    }

    /// Moves the pointer to a pixel of the desktop.
    pub fn points(&self, x: u16, y: u16) {
        self.does(json!({"do": "point", "at": [x, y]}));
    }

    /// Presses or lets go of the left button.
    pub fn button(&self, down: bool) {
        self.does(json!({"do": "button", "down": down}));
    }

    /// Clicks on a pixel of the desktop.
    pub fn clicks_at(&self, x: u16, y: u16) {
        self.points(x, y);
        self.button(true);
        self.button(false);
    }

    /// The colour of a pixel of the desktop, as the page shows it.
    pub fn colour(&self, x: u16, y: u16) -> [u8; 3] {
        let colour = self.does(json!({"do": "colour", "at": [x, y]}));
        serde_json::from_value(colour).expect("a colour")
    }

    /// Goes to a place of the app.
    pub fn goes(&self, hash: &str) {
        self.does(json!({"do": "go", "hash": hash}));
    }

    /// Goes to `d1` of a session and waits for its picture.
    pub fn goes_to_desktop(&self, session: &Session) {
        self.goes(&format!("#/{}/desktop/d1", session.id()));
        self.sees();
    }

    /// Waits until there is a picture of the desktop.
    pub fn sees(&self) {
        self.becomes("stage", "data-picture", "connected");
    }

    /// Waits until an attribute of it has this value.
    pub fn becomes(&self, what: &str, name: &str, value: &str) {
        self.does(json!({"do": "becomes", "what": what, "name": name, "value": value}));
    }

    /// Takes control with the one click that it takes.
    pub fn takes(&self) {
        self.clicks("take-control");
        self.shows("held");
    }

    /// Returns control with the one click that it takes.
    pub fn returns(&self) {
        self.clicks("return-control");
        self.hides("held");
        self.shows("take-control");
    }

    /// Loads the page again.
    pub fn reloads(&self) {
        self.does(json!({"do": "reload"}));
    }

    /// Closes the tab.
    pub fn closes(&self) {
        self.does(json!({"do": "close"}));
    }

    /// Ends the process behind the page.
    pub fn crashes(&self) {
        self.does(json!({"do": "crash"}));
    }

    /// Brings it before all other tabs.
    pub fn comes_to_front(&self) {
        self.does(json!({"do": "front"}));
    }

    /// How many connections for pictures it has made.
    pub fn pictures(&self) -> usize {
        let sockets = self.does(json!({"do": "sockets"}));
        let sockets = sockets.as_array().expect("a list").iter();
        let paths = sockets.filter_map(Value::as_str);
        paths.filter(|path| path.starts_with("/api/view/")).count()
    }

    /// What the tab is called.
    pub fn title(&self) -> String {
        let title = self.does(json!({"do": "title"}));
        title.as_str().expect("a title").to_owned()
    }

    /// Another tab of the same browser, with a copy of this tab's session storage.
    pub fn duplicates(&self) -> Self {
        let other = Self::new(Rc::clone(&self.hands));
        self.does(json!({"do": "duplicate", "as": other.name}));
        other
    }

    /// Chooses among what a field offers.
    pub fn chooses(&self, what: &str, value: &str) {
        self.does(json!({"do": "choose", "what": what, "value": value}));
    }

    /// Presses Tab until the focus is on it.
    pub fn tabs_to(&self, what: &str) {
        for _ in 0..80 {
            self.presses("Tab");
            let focused = self.evaluates("document.activeElement?.dataset.testid ?? null");
            if focused == what {
                return;
            }
        }
        panic!("Tab does not lead to {what}");
    }

    /// Gives the window another size, in pixels.
    pub fn resizes(&self, width: u32, height: u32) {
        self.does(json!({"do": "resize", "size": [width, height]}));
    }

    /// Shows it in `light` or `dark` colours, as the system would ask for.
    pub fn shows_in(&self, scheme: &str) {
        self.does(json!({"do": "colours", "scheme": scheme}));
    }

    /// Checks that those who do not see or do not point can use what is shown, and that nothing went wrong in
    /// the page until now.
    pub fn is_sound(&self, where_: &str) {
        let found = self.does(json!({"do": "violations"}));
        assert_eq!(found, json!([]), "{where_} is not accessible");
        let problems = self.does(json!({"do": "problems"}));
        assert_eq!(problems, json!([]), "{where_} has faults");
    }

    /// Keeps a picture of the page in `target/screenshots`.
    pub fn is_kept_as(&self, name: &str) -> PathBuf {
        let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/screenshots");
        fs::create_dir_all(&kept).expect("a directory");
        let file = kept.join(format!("{name}.png"));
        self.does(json!({"do": "shot", "file": file}));
        println!("kept {}", file.display());
        file
    }
}
