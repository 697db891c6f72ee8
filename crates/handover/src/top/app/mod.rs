//! The state of the screen: what is selected, what is being written or asked, what was said last. Keys,
//! clicks and news go in, and what is to be done comes out. It knows no terminal and no host.

mod confirm;
mod keys;
mod mouse;
mod writing;

use handover_protocol::{AgentId, AgentView, DesktopId, SessionId, SteerId, Timestamp};

pub use self::confirm::Ask;
pub use self::mouse::{Hit, Hits};
use self::writing::Draft;
pub use self::writing::{MOMENTS, Purpose, Writing};
use super::act::{Act, Deed, Done};
use super::draw::tree::Now;
use super::rows::{Choice, Key, Part, Row, What, rows};
use crate::overview::{News, Of, Overview, Receipt, Session, clean};

/// What is to be done outside of the screen.
#[derive(Clone, Debug, PartialEq)]
pub enum Todo {
    /// Something in a session.
    Act(Act),
    /// The same in several.
    Acts(Vec<Act>),
    /// Take control of a desktop.
    Take(SessionId, DesktopId),
    /// Give the terminal to the shell for a while.
    Suspend,
    /// End.
    Quit,
    /// The same, since the person interrupts.
    Interrupt,
}

/// What has the keys.
#[derive(Debug)]
pub enum Mode {
    /// The tree and the log.
    Browse,
    /// The list of keys, from this line on.
    Help(usize),
    /// A text that is written.
    Write(Writing),
    /// A question, and the line that is shown first of what it is about.
    Confirm(Ask, usize),
}

/// What was said last.
#[derive(Debug)]
pub enum Status {
    /// Something is under way or went well.
    Good(String),
    /// Something went wrong.
    Bad(String),
    /// What is known of a message.
    Message(SessionId, AgentId, SteerId),
}

/// The state of the screen.
#[derive(Debug)]
pub struct App {
    /// All sessions.
    pub overview: Overview,
    /// What of them is chosen to be seen.
    pub choice: Choice,
    /// What is selected.
    pub selected: Option<Key>,
    /// Whether a key or the mouse was used; until then the first row is selected, whichever host answers first.
    pub used: bool,
    /// Where the selection was, for when it is gone.
    place: usize,
    /// What has the keys.
    pub mode: Mode,
    /// Whether the log has the whole screen.
    pub full: bool,
    /// How many rows the log is scrolled back; it follows what happens at 0.
    pub back: usize,
    /// How many lines the session's log had when it was last drawn.
    pub seen: u64,
    /// The first row of the tree that is shown.
    pub first: usize,
    /// What was said last.
    pub status: Option<Status>,
    /// A message that was begun and not sent, or of which it is not known that it arrived.
    draft: Option<Draft>,
    /// What tells the numbers of messages from those of every other run of this program.
    salt: u64,
    /// How many messages were sent.
    sent: u64,
    /// When it is.
    pub now: Now,
    /// What was last drawn where.
    pub hits: Hits,
    /// Whether there may be something new to draw.
    pub dirty: bool,
}

impl App {
    /// With nothing known yet, at `now`. `salt` is another one for every run.
    pub fn new(now: Now, salt: u64) -> Self {
        Self {
            overview: Overview::default(),
            choice: Choice::default(),
            selected: None,
            used: false,
            place: 0,
            mode: Mode::Browse,
            full: false,
            back: 0,
            seen: 0,
            first: 0,
            status: None,
            draft: None,
            salt,
            sent: 0,
            now,
            hits: Hits::default(),
            dirty: true,
        }
    }

    /// Time went on.
    pub fn tick(&mut self, ms: u64, wall: Timestamp) {
        self.now = Now { ms, wall };
        self.overview.forget(ms);
        self.settle();
    }

    /// Takes in what is new of a session.
    pub fn hear(&mut self, id: &SessionId, news: News) {
        self.overview.hear(id, news, self.now.ms);
        self.settle();
    }

    /// Takes in what came of an act.
    pub fn done(&mut self, act: &Act, done: Result<Done, String>) {
        self.dirty = true;
        self.status = Some(match (done, &act.deed) {
            (Ok(Done::Steered(steer)), Deed::Steer { agent, .. }) => {
                self.draft
                    .take_if(|draft| draft.sent_as.as_ref() == Some(&steer));
                Status::Message(act.session.clone(), agent.clone(), steer)
            }
            (Ok(Done::Steered(steer)), _) => Status::Good(clean(steer.as_str())),
            (Ok(Done::Said(text)), _) => Status::Good(text),
            (Err(text), _) => Status::Bad(text),
        });
    }

    /// Says something in the line for it.
    pub fn say(&mut self, status: Status) {
        self.dirty = true;
        self.status = Some(status);
    }

    fn good(&mut self, text: impl Into<String>) {
        self.say(Status::Good(text.into()));
    }

    fn bad(&mut self, text: impl Into<String>) {
        self.say(Status::Bad(text.into()));
    }

