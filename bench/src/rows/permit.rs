//! The arbiter alone: what each action of an agent and each key of a person pays for exclusion.

use std::time::{Duration, Instant};

use handover_control::{
    AcquireRequest, Arbiter, ControllerId, Effect, Epoch, InputSource, LeaseId, Moment,
    OnDisconnect, OwnerId, TokenHash, ViewerId,
};

use crate::{
    Outcome,
    figures::{Row, Samples},
};

/// Calls in one sample, since one call is too short for the clock.
const BATCH: u32 = 1000;
const SAMPLES: usize = 1000;

/// Permit, admission and completion of one action; admission of one of a person's messages.
pub fn measure() -> Outcome<Vec<Row>> {
    let mut arbiter = Arbiter::new(Epoch(1), None);
    let mut now = Moment::from_nanos(1);
    let permits = batches(|| {
        now = now + Duration::from_nanos(1);
        let permit = arbiter.permit(now, OwnerId(1))?;
        drop(arbiter.agent_input(now, permit)?);
        arbiter.complete(now, permit);
        Ok(())
    })?;

    let viewer = ViewerId(1);
    acquire(&mut arbiter, now, viewer)?;
    let inputs = batches(|| {
        now = now + Duration::from_nanos(1);
        drop(arbiter.human_input(now, InputSource::Viewer(viewer))?);
        Ok(())
    })?;
    Ok(vec![
        Row::times("permit in process", permits),
        Row::times("admission of a person's input in process", inputs),
    ])
}

fn batches(mut act: impl FnMut() -> Outcome<()>) -> Outcome<Samples> {
    Samples::take(SAMPLES, || {
        let started = Instant::now();
        for _ in 0..BATCH {
            act()?;
        }
        Ok(started.elapsed() / BATCH)
    })
}

/// Takes control as a host with a willing display and store would.
fn acquire(arbiter: &mut Arbiter, now: Moment, viewer: ViewerId) -> Outcome<()> {
    let lease = LeaseId(1);
    let long = Duration::from_secs(3600);
    arbiter.acquire(
        now,
        AcquireRequest {
            lease,
            token: TokenHash([0; 32]),
            controller: ControllerId(1),
            viewer: Some(viewer),
            ttl: long,
            drain: long,
            idle: Some(long),
            max: None,
            on_disconnect: OnDisconnect::End,
            private: false,
        },
    )?;
    while let Some(effect) = arbiter.poll_effect() {
        match effect {
            Effect::ReleaseAgent { flush } => arbiter.flushed(now, flush),
            Effect::RecordStart { lease, .. } => arbiter.start_recorded(now, lease, true),
            _ => {}
        }
    }
    Ok(())
}
