//! What each caller saw last, and which hand-back it has not heard of yet.
//!
//! After a takeover nothing that an agent saw before can be trusted: the person
//! may have moved windows. A caller that aims by coordinates has to look first.

use std::collections::HashMap;

use handover_control::Epoch;
use handover_protocol::HandBack;

/// Whose eyes: an agent's id, or `user` for every other caller.
pub type Observer = String;

/// Observers remembered per desktop. Beyond it all are forgotten, which makes
/// them look again.
const MAX_OBSERVERS: usize = 1024;

/// The observation guard of one desktop.
#[derive(Debug)]
pub struct Observations {
    enabled: bool,
    seen: HashMap<Observer, Epoch>,
    /// The epoch that the last takeover's end began.
    stale_before: Option<Epoch>,
    last: Option<HandBack>,
    told: HashMap<Observer, Epoch>,
}

impl Observations {
    /// A guard; `enabled` is false with `--no-observe-guard`. `last` is set for
    /// a desktop whose takeover a former host could not end.
    pub fn new(enabled: bool, last: Option<HandBack>) -> Self {
        Self {
            enabled,
            seen: HashMap::new(),
            stale_before: last.as_ref().map(|last| Epoch(last.epoch)),
            last,
            told: HashMap::new(),
        }
    }

    /// The observer has a picture of this epoch.
    pub fn observed(&mut self, observer: &str, epoch: Epoch) {
        if self.seen.len() >= MAX_OBSERVERS && !self.seen.contains_key(observer) {
            self.seen.clear();
        }
        self.seen.insert(observer.to_owned(), epoch);
    }

    /// True if what the observer saw last is older than the last takeover.
    pub fn is_stale(&self, observer: &str) -> bool {
        match self.stale_before {
            Some(since) if self.enabled => self.seen.get(observer).is_none_or(|&at| at < since),
            _ => false,
        }
    }

    /// Control came back, with this hand-back, at this epoch.
    pub fn handed_back(&mut self, hand_back: HandBack, epoch: Epoch) {
        self.stale_before = Some(epoch);
        self.last = Some(hand_back);
        self.told.clear();
    }

    /// The last hand-back, whoever has heard of it.
    pub fn last(&self) -> Option<&HandBack> {
        self.last.as_ref()
    }

    /// The hand-back that this observer has not been told of yet; it counts as
    /// told from now on.
    pub fn tell(&mut self, observer: &str) -> Option<HandBack> {
        let (last, epoch) = (self.last.as_ref()?, self.stale_before?);
        if self.told.get(observer).is_some_and(|&told| told >= epoch) {
            return None;
        }
        if self.told.len() >= MAX_OBSERVERS {
            self.told.clear();
        }
        self.told.insert(observer.to_owned(), epoch);
        Some(last.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use handover_protocol::End;

    fn back() -> HandBack {
        HandBack {
            end: End::Return,
            holder: "ada".into(),
            held_ms: 1,
            note: None,
            epoch: 2,
            screenshot: None,
            windows_opened: Vec::new(),
            windows_closed: Vec::new(),
        }
    }

    #[test]
    fn after_a_takeover_each_observer_looks_for_itself() {
        let mut guard = Observations::new(true, None);
        assert!(!guard.is_stale("a1"), "nobody has had control yet");
        guard.observed("a1", Epoch(0));
        guard.handed_back(back(), Epoch(2));
        assert!(guard.is_stale("a1") && guard.is_stale("user"));
        guard.observed("a1", Epoch(2));
        assert!(!guard.is_stale("a1") && guard.is_stale("user"));
    }

    #[test]
    fn a_guard_that_is_off_stops_nobody() {
        let mut guard = Observations::new(false, None);
        guard.handed_back(back(), Epoch(2));
        assert!(!guard.is_stale("a1"));
    }

    #[test]
    fn each_observer_is_told_once() {
        let mut guard = Observations::new(true, None);
        assert_eq!(guard.tell("a1"), None);
        guard.handed_back(back(), Epoch(2));
        assert_eq!(guard.tell("a1"), Some(back()));
        assert_eq!(guard.tell("a1"), None);
        assert_eq!(guard.tell("user"), Some(back()));
        guard.handed_back(back(), Epoch(4));
        assert_eq!(guard.tell("a1"), Some(back()));
    }

    #[test]
    fn what_is_forgotten_makes_look_again() {
        let mut guard = Observations::new(true, None);
        guard.handed_back(back(), Epoch(2));
        for number in 0..=MAX_OBSERVERS {
            guard.observed(&format!("a{number}"), Epoch(2));
        }
        assert!(guard.seen.len() <= MAX_OBSERVERS);
        assert!(guard.is_stale("a0"));
    }
}
