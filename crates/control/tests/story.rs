//! Takeovers told from beginning to end, as a shell lives through them.

use std::time::Duration;

use handover_control::{
    AcquireFailure, AcquireRequest, Arbiter, Control, ControllerId, Denied, Effect, End, Epoch,
    FLUSH_BUDGET, FlushId, GiveBack, InputSource, LeaseId, LeaseStage, Limit, MAX_OUTSTANDING,
    Moment, OnDisconnect, OwnerId, PauseReason, Phase, Refusal, TimeoutCause, TokenHash, ViewerId,
};

const OWNER: OwnerId = OwnerId(7);
const VIEWER: ViewerId = ViewerId(1);
const TTL: Duration = Duration::from_secs(30);
const DRAIN: Duration = Duration::from_secs(5);

fn at(millis: u64) -> Moment {
    Moment::default() + Duration::from_millis(millis)
}

fn token(lease: u64) -> TokenHash {
    TokenHash([lease as u8; 32])
}

fn named(lease: u64) -> Option<(LeaseId, TokenHash)> {
    Some((LeaseId(lease), token(lease)))
}

fn request(lease: u64) -> AcquireRequest {
    AcquireRequest {
        lease: LeaseId(lease),
        token: token(lease),
        controller: ControllerId(lease),
        viewer: Some(VIEWER),
        ttl: TTL,
        drain: DRAIN,
        idle: None,
        max: None,
        on_disconnect: OnDisconnect::End,
        private: false,
    }
}

fn effects(arbiter: &mut Arbiter) -> Vec<Effect> {
    std::iter::from_fn(|| arbiter.poll_effect()).collect()
}

/// Does at once what effects ask for, as a willing display and store would, and tells them all.
fn carry_out(arbiter: &mut Arbiter, now: Moment) -> Vec<Effect> {
    let mut all = Vec::new();
    while let Some(effect) = arbiter.poll_effect() {
        match effect {
            Effect::ReleaseAgent { flush } | Effect::Flush { flush, .. } => {
                arbiter.flushed(now, flush);
            }
            Effect::RecordStart { lease, .. } => arbiter.start_recorded(now, lease, true),
            Effect::RecordEnd { lease, .. } => arbiter.end_recorded(now, lease),
            _ => {}
        }
        all.push(effect);
    }
    all
}

/// An arbiter at time 0 under the lease that is asked for.
fn held(request: AcquireRequest) -> Arbiter {
    let mut arbiter = Arbiter::new(Epoch(3), None);
    arbiter.acquire(at(0), request).expect("nobody has control");
    let granted = Effect::Granted {
        lease: request.lease,
        epoch: Epoch(4),
    };
    assert!(carry_out(&mut arbiter, at(0)).contains(&granted));
    arbiter
}

fn end_in(effects: &[Effect]) -> Option<(End, Option<TimeoutCause>, Duration)> {
    effects.iter().find_map(|effect| match *effect {
        Effect::RecordEnd {
            end, cause, held, ..
        } => Some((end, cause, held)),
        _ => None,
    })
}

