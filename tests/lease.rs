//! The lease: who gets it, how long it lives, and that a lost one never comes back.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::{Holder, LONG, SHORT, Session, eventually, holds_for};

/// C3: two connections ask at once, many times; exactly one gets it each time, and the other learns who has it.
#[test]
fn of_two_connections_one_wins() {
    let session = Session::up();
    let (mut one, mut other) = (session.wire(), session.wire());
    for _ in 0..100 {
        let requests = (
            one.send("control.acquire", json!({})),
            other.send("control.acquire", json!({})),
        );
        let (mut winner, answers) = match (one.answer(requests.0), other.answer(requests.1)) {
            (Ok(granted), Err(refused)) => (&mut one, (granted, refused)),
            (Err(refused), Ok(granted)) => (&mut other, (granted, refused)),
            both => panic!("not one winner: {both:?}"),
        };
        let (granted, refused) = answers;
        assert_eq!(refused.code, "human_lease_held");
        assert!(
            !refused
                .data
                .to_string()
                .contains(granted["token"].as_str().expect("a token"))
        );
        let proof = json!({"leaseId": granted["leaseId"], "token": granted["token"]});
        winner = match winner.call("control.return", proof) {
            Ok(_) => winner,
            Err(refused) => panic!("the winner cannot return: {refused:?}"),
        };
        let _ = winner;
    }
}

/// C3: two real processes race, many rounds; one winner each.
#[test]
fn of_two_processes_one_wins() {
    let session = Session::up();
    for round in 0..12 {
        let both = [0, 1].map(|_| session.start(&["watch", "--control", "--viewer", "none"]));
        let (winner, loser) = eventually("one of the two is refused", LONG, || {
            both.iter()
                .position(|one| !crate::support::alive(one.pid()))
                .map(|loser| (1 - loser, loser))
        });
        let mut both = both.map(Some);
        let refused = both[loser].take().expect("there").finish(LONG);
        assert_eq!(refused.code, 1, "round {round}: {refused:?}");
        assert!(refused.out.contains("human_lease_held"), "{refused:?}");
        assert_eq!(session.becomes("human", SHORT)["control"], "human");
        let winner = both[winner].take().expect("there");
        winner.signal(crate::support::Signal::INT);
        assert_eq!(winner.finish(LONG).code, 130);
        session.becomes("agent", SHORT);
    }
    assert_eq!(crate::support::takeovers(&session.journal()).len(), 12);
}

/// L8: a renewed lease outlives its TTL by far.
#[test]
fn a_renewed_lease_lives_on() {
    let session = Session::up();
    let mut holder = session.take(json!({"ttlMs": 6000}));
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(14) {
        let proof = holder.proof();
        let renewed = holder.wire.done("control.renew", proof);
        assert!(
            renewed["expiresInMs"]
                .as_u64()
                .is_some_and(|left| left <= 6000 && left > 3000),
            "{renewed}"
        );
        holds_for("in control", Duration::from_millis(300), || {
            session.status()["control"] == "human"
        });
    }
}

/// C3: a lease that ended is never live again, however it ended and however its renewal comes.
#[test]
fn a_lost_lease_never_comes_back() {
    let session = Session::up();
    let mut holder = session.take(json!({"ttlMs": 1000}));
    session.becomes("agent", LONG);
    let proof = holder.proof();
    for method in ["control.renew", "control.reclaim", "control.return"] {
        assert_eq!(
            holder.wire.refused(method, proof.clone()).code,
            "lease_stale",
            "{method}"
        );
    }
    let mut next = session.take(json!({}));
    assert_eq!(
        holder.wire.refused("control.renew", proof.clone()).code,
        "lease_stale"
    );
    assert_eq!(
        holder.wire.refused("control.return", proof).code,
        "lease_stale"
    );
    assert_eq!(
        session.status()["lease"]["leaseId"],
        next.granted["leaseId"]
    );
    let forged = json!({"leaseId": next.granted["leaseId"], "token": "0".repeat(64)});
    assert_eq!(
        holder.wire.refused("control.renew", forged).code,
        "lease_stale"
    );
    next.give_back();
}

