//! The machine may have other users: what is one's gives nothing to another, and nobody needs to be root.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::support::{Console, LONG, Place, Running, SHORT, Session, Signal, eventually};

/// Says what comes back from each socket, or why nothing does.
const KNOCK: &str = r#"
import socket, sys
for path in sys.argv[1:]:
    knocking = socket.socket(socket.AF_UNIX)
    knocking.settimeout(30)
    try:
        knocking.connect(path)
        knocking.sendall(b'{"jsonrpc":"2.0","id":1,"method":"list","params":{}}\n')
        print("answer", knocking.recv(4096))
    except OSError as error:
        print(type(error).__name__)
"#;

/// Says the status of each address without a cookie.
const GET: &str = r#"
import http.client, sys
for path in sys.argv[2:]:
    asking = http.client.HTTPConnection(sys.argv[1], timeout=30)
    asking.request("GET", path)
    answer = asking.getresponse()
    print(answer.status, answer.getheader("set-cookie"))
"#;

/// A place of another user's; none where only root could make one.
fn place_of_other() -> Option<Place> {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can act as another user");
        return None;
    }
    Place::of_an_ordinary_user()
}

fn python(place: &Place, script: &str, arguments: &[&str]) -> String {
    let mut command = place.command("python3");
    // One that every user may run, not one that somebody keeps at home.
    command.env("PATH", "/usr/local/bin:/usr/bin:/bin");
    let outcome = Running::start(command.args(["-c", script]).args(arguments)).finish(LONG);
    assert_eq!(outcome.code, 0, "{outcome:?}");
    outcome.out
}

/// What each of the sockets gives to the other user, a line each.
fn knock(other: &Place, sockets: &[PathBuf]) -> Vec<String> {
    let paths: Vec<_> = sockets.iter().map(|path| path.to_string_lossy()).collect();
    let paths: Vec<&str> = paths.iter().map(AsRef::as_ref).collect();
    let said = python(other, KNOCK, &paths);
    said.lines().map(str::to_owned).collect()
}

/// Lets everybody into a directory and all below it.
fn open_to_all(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o777)).expect("a mode");
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        open_to_all(&entry.path());
    }
}

#[test]
fn another_user_gets_nothing() {
    let Some(other) = place_of_other() else {
        return;
    };
    let session = Session::up();
    let console = Console::start(&session.place, &[]);
    let (viewer, _) = session.view();
    let consoles = session.place.runtime().join("handover/console");
    let door = fs::read_dir(&consoles).expect("a directory").flatten();
    let door = door.map(|entry| entry.path()).next().expect("a socket");
    let sockets = [session.socket(), viewer, door];
    for path in [session.runtime(), session.state(), consoles] {
        let mode = fs::metadata(&path).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "{}", path.display());
    }
    assert_eq!(knock(&other, &sockets), ["PermissionError"; 3]);
    // Not even where somebody has opened the directories and the sockets to all.
    open_to_all(session.place.path());
    for said in knock(&other, &sockets) {
        let closed = ["answer b''", "ConnectionResetError", "BrokenPipeError"];
        assert!(
            closed.contains(&said.as_str()) || said.contains("caller_refused"),
            "{said}"
        );
    }
    let runtime = session.place.runtime();
    let ask = |arguments: &[&str]| {
        let mut command = other.handover();
        command.env("XDG_RUNTIME_DIR", &runtime).arg("--json");
        Running::start(command.args(arguments)).finish(LONG)
    };
    let socket = session.socket();
    let socket = socket.to_string_lossy();
    for arguments in [
        &["list", "--socket", &socket][..],
        &["takeover", "return", "d1", "--socket", &socket],
        &["down", "--session", &session.id()],
        &["console", "link"],
    ] {
        let outcome = ask(arguments);
        assert_ne!(outcome.code, 0, "{arguments:?}: {outcome:?}");
    }
    let sessions = ask(&["sessions"]).out;
    assert!(!sessions.contains("\"live\":true"), "{sessions}");
    let statuses = python(
        &other,
        GET,
        &[&console.address(), "/", "/api/live", "/open/x"],
    );
    let statuses: Vec<&str> = statuses.lines().collect();
    assert_eq!(statuses, ["401 None", "401 None", "403 None"]);
    // Whoever they belong to has them still.
    assert_eq!(session.status()["control"], "agent");
    console.enter(&console.url());
}

#[test]
fn a_user_who_is_not_root_has_all_of_it() {
    let Some(place) = Place::of_an_ordinary_user() else {
        return;
    };
    let user = fs::metadata(place.path()).expect("a directory").uid();
    assert_ne!(user, 0);
    let session = Session::with(place, &["--desktop", "--size", "320x240"]);
    let host = fs::metadata(format!("/proc/{}", session.host()));
    assert_eq!(host.expect("it runs").uid(), user);
    let picture = session.cli(&["desktop", "screenshot", "d1"]).done();
    assert_eq!(picture["width"], 320);
    session.cli(&["desktop", "click", "5", "5"]).done();

    let control = |wanted: &str| {
        eventually(&format!("control is {wanted}"), LONG, || {
            let status = session.cli(&["takeover", "status", "d1"]).done();
            (status["control"] == wanted).then_some(status)
        })
    };
    let watching = session.start(&["watch", "--control", "--viewer", "none", "--note", "done"]);
    watching.line("control", |said| said["event"] == "acquired");
    control("human");
    let refused = session.cli(&["desktop", "click", "5", "5"]);
    assert_eq!(refused.refused(), "human_control_active");
    let returned = session.cli(&["takeover", "return", "d1"]).done();
    assert_eq!(returned["reason"], "return");
    assert_eq!(watching.finish(LONG).code, 0);
    assert_eq!(control("agent")["lastHandBack"]["note"], "done");

    let run = ["agent", "run", "--driver", "command", "--wait", "--"];
    let agent = session
        .cli(&[&run[..], &["sh", "-c", "id -u"]].concat())
        .done();
    let said = agent["text"].as_str().map(str::trim);
    assert_eq!(said, Some(&*user.to_string()), "{agent}");
    let top = session.cli(&["top", "--once"]).done();
    let shown = &top["sessions"][0];
    assert_eq!(
        (&shown["state"], &shown["desktops"][0]["id"]),
        (&json!("live"), &json!("d1"))
    );
    session.cli(&["verify"]).done();
    let console = Console::start(&session.place, &[]);
    let tab = console.browser();
    tab.vanish();
    let link = session.cli(&["console", "link", "d1"]).done();
    assert_eq!(link["desktop"], "d1");
    console.running.signal(Signal::INT);
    assert_eq!(console.running.finish(SHORT).code, 130);
    session.cli(&["down"]).done();
}