#[test]
fn takeover_and_return() {
    let mut arbiter = Arbiter::new(Epoch(3), None);
    let permit = arbiter.permit(at(0), OWNER).expect("the agent has control");
    assert!(arbiter.agent_input(at(1), permit).is_ok());

    arbiter
        .acquire(at(10), request(1))
        .expect("nobody has control");
    let flush = FlushId(1);
    assert_eq!(
        effects(&mut arbiter),
        [
            Effect::Interrupt(permit),
            Effect::WithdrawPaste,
            Effect::ReleaseAgent { flush }
        ]
    );
    assert_eq!(arbiter.status().phase, Phase::Draining);
    assert_eq!(arbiter.status().control, Control::Agent);
    assert_eq!(
        arbiter.agent_input(at(11), permit).unwrap_err(),
        Denied::Interrupted
    );
    assert!(matches!(
        arbiter.permit(at(11), OWNER),
        Err(Refusal::HumanControlActive(_))
    ));

    arbiter.flushed(at(12), flush);
    assert_eq!(effects(&mut arbiter), []);
    arbiter.complete(at(13), permit);
    let (lease, epoch) = (LeaseId(1), Epoch(4));
    assert_eq!(
        effects(&mut arbiter),
        [Effect::RecordStart { lease, epoch }]
    );
    assert!(
        arbiter
            .human_input(at(13), InputSource::Viewer(VIEWER))
            .is_err()
    );

    arbiter.start_recorded(at(14), lease, true);
    assert_eq!(effects(&mut arbiter), [Effect::Granted { lease, epoch }]);
    assert!(
        arbiter
            .human_input(at(15), InputSource::Viewer(VIEWER))
            .is_ok()
    );
    assert!(
        arbiter
            .human_input(at(15), InputSource::Lease(lease))
            .is_ok()
    );
    assert!(
        arbiter
            .human_input(at(15), InputSource::Viewer(ViewerId(2)))
            .is_err()
    );
    assert!(matches!(
        arbiter.acquire(at(16), request(2)),
        Err(Refusal::Held(_))
    ));

    arbiter
        .give_back(at(20), GiveBack::Return, Some((lease, token(1))))
        .expect("it is live");
    let flush = FlushId(2);
    assert_eq!(effects(&mut arbiter), [Effect::Flush { lease, flush }]);
    assert!(
        arbiter
            .human_input(at(20), InputSource::Viewer(VIEWER))
            .is_err()
    );
    assert_eq!(
        arbiter.renew(at(20), lease, token(1)),
        Err(Refusal::LeaseStale)
    );
    arbiter.flushed(at(21), flush);
    assert_eq!(
        effects(&mut arbiter),
        [Effect::RecordEnd {
            lease,
            end: End::Return,
            cause: None,
            epoch: Epoch(5),
            held: Duration::from_millis(6),
        }]
    );
    assert!(arbiter.permit(at(21), OWNER).is_err());
    arbiter.end_recorded(at(22), lease);
    assert_eq!(
        effects(&mut arbiter),
        [Effect::ControlReturned {
            epoch: Epoch(5),
            after: Some(lease)
        }]
    );
    assert!(arbiter.permit(at(23), OWNER).is_ok());
}

#[test]
fn drain_over_budget_leaves_the_agent_and_no_trace() {
    let mut arbiter = Arbiter::new(Epoch(3), None);
    let permit = arbiter.permit(at(0), OWNER).expect("the agent has control");
    arbiter
        .acquire(at(0), request(1))
        .expect("nobody has control");
    carry_out(&mut arbiter, at(1));
    assert_eq!(arbiter.next_deadline(), Some(at(0) + DRAIN));

    arbiter.tick(at(0) + DRAIN);
    let reason = AcquireFailure::DrainTimeout;
    assert_eq!(
        effects(&mut arbiter),
        [Effect::AcquireFailed {
            lease: LeaseId(1),
            reason
        }]
    );
    let status = arbiter.status();
    assert_eq!(
        (status.control, status.phase),
        (Control::Agent, Phase::Steady)
    );
    assert_eq!(
        (status.epoch, status.lease, status.outstanding),
        (Epoch(3), None, 1)
    );
    assert_eq!(arbiter.next_deadline(), None);
    // What was interrupted stays so; what is new is not.
    assert_eq!(
        arbiter.agent_input(at(6000), permit).unwrap_err(),
        Denied::Interrupted
    );
    let later = arbiter
        .permit(at(6000), OWNER)
        .expect("the agent has control");
    assert!(arbiter.agent_input(at(6000), later).is_ok());

    // Whoever asks next needs both to end.
    arbiter
        .acquire(at(7000), request(2))
        .expect("nobody has control");
    let flush = FlushId(2);
    assert_eq!(
        effects(&mut arbiter),
        [
            Effect::Interrupt(permit),
            Effect::Interrupt(later),
            Effect::WithdrawPaste,
            Effect::ReleaseAgent { flush }
        ]
    );
}

