//! A10: an agent's process tree is known as that agent, however it hides; it reaches those below it and
//! nobody else, and what it does is never taken for a person's.

use std::fs;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::scripted::{agent, becomes, shell, spawn, spawn_on};
use crate::support::{LONG, Place, Running, Session, Signal, Wire, eventually, processes, signal};

/// A session without a desktop.
fn up(options: &[&str]) -> Session {
    Session::with(Place::new(), options)
}

/// The words of a shell that makes `calls` on `socket`; their outcomes appear in `results`.
fn calling(socket: &str, results: &str, calls: &Value) -> String {
    let tool = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/tools/call.py");
    format!("\"$(command -v python3)\" {tool} {socket} {results} '{calls}'")
}

fn outcomes(path: &PathBuf) -> Vec<Value> {
    let text = eventually("the calls are answered", LONG, || {
        fs::read_to_string(path).ok()
    });
    serde_json::from_str(&text).expect("a list")
}

fn hello() -> Value {
    json!(["hello", {"client": "a person", "protocol": 1}])
}

/// What only a person may do, or only to agents below oneself, about the agent `other`.
fn human_acts(other: &str) -> Vec<Value> {
    vec![
        json!(["steer", {"id": other, "text": "stop"}]),
        json!(["abort", {"id": other}]),
        json!(["abort", {"id": "nobody"}]),
        json!(["control.acquire", {}]),
        json!(["control.pause", {}]),
        json!(["stop_all_input", {}]),
        json!(["stop", {"force": true}]),
        json!(["answer", {"requestId": "r1", "text": "yes"}]),
    ]
}

#[test]
fn however_it_hides_an_agent_is_that_agent() {
    let session = up(&[]);
    let bystander = shell(&session, "sleep 1000");
    let socket = session.socket().display().to_string();
    let disguises = [
        ("plain", "sh CALL"),
        ("forked twice", "setsid -f setsid -f sh CALL"),
        (
            "forked twice, without environment",
            "env -i PATH=\"$PATH\" setsid -f env -i PATH=\"$PATH\" setsid -f sh CALL",
        ),
    ];
    for (number, (disguise, words)) in disguises.into_iter().enumerate() {
        let results = session.place.path().join(format!("results{number}"));
        let mut calls = vec![hello()];
        calls.extend(human_acts(&bystander));
        let shown = results.display().to_string();
        let call = calling(&socket, &shown, &Value::from(calls));
        let script = session.place.path().join(format!("call{number}.sh"));
        fs::write(&script, call).expect("a script");
        let words = words.replace("CALL", &script.display().to_string());
        // It stays until the calls are answered, or they would end with it.
        let id = shell(
            &session,
            &format!("{words}; while [ ! -e {shown} ]; do sleep 0.05; done"),
        );
        let outcomes = outcomes(&results);
        let caller = &outcomes[0]["caller"];
        assert_eq!(
            (&caller["kind"], &caller["agent"]),
            (&json!("agent"), &json!(id)),
            "{disguise}"
        );
        for (act, outcome) in human_acts(&bystander).iter().zip(&outcomes[1..]) {
            assert_eq!(outcome, "caller_refused", "{disguise}: {act}");
        }
        becomes(&session, &id, "done");
    }
    becomes(&session, &bystander, "running");
    // Nothing of it is announced, and nothing is on record as a person's.
    assert!(session.events("human_intervention").is_empty());
    let refused = session.events("call_refused");
    assert_eq!(refused.len(), disguises.len() * human_acts("").len());
    assert!(refused.iter().all(|event| event["source"] == "agent"));
}

/// The connection is a person's; what is written by the agent is the agent's.
#[test]
fn a_connection_lends_no_power() {
    let session = up(&[]);
    let bystander = shell(&session, "sleep 1000");
    let handing = session.place.path().join("hand");
    let listener = UnixListener::bind(&handing).expect("a socket");
    let results = session.place.path().join("results");
    let calls = Value::from(human_acts(&bystander));
    let call = calling(
        &format!("@{}", handing.display()),
        &results.display().to_string(),
        &calls,
    );
    // The connection is younger than the process that will use it.
    let id = shell(&session, &format!("{call}; sleep 1000"));
    let (to_agent, _) = listener.accept().expect("the agent");
    let persons = session.wire();
    persons.hand_to(&to_agent);
    for outcome in outcomes(&results) {
        assert_eq!(outcome, "caller_refused");
    }
    becomes(&session, &bystander, "running");
    session.wire().done("abort", json!({"id": id}));
}