/// L4: after a lost connection the same holder takes the same lease up again within its time; another cannot.
#[test]
fn a_lingering_lease_is_reclaimed_by_its_holder_only() {
    let session = Session::up();
    let recorder = crate::support::Recorder::everything(&session.display());
    let holder = session.take(json!({"onDisconnect": "linger", "lingerMs": 30_000}));
    let Holder {
        wire,
        viewer,
        granted,
        ..
    } = holder;
    viewer.tap("x");
    eventually("input arrives", SHORT, || {
        (recorder.presses(u32::from(b'x')) == 1).then_some(())
    });
    drop(wire);
    let mut other = session.wire();
    eventually("the lease is parked", SHORT, || {
        let refused = other.refused("control.acquire", json!({}));
        assert_eq!(refused.code, "human_lease_held");
        refused.message.contains("away").then_some(())
    });
    viewer.tap("x");
    holds_for("input has stopped", Duration::from_millis(300), || {
        recorder.presses(u32::from(b'x')) == 1
    });
    let guess = json!({"leaseId": granted["leaseId"], "token": "f".repeat(64)});
    assert_eq!(other.refused("control.reclaim", guess).code, "lease_stale");
    let click = other.refused("desktop.click", json!({"x": 5, "y": 5}));
    assert_eq!(click.code, "human_control_active");

    let (viewer, name) = session.viewer();
    viewer.first_frame();
    let mut wire = session.wire();
    let proof = json!({"leaseId": granted["leaseId"], "token": granted["token"], "viewer": name});
    let again = wire.done("control.reclaim", proof);
    assert_eq!(
        (&again["leaseId"], &again["epoch"]),
        (&granted["leaseId"], &granted["epoch"])
    );
    viewer.tap("h");
    eventually("input again", SHORT, || {
        (recorder.presses(u32::from(b'h')) == 1).then_some(())
    });
}

/// L6, E4: nobody is ever given control without asking: not by looking, not by sending input, not when the
/// holder leaves.
#[test]
fn control_is_never_granted_implicitly() {
    let session = Session::up();
    let (watcher, _) = session.viewer();
    watcher.first_frame();
    watcher.tap("abc");
    let mut agent = session.wire();
    agent.done("desktop.click", json!({"x": 50, "y": 50}));
    agent.done("desktop.type", json!({"text": "abc"}));
    assert_eq!(session.status()["control"], "agent");
    let mut holder = session.take(json!({}));
    holder.give_back();
    holds_for(
        "the agent is in control",
        Duration::from_millis(300),
        || session.status()["control"] == "agent",
    );
}

/// L10: a refusal says who is in control, since when, for how long still, and what to do.
#[test]
fn a_refusal_says_who_and_until_when_and_what_to_do() {
    let session = Session::up();
    let holder = session.take(json!({"note": "logging in", "ttlMs": 30_000}));
    let mut other = session.wire();
    let acts = [
        (
            "desktop.click",
            json!({"x": 5, "y": 5}),
            "human_control_active",
        ),
        ("control.acquire", json!({}), "human_lease_held"),
    ];
    for (method, params, code) in acts {
        let refused = other.refused(method, params);
        assert_eq!(refused.code, code);
        assert_eq!(refused.number, -32000);
        let lease = &refused.data["lease"];
        assert_eq!(lease["leaseId"], holder.granted["leaseId"], "{refused:?}");
        assert!(
            lease["holder"].is_string() && lease["since"].is_string(),
            "{refused:?}"
        );
        assert!(
            lease["expiresInMs"]
                .as_u64()
                .is_some_and(|left| left > 0 && left <= 30_000),
            "{refused:?}"
        );
        assert!(refused.message.len() > 20, "{refused:?}");
    }
    // Also to the one who has it.
    let mut holder = holder;
    let refused = holder.wire.refused("control.acquire", json!({}));
    assert_eq!(refused.code, "human_lease_held");
    assert_eq!(refused.data["lease"]["leaseId"], holder.granted["leaseId"]);
}

