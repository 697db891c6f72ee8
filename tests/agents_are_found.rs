//! Agents are found in all sessions of their user, past whatever dead hosts left, by the beginning of
//! their ids; and the program under its other names.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::json;

use crate::support::scripted::{becomes, shell};
use crate::support::{LONG, Place, Running, Session, Signal, eventually, signal};

/// A program that stays.
const STAYS: &str = "exec sleep 600";

/// Agents are found in all sessions by the beginning of their ids, past whatever dead hosts left.
#[test]
fn an_agent_is_found_wherever_it_is() {
    let first = Session::with(Place::new(), &[]);
    let second_dir = first.place.path().join("second");
    fs::create_dir(&second_dir).expect("a directory");
    let up = Running::start(
        first
            .place
            .handover()
            .current_dir(&second_dir)
            .args(["up", "--json"]),
    );
    let second = up.finish(LONG).done();
    let second = second["sessionId"].as_str().expect("an id").to_owned();
    let dead = first.place.runtime().join("handover");
    for (name, text) in [
        ("half", &b"{\"protocol\": 1, \"sess"[..]),
        ("empty", b""),
        ("noise", &[0xff; 64]),
    ] {
        fs::create_dir(dead.join(name)).expect("a directory");
        fs::set_permissions(dead.join(name), fs::Permissions::from_mode(0o700)).expect("a mode");
        fs::write(dead.join(name).join("attach.json"), text).expect("a file");
    }
    let here = shell(&first, STAYS);
    let run = [
        "agent",
        "run",
        "--driver",
        "command",
        "--session",
        &second,
        "--",
    ];
    let there = first.cli(&[&run[..], &["sh", "-c", STAYS]].concat()).done();
    let there = there["id"].as_str().expect("an id").to_owned();
    // From anywhere, whatever session the directory means.
    for id in [&here, &there] {
        let result = first.cli(&["result", id]).done();
        assert_eq!(result["id"], **id);
        let other = if id == &here { &there } else { &here };
        let length = (1..id.len()).find(|&length| !other.starts_with(&id[..length]));
        let prefix = &id[..length.expect("ids differ")];
        assert_eq!(first.cli(&["result", prefix]).done()["id"], **id);
    }
    let only = first.cli(&["result", &here, "--swarm-root", &second]);
    assert_eq!(only.refused(), "agent_unknown");
    let socket = first.socket();
    let socket = socket.to_string_lossy();
    assert_eq!(
        first
            .cli(&["result", &there, "--socket", &socket])
            .refused(),
        "agent_unknown"
    );
    assert_eq!(
        first.cli(&["result", &here, "--socket", &socket]).done()["id"],
        *here
    );

    // A name is no id; but whoever writes one is told the id.
    let named = [
        "agent", "run", "--driver", "command", "--name", "counter", "--",
    ];
    let counter = first.cli(&[&named[..], &["true"]].concat()).done();
    let unknown = first.cli(&["steer", "counter", "hello"]);
    assert_eq!(unknown.refused(), "agent_unknown");
    let error = &unknown.json()["error"];
    assert_eq!(error["data"]["named"], serde_json::json!([counter["id"]]));
    let id = counter["id"].as_str().expect("an id");
    assert!(error["message"].to_string().contains(id), "{error}");

    // Until two fit: then they are listed, and the session decides.
    let mut known = vec![here.clone(), there.clone()];
    let letter = loop {
        let letters: Vec<char> = known.iter().filter_map(|id| id.chars().next()).collect();
        let twice = letters
            .iter()
            .find(|&a| letters.iter().filter(|&b| a == b).count() > 1);
        if let Some(letter) = twice {
            break letter.to_string();
        }
        known.push(shell(&first, "true"));
    };
    let several = first.cli(&["result", &letter]);
    let code = several.refused();
    assert!(
        ["agent_unknown", "session_ambiguous"].contains(&code.as_str()),
        "{several:?}"
    );
    let listed = several.json()["error"]["data"]["agents"].clone();
    assert!(
        listed.as_array().is_some_and(|agents| agents.len() > 1),
        "{several:?}"
    );
    first.cli(&["abort", &there, "--yes"]).done();
}

