//! All sessions of this user, and what becomes of them.

use std::collections::HashMap;

use handover_protocol::{AgentStatus, CallerView, Event, Gap, ListResult, Manifest, SessionId};
use serde::Serialize;

use super::order;
use super::session::{Link, Session};

/// How long a session is still shown after its host has ended, in milliseconds.
pub const SHOWN_AFTER_END_MS: u64 = 60_000;

/// Sessions that are shown after their hosts have ended, the latest ones.
const ENDED_SHOWN: usize = 16;

/// What is new, of one session.
#[derive(Debug)]
pub enum News {
    /// A live host of it was found, or says something else in its manifest.
    Found(Box<Manifest>),
    /// Its host answers again.
    Connected(CallerView),
    /// How all stands in it.
    Listed(Box<ListResult>),
    /// An event of its record.
    Event(Box<Event>),
    /// Events were left out.
    Gap(Gap),
    /// Its host does not answer, for this reason; it is tried again.
    Lost(String),
    /// Its host has ended.
    Gone,
}

/// How many there are, over all sessions whose hosts live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Tally {
    /// Requests for a person that nobody has dealt with.
    pub needs: usize,
    /// Sessions.
    pub sessions: usize,
    /// Agents that have not ended.
    pub agents: usize,
    /// Those of them that are at work.
    pub running: usize,
    /// Desktops.
    pub desktops: usize,
    /// Desktops that a person controls.
    pub held: usize,
    /// Desktops on which nobody may act.
    pub paused: usize,
    /// Sessions whose hosts do not answer: what they said last is counted.
    pub silent: usize,
}

/// All sessions of this user. Times are in milliseconds of one clock that the caller chooses and that
/// only goes forward.
#[derive(Debug, Default)]
pub struct Overview {
    sessions: HashMap<SessionId, Session>,
}

impl Overview {
    /// Takes in what is new of a session at `now`. What is said of one that was never found counts for nothing.
    pub fn hear(&mut self, id: &SessionId, news: News, now: u64) {
        if let News::Found(manifest) = news {
            match self.sessions.get_mut(id) {
                Some(session) => session.found(*manifest),
                None => {
                    let session = Session::new(*manifest);
                    self.sessions.insert(id.clone(), session);
                }
            }
            return;
        }
        let Some(session) = self.sessions.get_mut(id) else {
            return;
        };
        match news {
            News::Found(_) => {}
            News::Connected(caller) => session.connected(caller),
            News::Listed(list) => session.listed(*list, now),
            News::Event(event) => session.happened(&event),
            News::Gap(gap) => session.left_out(gap),
            News::Lost(message) => session.lost(message),
            News::Gone => session.gone(now),
        }
        self.forget(now);
    }

    /// Forgets sessions that ended a while ago.
    pub fn forget(&mut self, now: u64) {
        self.sessions.retain(|_, session| match session.link {
            Link::Ended { at } => now.saturating_sub(at) < SHOWN_AFTER_END_MS,
            _ => true,
        });
        let mut ended: Vec<(u64, SessionId)> = self
            .sessions
            .values()
            .filter_map(|session| match session.link {
                Link::Ended { at } => Some((at, session.id().clone())),
                _ => None,
            })
            .collect();
        ended.sort_unstable();
        let over = ended.len().saturating_sub(ENDED_SHOWN);
        for (_, id) in ended.drain(..over) {
            self.sessions.remove(&id);
        }
    }

    /// One session.
    pub fn session(&self, id: &SessionId) -> Option<&Session> {
        self.sessions.get(id)
    }

    /// A person has confirmed an act at the terminal, as this host asks for once a connection.
    pub fn confirmed(&mut self, id: &SessionId) {
        if let Some(session) = self.sessions.get_mut(id) {
            session.confirmed = true;
        }
    }

    /// The sessions, what needs a person first.
    pub fn sessions(&self) -> Vec<&Session> {
        let mut sessions: Vec<&Session> = self.sessions.values().collect();
        sessions.sort_by_cached_key(|session| order::rank(session));
        sessions
    }

