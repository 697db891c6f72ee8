//! Hosts are found by their manifests, wherever they are; what is dead, another's, damaged or half written is
//! passed over and left alone; and a manifest is true, also after many changes.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::{Value, json};

use crate::support::{LONG, Place, Running, SHORT, Session, eventually};

fn manifest(session: &Session) -> Value {
    let text = fs::read(session.runtime().join("attach.json")).expect("a manifest");
    serde_json::from_slice(&text).expect("whole at every moment")
}

/// A directory beside the session's own, with this as its manifest.
fn beside(session: &Session, name: &str, text: &[u8]) -> PathBuf {
    let root = session.runtime().parent().expect("a root").to_owned();
    let directory = root.join(name);
    fs::create_dir(&directory).expect("a directory");
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o700)).expect("mode");
    fs::write(directory.join("attach.json"), text).expect("written");
    directory
}

/// Every name below a directory, with the size of its file.
fn names(directory: &Path) -> Vec<(PathBuf, u64)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let Ok(meta) = entry.metadata() else { continue };
        found.push((entry.path(), meta.len()));
        if meta.is_dir() {
            found.extend(names(&entry.path()));
        }
    }
    found.sort();
    found
}

#[test]
fn only_the_living_are_found_and_nothing_else_is_touched() {
    let session = Session::with(Place::new(), &[]);
    let command = ["agent", "run", "--driver", "command", "--", "sleep", "1000"];
    let id = session.cli(&command).done()["id"].clone();
    let id = id.as_str().expect("an id").to_owned();
    let live = eventually("the manifest has the agent at work", LONG, || {
        let manifest = manifest(&session);
        let agent = &manifest["agents"][0];
        (agent["id"] == id.as_str() && agent["status"] == "running").then_some(manifest)
    });
    let changed = |member: &str, value: Value| {
        let mut other = live.clone();
        other[member] = value;
        // All claim the same agent, at a socket that is not there.
        other["socketPath"] = json!("/nowhere/attach.sock");
        other["sessionId"] = json!("pretends");
        serde_json::to_vec_pretty(&other).expect("JSON")
    };
    let whole = serde_json::to_vec_pretty(&live).expect("JSON");
    let ticks = live["startTicks"].as_u64().expect("a number");
    let mut places = vec![
        beside(&session, "deadpid", &changed("pid", json!(i32::MAX))),
        beside(
            &session,
            "otherone",
            &changed("startTicks", json!(ticks + 1)),
        ),
        beside(&session, "lastboot", &changed("bootId", json!("another"))),
        beside(&session, "half", &whole[..whole.len() / 2]),
        beside(&session, "empty", b""),
        beside(&session, "noise", &[0xff; 4096]),
        beside(&session, "shape", b"{\"pid\": \"one\"}"),
        beside(&session, "list", b"[]"),
        beside(&session, "deep", "[".repeat(100_000).as_bytes()),
    ];
    for (name, kind) in [("link", 0), ("pipe", 1), ("folder", 2)] {
        let place = beside(&session, name, b"");
        let path = place.join("attach.json");
        fs::remove_file(&path).expect("removed");
        match kind {
            0 => symlink(session.runtime().join("attach.json"), &path).expect("a link"),
            1 => {
                let mode = rustix::fs::Mode::from_raw_mode(0o600);
                rustix::fs::mkfifoat(rustix::fs::CWD, &path, mode).expect("a pipe");
            }
            _ => fs::create_dir(&path).expect("a directory"),
        }
        places.push(place);
    }
    if rustix::process::geteuid().is_root() {
        let mut theirs = live.clone();
        theirs["sessionId"] = json!("foreign");
        let text = serde_json::to_vec(&theirs).expect("JSON");
        let place = beside(&session, "foreign", &text);
        std::os::unix::fs::chown(place.join("attach.json"), Some(65534), None).expect("given away");
        places.push(place);
    }
    let before: Vec<_> = places.iter().map(|place| names(place)).collect();

    let list = session.cli(&["list"]).done();
    assert_eq!(list["session"], session.id());
    let sessions = session.cli(&["sessions"]).done();
    assert_eq!(
        sessions["sessions"].as_array().map(Vec::len),
        Some(1),
        "{sessions}"
    );
    // By the agent's id, and by its beginning, every host there is is searched.
    for name in [&id[..], &id[..3]] {
        let result = session.cli(&["result", name]).done();
        assert_eq!(result["status"], "running", "{result}");
    }
    assert_eq!(session.cli(&["steer", &id, "x"]).refused(), "not_steerable");
    let other = session.start(&["up", "--new"]).finish(LONG).done();
    let other = other["sessionId"].as_str().expect("an id").to_owned();
    assert_eq!(session.cli(&["down", "--session", &other]).code, 0);
    let aborted = session.cli(&["abort", &id[..2], "--yes"]).done();
    assert_eq!(aborted["status"], "aborted");
    let after: Vec<_> = places.iter().map(|place| names(place)).collect();
    assert_eq!(before, after, "nothing of theirs is touched");
}

