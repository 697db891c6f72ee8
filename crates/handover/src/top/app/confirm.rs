//! Questions before something is ended.

use handover_protocol::{AgentId, Control, DesktopId, SessionId};

use super::super::act::{Act, Deed};
use super::App;
use crate::cli::list;
use crate::lineage;
use crate::overview::{Overview, Session, clean};

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// Whether an agent and those below it are to end.
    Abort(SessionId, AgentId),
    /// Whether a desktop is to pause although a person has control of it.
    Pause(SessionId, DesktopId),
    /// Whether everything in a session is to stop.
    Stop(SessionId),
    /// The same of all sessions.
    StopEverywhere,
}

impl Ask {
    /// The question.
    pub fn question(&self, overview: &Overview) -> String {
        match self {
            Self::Abort(..) => match self.ending(overview).len() {
                1 => "abort this agent?".to_owned(),
                count => format!("abort these {count} agents?"),
            },
            Self::Pause(..) => "pause it and end a person's control?".to_owned(),
            Self::Stop(id) => {
                let name = overview
                    .session(id)
                    .map_or_else(String::new, |session| clean(&session.manifest.name));
                format!("stop all of this in {name}?")
            }
            Self::StopEverywhere => {
                format!("stop all of this in {} sessions?", live(overview).count())
            }
        }
    }

    /// What would end or stop, a line each; always as it is known now.
    pub fn ending(&self, overview: &Overview) -> Vec<String> {
        match self {
            Self::Abort(session, agent) => overview
                .session(session)
                .map_or_else(Vec::new, |session| below(session, Some(agent))),
            Self::Pause(session, desktop) => overview
                .session(session)
                .map_or_else(Vec::new, |session| held(session, desktop)),
            Self::Stop(id) => overview.session(id).map_or_else(Vec::new, stopping),
            Self::StopEverywhere => {
                let of = |session: &Session| {
                    let name = clean(&session.manifest.name);
                    let lines = stopping(session).into_iter();
                    lines.map(move |line| format!("{name}: {line}"))
                };
                live(overview).flat_map(of).collect()
            }
        }
    }

    /// Why there is nothing left to ask, if there is nothing.
    pub fn is_over(&self, overview: &Overview) -> Option<String> {
        let id = match self {
            Self::Abort(id, _) | Self::Pause(id, _) | Self::Stop(id) => id,
            Self::StopEverywhere => {
                let none = live(overview).next().is_none();
                return none.then(|| "there is no session to stop".to_owned());
            }
        };
        let lives = overview
            .session(id)
            .is_some_and(|session| !session.has_ended());
        if !lives {
            return Some("the host of that session has ended".to_owned());
        }
        match self {
            Self::Abort(_, agent) if self.ending(overview).is_empty() => {
                Some(format!("{} has ended", clean(agent.as_str())))
            }
            Self::Pause(_, desktop) if self.ending(overview).is_empty() => {
                let desktop = clean(desktop.as_str());
                Some(format!("nobody has control of {desktop} any more"))
            }
            _ => None,
        }
    }

    /// What is to be done if the answer is yes.
    pub fn acts(&self, overview: &Overview) -> Vec<Act> {
        match self {
            Self::Abort(session, agent) => vec![Act {
                session: session.clone(),
                deed: Deed::Abort(agent.clone()),
            }],
            Self::Pause(session, desktop) => vec![Act {
                session: session.clone(),
                deed: Deed::Pause(desktop.clone()),
            }],
            Self::Stop(session) => vec![stop(session)],
            Self::StopEverywhere => live(overview).map(|session| stop(session.id())).collect(),
        }
    }

    /// The same question of all sessions, where there are more than one.
    pub fn wider(&self, overview: &Overview) -> Option<Self> {
        let several = matches!(self, Self::Stop(_)) && live(overview).nth(1).is_some();
        several.then_some(Self::StopEverywhere)
    }
}

fn live(overview: &Overview) -> impl Iterator<Item = &Session> {
    let sessions = overview.sessions().into_iter();
    sessions.filter(|session| !session.has_ended())
}

fn stop(session: &SessionId) -> Act {
    Act {
        session: session.clone(),
        deed: Deed::StopAll,
    }
}

/// Who has control of a desktop, if a person has.
fn held(session: &Session, desktop: &DesktopId) -> Vec<String> {
    let desktop = session.desktop(desktop).into_iter();
    let held = desktop.filter(|desktop| desktop.control == Control::Human);
    let lines = held.map(|desktop| {
        let holder = desktop.lease.as_ref();
        let holder = holder.map_or_else(|| "a person".to_owned(), |lease| clean(&lease.holder));
        format!("{}: {holder} has control", clean(desktop.id.as_str()))
    });
    lines.collect()
}

/// What stops of a session, a line each.
fn stopping(session: &Session) -> Vec<String> {
    let desktops = session.desktops.iter().map(|desktop| {
        let control = list::control(desktop.control, desktop.phase);
        format!("pause desktop {} ({control})", clean(desktop.id.as_str()))
    });
    let agents = below(session, None).into_iter();
    desktops
        .chain(agents.map(|agent| format!("abort {agent}")))
        .collect()
}

/// The agents that have not ended: `root` and those below it, or all.
fn below(session: &Session, root: Option<&AgentId>) -> Vec<String> {
    let agents = &session.agents;
    let mut inside = match root {
        Some(root) => {
            let mut inside: Vec<_> = agents.iter().filter(|agent| agent.id == *root).collect();
            inside.extend(lineage::below(agents, std::slice::from_ref(root)));
            inside
        }
        None => agents.iter().collect(),
    };
    inside.retain(|agent| !agent.status.has_ended());
    let inside: Vec<_> = inside.into_iter().cloned().collect();
    let lines = lineage::tree(&inside).into_iter().map(|branch| {
        let agent = branch.agent;
        format!(
            "{}{} {} {} {}",
            branch.lines,
            clean(agent.id.as_str()),
            clean(&agent.name),
            list::status(agent.status),
            clean(&agent.task)
        )
    });
    lines.collect()
}

impl App {
    /// Asks something, unless there is nothing to ask.
    pub(super) fn ask(&mut self, ask: Ask) {
        match ask.is_over(&self.overview) {
            Some(why) => self.bad(why),
            None => self.mode = super::Mode::Confirm(ask, 0),
        }
        self.dirty = true;
    }
}