/// E5: a person in control, a pause, and a failure are told apart.
#[test]
fn refusals_are_told_apart() {
    let session = Session::up();
    let mut agent = session.wire();
    let click = json!({"x": 5, "y": 5});
    let mut holder = session.take(json!({}));
    assert_eq!(
        agent.refused("desktop.click", click.clone()).code,
        "human_control_active"
    );
    holder.give_back();
    session.wire().done("control.pause", json!({}));
    assert_eq!(agent.refused("desktop.click", click.clone()).code, "paused");
    // A person may take over a paused desktop; it is paused again afterwards.
    let mut holder = session.take(json!({}));
    assert_eq!(
        agent.refused("desktop.click", click.clone()).code,
        "human_control_active"
    );
    holder.give_back();
    session.becomes("paused", SHORT);
    session.wire().done("control.resume", json!({}));
    assert_eq!(
        agent
            .refused("desktop.click", json!({"x": 100_000, "y": 5}))
            .code,
        "out_of_bounds"
    );
    assert_eq!(
        agent
            .refused("desktop.click", json!({"desktop": "d9", "x": 5, "y": 5}))
            .code,
        "desktop_unknown"
    );
    let _ = agent.call("desktop.screenshot", json!({}));
    agent.done("desktop.click", click);
}

/// E6: a takeover stops acts on the desktop and nothing else.
#[test]
fn looking_and_asking_go_on_during_a_takeover() {
    let session = Session::up();
    let mut holder = session.take(json!({}));
    let mut agent = session.wire();
    for method in [
        "list",
        "ping",
        "control.status",
        "journal",
        "desktop.windows",
        "desktop.screenshot",
    ] {
        agent.done(method, json!({}));
    }
    let asked = agent.done(
        "request_human",
        json!({"desktop": "d1", "reason": "still stuck"}),
    );
    agent.done("request_status", json!({"requestId": asked["requestId"]}));
    for (method, params) in [
        ("desktop.launch", json!({"command": ["true"]})),
        ("desktop.destroy", json!({"desktop": "d1"})),
        ("desktop.move", json!({"x": 1, "y": 1})),
        ("desktop.type", json!({"text": "a"})),
        ("desktop.key", json!({"keys": "a"})),
        ("desktop.scroll", json!({"dy": 1})),
        ("desktop.drag", json!({"from": [1, 1], "to": [2, 2]})),
        ("desktop.double_click", json!({"x": 1, "y": 1})),
        ("control.permit", json!({"what": "anything"})),
    ] {
        assert_eq!(
            agent.refused(method, params).code,
            "human_control_active",
            "{method}"
        );
    }
    holder.give_back();
}

/// The holder whose time is over may renew once more before it hears of that; this is nothing to be recorded. What
/// others try is.
#[test]
fn the_renewal_that_crosses_a_limit_is_not_recorded() {
    let session = Session::up();
    let mut holder = session.take(json!({"maxMs": 1000}));
    session.event("takeover_timeout");
    let mut proof = holder.proof();
    for _ in 0..2 {
        let refused = holder.wire.refused("control.renew", proof.clone());
        assert_eq!(refused.code, "lease_stale");
        assert_eq!(refused.data["limit"], "maximum");
    }
    proof["token"] = json!("0".repeat(64));
    let refused = session.wire().refused("control.renew", proof);
    assert_eq!(refused.code, "lease_stale");
    assert!(refused.data["limit"].is_null(), "{refused:?}");
    let recorded = session.event("call_refused");
    assert_eq!(recorded["code"], "lease_stale");
    assert_eq!(session.events("call_refused").len(), 1);
}