#[test]
fn display_that_does_not_answer_the_drains_fence_fails_the_takeover() {
    let mut arbiter = Arbiter::new(Epoch(3), None);
    arbiter
        .acquire(at(0), request(1))
        .expect("nobody has control");
    effects(&mut arbiter);
    arbiter.tick(at(0) + DRAIN);
    let reason = AcquireFailure::DrainTimeout;
    assert_eq!(
        effects(&mut arbiter),
        [Effect::AcquireFailed {
            lease: LeaseId(1),
            reason
        }]
    );
    // The fence of the first attempt does not count for the second.
    arbiter
        .acquire(at(6000), request(2))
        .expect("nobody has control");
    effects(&mut arbiter);
    arbiter.flushed(at(6001), FlushId(1));
    assert_eq!(effects(&mut arbiter), []);
    arbiter.flushed(at(6002), FlushId(2));
    let (lease, epoch) = (LeaseId(2), Epoch(4));
    assert_eq!(
        effects(&mut arbiter),
        [Effect::RecordStart { lease, epoch }]
    );
}

#[test]
fn lease_ends_at_its_deadline_however_late_that_is_noticed() {
    let mut arbiter = held(request(1));
    arbiter
        .renew(at(10_000), LeaseId(1), token(1))
        .expect("live");
    let source = InputSource::Viewer(VIEWER);
    // The machine slept for an hour.
    assert_eq!(
        arbiter.human_input(at(3_600_000), source).unwrap_err(),
        Denied::NoLease
    );
    assert_eq!(
        arbiter.renew(at(3_600_000), LeaseId(1), token(1)),
        Err(Refusal::LeaseStale)
    );
    let told = carry_out(&mut arbiter, at(3_600_000));
    let lived = Duration::from_secs(40);
    assert_eq!(
        end_in(&told),
        Some((End::Timeout, Some(TimeoutCause::NoRenewal), lived))
    );
    // A clock that steps back brings nothing back.
    assert_eq!(
        arbiter.renew(at(11_000), LeaseId(1), token(1)),
        Err(Refusal::LeaseStale)
    );
    assert_eq!(arbiter.status().control, Control::Agent);
}

#[test]
fn limits_are_warned_of_ahead() {
    let (minute, hour) = (Duration::from_secs(60), Duration::from_secs(3600));
    let terms = AcquireRequest {
        ttl: hour * 2,
        idle: Some(minute),
        max: Some(hour),
        ..request(1)
    };
    let mut arbiter = held(terms);
    arbiter.tick(at(45_000));
    let lease = LeaseId(1);
    let left = Duration::from_secs(15);
    assert_eq!(
        effects(&mut arbiter),
        [Effect::Warn {
            lease,
            limit: Limit::Idle,
            left
        }]
    );
    // To act is to be active; to renew is only to be alive.
    arbiter.renew(at(46_000), lease, token(1)).expect("live");
    let _ = arbiter
        .human_input(at(50_000), InputSource::Lease(lease))
        .expect("live");
    assert_eq!(arbiter.status().lease.expect("held").expires_in, minute);
    arbiter.tick(at(110_000));
    let told = carry_out(&mut arbiter, at(110_000));
    let lived = Duration::from_secs(110);
    assert_eq!(
        end_in(&told),
        Some((End::Timeout, Some(TimeoutCause::Idle), lived))
    );
    assert_eq!(arbiter.next_deadline(), None);
}

