//! One session as its host tells of it.

use handover_protocol::{
    AgentId, AgentView, CallerView, DesktopId, DesktopView, Event, Gap, ListResult, Manifest,
    RequestState, RequestView, SessionId,
};

use super::clean::clean;
use super::receipts::{Receipt, Receipts};
use super::story::{Line, Lines};
use crate::cli::text::shortened;

/// The most characters of an agent's name before a line.
const MOST_NAME: usize = 16;

/// How the connection to a host stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Link {
    /// It has not said yet what stands in it.
    Connecting,
    /// It answers.
    Live,
    /// It does not answer, for this reason; what is shown is what it said last.
    Lost(String),
    /// It ended at this time.
    Ended {
        /// When that was found, in milliseconds of the overview's clock.
        at: u64,
    },
}

/// One session.
#[derive(Debug)]
pub struct Session {
    /// What its host says in the manifest.
    pub manifest: Manifest,
    /// How the connection to it stands.
    pub link: Link,
    /// Who the host takes this program for, once it has said so.
    pub caller: Option<CallerView>,
    /// Whether a person has confirmed an act on this connection, which the host asks for once.
    pub confirmed: bool,
    /// Its desktops, oldest first.
    pub desktops: Vec<DesktopView>,
    /// Its agents, oldest first.
    pub agents: Vec<AgentView>,
    /// Requests for a person that nobody has dealt with, oldest first.
    pub requests: Vec<RequestView>,
    /// When the host said so, in milliseconds of the overview's clock.
    pub listed_at: Option<u64>,
    /// What happened, as lines.
    pub lines: Lines,
    receipts: Receipts,
}

impl Session {
    /// One that was just found.
    pub fn new(manifest: Manifest) -> Self {
        Self {
            manifest,
            link: Link::Connecting,
            caller: None,
            confirmed: false,
            desktops: Vec::new(),
            agents: Vec::new(),
            requests: Vec::new(),
            listed_at: None,
            lines: Lines::default(),
            receipts: Receipts::default(),
        }
    }

    /// Its id.
    pub fn id(&self) -> &SessionId {
        &self.manifest.session_id
    }

    /// Whether its host has ended.
    pub fn has_ended(&self) -> bool {
        matches!(self.link, Link::Ended { .. })
    }

    /// Whether the host will ask at the terminal before the next act of a person.
    pub fn asks_first(&self) -> bool {
        let marked = self
            .caller
            .as_ref()
            .is_some_and(|caller| caller.marked.is_some());
        marked && !self.confirmed
    }

    /// Requests for a person that wait for somebody.
    pub fn open(&self) -> impl Iterator<Item = &RequestView> {
        let open = |request: &&RequestView| request.state == RequestState::Open;
        self.requests.iter().filter(open)
    }

    /// How many of them there are.
    pub fn needs(&self) -> usize {
        self.open().count()
    }

    /// One agent.
    pub fn agent(&self, id: &AgentId) -> Option<&AgentView> {
        self.agents.iter().find(|agent| agent.id == *id)
    }

    /// What an agent is called: by its name, or its id where it has none or is not known. Short and harmless.
    pub fn name_of(&self, id: &AgentId) -> String {
        let name = self.agent(id).map(|agent| clean(&agent.name));
        match name.filter(|name| !name.is_empty()) {
            Some(name) => shortened(&name, MOST_NAME),
            None => clean(id.as_str()),
        }
    }

    /// One desktop.
    pub fn desktop(&self, id: &DesktopId) -> Option<&DesktopView> {
        self.desktops.iter().find(|desktop| desktop.id == *id)
    }

    /// What is known of the latest messages to an agent, oldest first.
    pub fn receipts(&self, agent: &AgentId) -> impl Iterator<Item = &Receipt> {
        self.receipts.of(agent)
    }

    /// How long the lease of a desktop lives unless it is renewed, in milliseconds.
    pub fn left_ms(&self, desktop: &DesktopView, now: u64) -> Option<u64> {
        let lease = desktop.lease.as_ref()?;
        let since = now.saturating_sub(self.listed_at?);
        Some(lease.expires_in_ms.saturating_sub(since))
    }

    pub(super) fn found(&mut self, manifest: Manifest) {
        let same =
            (manifest.pid, manifest.start_ticks) == (self.manifest.pid, self.manifest.start_ticks);
        if same && !self.has_ended() {
            self.manifest = manifest;
        } else {
            // Another host of the same session: what the one before said no longer holds, and its
            // record may count from 1 again.
            *self = Self::new(manifest);
        }
    }

    pub(super) fn connected(&mut self, caller: CallerView) {
        // What stands in it is not known yet, and whether it still answers.
        self.link = Link::Connecting;
        self.caller = Some(caller);
        self.confirmed = false;
    }

    pub(super) fn listed(&mut self, list: ListResult, now: u64) {
        self.link = Link::Live;
        self.desktops = list.desktops;
        self.agents = list.agents;
        self.requests = list.requests;
        self.listed_at = Some(now);
    }

    pub(super) fn happened(&mut self, event: &Event) {
        if !self.lines.push(event) {
            return;
        }
        self.receipts.hear(event);
    }

    pub(super) fn left_out(&mut self, gap: Gap) {
        self.lines.left_out(gap);
    }

    pub(super) fn lost(&mut self, message: String) {
        if !self.has_ended() {
            self.link = Link::Lost(message);
        }
    }

    pub(super) fn gone(&mut self, now: u64) {
        if self.has_ended() {
            return;
        }
        self.link = Link::Ended { at: now };
        self.requests.clear();
        self.lines.push_own(Line::host_ended());
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{list, manifest};
    use super::*;

    #[test]
    fn agents_are_called_by_their_names() {
        let mut session = Session::new(manifest("s1", "shop"));
        assert_eq!(session.name_of(&"k7m2".into()), "k7m2");
        let mut said = list("s1");
        said.agents[1].name = "a name of more than sixteen".to_owned();
        said.agents[2].name = String::new();
        session.listed(said, 1);
        let names = ["k7m2", "a3b4", "z9y8", "gone\u{1b}"].map(|id| session.name_of(&id.into()));
        assert_eq!(
            names,
            ["checkout", "a name of more …", "z9y8", r"gone\u{1b}"]
        );
    }
}