/// One person asks the holder, who gives: no instant of the agent's lies between.
#[test]
fn a_holder_hands_over_to_the_person_who_asks() {
    let session = Session::up();
    let mut holder = session.take(json!({}));
    let mut other = session.wire();
    let asking = other.send(
        "control.request",
        json!({"note": "may I?", "waitMs": 30_000}),
    );
    let told = holder.wire.notified("lease_request", |_| true);
    // One connection may hold several leases, so it is told which one is asked for.
    assert_eq!(told["leaseId"], holder.granted["leaseId"]);
    assert_eq!(told["note"], "may I?");
    let proof = holder.proof();
    holder.wire.done("control.give", proof);
    let over = holder.wire.notified("lease_request_ended", |_| true);
    assert_eq!(over["leaseId"], holder.granted["leaseId"]);
    assert_eq!(over["from"], told["from"]);
    holder.wire.notified("lease_ended", |_| true);
    assert_eq!(holder.wire.kept("lease_request_ended"), 0);
    let granted = other.answer(asking).expect("granted");
    assert_ne!(granted["leaseId"], holder.granted["leaseId"]);
    let records = crate::support::takeovers(&session.journal());
    assert_eq!(records.len(), 2);
    assert_eq!(records[0].how, "return");
    assert_eq!(session.status()["control"], "human");
}

/// A request for control ends for its holder too, however it ends, and once each: an answer after it says that
/// nobody asks.
#[test]
fn a_holder_is_told_that_nobody_asks_any_more() {
    let session = Session::up();
    let mut holder = session.take(json!({}));
    let ended = |holder: &mut Holder, from: &serde_json::Value| {
        let over = holder.wire.notified("lease_request_ended", |_| true);
        let lease = &holder.granted["leaseId"];
        assert_eq!((&over["leaseId"], &over["from"]), (lease, from));
        let proof = holder.proof();
        let refused = holder.wire.refused("control.give", proof);
        assert!(refused.message.contains("nobody is asking"), "{refused:?}");
    };
    let asks = |holder: &mut Holder, wait: u64| {
        let mut other = session.wire();
        let asking = other.send("control.request", json!({"waitMs": wait}));
        let told = holder.wire.notified("lease_request", |_| true);
        (other, asking, told["from"].clone())
    };

    let (gone, _, from) = asks(&mut holder, 30_000);
    drop(gone);
    ended(&mut holder, &from);

    let (mut late, asking, from) = asks(&mut holder, 200);
    assert_eq!(late.answer(asking).expect_err("no answer").code, "timeout");
    ended(&mut holder, &from);

    let (mut refused, asking, from) = asks(&mut holder, 30_000);
    let proof = holder.proof();
    holder.wire.done("control.refuse", proof);
    let refusal = refused.answer(asking).expect_err("refused");
    assert_eq!(refusal.code, "human_lease_held");
    ended(&mut holder, &from);

    let (mut waiting, asking, from) = asks(&mut holder, 30_000);
    holder.give_back();
    let over = holder.wire.notified("lease_request_ended", |_| true);
    assert_eq!(over["from"], from);
    waiting.answer(asking).expect_err("the holder left");
    holder.wire.done("ping", json!({}));
    assert_eq!(holder.wire.kept("lease_request_ended"), 0);
}

/// C6: every change of control is on record in order, each with a larger epoch than the one before.
#[test]
fn epochs_grow_with_every_change() {
    let session = Session::up();
    let mut epochs = vec![session.status()["epoch"].as_u64().expect("an epoch")];
    for _ in 0..3 {
        let mut holder = session.take(json!({}));
        epochs.push(holder.granted["epoch"].as_u64().expect("an epoch"));
        epochs.push(holder.give_back()["epoch"].as_u64().expect("an epoch"));
        session.wire().done("control.pause", json!({}));
        epochs.push(session.status()["epoch"].as_u64().expect("an epoch"));
        session.wire().done("control.resume", json!({}));
        epochs.push(session.status()["epoch"].as_u64().expect("an epoch"));
    }
    assert!(
        epochs.windows(2).all(|pair| pair[0] < pair[1]),
        "{epochs:?}"
    );
    let kinds: Vec<String> = session
        .journal()
        .iter()
        .map(|event| event["kind"].as_str().expect("a kind").into())
        .collect();
    let order: Vec<&str> = kinds
        .iter()
        .map(String::as_str)
        .filter(|kind| kind.starts_with("takeover_") || ["paused", "resumed"].contains(kind))
        .collect();
    assert_eq!(
        order,
        ["takeover_start", "takeover_return", "paused", "resumed"].repeat(3)
    );
}