#[test]
fn late_fence_shows_a_paused_desktop_until_it_answers() {
    let mut arbiter = held(request(1));
    arbiter
        .give_back(at(10), GiveBack::Return, named(1))
        .expect("live");
    let Some(Effect::Flush { flush, .. }) = arbiter.poll_effect() else {
        panic!("no flush")
    };
    arbiter.tick(at(10) + FLUSH_BUDGET);
    let reason = PauseReason::DisplayUnavailable;
    assert_eq!(
        effects(&mut arbiter),
        [Effect::RecordPaused {
            reason,
            epoch: Epoch(5)
        }]
    );
    let status = arbiter.status();
    assert_eq!(
        (status.control, status.phase),
        (Control::Paused, Phase::Returning)
    );
    assert_eq!(status.pause, Some(reason));
    assert_eq!(
        arbiter.permit(at(3000), OWNER),
        Err(Refusal::Paused(reason))
    );
    assert_eq!(
        arbiter.acquire(at(3000), request(2)),
        Err(Refusal::Paused(reason))
    );
    assert_eq!(arbiter.resume(at(3000)), Err(Refusal::Paused(reason)));

    arbiter.flushed(at(60_000), flush);
    let told = carry_out(&mut arbiter, at(60_001));
    assert_eq!(
        end_in(&told),
        Some((End::Return, None, Duration::from_millis(10)))
    );
    let (epoch, after) = (Epoch(6), Some(LeaseId(1)));
    assert_eq!(told.last(), Some(&Effect::ControlReturned { epoch, after }));
}

#[test]
fn end_of_the_display_ends_the_lease_without_a_fence() {
    let mut arbiter = held(request(1));
    arbiter
        .give_back(at(10), GiveBack::Return, named(1))
        .expect("live");
    effects(&mut arbiter);
    arbiter.desktop_gone(at(20));
    let told = carry_out(&mut arbiter, at(20));
    assert_eq!(
        end_in(&told),
        Some((End::Return, None, Duration::from_millis(10)))
    );
    let gone = Refusal::Paused(PauseReason::DesktopGone);
    assert_eq!(arbiter.resume(at(30)), Err(gone));
    assert_eq!(arbiter.acquire(at(30), request(2)), Err(gone));
    assert_eq!(arbiter.permit(at(30), OWNER), Err(gone));
}

#[test]
fn parked_lease_admits_nothing_until_its_token_is_shown() {
    let linger = OnDisconnect::Linger(Duration::from_secs(20));
    let mut arbiter = held(AcquireRequest {
        on_disconnect: linger,
        ..request(1)
    });
    arbiter.viewer_gone(at(100), VIEWER);
    let lease = LeaseId(1);
    assert_eq!(effects(&mut arbiter), [Effect::ReleaseHuman { lease }]);
    arbiter.controller_gone(at(200), ControllerId(1));
    assert_eq!(effects(&mut arbiter), []);
    let denied = arbiter
        .human_input(at(300), InputSource::Lease(lease))
        .unwrap_err();
    assert_eq!(denied, Denied::Parked);
    assert_eq!(
        arbiter.status().lease.expect("held").stage,
        LeaseStage::Parked
    );
    // Another person cannot have it, with whatever token.
    assert!(matches!(
        arbiter.acquire(at(300), request(2)),
        Err(Refusal::Held(_))
    ));
    let (other, viewer) = (ControllerId(2), ViewerId(2));
    let stolen = arbiter.reclaim(at(300), lease, token(2), other, Some(viewer));
    assert_eq!(stolen, Err(Refusal::LeaseStale));
    // Renewals do not stretch the time that is left to come back.
    let left = arbiter
        .renew(at(10_100), lease, token(1))
        .expect("alive")
        .expires_in;
    assert_eq!(left, Duration::from_secs(10));

    let again = arbiter
        .reclaim(at(11_000), lease, token(1), other, Some(viewer))
        .expect("alive");
    assert_eq!((again.expires_in, again.epoch), (TTL, Epoch(4)));
    assert!(
        arbiter
            .human_input(at(11_000), InputSource::Viewer(viewer))
            .is_ok()
    );
    assert!(
        arbiter
            .human_input(at(11_000), InputSource::Viewer(VIEWER))
            .is_err()
    );
    // The end of the connection that was left behind means nothing.
    arbiter.controller_gone(at(12_000), ControllerId(1));
    assert!(
        arbiter
            .human_input(at(12_000), InputSource::Viewer(viewer))
            .is_ok()
    );

    arbiter.controller_gone(at(13_000), other);
    arbiter.tick(at(33_000));
    let told = carry_out(&mut arbiter, at(33_000));
    let lived = Duration::from_secs(33);
    assert_eq!(
        end_in(&told),
        Some((End::Timeout, Some(TimeoutCause::LingerOver), lived))
    );
}