/// What agents came to is read from the record where no host serves their session.
#[test]
fn results_outlive_the_host() {
    let mut session = Session::with(Place::new(), &[]);
    let done = shell(&session, "echo found");
    becomes(&session, &done, "done");
    let stays = shell(&session, STAYS);
    becomes(&session, &stays, "running");
    signal(session.host(), Signal::KILL);
    eventually("nobody serves the session", LONG, || {
        let sessions = session.cli(&["sessions"]).done();
        (sessions["sessions"] == json!([])).then_some(())
    });
    let id = session.id();
    let result = session.cli(&["result", &done]).done();
    assert_eq!(
        (&result["id"], &result["status"], &result["text"]),
        (&json!(done), &json!("done"), &json!("found\n"))
    );
    assert!(result["finishedAt"].is_string(), "{result}");
    let result = session.cli(&["result", &stays, "--session", &id]).done();
    assert_eq!(result["status"], "interrupted");
    assert!(result["error"].is_string(), "{result}");
    // As from a host, by the beginning of an id, and by another name of the program.
    let length = (1..done.len()).find(|&length| !stays.starts_with(&done[..length]));
    let prefix = &done[..length.expect("ids differ")];
    assert_eq!(session.cli(&["result", prefix]).done()["id"], *done);
    let unknown = session.cli(&["result", "zz-no-agent"]);
    assert_eq!(unknown.code, 3, "{unknown:?}");
    let unknown = session.cli(&["result", &done, "--session", "zz-no-session"]);
    assert_eq!(unknown.code, 3, "{unknown:?}");
    // Nothing was changed by looking, and beside another session it is found too.
    session.again();
    assert_eq!(
        session.cli(&["result", &stays]).done()["status"],
        "interrupted"
    );
    session.cli(&["down"]).done();
    let up = Running::start(session.place.handover().args(["up", "--json"]));
    up.finish(LONG).done();
    assert_eq!(session.cli(&["result", &done]).done()["status"], "done");
    let unknown = session.cli(&["result", "zz-no-agent"]);
    assert_eq!(unknown.refused(), "agent_unknown");
}

#[test]
fn the_other_names_run_the_same_commands() {
    let session = Session::with(Place::new(), &[]);
    let links = session.place.path().join("links");
    let made = session
        .cli(&["install-links", &links.to_string_lossy()])
        .done();
    assert_eq!(made["links"].as_array().map(Vec::len), Some(5), "{made}");
    let call = |name: &str, arguments: &[&str]| {
        let program = links.join(name);
        let mut command = session.place.command(&program.to_string_lossy());
        Running::start(command.args(arguments)).finish(LONG)
    };
    let id = shell(&session, "echo said; exec sleep 600");
    becomes(&session, &id, "running");
    let list = call("swarm-list", &["--json"]).done();
    assert_eq!(list["agents"][0]["id"], *id);
    assert_eq!(
        call("swarm-steer", &[&id, "text", "--json"]).refused(),
        "not_steerable"
    );
    assert_eq!(
        call("swarm-abort", &[&id, "--json"]).refused(),
        "caller_refused"
    );
    assert_eq!(
        call("swarm-abort", &[&id, "--json", "--yes"]).done()["status"],
        "aborted"
    );
    assert_eq!(
        call("swarm-result", &["--json", &id]).done()["status"],
        "aborted"
    );
    let attached = call("swarm-attach", &[&id, "--json", "--since", "0"]);
    assert_eq!(attached.code, 0, "{attached:?}");
    assert!(attached.out.lines().count() > 1, "{attached:?}");

    // Again is no harm; what is somebody else's stays.
    assert_eq!(
        session
            .cli(&["install-links", &links.to_string_lossy()])
            .code,
        0
    );
    let foreign = links.join("swarm-list");
    fs::remove_file(&foreign).expect("a link");
    fs::write(&foreign, "mine").expect("a file");
    let refused = session.cli(&["install-links", &links.to_string_lossy()]);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert_eq!(fs::read_to_string(&foreign).expect("a file"), "mine");
    let forced = session.cli(&["install-links", "--force", &links.to_string_lossy()]);
    assert_eq!(forced.code, 0, "{forced:?}");
    assert!(is_link(&foreign));
}

fn is_link(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink())
}