    /// The rows of the tree.
    pub fn rows(&self) -> Vec<Row<'_>> {
        rows(&self.overview, &self.choice)
    }

    /// The index of the selected row.
    pub fn index(&self, rows: &[Row<'_>]) -> Option<usize> {
        let selected = self.selected.as_ref()?;
        rows.iter().position(|row| row.key == *selected)
    }

    /// Keeps the selection on something that is there, and ends what is about something that is not.
    fn settle(&mut self) {
        self.dirty = true;
        let (keys, at) = {
            let rows = self.rows();
            let at = self.index(&rows);
            (rows.into_iter().map(|row| row.key).collect::<Vec<_>>(), at)
        };
        match at.filter(|at| self.used || *at == 0) {
            Some(at) => self.place = at,
            None => {
                self.place = self.place.min(keys.len().saturating_sub(1));
                self.selected = keys.get(self.place).cloned();
                self.back = 0;
            }
        }
        self.end_what_is_over();
    }

    /// The filter has changed: what it was typed for is selected.
    fn filtered(&mut self) {
        self.settle();
        let rows = self.rows();
        let found = self.choice.found(&rows, self.index(&rows));
        drop(rows);
        if let Some(at) = found {
            self.select(at);
        }
    }

    /// A question whose answer would change nothing any more is taken back.
    fn end_what_is_over(&mut self) {
        let over = match &self.mode {
            Mode::Confirm(ask, _) => ask.is_over(&self.overview),
            _ => None,
        };
        if let Some(why) = over {
            self.mode = Mode::Browse;
            self.bad(why);
        }
    }

    /// Selects a row.
    fn select(&mut self, at: usize) {
        let key = self.rows().get(at).map(|row| row.key.clone());
        if key.is_some() && key != self.selected {
            self.selected = key;
            self.place = at;
            self.back = 0;
        }
        self.dirty = true;
    }

    /// Moves the selection by so many rows.
    fn step(&mut self, by: isize) {
        let rows = self.rows();
        let last = rows.len().saturating_sub(1);
        let at = self.index(&rows).unwrap_or(self.place);
        drop(rows);
        self.select(at.saturating_add_signed(by).min(last));
    }

    /// The session that is selected, or of which something is.
    pub fn session(&self) -> Option<&Session> {
        self.overview.session(&self.selected.as_ref()?.session)
    }

    /// What the log shows: of which session, and of what in it.
    pub fn subject(&self) -> Option<(&Session, Of<'_>)> {
        let session = self.session()?;
        let of = match &self.selected.as_ref()?.part {
            Part::Whole | Part::Hidden => Of::All,
            Part::Agent(id) => Of::Agent(id),
            Part::Desktop(id) => Of::Desktop(id),
            Part::Request(id) => {
                let request = session.open().find(|request| request.request_id == *id);
                match request.map(|request| (&request.agent, &request.desktop)) {
                    Some((Some(agent), _)) => Of::Agent(agent),
                    Some((None, Some(desktop))) => Of::Desktop(desktop),
                    _ => Of::All,
                }
            }
        };
        Some((session, of))
    }

    /// The agent that is selected, or asks in the selected request.
    pub fn agent(&self) -> Option<(&Session, &AgentView)> {
        let (session, Of::Agent(id)) = self.subject()? else {
            return None;
        };
        Some((session, session.agent(id)?))
    }

    /// The desktop that is selected or asked for, or else the only one of the session.
    pub fn desktop(&self) -> Option<(&Session, &DesktopId)> {
        let session = self.session()?;
        let asked = match &self.selected.as_ref()?.part {
            Part::Desktop(id) => session.desktop(id).map(|desktop| &desktop.id),
            Part::Request(id) => {
                let request = session.open().find(|request| request.request_id == *id);
                request.and_then(|request| request.desktop.as_ref())
            }
            _ => None,
        };
        let only = match &session.desktops[..] {
            [only] => Some(&only.id),
            _ => None,
        };
        Some((session, asked.or(only)?))
    }

    /// What is known of the latest messages to the agent that the log shows, oldest first.
    pub fn receipts(&self) -> Vec<&Receipt> {
        match self.subject() {
            Some((session, Of::Agent(id))) => session.receipts(id).collect(),
            _ => Vec::new(),
        }
    }

    /// Whether the selected row is a session's.
    fn on_session(&self) -> Option<SessionId> {
        let key = self.selected.as_ref()?;
        (key.part == Part::Whole).then(|| key.session.clone())
    }

    fn fold(&mut self, id: SessionId, folded: bool) {
        if folded {
            self.choice.folded.insert(id.clone());
        } else {
            self.choice.folded.remove(&id);
        }
        self.selected = Some(Key {
            session: id,
            part: Part::Whole,
        });
        self.settle();
    }

    /// The words for what is selected.
    pub fn title(&self) -> String {
        let Some(session) = self.session() else {
            return String::new();
        };
        let rows = self.rows();
        let row = self.index(&rows).and_then(|at| rows.get(at));
        let what = match row.map(|row| &row.what) {
            Some(What::Agent { agent, .. }) => {
                let (name, id) = (clean(&agent.name), clean(agent.id.as_str()));
                format!("{name} {id}: {}", clean(&agent.task))
            }
            Some(What::Desktop(desktop)) => format!("desktop {}", clean(desktop.id.as_str())),
            Some(What::Request(request)) => {
                let (id, reason) = (clean(request.request_id.as_str()), clean(&request.reason));
                format!("request {id}: {reason}")
            }
            _ => return clean(&session.manifest.name),
        };
        format!("{} · {what}", clean(&session.manifest.name))
    }
}

#[cfg(test)]
mod tests;
