//! Which notices are not told yet, and which of these a notifier has: no clock, no process.
//!
//! A notice is open from when it is given until the notifier says that it is dealt with. What a notifier had when it
//! ended goes to the next one, in the order in which it was given.

use std::collections::VecDeque;
use std::time::Duration;

use handover_control::Moment;

use super::{About, Handed, Notice};

/// The most notices that are open. The oldest is let go for one more.
pub(super) const MOST: usize = 64;

/// To how many notifiers a notice is handed over.
pub(super) const TRIES: u32 = 5;

/// How long after what it warns of a warning is still handed over for the first time.
const LATE: Duration = Duration::from_secs(10);

/// The open notices, oldest first. The notifier has the first of them.
#[derive(Debug, Default)]
pub(super) struct Open {
    notices: VecDeque<Numbered>,
    /// How many of them the notifier has.
    handed: usize,
    /// The last number that was given.
    last: u64,
}

#[derive(Debug)]
struct Numbered {
    number: u64,
    notice: Notice,
    given: Moment,
    /// How many notifiers have failed it so far, with the one that has it now.
    tries: u32,
}

impl Open {
    /// Takes in a notice. Whether the oldest is lost for that, which no notifier had.
    #[must_use]
    pub(super) fn add(&mut self, notice: Notice, now: Moment) -> bool {
        self.last += 1;
        self.notices.push_back(Numbered {
            number: self.last,
            notice,
            given: now,
            tries: 0,
        });
        if self.notices.len() <= MOST {
            return false;
        }
        self.notices.pop_front();
        let lost = self.handed == 0;
        // What the notifier has may well be told by it. It is only not handed over again.
        self.handed = self.handed.saturating_sub(1);
        lost
    }

    /// Whether there is something that the notifier does not have.
    pub(super) fn has_more(&self) -> bool {
        self.handed < self.notices.len()
    }

    /// The next for the notifier, which has it from now on.
    pub(super) fn hand_over(&mut self, now: Moment) -> Option<Handed> {
        while let Some(next) = self.notices.get_mut(self.handed) {
            let passed = now.since(next.given);
            if next.is_over(passed) {
                self.pass_over();
                continue;
            }
            next.tries += 1;
            self.handed += 1;
            return Some(Handed {
                number: next.number,
                notice: next.after(passed),
            });
        }
        None
    }

    /// Lets go of the next for the notifier: nobody wants to be told.
    pub(super) fn pass_over(&mut self) {
        self.notices.remove(self.handed);
    }

    /// The notifier has dealt with a notice. Whether it had it.
    pub(super) fn told(&mut self, number: u64) -> bool {
        let had = self.notices.iter().take(self.handed);
        let Some(at) = had.into_iter().position(|had| had.number == number) else {
            return false;
        };
        self.notices.remove(at);
        self.handed -= 1;
        true
    }

    /// The notifier has ended: what it had is to be handed over again. How many are given up.
    #[must_use]
    pub(super) fn ended(&mut self) -> usize {
        self.handed = 0;
        let open = self.notices.len();
        self.notices.retain(|notice| notice.tries < TRIES);
        open - self.notices.len()
    }

    /// No notifier could be started for what there is. How many are given up.
    #[must_use]
    pub(super) fn not_started(&mut self) -> usize {
        for notice in &mut self.notices {
            notice.tries += 1;
        }
        self.ended()
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.notices.len()
    }
}

impl Numbered {
    /// Whether it comes too late, so long after it was given.
    fn is_over(&self, passed: Duration) -> bool {
        let About::LeaseWarning { left_ms, .. } = self.notice.about else {
            return false;
        };
        let late = if self.tries == 0 {
            LATE
        } else {
            Duration::ZERO
        };
        passed > Duration::from_millis(left_ms).saturating_add(late)
    }

