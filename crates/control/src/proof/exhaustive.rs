//! Every reachable world of two people, two agents and one desktop.
//!
//! `make test` walks through [`SMALL`]; with `HANDOVER_MODEL=large`, as `make
//! model` sets it, [`LARGE`] is walked through as well.

use std::{collections::BTreeSet, time::Duration};

use super::{
    inputs::Input,
    search::{Situation, search},
    world::{Terms, World},
};
use crate::control::{GiveBack, PauseReason};

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// The first person's lease ends with its viewer or controller, the second's
/// is parked; each agent has one permit at a time.
pub(super) const SMALL: Terms = Terms {
    ttl: seconds(2),
    drain: seconds(1),
    idle: [None, None],
    max: [None, None],
    linger: [None, Some(seconds(2))],
    permits_each: 1,
};

/// With limits, so with every timer there is, longer deadlines, and two permits
/// at a time for each agent.
const LARGE: Terms = Terms {
    ttl: seconds(3),
    drain: seconds(2),
    idle: [Some(seconds(4)); 2],
    max: [Some(seconds(8)); 2],
    linger: [None, Some(seconds(2))],
    permits_each: 2,
};

/// Every step that may be taken under these terms.
pub(super) fn inputs(terms: &Terms) -> Vec<Input> {
    let mut inputs = vec![
        Input::Wait(seconds(1)),
        Input::Wait(seconds(60)),
        Input::Tick,
        Input::TickInThePast(seconds(1)),
        Input::GiveBackWhatever,
        Input::Revoke,
        Input::Pause(PauseReason::Requested),
        Input::Pause(PauseReason::ForeignConnection),
        Input::Resume,
        Input::DesktopGone,
        Input::StartRecorded(true),
        Input::StartRecorded(false),
        Input::EndRecorded,
        Input::Flushed,
        Input::OldFlushed,
    ];
    for no in 0..2 {
        inputs.extend([
            Input::Acquire(no),
            Input::Request(no),
            Input::Renew(no),
            Input::LateRenew(no),
            Input::LateReclaim(no),
            Input::LateGiveBack(no),
            Input::Reclaim(no),
            Input::ReclaimWithoutViewer(no),
            Input::GiveBack(no, GiveBack::Return),
            Input::GiveBack(no, GiveBack::Cancelled),
            Input::Give(no),
            Input::Refuse(no),
            Input::ControllerGone(no),
            Input::OldControllerGone(no),
            Input::ViewerGone(no),
            Input::Permit(no),
            Input::Complete(no),
            Input::AgentGone(no),
        ]);
        // Without an idle limit a person's input changes nothing, and whether
        // it is admitted is probed in every world.
        if terms.idle[no].is_some() {
            inputs.push(Input::Act(no));
        }
    }
    inputs
}

#[track_caller]
fn walk_through(terms: Terms) {
    let started = std::time::Instant::now();
    let found = search(World::new(terms), &inputs(&terms));
    println!(
        "{} worlds, {} steps, {:.1?}, through {:?}",
        found.worlds,
        found.steps,
        started.elapsed(),
        found.situations
    );
    if let Some(broken) = found.broken {
        panic!("after\n{}", broken.story());
    }
    let expected = BTreeSet::from([
        Situation::AgentSteady,
        Situation::Draining,
        Situation::DrainingPaused,
        Situation::Starting,
        Situation::Live,
        Situation::Parked,
        Situation::AskedFor,
        Situation::Returning,
        Situation::FlushOverdue,
        Situation::EndBeingStored,
        Situation::PausedByRequest,
        Situation::PausedByForeignConnection,
        Situation::DesktopGone,
    ]);
    assert_eq!(
        found.situations, expected,
        "the search did not come by everywhere"
    );
}

#[test]
fn model_small() {
    walk_through(SMALL);
}

#[test]
fn model_large() {
    if std::env::var_os("HANDOVER_MODEL").is_some_and(|size| size == "large") {
        walk_through(LARGE);
    }
}