/// In a mount namespace whose `/run` is its own: one host below `XDG_RUNTIME_DIR`, one started without it.
const STORY: &str = r#"
set -e
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p -m 700 "/run/user/$(id -u)"
mkdir one two
(cd one && "$HANDOVER" up --json >../one.json)
(cd two && env -u XDG_RUNTIME_DIR "$HANDOVER" up --json >../two.json)
first=$(cd one && "$HANDOVER" agent run --driver command --json -- sleep 1000 | sed 's/.*"id":"\([^"]*\)".*/\1/')
second=$(cd two && "$HANDOVER" agent run --driver command --json -- sleep 1000 | sed 's/.*"id":"\([^"]*\)".*/\1/')
"$HANDOVER" sessions --json >sessions.json
for id in "$first" "$second"; do
    "$HANDOVER" result "$id" --json
    env -u XDG_RUNTIME_DIR "$HANDOVER" result "$second" --json
    "$HANDOVER" abort "$id" --yes --json
done >results.json
"$HANDOVER" down --all --json
"#;

#[test]
fn two_roots_at_once() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: a mount namespace of its own needs root");
        return;
    }
    let place = Place::new();
    let mut command = place.command("unshare");
    command.args(["--mount", "sh", "-c", STORY]);
    command.env("HANDOVER", env!("CARGO_BIN_EXE_handover"));
    let outcome = Running::start(&mut command).finish(LONG);
    assert_eq!(outcome.code, 0, "{outcome:?}");
    let read = |name: &str| fs::read_to_string(place.project().join(name)).expect("written");
    let up = |name: &str| serde_json::from_str::<Value>(&read(name)).expect("JSON");
    let [one, two] = ["one.json", "two.json"].map(up);
    let below = |said: &Value, root: &Path| {
        Path::new(said["runtimeDir"].as_str().expect("a path")).starts_with(root)
    };
    assert!(below(&one, &place.runtime()), "{one}");
    assert!(below(&two, Path::new("/run/user")), "{two}");
    let sessions = read("sessions.json");
    for said in [&one, &two] {
        let id = said["sessionId"].as_str().expect("an id");
        assert!(sessions.contains(id), "{id} in {sessions}");
    }
    let results = read("results.json");
    let ended = results.lines().filter(|line| line.contains("survivors"));
    assert_eq!(
        (results.lines().count(), ended.count()),
        (6, 2),
        "{results}"
    );
}

/// A thousand changes: the manifest is whole whenever it is read, shows nothing that never was, is written seldom,
/// and is right in the end.
#[test]
fn true_after_a_thousand_quick_changes() {
    let session = Session::up();
    let path = session.runtime().join("attach.json");
    let mut wire = session.wire();
    let started = Instant::now();
    let mut files = Vec::new();
    for change in 0..1000 {
        let method = match change % 2 {
            0 => "control.pause",
            _ => "control.resume",
        };
        wire.done(method, json!({"desktop": "d1"}));
        let shown = manifest(&session);
        let control = &shown["desktops"][0]["control"];
        assert!(control == "agent" || control == "paused", "{shown}");
        assert_eq!(shown["sessionId"], session.id());
        files.push(fs::symlink_metadata(&path).expect("a manifest").ino());
    }
    files.dedup();
    let paces = started.elapsed().as_millis() / 200;
    assert!(files.len() as u128 <= paces + 2, "{} writes", files.len());
    wire.done("control.pause", json!({"desktop": "d1"}));
    eventually("the manifest shows the last change", SHORT, || {
        (manifest(&session)["desktops"][0]["control"] == "paused").then_some(())
    });
    assert_eq!(session.cli(&["down"]).code, 0);
    assert!(!path.exists());
}
