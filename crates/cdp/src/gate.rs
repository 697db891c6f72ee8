//! The gate itself: who owns which session and answer, and what passes.
//!
//! Every client gets a browser session of its own (`Target.attachToBrowserTarget`), which stands for its
//! connection. What it discovers, attaches to and sets there is so its own, as on a connection of its own.

use std::collections::{BTreeMap, HashMap, VecDeque};

use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::class::{Class, class};
use crate::message::{
    self, BAD_PARAMS, Command, FAILED, Flatten, Ignore, NOT_A_COMMAND, NOT_JSON, OfRequest,
    REFUSED, Refused, UNKNOWN_SESSION, read,
};
use crate::table::{Asked, Kind, Pending, Table};

/// How many commands of one client may be unanswered.
pub const MAX_IN_FLIGHT: usize = 256;

/// One client of the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub u64);

/// A permit of the desktop's arbiter, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Permit(pub u64);

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Send this message to the browser.
    ToBrowser(Vec<u8>),
    /// Send this message to a client.
    ToClient(ClientId, Vec<u8>),
    /// Read from this client from now on.
    Ready(ClientId),
    /// The browser takes no such clients; close its connection.
    Close(ClientId),
    /// What a permit was for is over.
    Complete(Permit),
}

/// What becomes of a client's message.
#[derive(Debug)]
pub enum Verdict {
    /// It was dealt with.
    Done,
    /// It needs a permit first. Messages of the same client behind it wait meanwhile.
    NeedsPermit(Held),
}

/// A command that waits for its permit.
#[derive(Debug)]
pub struct Held {
    client: ClientId,
    id: i64,
    method: String,
    params: Option<Box<RawValue>>,
    session: Option<String>,
    within: String,
}

impl Held {
    /// The command.
    pub fn method(&self) -> &str {
        &self.method
    }
}

/// A request that the browser has stopped, by its name for it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Stopped {
    pub(crate) request: String,
    /// A server asks who it is.
    pub(crate) auth: bool,
}

#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) client: ClientId,
    pub(crate) parent: Option<String>,
    /// The browser waits for the client before it lets the page begin.
    pub(crate) waiting: bool,
    /// How the client is told of it; it has not been while a person was in control.
    pub(crate) untold: Option<Vec<u8>>,
    /// Requests that the browser has stopped for the client.
    pub(crate) stopped: VecDeque<Stopped>,
    /// The client has the page's scripts stopped.
    pub(crate) paused: bool,
    /// The client has the page ignore input.
    pub(crate) ignores_input: bool,
}

/// See the module's description.
#[derive(Debug, Default)]
pub struct Gate {
    /// By id, with the session that stands for its connection once it is known.
    pub(crate) clients: BTreeMap<ClientId, Option<String>>,
    pub(crate) sessions: HashMap<String, Session>,
    pub(crate) table: Table,
    /// A person is in control, or nobody is.
    pub(crate) closed: bool,
    pub(crate) effects: VecDeque<Effect>,
}

impl Gate {
    /// A gate before a browser that has no clients. Open.
    pub fn new() -> Self {
        Self::default()
    }

    /// The next thing to do.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// A client has connected. Nothing of it may be read before [`Effect::Ready`].
    pub fn connect(&mut self, client: ClientId) {
        self.clients.insert(client, None);
        self.own(
            "Target.attachToBrowserTarget",
            None,
            Pending::Root(client),
            None,
        );
    }

    /// A client's connection has closed. What it has begun is cut off, and its sessions end.
    pub fn disconnect(&mut self, client: ClientId) {
        let Some(root) = self.clients.remove(&client) else {
            return;
        };
        for within in self.running(|asked| asked.client == client && asked.kind == Kind::Script) {
            self.terminate(&within);
        }
        if let Some(root) = root {
            self.detach(client, &root);
        }
    }

    /// Ends the session that stands for a client's connection, and with it all of the client's sessions.
    pub(crate) fn detach(&mut self, client: ClientId, root: &str) {
        let params = json!({"sessionId": root});
        let pending = Pending::Left(client);
        self.own("Target.detachFromTarget", Some(&params), pending, None);
    }