#[test]
fn control_is_given_on_without_an_agent_between() {
    let mut arbiter = held(request(1));
    assert_eq!(
        arbiter.give(at(10), LeaseId(1), token(1)),
        Err(Refusal::NoRequest)
    );
    arbiter
        .request(at(10), request(2))
        .expect("nobody else asks");
    assert_eq!(
        arbiter.request(at(10), request(3)),
        Err(Refusal::RequestPending)
    );
    let (holder, asker, controller) = (LeaseId(1), LeaseId(2), ControllerId(2));
    assert_eq!(
        effects(&mut arbiter),
        [Effect::RequestPending {
            holder,
            asker,
            controller
        }]
    );
    arbiter.refuse(at(20), holder, token(1)).expect("live");
    let reason = AcquireFailure::Refused;
    assert_eq!(
        effects(&mut arbiter),
        [Effect::AcquireFailed {
            lease: asker,
            reason
        }]
    );

    arbiter
        .request(at(30), request(4))
        .expect("nobody else asks");
    effects(&mut arbiter);
    arbiter.give(at(40), holder, token(1)).expect("live");
    let Some(Effect::Flush { flush, .. }) = arbiter.poll_effect() else {
        panic!("no flush")
    };
    arbiter.flushed(at(41), flush);
    effects(&mut arbiter);
    arbiter.end_recorded(at(42), holder);
    assert!(matches!(
        arbiter.permit(at(42), OWNER),
        Err(Refusal::HumanControlActive(_))
    ));
    let (lease, epoch) = (LeaseId(4), Epoch(6));
    let told = carry_out(&mut arbiter, at(43));
    assert_eq!(
        told,
        [
            Effect::RecordStart { lease, epoch },
            Effect::Granted { lease, epoch }
        ]
    );
    assert_eq!(
        arbiter.renew(at(44), holder, token(1)),
        Err(Refusal::LeaseStale)
    );
    // The agents hear of both takeovers' end at once, by the last.
    arbiter.revoke(at(50));
    let told = carry_out(&mut arbiter, at(50));
    let returned = Effect::ControlReturned {
        epoch: Epoch(7),
        after: Some(lease),
    };
    assert_eq!(told.last(), Some(&returned));
}

#[test]
fn asker_who_goes_before_the_grant_leaves_nothing_behind() {
    let mut arbiter = Arbiter::new(Epoch(3), None);
    let lease = LeaseId(1);
    arbiter
        .acquire(at(0), request(1))
        .expect("nobody has control");
    arbiter.flushed(at(1), FlushId(1));
    effects(&mut arbiter);
    // Its start is being stored and may be on record already.
    arbiter.controller_gone(at(2), ControllerId(1));
    assert_eq!(effects(&mut arbiter), []);
    arbiter.start_recorded(at(3), lease, true);
    let told = carry_out(&mut arbiter, at(4));
    assert_eq!(end_in(&told), Some((End::Recovered, None, Duration::ZERO)));
    let reason = AcquireFailure::ControllerGone;
    assert!(told.contains(&Effect::AcquireFailed { lease, reason }));
    // There was no takeover to tell the agents of.
    let returned = Effect::ControlReturned {
        epoch: Epoch(5),
        after: None,
    };
    assert_eq!(told.last(), Some(&returned));
    assert!(arbiter.permit(at(5), OWNER).is_ok());
}

