//! The gate itself: who owns which session and answer, and what passes.
//!
//! Every client gets a browser session of its own (`Target.attachToBrowserTarget`), which stands for its
//! connection. What it discovers, attaches to and sets there is so its own, as on a connection of its own.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::built_in::Own;
use crate::class::{Class, class};
use crate::documents;
use crate::frozen;
use crate::guard::{Guard, Left};
use crate::message::{
    self, AboutRequest, BAD_PARAMS, Command, FAILED, Flatten, NOT_A_COMMAND, NOT_JSON, Refused,
    RunLater, UNKNOWN_SESSION, read,
};
use crate::pressed::MAX_HELD;
use crate::scripts::MAX_SCRIPT_BYTES;
use crate::session::{Session, can_be_noted};
use crate::stuck::Parting;
use crate::table::{Asked, Kind, Pending, Table};

/// How many commands of one client may be unanswered.
pub const MAX_IN_FLIGHT: usize = 256;

/// The same with those that takeovers have cut off, and that the browser may never answer.
const MAX_GIVEN_UP: usize = 16 * MAX_IN_FLIGHT;

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
    pub(crate) client: ClientId,
    pub(crate) id: i64,
    method: String,
    pub(crate) params: Option<Box<RawValue>>,
    pub(crate) session: Option<String>,
    pub(crate) within: String,
}

impl Held {
    /// The command.
    pub fn method(&self) -> &str {
        &self.method
    }
}

/// See the module's description.
#[derive(Debug, Default)]
pub struct Gate {
    /// By id, with the session that stands for its connection once it is known.
    pub(crate) clients: BTreeMap<ClientId, Option<String>>,
    pub(crate) sessions: HashMap<String, Session>,
    pub(crate) table: Table,
    /// The sessions in which the browser records, with their clients.
    pub(crate) tracing: BTreeMap<String, ClientId>,
    /// Targets that show something of the browser's own, by the browser's names for them.
    pub(crate) built_in: HashMap<String, Own>,
    /// Targets that clients have frozen, by the browser's names for them, and whether they were shown.
    pub(crate) frozen: BTreeMap<String, bool>,
    /// Pages that were told to crash in this drain, and in which session.
    pub(crate) crashing: BTreeSet<(String, String)>,
    /// Pages that have crashed, by the browser's names for them, and whether they are to be loaded anew.
    pub(crate) dead: BTreeMap<String, bool>,
    /// Those that were, since this drain has begun.
    pub(crate) renewed: BTreeSet<String>,
    /// Clients that have left a script behind that may keep its page from hearing anything.
    pub(crate) parting: BTreeMap<ClientId, Parting>,
    /// Sessions that have begun.
    pub(crate) begun: u64,
    /// By number.
    pub(crate) guards: BTreeMap<u64, Guard>,
    pub(crate) guards_made: u64,
    /// Scripts whose clients have left; they hold their permits until they are held up.
    pub(crate) left: Vec<Left>,
    /// A person is in control, or nobody is.
    pub(crate) closed: bool,
    /// What is under way is being cut off.
    pub(crate) cutting: bool,
    pub(crate) effects: VecDeque<Effect>,
}

impl Gate {
    /// A gate before a browser that has no clients. Open.
    pub fn new() -> Self {
        let mut gate = Self::default();
        gate.follow_targets();
        gate
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
        let running = self.running(|asked| asked.client == client && asked.kind == Kind::Script);
        for within in &running {
            let heard = Pending::Heard(client, within.clone());
            self.terminate(within, heard);
        }
        let sessions = self.sessions.iter();
        let sessions = sessions.filter(|(_, session)| session.client == client);
        let mut sessions: Vec<String> = sessions.map(|(id, _)| id.clone()).collect();
        sessions.sort_unstable();
        sessions.iter().for_each(|session| self.release_in(session));
        if let Some(root) = root {
            self.part(client, root, running);
        }
    }

    /// Whether a client waits for answers.
    pub fn owes(&self, client: ClientId) -> bool {
        self.table.count_of(client).1 > 0
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
        let (of_browser, of_client) = self.table.count_of(client);
        if of_client >= MAX_IN_FLIGHT || of_browser >= MAX_GIVEN_UP {
            let text =
                format!("{MAX_IN_FLIGHT} commands are unanswered already; wait for some to end");
            let refusal = refuse(FAILED, &text);
            self.effects.push_back(refusal);
            return Verdict::Done;
        }
        if let Err(text) = acceptable(&command) {
            let refusal = refuse(BAD_PARAMS, text);
            self.effects.push_back(refusal);
            return Verdict::Done;
        }
        if let Err(text) = self.may_be_read(&within, &command) {
            let refusal = refuse(FAILED, text);
            self.effects.push_back(refusal);
            return Verdict::Done;
        }
        let class = class(&command.method);
        let forbidden = (class == Class::Forbidden).then(|| {
            format!(
                "{} is not available on a browser desktop; a person ends the browser with `handover desktop destroy`",
                command.method
            )
        });
        if let Some(text) = forbidden.or_else(|| self.leads_past(&command)) {
            let answer = message::refusal(command.id, "bad_params", &text, Map::new(), session);
            self.effects.push_back(Effect::ToClient(client, answer));
            return Verdict::Done;
        }
        let held = held(client, &command, within);
        if class == Class::Neutral {
            self.forward(&held, None);
            return Verdict::Done;
        }
        Verdict::NeedsPermit(held)
    }

