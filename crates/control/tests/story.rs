//! Takeovers told from beginning to end, as a shell lives through them.

use std::time::Duration;

use handover_control::{
    AcquireRequest, Arbiter, Control, ControllerId, Denied, Effect, End, Epoch, FlushId, GiveBack,
    InputSource, LeaseId, Moment, OnDisconnect, OwnerId, Phase, Refusal, TokenHash, ViewerId,
};

const OWNER: OwnerId = OwnerId(7);
const VIEWER: ViewerId = ViewerId(1);

fn at(millis: u64) -> Moment {
    Moment::default() + Duration::from_millis(millis)
}

fn token(lease: u64) -> TokenHash {
    TokenHash([lease as u8; 32])
}

fn request(lease: u64) -> AcquireRequest {
    AcquireRequest {
        lease: LeaseId(lease),
        token: token(lease),
        controller: ControllerId(lease),
        viewer: Some(VIEWER),
        ttl: Duration::from_secs(30),
        drain: Duration::from_secs(5),
        idle: None,
        max: None,
        on_disconnect: OnDisconnect::End,
        private: false,
    }
}

fn effects(arbiter: &mut Arbiter) -> Vec<Effect> {
    std::iter::from_fn(|| arbiter.poll_effect()).collect()
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