#[test]
fn a_killed_keeper_makes_no_person() {
    let session = up(&[]);
    let bystander = shell(&session, "sleep 1000");
    let results = session.place.path().join("results");
    let away = session.place.path().join("away");
    let socket = session.socket().display().to_string();
    let mut calls = vec![hello()];
    calls.extend(human_acts(&bystander));
    let call = calling(&socket, &results.display().to_string(), &Value::from(calls));
    let script = session.place.path().join("calls.sh");
    // Calls as soon as its keeper is gone, and again and again: the host kills what is left.
    fs::write(
        &script,
        format!("while kill -0 $1 2>/dev/null; do :; done\n{call}\n"),
    )
    .expect("a script");
    let id = shell(
        &session,
        &format!(
            "ppid=$(ps -o ppid= -p $$); env -i PATH=\"$PATH\" setsid -f sh {} $ppid; echo $ppid >{1}.new; mv {1}.new {1}; sleep 1000",
            script.display(),
            away.display()
        ),
    );
    let keeper = eventually("the keeper is known", LONG, || {
        fs::read_to_string(&away).ok()?.trim().parse::<i32>().ok()
    });
    signal(keeper, Signal::KILL);
    let ended = becomes(&session, &id, "failed");
    assert_eq!(ended["id"], json!(id));
    eventually("nothing of it is left", LONG, || {
        let mark = script.display().to_string();
        let mut left = session.place.processes().into_iter();
        (!left.any(|pid| processes::mentions(pid, &mark))).then_some(())
    });
    // It was killed before it could call, or refused.
    if let Ok(text) = fs::read_to_string(&results) {
        let outcomes: Vec<Value> = serde_json::from_str(&text).expect("a list");
        assert!(
            outcomes.iter().all(|outcome| outcome == "caller_refused"),
            "{text}"
        );
    }
    becomes(&session, &bystander, "running");
    assert!(session.events("human_intervention").is_empty());
}

/// What was started below a keeper that is gone cannot become a host, where it would be a person.
#[test]
fn an_orphan_of_a_keeper_becomes_no_host() {
    let place = Place::new();
    let mut command = place.handover();
    command.env("HANDOVER_KEEPER", "1:2").args(["up", "--json"]);
    let outcome = Running::start(&mut command).finish(LONG);
    assert_eq!(outcome.refused(), "caller_refused");
    assert!(place.processes().is_empty());
}

/// A shell that carries a known agent's environment is no person without a terminal to confirm on.
#[test]
fn a_known_agent_program_from_elsewhere_is_no_person() {
    let session = up(&[]);
    let bystander = shell(&session, "sleep 1000");
    for arguments in [
        vec!["abort", &bystander, "--yes"],
        vec!["steer", &bystander, "stop"],
        vec!["stop-all"],
        vec!["down"],
    ] {
        let mut command = session.place.handover();
        command
            .env("CLAUDECODE", "1")
            .arg("--json")
            .args(&arguments);
        let outcome = Running::start(&mut command).finish(LONG);
        assert_eq!(outcome.refused(), "caller_refused", "{arguments:?}");
    }
    becomes(&session, &bystander, "running");
    assert!(session.events("human_intervention").is_empty());
}

