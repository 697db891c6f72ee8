//! L12: a corrupt, empty or deleted state file never frees the agent while a person is in control, never blocks
//! takeovers for ever, and is never silently replaced.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use serde_json::json;

use crate::support::{LONG, Recorder, Running, SHORT, Session, Signal, eventually, signal};

/// Damages or removes every file below a directory but the sockets.
fn ruin(directory: &Path, how: impl Fn(&Path) + Copy) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let kind = entry.file_type().expect("a type");
        if kind.is_dir() {
            ruin(&entry.path(), how);
        } else if kind.is_file() {
            how(&entry.path());
        }
    }
}

fn in_human_time(how: impl Fn(&Path) + Copy) {
    let session = Session::up();
    let recorder = Recorder::everything(&session.display());
    let mut holder = session.take(json!({}));
    ruin(&session.state(), how);
    how(&session.runtime().join("attach.json"));
    let mut agent = session.wire();
    assert_eq!(
        agent.refused("desktop.click", json!({"x": 5, "y": 5})).code,
        "human_control_active"
    );
    let proof = holder.proof();
    holder.wire.done("control.renew", proof.clone());
    holder.viewer.tap("h");
    eventually("the person types on", SHORT, || {
        (recorder.presses(u32::from(b'h')) == 1).then_some(())
    });
    // Returning control reduces power: it must work however ill the record is.
    holder.wire.done("control.return", proof);
    let status = session.status();
    assert_ne!(status["control"], "human", "{status}");
    eventually("nothing is held", SHORT, || {
        recorder.held().is_empty().then_some(())
    });
}

#[test]
fn overwritten_in_human_time() {
    in_human_time(|path| fs::write(path, b"garbage").expect("written"));
}

#[test]
fn emptied_in_human_time() {
    in_human_time(|path| fs::write(path, b"").expect("written"));
}

#[test]
fn deleted_in_human_time() {
    in_human_time(|path| match fs::remove_file(path) {
        // A file that is being written has another name at first.
        Err(error) if error.kind() != ErrorKind::NotFound => panic!("{error}"),
        _ => {}
    });
}

/// A corrupt database: the session is not brought back, and the error names the file and the remedy.
#[test]
fn a_corrupt_database_is_named() {
    let session = Session::up();
    signal(session.host(), Signal::KILL);
    let id = session.id();
    eventually("the host has gone", SHORT, || {
        (!crate::support::alive(session.host())).then_some(())
    });
    for file in ["session.db", "session.db-wal"] {
        let path = session.state().join(file);
        if path.exists() {
            fs::write(&path, vec![0x5a; 20_000]).expect("written");
        }
    }
    let mut command = session.place.handover();
    let outcome = Running::start(command.args(["up", "--json", "--session", &id])).finish(LONG);
    assert_eq!(outcome.code, 1, "{outcome:?}");
    let said = outcome.json()["error"]["message"]
        .as_str()
        .expect("a message")
        .to_owned();
    assert!(said.contains("session.db"), "{said}");
}

/// A damaged or missing `session.json`: the session is listed and says what is wrong, is not brought back, and
/// its record can be read.
#[test]
fn a_damaged_session_file_hides_nothing() {
    let mut session = Session::up();
    session
        .wire()
        .done("desktop.click", json!({"x": 5, "y": 5}));
    assert_eq!(session.cli(&["down", "--force"]).code, 0);
    eventually("the host has gone", SHORT, || {
        (!crate::support::alive(session.host())).then_some(())
    });
    let (id, file) = (session.id(), session.state().join("session.json"));
    let good = fs::read(&file).expect("a session file");
    let named = |said: &serde_json::Value| {
        let said = said.as_str().expect("a message");
        assert!(said.contains(file.to_str().expect("UTF-8")), "{said}");
        assert!(said.contains("restore it or remove"), "{said}");
    };
    for content in [Some(&b"garbage"[..]), Some(b""), Some(&[0xff; 99]), None] {
        match content {
            Some(content) => fs::write(&file, content).expect("written"),
            None => fs::remove_file(&file).expect("removed"),
        }
        let listed = session.cli(&["sessions", "--all"]).done();
        let entry = &listed["sessions"][0];
        assert_eq!(
            (&entry["sessionId"], &entry["state"]),
            (&json!(id), &json!("damaged")),
            "{listed}"
        );
        named(&entry["problem"]);
        let up = session.cli(&["up", "--session", &id]);
        assert_eq!(up.refused(), "storage_failed", "{up:?}");
        named(&up.json()["error"]["message"]);
        let list = session.cli(&["list", "--session", &id]);
        assert_eq!(list.code, 3, "{list:?}");
        named(&list.json()["error"]["message"]);
        assert_eq!(session.cli(&["verify", "--session", &id]).code, 0);
        let log = session.cli(&["log", "--session", &id]);
        assert_eq!(log.code, 0, "{log:?}");
        assert!(log.out.contains("desktop_click"), "{log:?}");
    }
    // Restored, as the message says.
    fs::write(&file, good).expect("written");
    session.again();
}

/// A corrupt, empty or missing manifest or lock of a dead host hinders nobody.
#[test]
fn leftovers_of_a_dead_host_are_swept() {
    let mut session = Session::up();
    for content in [&b"garbage"[..], b"", b"{\"pid\":1,\"startTicks\":1}"] {
        signal(session.host(), Signal::KILL);
        eventually("the host has gone", SHORT, || {
            (!crate::support::alive(session.host())).then_some(())
        });
        fs::write(session.runtime().join("attach.json"), content).expect("written");
        fs::write(session.state().join("host.lock"), content).expect("written");
        let listed = session.cli(&["sessions"]);
        assert_eq!(listed.code, 0, "{listed:?}");
        session.again();
        session.wire().done("desktop.screenshot", json!({}));
        session
            .wire()
            .done("desktop.click", json!({"x": 5, "y": 5}));
        session.take(json!({})).give_back();
    }
}
