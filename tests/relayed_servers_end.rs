//! Whatever is killed, nothing of a relayed server is left, and a person's control waits for exactly that.

use std::time::Duration;

use serde_json::json;

use crate::support::{
    Agent, LONG, Relay, SHORT, Session, Signal, alive, all_gone, command_line, eventually,
    holds_for, processes, signal, stop, wall_ms,
};

/// A relay whose server works on a call and has left a child behind, in a session of its own, deaf to
/// TERM and without an environment; and all these processes.
fn busy(session: &Session) -> (Relay, Vec<i32>) {
    let mut relay = Relay::start(&session.place, &[]);
    relay.done(1, "fork", json!({}));
    relay.acted("child");
    relay.begin_call(2, "work", json!({}));
    relay.acted("work begins");
    let below = all_below(&relay);
    (relay, below)
}

/// The keeper of a relay, the server and its child, which is on its way from one parent to another.
fn all_below(relay: &Relay) -> Vec<i32> {
    eventually("keeper, server and child", LONG, || {
        let mut below = relay.below();
        below.retain(|&pid| alive(pid));
        (below.len() >= 3).then_some(below)
    })
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
    // Before a person asks: otherwise the server is started again.
    let error = relay.answer(&json!(2))["error"].clone();
    assert!(error.is_object());
    granted_and_quiet(&session, &relay, &below);
    assert_eq!(relay.finish().code, 1);
}

/// Nobody is left to end what the server had started but the host, which does so without being asked for
/// anything.
#[test]
fn relay_and_keeper_are_killed_at_once_with_no_call_under_way() {
    let session = Session::up();
    let mut relay = Relay::start(&session.place, &[]);
    relay.done(1, "fork", json!({}));
    relay.acted("child");
    let below = all_below(&relay);
    let keeper = keeper(&relay);
    // Meanwhile the host looks at what there is, every two seconds.
    holds_for("the keeper runs", Duration::from_secs(5), || alive(keeper));
    let both = [relay.pid(), keeper];
    for (pid, way) in [Signal::STOP, Signal::KILL]
        .into_iter()
        .flat_map(|way| both.map(|pid| (pid, way)))
    {
        signal(pid, way);
    }
    all_gone(&below);
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
    for (way, code) in [(Signal::TERM, 0), (Signal::INT, 130)] {
        let (relay, below) = busy(&session);
        signal(relay.pid(), way);
        all_gone(&below);
        assert_eq!(relay.finish().code, code);
    }

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
    let all = eventually("relay, keeper, server and child", LONG, || {
        let mut all = processes::descendants(relay);
        all.push(relay);
        all.retain(|&pid| alive(pid));
        (all.len() >= 4).then_some(all)
    });
    agent.kill();
    all_gone(&all);
    session
        .wire()
        .done("control.acquire", json!({"desktop": "d1"}));
}

/// Who is stopped, of a relay, its keeper and its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Relay,
    Keeper,
    Server,
}

