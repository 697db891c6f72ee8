//! Whatever is killed, nothing of a relayed server is left, and a person's control waits for exactly that.

use std::time::Duration;

use serde_json::json;

use crate::support::{
    Agent, LONG, Relay, SHORT, Session, Signal, alive, all_gone, command_line, eventually,
    holds_for, processes, signal,
};

/// A relay whose server works on a call and has left a child behind, in a session of its own, deaf to
/// TERM and without an environment; and all these processes.
fn busy(session: &Session) -> (Relay, Vec<i32>) {
    let mut relay = Relay::start(&session.place, &[]);
    relay.done(1, "fork", json!({}));
    relay.acted("child");
    relay.begin_call(2, "work", json!({}));
    relay.acted("work begins");
    let below = relay.below();
    assert!(below.len() >= 3, "keeper, server, child: {below:?}");
    (relay, below)
}

/// A takeover is granted, and nothing acts any more.
fn granted_and_quiet(session: &Session, relay: &Relay, below: &[i32]) {
    let mut person = session.wire();
    person.done(
        "control.acquire",
        json!({"desktop": "d1", "drainMs": 20_000}),
    );
    let left: Vec<String> = below
        .iter()
        .filter(|pid| alive(**pid))
        .map(|pid| command_line(*pid))
        .collect();
    assert!(left.is_empty(), "granted while there was: {left:?}");
    let acts = relay.acts();
    holds_for("nothing acts", Duration::from_millis(200), || {
        relay.acts() == acts
    });
}

#[test]
fn the_relay_is_killed() {
    let session = Session::up();
    let (relay, below) = busy(&session);
    signal(relay.pid(), Signal::KILL);
    granted_and_quiet(&session, &relay, &below);
}

#[test]
fn the_keeper_is_killed() {
    let session = Session::up();
    let (relay, below) = busy(&session);
    let keeper = keeper(&relay);
    signal(keeper, Signal::KILL);
    granted_and_quiet(&session, &relay, &below);
    let error = relay.answer(&json!(2))["error"].clone();
    assert!(error.is_object());
    assert_eq!(relay.finish().code, 1);
}

#[test]
fn the_server_is_killed() {
    let session = Session::up();
    let (relay, below) = busy(&session);
    signal(relay.server(), Signal::KILL);
    let error = relay.answer(&json!(2))["error"].clone();
    let message = error["message"].as_str().expect("a message");
    assert!(message.contains("signal 9"), "{message}");
    all_gone(&below);
    let outcome = relay.finish();
    assert_eq!(outcome.code, 1);
    assert!(outcome.err.contains("signal 9"), "{outcome:?}");
}

#[test]
fn the_client_leaves_or_is_told_to() {
    let session = Session::up();
    let (relay, below) = busy(&session);
    signal(relay.pid(), Signal::TERM);
    all_gone(&below);
    assert_eq!(relay.finish().code, 0);

    let mut relay = Relay::start(&session.place, &[]);
    relay.done(1, "fork", json!({}));
    let below = relay.below();
    relay.close();
    all_gone(&below);
    assert_eq!(relay.finish().code, 0);
}

#[test]
fn the_client_is_killed() {
    let session = Session::up();
    let mut agent = Agent::relayed(&session.place, "legacy");
    agent.done("fork", json!({}));
    agent.begin("stubborn", json!({"s": 60}));
    let relay = agent.server();
    let mut all = processes::descendants(relay);
    all.push(relay);
    assert!(all.len() >= 4, "relay, keeper, server, child: {all:?}");
    agent.kill();
    all_gone(&all);
    session
        .wire()
        .done("control.acquire", json!({"desktop": "d1"}));
}

/// Without the host nothing acts, and what was under way is cancelled; when it is back, so are the tools.
#[test]
fn the_host_is_killed() {
    let mut session = Session::up();
    let mut relay = Relay::start(&session.place, &[]);
    relay.begin_call(1, "work", json!({}));
    relay.acted("work begins");
    signal(session.host(), Signal::KILL);
    relay.acted("work ends");
    assert!(relay.answer(&json!(1))["error"].is_object());
    let refused = relay.refused(2, "act");
    assert_eq!(refused["data"]["code"], "session_unknown");
    session.again();
    let mut id = 2;
    eventually("the tools are back", LONG, || {
        id += 1;
        relay.call(id, "act", json!({}))["result"]
            .is_object()
            .then_some(())
    });
    let _holder = session.take(json!({}));
    assert_eq!(
        relay.refused(99, "act")["data"]["code"],
        "human_control_active"
    );
}

/// What goes on all the same is ended: the next host would know nothing of it.
#[test]
fn the_host_is_killed_and_a_call_goes_on() {
    let session = Session::up();
    let mut relay = Relay::start(&session.place, &[]);
    relay.begin_call(1, "stubborn", json!({"s": 600}));
    relay.acted("stubborn");
    let below = relay.below();
    signal(session.host(), Signal::KILL);
    all_gone(&below);
    assert_eq!(relay.finish().code, 1);
}

/// A stopped host answers nothing: a call is refused in time, and not made later.
#[test]
fn the_host_is_stopped() {
    let session = Session::up();
    let mut relay = Relay::start(&session.place, &[]);
    relay.done(1, "act", json!({}));
    signal(session.host(), Signal::STOP);
    let refused = relay.refused(2, "act");
    assert_eq!(refused["data"]["code"], "timeout");
    signal(session.host(), Signal::CONT);
    session
        .wire()
        .done("control.acquire", json!({"desktop": "d1"}));
    assert!(!relay.reached().contains(r#""id":2"#));
}

/// The server is an agent's, whoever started the relay: it cannot do what is for people.
#[test]
fn what_runs_below_a_relay_is_no_person() {
    let session = Session::up();
    let mut relay = session.place.handover();
    let told = session.place.path().join("told");
    let script = format!(
        "\"$0\" pause d1 --json >{0}.new; mv {0}.new {0}; cat",
        told.display()
    );
    relay.args([
        "relay",
        "--",
        "sh",
        "-c",
        &script,
        env!("CARGO_BIN_EXE_handover"),
    ]);
    let (_relay, _input) = crate::support::Running::start_with_input(&mut relay);
    let told = eventually("it was told", SHORT, || std::fs::read_to_string(&told).ok());
    assert!(told.contains("caller_refused"), "{told}");
    assert_eq!(session.status()["control"], "agent");
}

/// A permit cannot be hung on a process that is not the caller's own relayed server.
#[test]
fn a_permit_for_somebody_elses_server_is_refused() {
    let session = Session::up();
    let relay = Relay::start(&session.place, &[]);
    for pid in [keeper(&relay), session.keeper(), 1] {
        let params = json!({"what": "relay:act", "keeper": pid});
        let refused = session.wire().refused("control.permit", params);
        assert_eq!(refused.code, "bad_params", "{pid}");
    }
}

fn keeper(relay: &Relay) -> i32 {
    processes::children(relay.pid())[0]
}
