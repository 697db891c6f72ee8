//! What keys do.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use handover_protocol::{AgentStatus, Control};

use super::super::act::{Act, Deed};
use super::super::draw::PAGE;
use super::super::rows::Part;
use super::{App, Ask, Mode, Purpose, Todo};
use crate::cli::list;
use crate::overview::clean;

impl App {
    /// A key was pressed.
    pub fn key(&mut self, key: KeyEvent) -> Option<Todo> {
        if key.kind == KeyEventKind::Release {
            return None;
        }
        self.used = true;
        self.dirty = true;
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        if control && key.code == KeyCode::Char('z') {
            return Some(Todo::Suspend);
        }
        match &mut self.mode {
            Mode::Write(_) => self.key_in_text(key),
            Mode::Confirm(..) => self.key_in_question(key),
            Mode::Help(first) => {
                match key.code {
                    KeyCode::Up | KeyCode::Char('k') => *first = first.saturating_sub(1),
                    KeyCode::Down | KeyCode::Char('j') => *first += 1,
                    _ => self.mode = Mode::Browse,
                }
                None
            }
            Mode::Browse if control => match key.code {
                KeyCode::Char('c') => Some(Todo::Interrupt),
                // Ctrl-L draws everything anew, as everywhere.
                _ => None,
            },
            Mode::Browse => self.key_in_tree(key.code),
        }
    }

    /// Text was pasted.
    pub fn paste(&mut self, text: &str) {
        self.dirty = true;
        if let Mode::Write(writing) = &mut self.mode {
            writing.editor.paste(text);
            if let Purpose::Filter(_) = writing.purpose {
                self.choice.filter = writing.editor.text();
                self.filtered();
            }
        }
    }

    fn key_in_question(&mut self, key: KeyEvent) -> Option<Todo> {
        let Mode::Confirm(ask, first) = &mut self.mode else {
            return None;
        };
        let ask = ask.clone();
        let acts = match key.code {
            KeyCode::Char('y' | 'Y') => ask.acts(&self.overview),
            // What it means is shown before it is done.
            KeyCode::Char('A') => {
                if let Some(wider) = ask.wider(&self.overview) {
                    self.mode = Mode::Confirm(wider, 0);
                }
                return None;
            }
            KeyCode::Up | KeyCode::Char('k') => {
                *first = first.saturating_sub(1);
                return None;
            }
            KeyCode::Down | KeyCode::Char('j') => {
                *first += 1;
                return None;
            }
            KeyCode::Char('n' | 'N' | 'q') | KeyCode::Esc | KeyCode::Enter => {
                self.mode = Mode::Browse;
                self.good("nothing was done");
                return None;
            }
            _ => return None,
        };
        self.mode = Mode::Browse;
        if let Some(act) = acts.first() {
            self.good(act.deed.under_way());
        }
        Some(Todo::Acts(acts))
    }

    fn key_in_tree(&mut self, code: KeyCode) -> Option<Todo> {
        match code {
            KeyCode::Up | KeyCode::Char('k') => self.step(-1),
            KeyCode::Down | KeyCode::Char('j') => self.step(1),
            KeyCode::Home | KeyCode::Char('g') => self.select(0),
            KeyCode::End | KeyCode::Char('G') => self.step(isize::MAX),
            KeyCode::Left | KeyCode::Char('h') => {
                if let Some(key) = self.selected.clone() {
                    self.fold(key.session, true);
                }
            }
            KeyCode::Right | KeyCode::Char('l') => {
                if let Some(id) = self.on_session() {
                    self.fold(id, false);
                }
            }
            KeyCode::PageUp => self.scroll(PAGE),
            KeyCode::PageDown => self.scroll(-PAGE),
            KeyCode::Enter => return self.open(),
            KeyCode::Esc if self.full => self.full = false,
            KeyCode::Esc => {
                self.choice.filter.clear();
                self.status = None;
                self.settle();
            }
            KeyCode::Char('f') => self.full = !self.full,
            KeyCode::Char('s') => self.steer(),
            KeyCode::Char('a') => self.abort(),
            KeyCode::Char('t') => return self.take(),
            KeyCode::Char('r') => self.give_back(),
            KeyCode::Char('p') => return self.pause_or_resume(),
            KeyCode::Char('x') => self.stop(),
            KeyCode::Char('y') => self.answer(),
            KeyCode::Char('/') => self.begin(Purpose::Filter(self.choice.filter.clone())),
            KeyCode::Char('?') | KeyCode::F(1) => self.mode = Mode::Help(0),
            KeyCode::Char('q') => return Some(Todo::Quit),
            _ => {}
        }
        None
    }

