//! What the client wrote and is not passed on yet, in its order.

use std::collections::{BTreeMap, VecDeque};

use super::call::CallId;
use super::records::{self, Id};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Queue {
    held: VecDeque<Held>,
    bytes: usize,
}

/// A record that waits for its turn.
#[derive(Debug)]
struct Held {
    record: Vec<u8>,
    batch: bool,
    /// Its calls with their places in the batch.
    calls: Vec<(usize, CallId)>,
    undecided: usize,
    /// By their places, the calls that are not passed on: under which id, and what the client is told.
    refused: BTreeMap<usize, (Id, String)>,
}

/// A record that has its turn.
#[derive(Debug)]
pub(super) struct Released {
    held: Held,
}

impl Queue {
    /// The bytes that wait.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Adds a record with its calls, each with its place in the batch.
    pub(super) fn push(&mut self, record: Vec<u8>, batch: bool, calls: Vec<(usize, CallId)>) {
        self.bytes += records::weight(&record);
        self.held.push_back(Held {
            record,
            batch,
            undecided: calls.len(),
            calls,
            refused: BTreeMap::new(),
        });
    }

    /// A call may be passed on.
    pub(super) fn permitted(&mut self, call: CallId) {
        if let Some((_, held)) = self.holder(call) {
            held.undecided -= 1;
        }
    }

    /// A call is not passed on, and its client gets `answer`. It may have been permitted before.
    pub(super) fn refused(&mut self, call: CallId, permitted: bool, id: Id, answer: String) {
        if let Some((place, held)) = self.holder(call) {
            held.undecided -= usize::from(!permitted);
            held.refused.insert(place, (id, answer));
        }
    }

    /// The first record, if nothing in it is undecided.
    pub(super) fn next(&mut self) -> Option<Released> {
        let held = self.held.pop_front_if(|held| held.undecided == 0)?;
        self.bytes -= records::weight(&held.record);
        Some(Released { held })
    }

    fn holder(&mut self, id: CallId) -> Option<(usize, &mut Held)> {
        self.held.iter_mut().find_map(|held| {
            let &(place, _) = held.calls.iter().find(|(_, call)| *call == id)?;
            Some((place, held))
        })
    }
}

impl Released {
    /// The calls in it that are passed on.
    pub(super) fn passed(&self) -> impl Iterator<Item = CallId> {
        let passed = |(place, _): &&(usize, CallId)| !self.held.refused.contains_key(place);
        self.held.calls.iter().filter(passed).map(|(_, call)| *call)
    }

    /// The ids of the calls in it that are not.
    pub(super) fn refused(&self) -> impl Iterator<Item = &Id> {
        self.held.refused.values().map(|(id, _)| id)
    }

    /// What the client is told, if anything.
    pub(super) fn answer(&self) -> Option<String> {
        let refused = self.held.refused.values();
        let answers: Vec<&str> = refused.map(|(_, answer)| &**answer).collect();
        match &answers[..] {
            [] => None,
            [answer] if !self.held.batch => Some((*answer).to_owned()),
            answers => Some(format!("[{}]", answers.join(","))),
        }
    }

    /// What the server gets, if anything: the record as it was written, without what is refused.
    pub(super) fn into_record(self) -> Option<Vec<u8>> {
        let Held {
            record,
            batch,
            refused,
            ..
        } = self.held;
        if refused.is_empty() {
            return Some(record);
        }
        if !batch {
            return None;
        }
        let items = records::items(&record).into_iter().enumerate();
        let kept = items.filter(|(place, _)| !refused.contains_key(place));
        let kept: Vec<&str> = kept.map(|(_, item)| item).collect();
        (!kept.is_empty()).then(|| format!("[{}]", kept.join(",")).into_bytes())
    }
}
