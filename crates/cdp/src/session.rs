//! What the gate knows of one session of a client.

use std::collections::{BTreeMap, HashSet, VecDeque};

use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::documents::NewDocuments;
use crate::frozen;
use crate::gate::{ClientId, Permit};
use crate::message::{OfRequest, Toggle, read};
use crate::pressed::{self, Pressed};
use crate::scripts::Recent;
use crate::table::Kind;

/// How many requests stopped for a client are remembered for each session.
const MAX_STOPPED: usize = 1024;

/// How many requests of human time are remembered for each session. Beyond, none can be read until the
/// client has said `Network.disable`.
const MAX_UNSEEN: usize = 16384;

/// Settings that take something out of a person's hands. They are off while a person is in control, and
/// on again afterwards.
const IN_THE_WAY: [&str; 4] = [
    "Input.setIgnoreInputEvents",
    "Input.setInterceptDrags",
    "Overlay.setInspectMode",
    "Page.setInterceptFileChooserDialog",
];

/// Whether what is noted of a command can be read. What is read here only (a member twice) or in the browser
/// only would be noted wrongly, and so not be undone for a person.
pub(crate) fn can_be_noted(method: &str, params: Option<&RawValue>) -> bool {
    if IN_THE_WAY.contains(&method) {
        return read::<Toggle>(params).is_some();
    }
    if method == frozen::SET {
        return frozen::can_be_noted(params);
    }
    pressed::can_be_noted(method, params)
}

/// A request that the browser has stopped, by its name for it.
#[derive(Debug, PartialEq, Eq)]
struct Stopped {
    request: String,
    /// A server asks who it is.
    auth: bool,
}

/// Requests that a page has made in human time, by the browser's names for them.
#[derive(Debug, Default)]
pub(crate) struct Unseen {
    requests: HashSet<String>,
    /// There were more than are remembered.
    all: bool,
}

impl Unseen {
    fn note(&mut self, request: String) {
        if self.requests.len() < MAX_UNSEEN {
            self.requests.insert(request);
        } else {
            self.all = true;
        }
    }

    /// Whether this request is, or may be, one of them.
    pub(crate) fn has(&self, request: &str) -> bool {
        self.all || self.requests.contains(request)
    }
}

/// A dialog of the page that is open.
#[derive(Debug)]
pub(crate) enum Dialog {
    /// The client knows of it.
    Told,
    /// It does not yet: how it is told.
    Untold(Vec<u8>),
}

#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) client: ClientId,
    /// Sessions that began before have smaller ones.
    pub(crate) number: u64,
    pub(crate) parent: Option<String>,
    /// The browser's name for what it is attached to.
    pub(crate) target: String,
    /// That is a worker of the page that its parent is attached to.
    pub(crate) of_worker: bool,
    /// The browser waits for the client before it lets the page begin.
    waiting: bool,
    /// How the client is told of it; it has not been while a person was in control.
    pub(crate) untold: Option<Vec<u8>>,
    /// The gate has attached to the page in this tab, to let it go.
    pub(crate) helped: bool,
    /// Requests that the browser has stopped for the client.
    stopped: VecDeque<Stopped>,
    /// The client has the page's scripts stopped.
    paused: bool,
    /// Which of [`IN_THE_WAY`] are on, as the client has put it.
    in_the_way: BTreeMap<&'static str, Box<RawValue>>,
    pub(crate) dialog: Option<Dialog>,
    /// The client has missed what changed in the page's tree.
    pub(crate) missed_changes: bool,
    pub(crate) pressed: Pressed,
    /// Releases of the gate's own that the browser has not answered.
    pub(crate) releasing: usize,
    /// Held while something is pressed, so that control is not granted before it is let go.
    pub(crate) kept: Option<Permit>,
    pub(crate) recent: Recent,
    pub(crate) documents: NewDocuments,
    pub(crate) unseen: Unseen,
}