    /// A message of a client.
    pub fn from_client(&mut self, client: ClientId, bytes: &[u8]) -> Verdict {
        let Some(Some(root)) = self.clients.get(&client) else {
            return Verdict::Done;
        };
        let command: Command<'_> = match serde_json::from_slice(bytes) {
            Ok(command) => command,
            Err(error) => {
                let number = if error.is_data() {
                    NOT_A_COMMAND
                } else {
                    NOT_JSON
                };
                let text = format!("no message of the DevTools protocol: {error}");
                let answer = message::error(None, number, &text, None, None);
                self.effects.push_back(Effect::ToClient(client, answer));
                return Verdict::Done;
            }
        };
        let session = command.session.as_deref();
        let within = session.unwrap_or(root).to_owned();
        let refuse = |number, text: &str| {
            let answer = message::error(Some(command.id), number, text, None, session);
            Effect::ToClient(client, answer)
        };
        let owned = session.is_none()
            || self
                .sessions
                .get(&within)
                .is_some_and(|session| session.client == client);
        if !owned {
            let refusal = refuse(UNKNOWN_SESSION, "Session with given id not found.");
            self.effects.push_back(refusal);
            return Verdict::Done;
        }
        if self.table.count_of(client) >= MAX_IN_FLIGHT {
            let text =
                format!("{MAX_IN_FLIGHT} commands are unanswered already; wait for some to end");
            let refusal = refuse(FAILED, &text);
            self.effects.push_back(refusal);
            return Verdict::Done;
        }
        if let Err(text) = flat(&command) {
            let refusal = refuse(BAD_PARAMS, text);
            self.effects.push_back(refusal);
            return Verdict::Done;
        }
        match class(&command.method) {
            Class::Forbidden => {
                let text = format!(
                    "{} is not available on a browser desktop; a person ends the browser with `handover desktop destroy`",
                    command.method
                );
                let data = json!({"code": "bad_params"});
                let answer = message::error(Some(command.id), REFUSED, &text, Some(data), session);
                self.effects.push_back(Effect::ToClient(client, answer));
                Verdict::Done
            }
            Class::Neutral => {
                let held = held(client, &command, within);
                self.forward(&held, None);
                Verdict::Done
            }
            Class::Acts | Class::Observes => Verdict::NeedsPermit(held(client, &command, within)),
        }
    }

    /// A command has its permit. If its client or session has gone meanwhile, the permit is given back.
    pub fn permitted(&mut self, held: &Held, permit: Permit) {
        let gone = !self.clients.contains_key(&held.client)
            || (held.session.is_some() && !self.sessions.contains_key(&held.within));
        if gone {
            self.effects.push_back(Effect::Complete(permit));
        } else {
            self.forward(held, Some(permit));
        }
    }

    /// A command gets no permit.
    pub fn refused(&mut self, held: &Held, refused: &Refused) {
        let answer = message::refusal(held.id, refused, held.session.as_deref());
        self.effects
            .push_back(Effect::ToClient(held.client, answer));
    }

    fn forward(&mut self, held: &Held, permit: Option<Permit>) {
        self.note(held);
        let number = self.table.add(Pending::Client(Asked {
            client: held.client,
            id: held.id,
            session: held.session.clone(),
            within: held.within.clone(),
            permit,
            kind: Kind::of(&held.method),
            answered: false,
        }));
        let params = held.params.as_deref();
        let command = message::command(number, &held.method, params, Some(&held.within));
        self.effects.push_back(Effect::ToBrowser(command));
    }

    /// Keeps in mind what would be in a person's way.
    fn note(&mut self, held: &Held) {
        let Some(session) = self.sessions.get_mut(&held.within) else {
            return;
        };
        let params = held.params.as_deref();
        match held.method.as_str() {
            "Runtime.runIfWaitingForDebugger" => session.waiting = false,
            "Input.setIgnoreInputEvents" => {
                session.ignores_input = read(params).is_some_and(|ignore: Ignore| ignore.ignore);
            }
            "Fetch.continueRequest"
            | "Fetch.continueResponse"
            | "Fetch.continueWithAuth"
            | "Fetch.failRequest"
            | "Fetch.fulfillRequest" => {
                if let Some(OfRequest { request }) = read(params) {
                    session.stopped.retain(|stopped| stopped.request != request);
                }
            }
            _ => {}
        }
    }

    /// Answers a client's command, unless it was answered.
    pub(crate) fn fail(&mut self, asked: &Asked, text: &str, code: Option<&str>) {
        if asked.answered || !self.clients.contains_key(&asked.client) {
            return;
        }
        let number = if code.is_some() { REFUSED } else { FAILED };
        let data = code.map(|code| json!({"code": code}));
        let session = asked.session.as_deref();
        let answer = message::error(Some(asked.id), number, text, data, session);
        self.effects
            .push_back(Effect::ToClient(asked.client, answer));
    }

    /// Whether a takeover has to wait for something.
    pub fn is_busy(&mut self) -> bool {
        self.table.asked().any(|asked| asked.permit.is_some())
    }

    /// A takeover has waited long enough: ends scripts and stops loading.
    pub fn cut_off(&mut self) {
        for within in self.running(|asked| asked.kind == Kind::Script) {
            self.terminate(&within);
        }
        for within in self.running(|asked| asked.kind == Kind::Load) {
            self.own("Page.stopLoading", None, Pending::Ignored, Some(&within));
        }
    }

    /// What has not ended although it was cut off is given up: its client is told so, and its late answer
    /// goes nowhere.
    pub fn abandon(&mut self) {
        for within in self.table.terminating() {
            // No script has run since, so the next would be ended: the person's click, or this.
            let params = json!({"expression": "0"});
            self.own(
                "Runtime.evaluate",
                Some(&params),
                Pending::Ignored,
                Some(&within),
            );
        }
        let mut given_up = Vec::new();
        for asked in self.table.asked() {
            if let Some(permit) = asked.permit.take() {
                given_up.push((asked.client, asked.id, asked.session.clone(), permit));
                asked.answered = true;
            }
        }
        given_up.sort_unstable_by_key(|(.., permit)| *permit);
        for (client, id, session, permit) in given_up {
            if self.clients.contains_key(&client) {
                let text = "a person took over the desktop, so this was cut off; what it had done stays done. Wait for the hand-back, look again, and go on from what you see";
                let data = json!({"code": "interrupted_by_human"});
                let session = session.as_deref();
                let answer = message::error(Some(id), REFUSED, text, Some(data), session);
                self.effects.push_back(Effect::ToClient(client, answer));
            }
            self.effects.push_back(Effect::Complete(permit));
        }
    }

    /// Control has left the agents. What clients have stopped goes on without them.
    pub fn close(&mut self) {
        if std::mem::replace(&mut self.closed, true) {
            return;
        }
        self.abandon();
        let mut sessions: Vec<String> = self.sessions.keys().cloned().collect();
        sessions.sort_unstable();
        for session in sessions {
            self.let_go(&session);
        }
    }

    /// Control is back with the agents, who are told of the sessions that have begun meanwhile.
    pub fn open(&mut self) {
        if !std::mem::replace(&mut self.closed, false) {
            return;
        }
        let mut untold: Vec<(&String, &mut Session)> = self
            .sessions
            .iter_mut()
            .filter(|(_, session)| session.untold.is_some())
            .collect();
        untold.sort_unstable_by_key(|(id, _)| *id);
        for (_, session) in untold {
            let event = session.untold.take();
            let event = event.map(|event| Effect::ToClient(session.client, event));
            self.effects.extend(event);
        }
    }

    /// Whether control is not with the agents.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Lets everything go on that a session holds up.
    pub(crate) fn let_go(&mut self, id: &str) {
        let Some(session) = self.sessions.get_mut(id) else {
            return;
        };
        let waiting = std::mem::take(&mut session.waiting);
        let paused = std::mem::take(&mut session.paused);
        let ignores_input = std::mem::take(&mut session.ignores_input);
        for Stopped { request, auth } in std::mem::take(&mut session.stopped) {
            let mut params = json!({"requestId": request});
            let method = if auth {
                // The browser asks the person.
                params["authChallengeResponse"] = json!({"response": "Default"});
                "Fetch.continueWithAuth"
            } else {
                "Fetch.continueRequest"
            };
            self.own(method, Some(&params), Pending::Ignored, Some(id));
        }
        if waiting {
            let method = "Runtime.runIfWaitingForDebugger";
            self.own(method, None, Pending::Ignored, Some(id));
        }
        if paused {
            self.own("Debugger.resume", None, Pending::Ignored, Some(id));
        }
        if ignores_input {
            let params = json!({"ignore": false});
            let method = "Input.setIgnoreInputEvents";
            self.own(method, Some(&params), Pending::Ignored, Some(id));
        }
    }

    /// The sessions in which clients' commands with a permit are under way.
    fn running(&mut self, which: impl Fn(&Asked) -> bool) -> Vec<String> {
        let asked = self.table.asked();
        let asked = asked.filter(|asked| asked.permit.is_some() && which(asked));
        let mut within: Vec<String> = asked.map(|asked| asked.within.clone()).collect();
        within.sort_unstable();
        within.dedup();
        within
    }

    fn terminate(&mut self, within: &str) {
        let pending = Pending::Terminated(within.to_owned());
        self.own("Runtime.terminateExecution", None, pending, Some(within));
    }

    /// A command of the gate's own.
    fn own(
        &mut self,
        method: &str,
        params: Option<&Value>,
        pending: Pending,
        within: Option<&str>,
    ) {
        let number = self.table.add(pending);
        let params = params.and_then(|params| serde_json::value::to_raw_value(params).ok());
        let command = message::command(number, method, params.as_deref(), within);
        self.effects.push_back(Effect::ToBrowser(command));
    }
}

fn held(client: ClientId, command: &Command<'_>, within: String) -> Held {
    Held {
        client,
        id: command.id,
        method: command.method.clone().into_owned(),
        params: command.params.map(ToOwned::to_owned),
        session: command.session.clone().map(|session| session.into_owned()),
        within,
    }
}

/// Sessions that are not flat would carry commands past the gate.
fn flat(command: &Command<'_>) -> Result<(), &'static str> {
    let params: Flatten = match command.method.as_ref() {
        "Target.attachToTarget" | "Target.setAutoAttach" => {
            read(command.params).ok_or("the parameters cannot be read")?
        }
        _ => return Ok(()),
    };
    if params.flatten == Some(true) || params.auto_attach == Some(false) {
        return Ok(());
    }
    Err("only flat sessions are available; say `flatten: true`")
}