#[test]
fn no_grant_without_its_record() {
    let mut arbiter = Arbiter::new(Epoch(3), None);
    arbiter
        .acquire(at(0), request(1))
        .expect("nobody has control");
    arbiter.flushed(at(1), FlushId(1));
    effects(&mut arbiter);
    arbiter.start_recorded(at(2), LeaseId(1), false);
    let reason = AcquireFailure::StorageFailed;
    assert_eq!(
        effects(&mut arbiter),
        [Effect::AcquireFailed {
            lease: LeaseId(1),
            reason
        }]
    );
    assert_eq!(arbiter.status().epoch, Epoch(3));
    assert!(arbiter.permit(at(3), OWNER).is_ok());
}

#[test]
fn pause_takes_control_from_everybody() {
    let mut arbiter = held(request(1));
    arbiter.pause(at(10), PauseReason::Requested);
    let told = carry_out(&mut arbiter, at(11));
    assert_eq!(
        end_in(&told),
        Some((End::Revoked, None, Duration::from_millis(10)))
    );
    let (reason, epoch) = (PauseReason::Requested, Epoch(5));
    assert_eq!(told.last(), Some(&Effect::RecordPaused { reason, epoch }));
    assert_eq!(arbiter.permit(at(12), OWNER), Err(Refusal::Paused(reason)));

    // From here a person can take over, and leaves it paused again.
    arbiter
        .acquire(at(20), request(2))
        .expect("a pause is for agents");
    assert!(carry_out(&mut arbiter, at(20)).contains(&Effect::Granted {
        lease: LeaseId(2),
        epoch: Epoch(6),
    }));
    arbiter
        .give_back(at(30), GiveBack::Cancelled, None)
        .expect("live");
    let told = carry_out(&mut arbiter, at(30));
    assert_eq!(
        told.last(),
        Some(&Effect::RecordPaused {
            reason,
            epoch: Epoch(7)
        })
    );
    arbiter.resume(at(40)).expect("paused");
    let (epoch, after) = (Epoch(8), Some(LeaseId(2)));
    assert_eq!(
        effects(&mut arbiter),
        [
            Effect::RecordResumed { epoch },
            Effect::ControlReturned { epoch, after }
        ]
    );
    arbiter.resume(at(50)).expect("nothing to do");
    assert_eq!(effects(&mut arbiter), []);
}

#[test]
fn foreign_connection_leaves_nobody_in_control_until_a_person_resumes() {
    let mut arbiter = Arbiter::new(Epoch(3), Some(PauseReason::Requested));
    let reason = PauseReason::ForeignConnection;
    arbiter.pause(at(0), reason);
    assert_eq!(
        effects(&mut arbiter),
        [Effect::RecordPaused {
            reason,
            epoch: Epoch(3)
        }]
    );
    assert_eq!(
        arbiter.acquire(at(1), request(1)),
        Err(Refusal::Paused(reason))
    );
    // A lighter reason does not cover a weightier one.
    arbiter.pause(at(2), PauseReason::Requested);
    assert_eq!(effects(&mut arbiter), []);
    assert_eq!(arbiter.permit(at(3), OWNER), Err(Refusal::Paused(reason)));
    arbiter.resume(at(4)).expect("paused");
    assert!(arbiter.permit(at(5), OWNER).is_ok());
}

#[test]
fn permits_that_are_out_are_bounded() {
    let mut arbiter = Arbiter::new(Epoch(3), None);
    for _ in 0..MAX_OUTSTANDING {
        arbiter.permit(at(0), OWNER).expect("there is room");
    }
    assert_eq!(arbiter.permit(at(0), OWNER), Err(Refusal::TooManyPermits));
    arbiter.owner_gone(at(1), OWNER);
    assert_eq!(arbiter.status().outstanding, 0);
    assert!(arbiter.permit(at(1), OWNER).is_ok());
}

#[test]
fn refusals_say_who_is_in_the_way() {
    let mut arbiter = held(request(0x2a));
    let refusal = arbiter.acquire(at(10_000), request(2)).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "a person is in control (lease l-2a, 20.0s left)"
    );
    arbiter.revoke(at(10_000));
    let refusal = arbiter.permit(at(10_000), OWNER).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "a person is handing control back (lease l-2a)"
    );
}