    /// What is true of it so long after it was given.
    fn after(&self, passed: Duration) -> Notice {
        let mut notice = self.notice.clone();
        if let About::LeaseWarning { left_ms, .. } = &mut notice.about {
            let passed = u64::try_from(passed.as_millis()).unwrap_or(u64::MAX);
            *left_ms = left_ms.saturating_sub(passed);
        }
        notice
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use handover_protocol::{Limit, RequestId, Timestamp};
    use proptest::prelude::*;

    use super::*;

    const START: Moment = Moment::from_nanos(0);

    fn notice(about: About) -> Notice {
        Notice {
            session: "s1".into(),
            session_name: "shop".to_owned(),
            at: Timestamp(0),
            about,
        }
    }

    fn request() -> Notice {
        notice(About::RequestHuman {
            request_id: RequestId("r1".to_owned()),
            desktop: None,
            agent: None,
            reason: "x".to_owned(),
            question: None,
        })
    }

    fn warning(left_ms: u64) -> Notice {
        notice(About::LeaseWarning {
            desktop: "d1".into(),
            holder: "ada".to_owned(),
            limit: Limit::Idle,
            left_ms,
        })
    }

    fn seconds(seconds: u64) -> Moment {
        START + Duration::from_secs(seconds)
    }

    fn left(handed: Option<Handed>) -> Option<u64> {
        match handed?.notice.about {
            About::LeaseWarning { left_ms, .. } => Some(left_ms),
            About::RequestHuman { .. } => None,
        }
    }

    #[test]
    fn what_a_notifier_had_when_it_ended_goes_to_the_next() {
        let mut open = Open::default();
        for _ in 0..3 {
            assert!(!open.add(request(), START));
        }
        let hand_over = |open: &mut Open| open.hand_over(START).map(|handed| handed.number);
        assert_eq!(hand_over(&mut open), Some(1));
        assert_eq!(hand_over(&mut open), Some(2));
        assert!(open.told(1) && !open.told(1) && !open.told(3));
        assert_eq!(open.ended(), 0);
        assert_eq!(hand_over(&mut open), Some(2));
        assert_eq!(hand_over(&mut open), Some(3));
        assert_eq!(hand_over(&mut open), None);
        assert!(open.told(3) && open.told(2) && open.len() == 0);
    }

    #[test]
    fn a_notice_that_no_notifier_survives_is_given_up() {
        let mut open = Open::default();
        for tries in 1..=TRIES {
            assert!(!open.add(request(), START));
            assert!(open.hand_over(START).is_some());
            assert_eq!(open.ended(), usize::from(tries == TRIES));
        }
        // The later ones are not, and not for what they were never handed to.
        assert_eq!(open.len(), TRIES as usize - 1);
        assert_eq!(open.hand_over(START).map(|handed| handed.number), Some(2));
    }

    #[test]
    fn where_none_starts_everything_is_given_up() {
        let mut open = Open::default();
        assert!(!open.add(request(), START) && !open.add(request(), START));
        let given_up: Vec<_> = (0..TRIES).map(|_| open.not_started()).collect();
        assert_eq!(given_up, [0, 0, 0, 0, 2]);
        assert!(!open.has_more());
    }

    #[test]
    fn a_warning_says_what_is_left() {
        let mut open = Open::default();
        assert!(!open.add(warning(20_000), START));
        assert_eq!(left(open.hand_over(seconds(5))), Some(15_000));
        assert_eq!(open.ended(), 0);
        assert_eq!(left(open.hand_over(seconds(19))), Some(1000));
        assert_eq!(open.ended(), 0);
        // Told perhaps, and over: not again.
        assert_eq!(open.hand_over(seconds(21)), None);
        assert_eq!(open.len(), 0);
    }

    #[test]
    fn a_warning_that_was_never_told_may_come_a_little_late() {
        let mut open = Open::default();
        assert!(!open.add(warning(20_000), START));
        assert!(!open.add(warning(20_000), START));
        assert_eq!(left(open.hand_over(seconds(30))), Some(0));
        assert_eq!(open.hand_over(seconds(31)), None);
    }

    #[test]
    fn the_oldest_is_let_go() {
        let mut open = Open::default();
        for _ in 0..MOST {
            assert!(!open.add(request(), START));
        }
        assert!(open.add(request(), START), "one that nobody was told");
        assert_eq!(open.hand_over(START).map(|handed| handed.number), Some(2));
        assert!(!open.add(request(), START), "the notifier has it");
        assert_eq!(open.hand_over(START).map(|handed| handed.number), Some(3));
        assert_eq!(open.len(), MOST);
    }

    #[derive(Clone, Debug)]
    enum Step {
        Add,
        HandOver,
        PassOver,
        Told(u64),
        Ended,
        NotStarted,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => Just(Step::Add),
            6 => Just(Step::HandOver),
            1 => Just(Step::PassOver),
            3 => (0..60u64).prop_map(Step::Told),
            1 => Just(Step::Ended),
            1 => Just(Step::NotStarted),
        ]
    }

    proptest! {
        /// Each notifier gets what is open, once and in order, and nothing that was dealt with; a notice goes to no more
        /// notifiers than it may, and none is forgotten before.
        #[test]
        fn every_notifier_gets_what_is_open(steps in proptest::collection::vec(step(), 0..200)) {
            let mut open = Open::default();
            let (mut given, mut gone) = (0u64, BTreeSet::new());
            let mut tries = vec![0; steps.len() + 1];
            let mut has: BTreeSet<u64> = BTreeSet::new();
            let alive = |given: u64, gone: &BTreeSet<u64>| {
                (1..=given).filter(|number| !gone.contains(number)).collect::<Vec<_>>()
            };
            for step in steps {
                match step {
                    Step::Add => {
                        let before = alive(given, &gone);
                        given += 1;
                        let lost = open.add(request(), START);
                        if before.len() == MOST {
                            prop_assert_eq!(lost, !has.remove(&before[0]));
                            gone.insert(before[0]);
                        } else {
                            prop_assert!(!lost);
                        }
                    }
                    Step::HandOver => {
                        let next = alive(given, &gone).into_iter().find(|number| !has.contains(number));
                        let handed = open.hand_over(START).map(|handed| handed.number);
                        prop_assert_eq!(handed, next);
                        if let Some(number) = handed {
                            tries[number as usize] += 1;
                            prop_assert!(has.last().is_none_or(|&last| last < number));
                            has.insert(number);
                        }
                    }
                    Step::PassOver => {
                        gone.extend(alive(given, &gone).into_iter().find(|number| !has.contains(number)));
                        open.pass_over();
                    }
                    Step::Told(number) => {
                        let had = has.remove(&number);
                        prop_assert_eq!(open.told(number), had);
                        if had {
                            gone.insert(number);
                        }
                    }
                    Step::Ended | Step::NotStarted => {
                        let before = alive(given, &gone);
                        let given_up = if matches!(step, Step::NotStarted) {
                            before.iter().for_each(|&number| tries[number as usize] += 1);
                            open.not_started()
                        } else {
                            open.ended()
                        };
                        let failed = before.iter().filter(|&&number| tries[number as usize] >= TRIES);
                        let failed: Vec<u64> = failed.copied().collect();
                        prop_assert_eq!(given_up, failed.len());
                        gone.extend(failed);
                        has.clear();
                    }
                }
                let left = alive(given, &gone);
                prop_assert_eq!(open.len(), left.len());
                prop_assert_eq!(open.has_more(), has.len() < left.len());
                prop_assert!(open.len() <= MOST);
            }
        }
    }
}