impl Session {
    pub(crate) fn new(
        client: ClientId,
        number: u64,
        parent: &str,
        target: String,
        waiting: bool,
        untold: Option<Vec<u8>>,
    ) -> Self {
        Self {
            client,
            number,
            parent: Some(parent.to_owned()),
            target,
            of_worker: false,
            waiting,
            untold,
            helped: false,
            stopped: VecDeque::new(),
            paused: false,
            in_the_way: BTreeMap::new(),
            dialog: None,
            missed_changes: false,
            pressed: Pressed::default(),
            releasing: 0,
            kept: None,
            recent: Recent::default(),
            documents: NewDocuments::default(),
            unseen: Unseen::default(),
        }
    }

    /// Keeps in mind what a command of the client does that a person would notice. False if it must not be
    /// sent, since too much is pressed.
    pub(crate) fn sends(&mut self, method: &str, params: Option<&RawValue>) -> bool {
        if (Kind::of(method) == Kind::Script || method == "Runtime.compileScript")
            && let Some(params) = params
        {
            self.recent.note(params.get());
        }
        match method {
            "Runtime.runIfWaitingForDebugger" => self.waiting = false,
            // The browser forgets its requests with it.
            "Network.disable" => self.unseen = Unseen::default(),
            "Fetch.continueRequest"
            | "Fetch.continueResponse"
            | "Fetch.continueWithAuth"
            | "Fetch.failRequest"
            | "Fetch.fulfillRequest" => {
                if let Some(OfRequest { request }) = read(params) {
                    self.stopped.retain(|stopped| stopped.request != request);
                }
            }
            _ => {}
        }
        if let Some(setting) = IN_THE_WAY.into_iter().find(|setting| *setting == method) {
            let on = read(params).is_some_and(|toggle: Toggle| toggle.is_on());
            match params {
                Some(params) if on => self.in_the_way.insert(setting, params.to_owned()),
                _ => self.in_the_way.remove(setting),
            };
        }
        self.pressed.note(method, params)
    }

    /// Keeps in mind what the browser has stopped for the client.
    pub(crate) fn hears(&mut self, event: &str, params: Option<&RawValue>, closed: bool) {
        match event {
            "Network.requestWillBeSent" if closed => {
                if let Some(OfRequest { request }) = read(params) {
                    self.unseen.note(request.into_owned());
                }
            }
            "Fetch.requestPaused" | "Fetch.authRequired" => {
                if let Some(OfRequest { request }) = read(params) {
                    if self.stopped.len() >= MAX_STOPPED {
                        self.stopped.pop_front();
                    }
                    self.stopped.push_back(Stopped {
                        request: request.into_owned(),
                        auth: event == "Fetch.authRequired",
                    });
                }
            }
            "Debugger.paused" => self.paused = true,
            "Debugger.resumed" => self.paused = false,
            _ => {}
        }
    }

    /// The commands by which all goes on that waits for the client.
    pub(crate) fn let_go(&mut self) -> Vec<(&'static str, Option<Value>)> {
        let mut commands = Vec::new();
        for Stopped { request, auth } in std::mem::take(&mut self.stopped) {
            let mut params = json!({"requestId": request});
            let method = if auth {
                // The browser asks the person.
                params["authChallengeResponse"] = json!({"response": "Default"});
                "Fetch.continueWithAuth"
            } else {
                "Fetch.continueRequest"
            };
            commands.push((method, Some(params)));
        }
        if std::mem::take(&mut self.waiting) {
            commands.push(("Runtime.runIfWaitingForDebugger", None));
        }
        if std::mem::take(&mut self.paused) {
            commands.push(("Debugger.resume", None));
        }
        commands
    }

    /// The commands that give back to a person what the client's settings have taken.
    pub(crate) fn clear_the_way(&self) -> Vec<(&'static str, Value)> {
        let off = |setting: &&'static str| match *setting {
            "Input.setIgnoreInputEvents" => (*setting, json!({"ignore": false})),
            "Overlay.setInspectMode" => (*setting, json!({"mode": "none", "highlightConfig": {}})),
            _ => (*setting, json!({"enabled": false})),
        };
        self.in_the_way.keys().map(off).collect()
    }

    /// The commands that make the client's settings hold again.
    pub(crate) fn settings(&self) -> Vec<(&'static str, Box<RawValue>)> {
        let settings = self.in_the_way.iter();
        settings
            .map(|(setting, params)| (*setting, params.clone()))
            .collect()
    }
}