    /// How many there are.
    pub fn tally(&self) -> Tally {
        use handover_protocol::Control;
        let mut tally = Tally::default();
        let live = self
            .sessions
            .values()
            .filter(|session| !session.has_ended());
        for session in live {
            let agents = session
                .agents
                .iter()
                .filter(|agent| !agent.status.has_ended());
            let with = |control| {
                let desktops = session.desktops.iter();
                desktops
                    .filter(|desktop| desktop.control == control)
                    .count()
            };
            tally.sessions += 1;
            tally.silent += usize::from(matches!(session.link, Link::Lost(_)));
            tally.needs += session.needs();
            tally.agents += agents.clone().count();
            tally.running += agents
                .filter(|agent| agent.status == AgentStatus::Running)
                .count();
            tally.desktops += session.desktops.len();
            tally.held += with(Control::Human);
            tally.paused += with(Control::Paused);
        }
        tally
    }
}

#[cfg(test)]
mod tests {
    use handover_protocol::RequestState;

    use super::super::testing::{event, list, manifest};
    use super::*;

    fn hear(overview: &mut Overview, id: &str, news: News, now: u64) {
        overview.hear(&id.into(), news, now);
    }

    fn with(ids: &[&str]) -> Overview {
        let mut overview = Overview::default();
        for (index, id) in ids.iter().enumerate() {
            let mut found = manifest(id, id);
            found.start_ticks = index as u64;
            hear(&mut overview, id, News::Found(Box::new(found)), 0);
        }
        overview
    }

    fn order(overview: &Overview) -> Vec<String> {
        let sessions = overview.sessions().into_iter();
        sessions.map(|session| session.id().to_string()).collect()
    }

    #[test]
    fn what_needs_a_person_comes_first_and_what_has_ended_last() {
        let mut overview = with(&["s1", "s2", "s3", "s4"]);
        assert_eq!(order(&overview), ["s4", "s3", "s2", "s1"]);
        hear(&mut overview, "s2", News::Listed(Box::new(list("s2"))), 1);
        assert_eq!(overview.tally().needs, 1);
        hear(&mut overview, "s4", News::Gone, 2);
        assert_eq!(order(&overview), ["s2", "s3", "s1", "s4"]);
        let mut dealt_with = list("s2");
        dealt_with.requests[0].state = RequestState::Taken;
        hear(&mut overview, "s2", News::Listed(Box::new(dealt_with)), 3);
        assert_eq!(overview.tally().needs, 0);
    }

    #[test]
    fn a_session_is_shown_for_a_while_after_its_end() {
        let mut overview = with(&["s1"]);
        hear(&mut overview, "s1", News::Listed(Box::new(list("s1"))), 1);
        hear(&mut overview, "s1", News::Gone, 10);
        assert!(overview.session(&"s1".into()).is_some());
        assert_eq!(overview.tally(), Tally::default());
        overview.forget(10 + SHOWN_AFTER_END_MS);
        assert!(overview.session(&"s1".into()).is_none());
    }

    #[test]
    fn one_that_comes_back_lives_again() {
        let mut overview = with(&["s1"]);
        hear(&mut overview, "s1", News::Gone, 10);
        let again = News::Found(Box::new(manifest("s1", "s1")));
        hear(&mut overview, "s1", again, 20);
        overview.forget(20 + SHOWN_AFTER_END_MS);
        assert!(!overview.session(&"s1".into()).unwrap().has_ended());
    }

    #[test]
    fn many_that_ended_are_not_kept() {
        let ids: Vec<String> = (0..40).map(|n| format!("s{n:02}")).collect();
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        let mut overview = with(&ids);
        for (at, id) in ids.iter().enumerate() {
            hear(&mut overview, id, News::Gone, at as u64);
        }
        assert_eq!(overview.sessions().len(), ENDED_SHOWN);
        assert!(overview.session(&"s39".into()).is_some());
    }

    #[test]
    fn what_is_said_of_an_unknown_session_counts_for_nothing() {
        let mut overview = Overview::default();
        let said = event(1, "agent_text", serde_json::json!({"text": "hello"}));
        hear(&mut overview, "s1", News::Event(Box::new(said)), 1);
        hear(&mut overview, "s1", News::Listed(Box::new(list("s1"))), 1);
        assert!(overview.sessions().is_empty());
    }
}