/// L16: whoever is stopped while a call is under way, a person has control at the first try and nothing acts
/// until it is given back. What was stopped learns it when it wakes.
fn stopped(parts: &[Part]) {
    let session = Session::up();
    let mut relay = Relay::start(&session.place, &[]);
    relay.greet();
    relay.done(1, "fork", json!({}));
    relay.acted("child");
    relay.begin_call(2, "stubborn", json!({"s": 600}));
    relay.acted("stubborn");
    let below = all_below(&relay);
    let pids: Vec<i32> = parts
        .iter()
        .map(|part| match part {
            Part::Relay => relay.pid(),
            Part::Keeper => keeper(&relay),
            Part::Server => relay.server(),
        })
        .collect();
    stop(&pids);
    let asleep = parts.contains(&Part::Relay);
    if asleep {
        relay.begin_call(3, "act", json!({}));
    }
    // The default leaves it a second, which a busy machine may take.
    let mut holder = session.take(json!({"drainMs": 20_000}));
    let granted = wall_ms();
    let left: Vec<i32> = below.iter().copied().filter(|&pid| alive(pid)).collect();
    assert!(left.is_empty(), "granted while there was: {left:?}");
    for pid in pids {
        signal(pid, Signal::CONT);
    }
    let error = relay.answer(&json!(2))["error"].clone();
    assert_eq!(error["data"]["code"], "interrupted_by_human", "{error}");
    if asleep {
        let late = relay.answer(&json!(3));
        assert!(late["error"].is_object(), "{late}");
    }
    holds_for("a person has control", Duration::from_millis(300), || {
        session.status()["control"] == "human"
    });
    let returned = wall_ms();
    holder.give_back();
    relay.done(4, "echo", json!({}));
    let moments = moments(&relay.acts());
    assert!(moments.iter().any(|at| *at < granted), "{moments:?}");
    assert!(
        !moments.iter().any(|at| (granted..returned).contains(at)),
        "acts between {granted} and {returned}: {moments:?}"
    );
    assert!(!relay.reached().contains(r#""id":3"#), "a call made late");
}

/// When the server's tools did something, in milliseconds since 1970.
fn moments(acts: &str) -> Vec<f64> {
    acts.lines()
        .filter_map(|line| line.split_once(' ')?.1.parse::<f64>().ok())
        .map(|seconds| seconds * 1000.0)
        .collect()
}

#[test]
fn the_relay_is_stopped() {
    stopped(&[Part::Relay]);
}

#[test]
fn the_keeper_is_stopped() {
    stopped(&[Part::Keeper]);
}

#[test]
fn the_server_is_stopped() {
    stopped(&[Part::Server]);
}

#[test]
fn relay_and_server_are_stopped() {
    stopped(&[Part::Relay, Part::Server]);
}

#[test]
fn relay_keeper_and_server_are_stopped() {
    stopped(&[Part::Relay, Part::Keeper, Part::Server]);
}

/// Who pauses a desktop is not made to wait for a stopped relay either.
#[test]
fn the_relay_is_stopped_and_the_desktop_is_paused() {
    let session = Session::up();
    let (mut relay, below) = busy(&session);
    stop(&[relay.pid()]);
    session
        .wire()
        .done("control.pause", json!({"desktop": "d1"}));
    all_gone(&below);
    let acts = relay.acts();
    signal(relay.pid(), Signal::CONT);
    let error = relay.answer(&json!(2))["error"].clone();
    assert_eq!(error["data"]["code"], "interrupted_by_human", "{error}");
    assert_eq!(relay.refused(3, "act")["data"]["code"], "paused");
    assert_eq!(relay.acts(), acts);
    let _holder = session.take(json!({}));
}

/// With a drain too short for that, a stopped relay is in the way of one takeover, not of every one.
#[test]
fn the_relay_is_stopped_and_people_are_in_a_hurry() {
    let session = Session::up();
    let (relay, below) = busy(&session);
    stop(&[relay.pid()]);
    eventually("control is granted", SHORT, || {
        let mut person = session.wire();
        let id = person.send("control.acquire", json!({"desktop": "d1", "drainMs": 1000}));
        person.answer(id).ok()
    });
    assert!(below.iter().all(|&pid| !alive(pid)));
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

/// What goes on all the same is ended: the next host would know nothing of it. The tools come back.
#[test]
fn the_host_is_killed_and_a_call_goes_on() {
    let session = Session::up();
    let mut relay = Relay::start(&session.place, &[]);
    relay.begin_call(1, "stubborn", json!({"s": 600}));
    relay.acted("stubborn");
    let below = relay.below();
    signal(session.host(), Signal::KILL);
    all_gone(&below);
    assert!(relay.answer(&json!(1))["error"].is_object());
    relay.write(r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#);
    relay.answer(&json!(2));
    assert_eq!(relay.refused(3, "act")["data"]["code"], "session_unknown");
    assert_eq!(relay.finish().code, 0);
}

/// A stopped host answers nothing: a call is refused in time, and not made later.
#[test]
fn the_host_is_stopped() {
    let session = Session::up();
    let mut relay = Relay::start(&session.place, &[]);
    relay.done(1, "act", json!({}));
    stop(&[session.host()]);
    let refused = relay.refused(2, "act");
    assert_eq!(refused["data"]["code"], "timeout");
    signal(session.host(), Signal::CONT);
    session
        .wire()
        .done("control.acquire", json!({"desktop": "d1"}));
    assert!(!relay.reached().contains(r#""id":2"#));
}

/// A host can close a relay's connection, as for one that does not read, and both live on. What was permitted there
/// is over when the relay has had the time to end it, and its server is not ended for that.
#[test]
fn the_relay_has_lost_its_connection() {
    let session = Session::up();
    let mut keeper = session.place.handover();
    let socket = session.place.path().join("k.sock");
    keeper.args([
        "keeper",
        "--session",
        "x",
        "--relay",
        "y",
        "--orphan-timeout-ms",
        "600000",
    ]);
    let keeper = crate::support::Running::start(keeper.arg("--socket").arg(&socket));
    eventually("the keeper listens", SHORT, || {
        socket.exists().then_some(())
    });
    // A person may be in a hurry, and later than that all the same on a busy machine, but not every time.
    let is_refused = (0..5).any(|_| {
        // This process is the relay.
        let mut relay = session.wire();
        let call = json!({"what": "relay:act", "keeper": keeper.pid()});
        relay.done("control.permit", call);
        drop(relay);
        let mut person = session.wire();
        let hasty = json!({"desktop": "d1", "drainMs": 500});
        let id = person.send("control.acquire", hasty);
        match person.answer(id) {
            Err(refused) => {
                assert_eq!(refused.code, "drain_timeout");
                true
            }
            Ok(_) => {
                person.done("control.return", json!({"desktop": "d1"}));
                false
            }
        }
    });
    assert!(
        is_refused,
        "granted at once while the call may be under way"
    );
    let patient = json!({"desktop": "d1", "drainMs": 20_000});
    session.wire().done("control.acquire", patient);
    assert!(alive(keeper.pid()));
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
