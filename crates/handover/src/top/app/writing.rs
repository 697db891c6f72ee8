//! A text that is written: a message, an answer, a note, a filter.

use crossterm::event::{KeyCode, KeyEvent};
use handover_protocol::{AgentId, DesktopId, RequestId, SessionId, SteerId, SteerWhen};

use super::super::act::{Act, Deed};
use super::super::editor::{Editor, Typed};
use super::{App, Mode, Todo};
use crate::overview::clean;

/// What a text is for.
#[derive(Clone, Debug, PartialEq)]
pub enum Purpose {
    /// A message to an agent, at a moment; as its program takes it if none.
    Steer(SessionId, AgentId, Option<SteerWhen>),
    /// An answer to a request.
    Answer(SessionId, RequestId),
    /// A note with which control of a desktop returns.
    Return(SessionId, DesktopId),
    /// What rows must contain; and what they had to before.
    Filter(String),
}

/// A message that was begun and not sent, or of which it is not known that it arrived.
#[derive(Debug)]
pub struct Draft {
    session: SessionId,
    agent: AgentId,
    text: String,
    /// Its number, if it was sent: what is sent again as it is must not be said twice.
    pub sent_as: Option<SteerId>,
}

/// A text and what it is for.
#[derive(Debug)]
pub struct Writing {
    /// What it is for.
    pub purpose: Purpose,
    /// The text.
    pub editor: Editor,
}

impl Writing {
    /// What is asked of the person.
    pub fn title(&self) -> String {
        match &self.purpose {
            Purpose::Steer(_, agent, _) => format!("message to {}", clean(agent.as_str())),
            Purpose::Answer(_, request) => format!("answer to {}", clean(request.as_str())),
            Purpose::Return(_, desktop) => {
                format!(
                    "return {} with a note (may be empty)",
                    clean(desktop.as_str())
                )
            }
            Purpose::Filter(_) => "show only rows with".to_owned(),
        }
    }

    /// What Enter does with it.
    pub fn verb(&self) -> &'static str {
        match &self.purpose {
            Purpose::Steer(..) | Purpose::Answer(..) => "send",
            Purpose::Return(..) => "return",
            Purpose::Filter(_) => "filter",
        }
    }

    /// The choice of when a message is put to the agent, if this is one.
    pub fn when(&self) -> Option<Option<SteerWhen>> {
        match self.purpose {
            Purpose::Steer(_, _, when) => Some(when),
            _ => None,
        }
    }
}

/// The moments for a message, in the order in which they are offered, with their names on the wire. Not
/// every program knows each of them, so the first leaves it to the program.
pub const MOMENTS: [(Option<SteerWhen>, &str); 4] = [
    (None, "as it can"),
    (Some(SteerWhen::Now), "now"),
    (Some(SteerWhen::NextStep), "next_step"),
    (Some(SteerWhen::TurnEnd), "turn_end"),
];

/// The moment after this one.
fn next_moment(when: Option<SteerWhen>) -> Option<SteerWhen> {
    let at = MOMENTS.iter().position(|(moment, _)| *moment == when);
    MOMENTS[at.map_or(0, |at| (at + 1) % MOMENTS.len())].0
}

impl App {
    /// Begins a text.
    pub fn begin(&mut self, purpose: Purpose) {
        let editor = match &purpose {
            Purpose::Steer(session, agent, _) => {
                let draft = self.draft.as_ref();
                let draft =
                    draft.filter(|draft| (&draft.session, &draft.agent) == (session, agent));
                Editor::lines(draft.map_or("", |draft| &draft.text))
            }
            Purpose::Answer(..) => Editor::lines(""),
            Purpose::Return(..) => Editor::line(""),
            Purpose::Filter(before) => Editor::line(before),
        };
        self.mode = Mode::Write(Writing { purpose, editor });
        self.dirty = true;
    }

    /// A key while a text is written.
    pub(super) fn key_in_text(&mut self, key: KeyEvent) -> Option<Todo> {
        let Mode::Write(writing) = &mut self.mode else {
            return None;
        };
        if let Purpose::Steer(_, _, when) = &mut writing.purpose
            && matches!(key.code, KeyCode::Tab | KeyCode::BackTab)
        {
            *when = next_moment(*when);
            return None;
        }
        let typed = writing.editor.key(key);
        let text = writing.editor.text();
        if let (Purpose::Filter(_), Typed::On) = (&writing.purpose, typed) {
            self.choice.filter = text;
            self.filtered();
            return None;
        }
        if typed == Typed::On {
            return None;
        }
        let Mode::Write(writing) = std::mem::replace(&mut self.mode, Mode::Browse) else {
            return None;
        };
        self.finish(writing.purpose, text, typed == Typed::Done)
    }

    /// Chooses the moment of the message that is written.
    pub(super) fn choose_moment(&mut self, moment: Option<SteerWhen>) {
        if let Mode::Write(Writing {
            purpose: Purpose::Steer(_, _, when),
            ..
        }) = &mut self.mode
        {
            *when = moment;
        }
    }

    /// A text is finished, or given up.
    fn finish(&mut self, purpose: Purpose, text: String, done: bool) -> Option<Todo> {
        self.dirty = true;
        let blank = text.trim().is_empty();
        let act = match (purpose, done) {
            (Purpose::Filter(_), true) => {
                self.choice.filter = text;
                self.settle();
                return None;
            }
            (Purpose::Filter(before), false) => {
                self.choice.filter = before;
                self.settle();
                return None;
            }
            (Purpose::Steer(session, agent, _), false) => {
                // What was written is there again when the next message to it begins.
                let sent_as = self.number_of(&session, &agent, &text);
                self.draft = (!blank).then_some(Draft {
                    session,
                    agent,
                    text,
                    sent_as,
                });
                return None;
            }
            (_, false) => return None,
            (Purpose::Steer(..) | Purpose::Answer(..), true) if blank => {
                self.bad("nothing was sent: the text is empty");
                return None;
            }
            (Purpose::Steer(session, agent, when), true) => {
                let before = self.number_of(&session, &agent, &text);
                let id = before.unwrap_or_else(|| self.next_number());
                // Until it has arrived.
                self.draft = Some(Draft {
                    session: session.clone(),
                    agent: agent.clone(),
                    text: text.clone(),
                    sent_as: Some(id.clone()),
                });
                let deed = Deed::Steer {
                    agent,
                    id,
                    text,
                    when,
                };
                Act { session, deed }
            }
            (Purpose::Answer(session, request), true) => Act {
                session,
                deed: Deed::Answer(request, text),
            },
            (Purpose::Return(session, desktop), true) => Act {
                session,
                deed: Deed::Return {
                    desktop,
                    note: (!blank).then(|| text.trim().to_owned()),
                },
            },
        };
        self.good(act.deed.under_way());
        Some(Todo::Act(act))
    }

    /// The number under which this very message was sent, if it is not known that it arrived.
    fn number_of(&self, session: &SessionId, agent: &AgentId, text: &str) -> Option<SteerId> {
        let draft = self.draft.as_ref();
        let same = draft.filter(|draft| {
            (&draft.session, &draft.agent) == (session, agent) && draft.text == text
        });
        same?.sent_as.clone()
    }

    /// The number of the next message.
    fn next_number(&mut self) -> SteerId {
        self.sent += 1;
        SteerId(format!("top-{:016x}-{}", self.salt, self.sent))
    }
}
