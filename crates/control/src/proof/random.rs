//! Long random interleavings with real durations, one test an invariant.

use std::time::Duration;

use proptest::prelude::*;

use super::{
    inputs::Input,
    referee::Rule,
    world::{Terms, World},
};
use crate::control::{GiveBack, PauseReason};

fn between(least: Duration, most: Duration) -> impl Strategy<Value = Duration> {
    (least.as_millis() as u64..=most.as_millis() as u64).prop_map(Duration::from_millis)
}

fn terms() -> impl Strategy<Value = Terms> {
    let (short, long) = (Duration::from_millis(1), Duration::from_secs(90));
    let limit = move || prop::option::of(between(short, long));
    (
        between(short, Duration::from_secs(40)),
        between(short, Duration::from_secs(8)),
        [limit(), limit()],
        [limit(), limit()],
        [limit(), limit()],
        1..4_usize,
    )
        .prop_map(|(ttl, drain, idle, max, linger, permits_each)| Terms {
            ttl,
            drain,
            idle,
            max,
            linger,
            permits_each,
        })
}

/// Time passes in small steps, past one deadline, or past all of them.
fn wait() -> impl Strategy<Value = Input> {
    prop_oneof![
        6 => between(Duration::ZERO, Duration::from_millis(100)),
        3 => between(Duration::ZERO, Duration::from_secs(10)),
        1 => between(Duration::from_secs(10), Duration::from_secs(100_000)),
    ]
    .prop_map(Input::Wait)
}

fn by_a_person() -> impl Strategy<Value = Input> {
    let how = prop_oneof![Just(GiveBack::Return), Just(GiveBack::Cancelled)];
    (0..2_usize, how, 0..28_u8).prop_map(|(no, how, which)| match which {
        0..=4 => Input::Acquire(no),
        5..=6 => Input::Request(no),
        7..=9 => Input::Renew(no),
        10 => Input::LateRenew(no),
        11 => Input::LateReclaim(no),
        12 => Input::LateGiveBack(no),
        13..=14 => Input::Reclaim(no),
        15 => Input::ReclaimWithoutViewer(no),
        16..=17 => Input::GiveBack(no, how),
        18 => Input::GiveBackWhatever,
        19 => Input::Give(no),
        20 => Input::Refuse(no),
        21..=24 => Input::Act(no),
        25 => Input::ControllerGone(no),
        26 => Input::OldControllerGone(no),
        _ => Input::ViewerGone(no),
    })
}

fn by_an_agent() -> impl Strategy<Value = Input> {
    (0..2_usize, 0..6_u8).prop_map(|(agent, which)| match which {
        0..=2 => Input::Permit(agent),
        3..=4 => Input::Complete(agent),
        _ => Input::AgentGone(agent),
    })
}

fn by_the_shell() -> impl Strategy<Value = Input> {
    prop_oneof![
        6 => Just(Input::Flushed),
        1 => Just(Input::OldFlushed),
        6 => Just(Input::StartRecorded(true)),
        1 => Just(Input::StartRecorded(false)),
        6 => Just(Input::EndRecorded),
        2 => Just(Input::Tick),
    ]
}

fn by_force() -> impl Strategy<Value = Input> {
    prop_oneof![
        4 => Just(Input::Revoke),
        4 => Just(Input::Pause(PauseReason::Requested)),
        2 => Just(Input::Pause(PauseReason::ForeignConnection)),
        2 => Just(Input::Pause(PauseReason::DisplayUnavailable)),
        12 => Just(Input::Resume),
        1 => Just(Input::DesktopGone),
        4 => between(Duration::ZERO, Duration::from_secs(3600)).prop_map(Input::TickInThePast),
    ]
}

fn interleaving() -> impl Strategy<Value = Vec<Input>> {
    let input = prop_oneof![
        4 => wait(),
        8 => by_a_person(),
        4 => by_an_agent(),
        10 => by_the_shell(),
        1 => by_force(),
    ];
    prop::collection::vec(input, 1..160)
}

/// Runs an interleaving and tells how `rule` was broken, if it was. Another
/// rule's break ends the run and is left to the test of that rule.
fn breaks(rule: Rule, terms: Terms, inputs: &[Input]) -> Option<String> {
    let mut world = World::new(terms);
    let broken = inputs.iter().find_map(|&input| world.step(input).err())?;
    (broken.rule == rule).then_some(broken.what)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn c1_human_input_only_under_a_live_lease(terms in terms(), inputs in interleaving()) {
        prop_assert_eq!(breaks(Rule::C1, terms, &inputs), None);
    }

    #[test]
    fn c2_agent_input_only_in_the_agents_time(terms in terms(), inputs in interleaving()) {
        prop_assert_eq!(breaks(Rule::C2, terms, &inputs), None);
    }

    #[test]
    fn c3_one_lease_and_none_lives_again(terms in terms(), inputs in interleaving()) {
        prop_assert_eq!(breaks(Rule::C3, terms, &inputs), None);
    }

    #[test]
    fn c4_no_grant_before_the_drain(terms in terms(), inputs in interleaving()) {
        prop_assert_eq!(breaks(Rule::C4, terms, &inputs), None);
    }

    #[test]
    fn c5_no_way_out_but_through_the_flush(terms in terms(), inputs in interleaving()) {
        prop_assert_eq!(breaks(Rule::C5, terms, &inputs), None);
    }

    #[test]
    fn c6_every_transition_is_told_with_its_epoch(terms in terms(), inputs in interleaving()) {
        prop_assert_eq!(breaks(Rule::C6, terms, &inputs), None);
    }
}
