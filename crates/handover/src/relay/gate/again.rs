//! A server that has to be ended is started again, if a new one can be told all that its client told the old
//! one: no client has to notice more than that its call was interrupted.
//!
//! The client is not read before the new server has greeted. Nothing of its calls goes to it.

use std::time::Duration;

use super::super::answers::{self, Interrupted};
use super::super::call::Call;
use super::super::memory;
use super::super::records::{Id, Message};
use super::{Asked, Effect, Gate, Open, line};

/// How long a server that was started again may take to greet.
pub(super) const GREETING: Duration = Duration::from_secs(10);

/// What the ids of the relay's own requests begin with.
const OUR_IDS: &str = "handover-";

/// Why there is no server to speak to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Away {
    /// The old one ends, and a new one is started.
    Starting,
    /// The new one is greeted since this time.
    Greeting(Duration),
}

impl Away {
    /// When that takes too long. Whoever starts it sees to that part.
    pub(super) fn due(self) -> Option<Duration> {
        match self {
            Self::Starting => None,
            Self::Greeting(since) => Some(since + GREETING),
        }
    }
}

impl Gate {
    /// Whether there is no server to pass anything on to, so that the client should not be read.
    pub(in super::super) fn is_away(&self) -> bool {
        self.away.is_some()
    }

    /// The server that was to be started again runs.
    pub(in super::super) fn server_is_back(&mut self, now: Duration) {
        let Some(greeting) = self.memory.greeting().cloned() else {
            self.away = None;
            return;
        };
        self.away = Some(Away::Greeting(now));
        self.ask_ourselves(&greeting);
    }

    /// Whether calls are under way of which the host may still say that a person has interrupted them: a relay
    /// that was stopped meanwhile may find the server gone first.
    pub(in super::super) fn may_be_interrupted(&self) -> bool {
        self.calls
            .values()
            .any(|call| call.is_sent() && call.permit().is_some() && call.interrupted.is_none())
    }

    /// The server has ended, `why`, without being told to by us. After a person has interrupted a call it is
    /// started again: the host has ended it, for a relay that was stopped, or it did not bear the cancellation.
    pub(in super::super) fn server_ended(&mut self, why: &str) {
        if self.calls.values().any(|call| call.interrupted.is_some()) {
            return self.replace(&format!("{why} when a person took control"));
        }
        // So has the next host, if this relay was stopped when its own ended.
        if self.calls.values().any(Call::has_lost_its_host) {
            return self.replace(&format!("{why} when the session's host had ended"));
        }
        self.effects.push(Effect::EndServer(why.to_owned()));
    }

    /// Ends the server's process tree, since nothing less shows that it does nothing any more. Every request
    /// that has no response gets one.
    pub(super) fn replace(&mut self, why: &str) {
        if !self.memory.is_complete() || self.away.is_some() {
            return self.effects.push(Effect::EndServer(why.to_owned()));
        }
        self.away = Some(Away::Starting);
        self.host_gone = None;
        self.asking_draining = false;
        let told = format!("the server was ended and is started again, because {why}; ask again");
        self.answer_all(&told, &Interrupted::Replaced);
        self.effects.push(Effect::ReplaceServer(why.to_owned()));
    }

    /// Whether it is the answer to a request of the relay's own, which the client does not see.
    pub(super) fn answers_us(&mut self, message: &Message<'_>) -> bool {
        let Message::Response {
            id: Some(id),
            error,
            ..
        } = message
        else {
            return false;
        };
        let ours = self
            .open
            .get(id)
            .is_some_and(|open| open.what == Asked::Ours);
        if !ours {
            return false;
        }
        self.open.remove(id);
        if self.away.is_some() {
            match error {
                Some(_) => {
                    let why = "it refused to be greeted when it was started again";
                    self.effects.push(Effect::EndServer(why.to_owned()));
                }
                None => self.greeted(),
            }
        }
        true
    }

    fn greeted(&mut self) {
        self.away = None;
        if self.memory.is_confirmed() {
            let confirmed = answers::initialized().into_bytes();
            self.effects.push(Effect::ToServer(line(confirmed)));
        }
        for setting in self.memory.settings().to_vec() {
            self.ask_ourselves(&setting);
        }
    }

    fn ask_ourselves(&mut self, asked: &memory::Asked) {
        let mut ids = (1_u64..).map(|number| format!("{OUR_IDS}{number}"));
        // There are fewer requests open than numbers.
        let free = ids.find(|id| !self.open.contains_key(&Id::Text(id.clone())));
        let Some(id) = free else { return };
        let request = answers::request(&id, asked.method, &asked.params);
        let open = Open {
            raw_id: id.clone(),
            what: Asked::Ours,
        };
        self.open.insert(Id::Text(id), open);
        self.effects
            .push(Effect::ToServer(line(request.into_bytes())));
    }
}