    /// A command has its permit. If its client or session has gone meanwhile, the permit is given back.
    pub fn permitted(&mut self, held: &Held, permit: Permit) {
        let gone = !self.clients.contains_key(&held.client)
            || (held.session.is_some() && !self.sessions.contains_key(&held.within));
        if gone {
            self.effects.push_back(Effect::Complete(permit));
        } else if self.may_touch(held, permit) {
            self.forward(held, Some(permit));
        }
    }

    /// A command gets no permit.
    pub fn refused(&mut self, held: &Held, refused: &Refused) {
        let answer = message::refusal(
            held.id,
            &refused.code,
            &refused.message,
            refused.data.clone(),
            held.session.as_deref(),
        );
        self.effects
            .push_back(Effect::ToClient(held.client, answer));
    }

    fn forward(&mut self, held: &Held, permit: Option<Permit>) {
        let params = held.params.as_deref();
        let session = self.sessions.get_mut(&held.within);
        if session.is_some_and(|session| !session.sends(&held.method, params)) {
            let text = format!("more than {MAX_HELD} keys and buttons are held down; let some go");
            let session = held.session.as_deref();
            let answer = message::error(Some(held.id), FAILED, &text, None, session);
            self.effects
                .push_back(Effect::ToClient(held.client, answer));
            self.effects.extend(permit.map(Effect::Complete));
            return;
        }
        let mut registers = None;
        let mut instead = None;
        match held.method.as_str() {
            documents::ADD => {
                if !self.may_register(held, permit) {
                    return;
                }
                registers = params.map(ToOwned::to_owned);
                instead = self.only_in_new_documents(held);
            }
            documents::REMOVE => match self.unregistered(held) {
                Some(params) => instead = Some(params),
                None => {
                    let session = held.session.as_deref();
                    let answer = message::done(held.id, session);
                    self.effects
                        .push_back(Effect::ToClient(held.client, answer));
                    self.effects.extend(permit.map(Effect::Complete));
                    return;
                }
            },
            _ => {}
        }
        let params = instead.as_deref().or(params);
        let kind = Kind::of(&held.method);
        let script = params.map_or("{}", RawValue::get);
        // The text of one that was compiled before is not in its parameters.
        let has_text = kind == Kind::Script && held.method != "Runtime.runScript";
        let script = (has_text && script.len() <= MAX_SCRIPT_BYTES).then(|| script.to_owned());
        match held.method.as_str() {
            "Tracing.start" => drop(self.tracing.insert(held.within.clone(), held.client)),
            "Tracing.end" => drop(self.tracing.remove(&held.within)),
            _ => {}
        }
        let number = self.table.add(Pending::Client(Asked {
            client: held.client,
            id: held.id,
            session: held.session.clone(),
            within: held.within.clone(),
            permit,
            kind,
            observes: class(&held.method) == Class::Observes,
            script,
            registers,
            answered: false,
        }));
        let command = message::command(number, &held.method, params, Some(&held.within));
        if held.method == frozen::SET {
            self.set_state(number, &held.within, params, command);
        } else {
            self.effects.push_back(Effect::ToBrowser(command));
        }
    }

    /// What a person's requests hold, such as a password that was sent, is not for clients; the browser still
    /// has it after the hand-back.
    fn may_be_read(&self, within: &str, command: &Command<'_>) -> Result<(), &'static str> {
        let session = self.sessions.get(within);
        let reads =
            command.method.starts_with("Network.") || command.method == "Audits.getEncodedResponse";
        let Some(session) = session.filter(|_| reads) else {
            return Ok(());
        };
        let about: AboutRequest<'_> =
            read(command.params).ok_or("the parameters cannot be read")?;
        match about.request {
            Some(request) if session.unseen.has(&request) => {
                Err("No resource with given identifier found: a person was in control")
            }
            _ => Ok(()),
        }
    }

    /// Answers a client's command, unless it was answered.
    pub(crate) fn fail(&mut self, asked: &Asked, text: &str, code: Option<&str>) {
        if asked.answered || !self.clients.contains_key(&asked.client) {
            return;
        }
        let session = asked.session.as_deref();
        let answer = match code {
            Some(code) => message::refusal(asked.id, code, text, Map::new(), session),
            None => message::error(Some(asked.id), FAILED, text, None, session),
        };
        self.effects
            .push_back(Effect::ToClient(asked.client, answer));
    }

    /// A command of the gate's own.
    pub(crate) fn own(
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

/// Whether a command is one that the gate can hold back and undo. Sessions that are not flat would carry
/// commands past it.
fn acceptable(command: &Command<'_>) -> Result<(), &'static str> {
    const UNREADABLE: &str =
        "the parameters cannot be read; give each once, and as the protocol has it";
    let params: Flatten = match command.method.as_ref() {
        "Target.attachToTarget" | "Target.setAutoAttach" => {
            read(command.params).ok_or(UNREADABLE)?
        }
        "Debugger.setBreakpoint"
        | "Debugger.setBreakpointByUrl"
        | "Debugger.setBreakpointOnFunctionCall"
        | "Page.reload" => {
            let later: RunLater<'_> = read(command.params).ok_or(UNREADABLE)?;
            return later.is_nothing();
        }
        "Fetch.enable" if command.session.is_none() => {
            return Err("requests are stopped page by page; attach to a page and ask there");
        }
        method if can_be_noted(method, command.params) => return Ok(()),
        _ => return Err(UNREADABLE),
    };
    if params.flatten == Some(true) || params.auto_attach == Some(false) {
        return Ok(());
    }
    Err("only flat sessions are available; say `flatten: true`")
}