#[test]
fn an_agent_reaches_its_own_and_no_others() {
    let session = up(&["--max-agents", "8"]);
    let bystander = shell(&session, "sleep 1000");
    let results = session.place.path().join("results");
    let child = json!({"driver": "command", "prompt": "", "args": ["sh", "-c", "sleep 1000"],
        "caller": {"name": "me", "token": "$token"}});
    let mut stolen = child.clone();
    stolen["parent"] = json!(bystander);
    let mut blank = child.clone();
    blank["caller"]["token"] = json!("");
    let calls = json!([
        hello(), ["spawn", blank], ["spawn", stolen], ["spawn", child], ["abort", {"id": "$spawned"}],
        ["abort", {"id": bystander}], ["steer", {"id": bystander, "text": "x"}], ["spawn", child],
        ["steer", {"id": "$spawned", "text": "x"}]
    ]);
    let socket = session.socket().display().to_string();
    let call = calling(&socket, &results.display().to_string(), &calls);
    let id = shell(&session, &format!("{call}; sleep 1000"));
    let outcomes = outcomes(&results);
    let refused = json!("caller_refused");
    assert_eq!(outcomes[1..3], [refused.clone(), refused.clone()]);
    let first = outcomes[3]["id"].as_str().expect("an id");
    let listed = agent(&session, first);
    assert_eq!(
        (&listed["parent"], &listed["depth"], &listed["status"]),
        (&json!(id), &json!(1), &json!("aborted"))
    );
    assert_eq!(
        (&outcomes[4]["id"], &outcomes[4]["status"]),
        (&json!(first), &json!("aborted"))
    );
    assert_eq!(outcomes[5..7], [refused.clone(), refused]);
    let second = outcomes[7]["id"].as_str().expect("an id");
    // It may, and is told why it cannot.
    assert_eq!(outcomes[8], "not_steerable");
    // What it did was no act of a person's.
    assert!(session.events("human_intervention").is_empty());

    // A person ends it, and with it all below.
    let running = processes_of(&session, &id);
    assert!(!running.is_empty());
    let ended = session.wire().done("abort", json!({"id": id}));
    assert_eq!(
        ended["descendants"],
        json!([{"id": second, "status": "aborted"}])
    );
    assert_eq!(ended["survivors"], json!([]));
    assert!(running.iter().all(|&pid| !processes::alive(pid)));
    becomes(&session, &bystander, "running");
    let announced = session.events("human_intervention");
    assert_eq!(announced.len(), 1, "{announced:?}");
    assert_eq!(
        (&announced[0]["act"], &announced[0]["agent"]),
        (&json!("abort"), &json!(id))
    );
}

/// The processes below an agent's keeper.
fn processes_of(session: &Session, id: &str) -> Vec<i32> {
    let mark = format!("HANDOVER_AGENT={id}");
    let all = session.place.processes().into_iter();
    all.filter(|&pid| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        String::from_utf8_lossy(&environment).contains(&mark)
    })
    .collect()
}

#[test]
fn agents_go_no_deeper_than_three_and_have_sixteen_children() {
    let session = up(&["--max-agents", "64"]);
    let mut wire = Wire::connect(&session.socket());
    let greeted = wire.done("hello", json!({"client": "tests", "protocol": 1}));
    let mut sleeper = |parent: Option<&str>| {
        let mut params = json!({"driver": "command", "prompt": "", "args": ["sleep", "1000"]});
        if let Some(parent) = parent {
            params["parent"] = json!(parent);
        }
        let spawned = spawn_on(&mut wire, &greeted, params);
        spawned.map(|spawned| spawned["id"].as_str().expect("an id").to_owned())
    };
    let mut parent = sleeper(None).expect("depth 0");
    let root = parent.clone();
    for depth in 1..=3 {
        parent = sleeper(Some(&parent)).unwrap_or_else(|_| panic!("depth {depth}"));
        assert_eq!(agent(&session, &parent)["depth"], depth);
    }
    let refused = sleeper(Some(&parent)).expect_err("too deep");
    assert_eq!(refused.code, "queue_full");
    assert!(refused.message.contains('3'), "{refused:?}");
    for number in 1..16 {
        sleeper(Some(&root)).unwrap_or_else(|refused| panic!("child {number}: {refused:?}"));
    }
    let refused = sleeper(Some(&root)).expect_err("too many");
    assert_eq!(refused.code, "queue_full");
    assert!(refused.message.contains("16"), "{refused:?}");
    assert_eq!(
        sleeper(Some("nobody")).expect_err("unknown").code,
        "agent_unknown"
    );
    let ended = session.wire().done("stop_all_input", json!({}));
    assert_eq!(ended["agents"].as_array().expect("a list").len(), 19);
}

/// What agents start is limited in its rate; a refusal says when to try again.
#[test]
fn agents_cannot_be_started_in_a_flood_by_an_agent() {
    let session = up(&[]);
    let results = session.place.path().join("results");
    let spawn_one = json!(["spawn", {"driver": "command", "prompt": "", "args": ["true"],
        "caller": {"name": "me", "token": "$token"}}]);
    let mut calls = vec![hello()];
    calls.extend(std::iter::repeat_n(spawn_one, 80));
    let socket = session.socket().display().to_string();
    let call = calling(&socket, &results.display().to_string(), &Value::from(calls));
    let id = spawn(
        &session,
        json!({"driver": "command", "prompt": "", "args": ["sh", "-c", call]}),
    )
    .expect("spawned");
    let outcomes = outcomes(&results);
    let refused = outcomes
        .iter()
        .filter(|outcome| *outcome == "queue_full")
        .count();
    assert!(refused > 0, "{outcomes:?}");
    assert!(outcomes.len() - refused > 10, "{outcomes:?}");
    assert!(id["id"].is_string());
}