    /// Scrolls the log by so many rows, back if that is positive.
    pub fn scroll(&mut self, by: isize) {
        self.back = self.back.saturating_add_signed(by);
        self.dirty = true;
    }

    fn open(&mut self) -> Option<Todo> {
        let part = self.selected.as_ref().map(|key| key.part.clone());
        match part {
            Some(Part::Whole) => {
                if let Some(id) = self.on_session() {
                    let folded = self.choice.folded.contains(&id);
                    self.fold(id, !folded);
                }
            }
            Some(Part::Request(_)) => self.answer(),
            Some(Part::Agent(_) | Part::Desktop(_)) => self.full = !self.full,
            Some(Part::Hidden) | None => {}
        }
        None
    }

    fn steer(&mut self) {
        let Some((session, agent)) = self.agent() else {
            return self.bad("select an agent to send it a message");
        };
        let id = clean(agent.id.as_str());
        if agent.status.has_ended() {
            let status = list::status(agent.status);
            return self.bad(format!("{id} takes no messages: it is {status}"));
        }
        if let Some(why) = &agent.not_steerable {
            let why = format!("{id} takes no messages: {}", clean(why));
            return self.bad(why);
        }
        let (session, agent) = (session.id().clone(), agent.id.clone());
        self.begin(Purpose::Steer(session, agent, None));
    }

    fn abort(&mut self) {
        let Some((session, agent)) = self.agent() else {
            return self.bad("select an agent to abort it");
        };
        if agent.status.has_ended() {
            let id = clean(agent.id.as_str());
            let status: AgentStatus = agent.status;
            return self.bad(format!("{id} has ended: {}", list::status(status)));
        }
        let ask = Ask::Abort(session.id().clone(), agent.id.clone());
        self.ask(ask);
    }

    fn take(&mut self) -> Option<Todo> {
        let Some((session, desktop)) = self.desktop() else {
            self.bad("select a desktop to take control of it");
            return None;
        };
        Some(Todo::Take(session.id().clone(), desktop.clone()))
    }

    fn give_back(&mut self) {
        let Some((session, desktop)) = self.desktop() else {
            return self.bad("select a desktop to return it");
        };
        let held = session
            .desktop(desktop)
            .is_some_and(|desktop| desktop.lease.is_some());
        let (session, desktop) = (session.id().clone(), desktop.clone());
        if !held {
            let id = clean(desktop.as_str());
            return self.bad(format!("nobody has control of {id}"));
        }
        self.begin(Purpose::Return(session, desktop));
    }

    fn pause_or_resume(&mut self) -> Option<Todo> {
        let Some((session, id)) = self.desktop() else {
            self.bad("select a desktop to pause it");
            return None;
        };
        let control = session.desktop(id).map(|desktop| desktop.control);
        let (session, id) = (session.id().clone(), id.clone());
        let deed = match control {
            Some(Control::Paused) => Deed::Resume(id),
            // That takes it from somebody.
            Some(Control::Human) => {
                self.ask(Ask::Pause(session, id));
                return None;
            }
            _ => Deed::Pause(id),
        };
        self.good(deed.under_way());
        Some(Todo::Act(Act { session, deed }))
    }

    fn stop(&mut self) {
        let ask = match self.session() {
            Some(session) => Ask::Stop(session.id().clone()),
            // A filter hides them all: that is no time to look for the right one.
            None => Ask::StopEverywhere,
        };
        self.ask(ask);
    }

    fn answer(&mut self) {
        let Some(session) = self.session() else {
            return self.bad("nobody asks for anything");
        };
        let part = self.selected.as_ref().map(|key| &key.part);
        let agent = self.agent().map(|(_, agent)| &agent.id);
        // The selected request, or else one of the selected agent, or of the session.
        let request = session.open().find(|request| match part {
            Some(Part::Request(id)) => request.request_id == *id,
            Some(Part::Agent(_)) => request.agent.as_ref() == agent,
            Some(Part::Desktop(id)) => request.desktop.as_ref() == Some(id),
            _ => true,
        });
        let Some(request) = request else {
            return self.bad("no request for a person is selected");
        };
        if request.question.is_none() && request.desktop.is_some() {
            let desktop = request.desktop.as_ref().map_or("", |id| id.as_str());
            let text = format!(
                "it asks for no answer but for a person on {}: press t to take control",
                clean(desktop)
            );
            return self.bad(text);
        }
        let purpose = Purpose::Answer(session.id().clone(), request.request_id.clone());
        self.begin(purpose);
    }
}
