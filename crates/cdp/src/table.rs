//! The commands that the browser has not answered yet.

use std::collections::HashMap;

use serde_json::value::RawValue;

use crate::documents::Registering;
use crate::drain::GivenUp;
use crate::frozen::{Look, Thaw};
use crate::gate::{ClientId, Permit};
use crate::guard::Step;

/// What becomes of an answer.
#[derive(Debug)]
pub(crate) enum Pending {
    /// It is a client's.
    Client(Asked),
    /// It tells the session that stands for this client's connection.
    Root(ClientId),
    /// With it, all that this client did has ended.
    Left(ClientId),
    /// Something that was held down in this session is let go.
    Released(String),
    /// It names a script for new documents.
    Named(Registering),
    /// It tells whether a page is shown that is to be frozen.
    Look(Look),
    /// It names the session by which a frozen page is made active again.
    Thaw(Thaw),
    /// It names the tab that is before this page for a moment.
    Cover(String),
    /// It is for this guard.
    Guard(u64, Step),
    /// It names the session by which a page is loaded anew that has crashed.
    LoadAnew,
    /// This session of a client that has left hears what is said to it.
    Heard(ClientId, String),
    /// Nobody waits for it.
    Ignored,
}

/// A client's command.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) client: ClientId,
    /// The client's own number.
    pub(crate) id: i64,
    /// As the client names it; none is its connection.
    pub(crate) session: Option<String>,
    /// The same, as the browser names it.
    pub(crate) within: String,
    /// None for a neutral command, or once it was given up.
    pub(crate) permit: Option<Permit>,
    pub(crate) kind: Kind,
    /// It only reads.
    pub(crate) observes: bool,
    /// The parameters of a script, unless they are very long.
    pub(crate) script: Option<String>,
    /// The parameters of a script for new documents.
    pub(crate) registers: Option<Box<RawValue>>,
    /// The client has been answered by the gate.
    pub(crate) answered: bool,
}

impl Asked {
    /// Whether what it runs can be known again among the page's scripts: its text is, or it only waits for
    /// what an earlier one has begun.
    pub(crate) fn can_be_known(&self) -> bool {
        self.script.is_some()
    }

    /// Takes its permit, if it has one; its client gets no other answer then.
    pub(crate) fn give_up(&mut self) -> Option<GivenUp> {
        let permit = self.permit.take()?;
        self.answered = true;
        Some((self.client, self.id, self.session.clone(), permit))
    }

    /// Its client gets no other answer than the gate's, which is due if there was none. Its permit goes on.
    pub(crate) fn tell(&mut self) -> Option<(ClientId, i64, Option<String>)> {
        let told = std::mem::replace(&mut self.answered, true);
        (!told).then(|| (self.client, self.id, self.session.clone()))
    }
}

/// How a command can be cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It runs a script.
    Script,
    /// It loads a page.
    Load,
    /// It is input, which a script of the page may be slow to take.
    Input,
    /// The browser itself loads something for it.
    Resource,
    /// Not at all.
    Other,
}

impl Kind {
    pub(crate) fn of(method: &str) -> Self {
        match method {
            "Runtime.evaluate"
            | "Runtime.callFunctionOn"
            | "Runtime.awaitPromise"
            | "Runtime.runScript"
            | "Debugger.evaluateOnCallFrame" => Self::Script,
            "Page.navigate" | "Page.reload" | "Page.navigateToHistoryEntry" => Self::Load,
            "Network.loadNetworkResource" => Self::Resource,
            _ if method.starts_with("Input.") => Self::Input,
            _ => Self::Other,
        }
    }
}

/// Commands by the gate's own numbers.
#[derive(Debug, Default)]
pub(crate) struct Table {
    last: u32,
    by_number: HashMap<u32, Pending>,
}

/// The largest number that the browser reads.
const MAX_NUMBER: u32 = i32::MAX as u32;

impl Table {
    /// Numbers a command.
    pub(crate) fn add(&mut self, pending: Pending) -> u32 {
        loop {
            self.last = self.last % MAX_NUMBER + 1;
            // There are far fewer unanswered ones than numbers.
            if let std::collections::hash_map::Entry::Vacant(free) = self.by_number.entry(self.last)
            {
                free.insert(pending);
                return self.last;
            }
        }
    }

    /// The command whose answer has come.
    pub(crate) fn take(&mut self, number: i64) -> Option<Pending> {
        self.by_number.remove(&u32::try_from(number).ok()?)
    }

    /// Whether a client's command is unanswered, and no takeover has given it up.
    pub(crate) fn has(&self, number: u32) -> bool {
        matches!(self.by_number.get(&number), Some(Pending::Client(asked)) if !asked.answered)
    }

    /// Removes a client's command that was not sent.
    pub(crate) fn withdraw(&mut self, number: u32) -> Option<Asked> {
        match self.by_number.remove(&number) {
            Some(Pending::Client(asked)) => Some(asked),
            _ => None,
        }
    }

    /// Clients' commands.
    pub(crate) fn asked(&mut self) -> impl Iterator<Item = &mut Asked> {
        self.by_number
            .values_mut()
            .filter_map(|pending| match pending {
                Pending::Client(asked) => Some(asked),
                _ => None,
            })
    }

    /// Removes clients' commands.
    pub(crate) fn remove_asked(&mut self, mut which: impl FnMut(&Asked) -> bool) -> Vec<Asked> {
        let numbers: Vec<u32> = self
            .by_number
            .iter()
            .filter_map(|(number, pending)| match pending {
                Pending::Client(asked) if which(asked) => Some(*number),
                _ => None,
            })
            .collect();
        let removed = numbers
            .iter()
            .filter_map(|number| self.by_number.remove(number));
        removed
            .filter_map(|pending| match pending {
                Pending::Client(asked) => Some(asked),
                _ => None,
            })
            .collect()
    }

    /// How many of a client's commands the browser has not answered, and of how many of these the client has
    /// no answer either.
    pub(crate) fn count_of(&self, client: ClientId) -> (usize, usize) {
        let mut counts = (0, 0);
        for pending in self.by_number.values() {
            if let Pending::Client(asked) = pending
                && asked.client == client
            {
                counts.0 += 1;
                counts.1 += usize::from(!asked.answered);
            }
        }
        counts
    }
}
