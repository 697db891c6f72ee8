//! Who may ask for what: programs on a desktop may only look, other users get nothing, and an agent's act is
//! never taken for a person's.

use std::fs;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;

use serde_json::{Value, json};

use crate::support::scripted::{becomes, shell};
use crate::support::{LONG, Place, Running, Session, Wire, eventually};

/// A program launched on the desktop calls the command line and the socket: it is an `app`.
#[test]
fn a_program_on_the_desktop_cannot_take_control() {
    let session = Session::up();
    let mut holder = session.take(json!({}));
    holder.give_back();
    let program = env!("CARGO_BIN_EXE_handover");
    let results = session.place.path().join("app");
    let commands = [
        "takeover revoke --force",
        "takeover return",
        "pause",
        "resume",
        "stop-all",
        "desktop click 5 5",
        "desktop type x",
        "down",
    ];
    let call = |command: &&str| {
        format!(
            "{program} {command} --json >>{}.new 2>/dev/null; ",
            results.display()
        )
    };
    let calls: String = commands.iter().map(call).collect();
    let script = format!(
        "export HANDOVER_SESSION={}; {calls} mv {1}.new {1}",
        session.id(),
        results.display()
    );
    session.wire().done(
        "desktop.launch",
        json!({"desktop": "d1", "command": ["sh", "-c", script]}),
    );
    let said = eventually("the program's calls are answered", LONG, || {
        fs::read_to_string(&results).ok()
    });
    let codes: Vec<String> = said
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .map(|value| value["error"]["code"].as_str().unwrap_or("none").to_owned())
        .collect();
    assert_eq!(codes, vec!["caller_refused"; commands.len()], "{said}");
    assert_eq!(session.status()["control"], "agent");
}

/// A program that asks to be taken for an agent stays one: it cannot take control or give it back.
#[test]
fn an_agent_cannot_act_as_a_person() {
    let session = Session::up();
    let holder = session.take(json!({}));
    let mut agent = Wire::connect(&session.socket());
    let hello = agent.done(
        "hello",
        json!({"client": "an agent", "protocol": 1, "as": "agent"}),
    );
    assert_eq!(hello["caller"]["kind"], "agent");
    let proof = holder.proof();
    for (method, params) in [
        ("control.acquire", json!({})),
        ("control.return", json!({"desktop": "d1"})),
        ("control.return", proof.clone()),
        ("control.renew", proof),
        ("control.revoke", json!({"force": true})),
        ("control.pause", json!({})),
        ("control.resume", json!({})),
        ("control.secret", json!({"text": "x"})),
        ("stop", json!({"force": true})),
        ("stop_all_input", json!({})),
    ] {
        assert_eq!(
            agent.refused(method, params).code,
            "caller_refused",
            "{method}"
        );
    }
    // Saying hello again gives no power back.
    let again = agent.call("hello", json!({"client": "a person", "protocol": 1}));
    assert!(again.is_err() || again.is_ok_and(|hello| hello["caller"]["kind"] == "agent"));
    assert_eq!(session.status()["control"], "human");
}

/// An agent started outside of Handover is known by its environment, however it calls.
#[test]
fn an_agent_from_elsewhere_is_no_person() {
    let session = Session::up();
    let mut command = session.place.handover();
    command
        .env("CLAUDECODE", "1")
        .args(["takeover", "revoke", "--json"]);
    let outcome = Running::start(&mut command).finish(LONG);
    assert_eq!(outcome.refused(), "caller_refused");
}

/// A human act says on what it rests.
#[test]
fn evidence_is_recorded() {
    let session = Session::up();
    session.take(json!({})).give_back();
    let start = session.event("takeover_start");
    assert_eq!(start["source"], "human");
    let evidence = start["actor"]["evidence"].as_str().expect("evidence");
    assert!(["tty", "logind", "lineage"].contains(&evidence), "{start}");
    assert!(start["pid"].is_u64() && start["uid"].is_u64());
}

fn modes(directory: &Path, found: &mut Vec<(std::path::PathBuf, u32, bool)>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let Ok(meta) = entry.metadata() else { continue };
        found.push((
            entry.path(),
            meta.permissions().mode() & 0o777,
            meta.file_type().is_socket(),
        ));
        if meta.is_dir() {
            modes(&entry.path(), found);
        }
    }
}

/// A6: nothing of a session is open to others, whatever the umask.
#[test]
fn nothing_is_open_to_others_under_any_umask() {
    let place = Place::new();
    let program = env!("CARGO_BIN_EXE_handover");
    let mut command = place.command("sh");
    command.args([
        "-c",
        &format!("umask 000; exec {program} up --json --desktop --size 320x240"),
    ]);
    let said = Running::start(&mut command).finish(LONG).done();
    let session = Session { place, said };
    session.take(json!({})).give_back();
    let (_viewer, _) = session.viewer();
    let ended = shell(&session, "echo out; echo err >&2");
    becomes(&session, &ended, "done");
    let running = shell(&session, "echo out; sleep 1000");
    becomes(&session, &running, "running");
    let mut found = Vec::new();
    modes(&session.runtime(), &mut found);
    modes(&session.state(), &mut found);
    assert!(found.iter().any(|(_, _, socket)| *socket), "no socket seen");
    // Files too, though the directories protect them: they may be copied elsewhere as they are.
    let open: Vec<_> = found
        .iter()
        .filter(|(_, mode, _)| mode & 0o077 != 0)
        .collect();
    assert!(open.is_empty(), "{open:?}");
    for directory in [session.runtime(), session.state()] {
        let mode = fs::metadata(&directory)
            .expect("a directory")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o700, "{}", directory.display());
    }
}

/// Another user is kept out by the directories, and refused by the host even when those were opened.
#[test]
fn another_user_is_refused() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can become another user");
        return;
    }
    let session = Session::up();
    let socket = session.socket();
    let connect = || {
        let script = format!(
            "import socket\ns = socket.socket(socket.AF_UNIX)\ns.settimeout(5)\ns.connect('{}')\ns.sendall(b'{}\\n')\nprint(s.recv(4000).decode())",
            socket.display(),
            r#"{"jsonrpc":"2.0","id":1,"method":"list","params":{}}"#,
        );
        let mut command = session.place.command("setpriv");
        command.current_dir("/").args([
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
            "/usr/bin/python3",
            "-c",
            &script,
        ]);
        Running::start(&mut command).finish(LONG)
    };
    let closed = connect();
    assert_ne!(closed.code, 0, "{closed:?}");
    // Somebody opened everything: the host still looks at who is there.
    let mut path = socket.as_path();
    while path != Path::new("/tmp") {
        let mode = if path == socket { 0o777 } else { 0o755 };
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("mode");
        path = path.parent().expect("below /tmp");
    }
    let opened = connect();
    assert!(!opened.out.contains("\"desktops\""), "{opened:?}");
}

/// A7: a second host on the same session cannot take or unlink a live socket.
#[test]
fn a_second_host_changes_nothing() {
    let session = Session::up();
    let id = session.id();
    for _ in 0..5 {
        let both = [0, 1].map(|_| {
            let mut command = session.place.handover();
            Running::start(command.args(["up", "--json", "--session", &id]))
        });
        for one in both {
            assert_eq!(one.finish(LONG).refused(), "already_running");
        }
        let mut command = session.place.handover();
        let direct =
            Running::start(command.args(["host", "--session", &id, "--json"])).finish(LONG);
        assert_ne!(direct.code, 0, "{direct:?}");
        assert_eq!(session.wire().done("list", json!({}))["session"], json!(id));
    }
}

/// A path that the kernel would cut off is a clear error with the remedy, and nothing is started.
#[test]
fn a_path_too_long_for_a_socket() {
    let place = Place::new();
    let long = place.path().join("x".repeat(90));
    fs::create_dir(&long).expect("a directory");
    fs::set_permissions(&long, fs::Permissions::from_mode(0o700)).expect("mode");
    let mut command = place.handover();
    command
        .env("XDG_RUNTIME_DIR", &long)
        .args(["up", "--json", "--desktop"]);
    let outcome = Running::start(&mut command).finish(LONG);
    assert_eq!(outcome.code, 1, "{outcome:?}");
    let said = outcome.json()["error"]["message"]
        .as_str()
        .expect("a message")
        .to_owned();
    assert!(
        said.contains("XDG_RUNTIME_DIR") && said.contains("107") || said.contains("108"),
        "{said}"
    );
    eventually("nothing was left running", LONG, || {
        place.processes().is_empty().then_some(())
    });
}

/// What a client calls itself is shown to others, and cannot pass for a line of its own.
#[test]
fn a_name_is_one_line() {
    let session = Session::up();
    let mut holder = session.wire();
    let name = "me)\nhandover: all is well\r\u{1b}[2J";
    holder.done("hello", json!({"client": name, "protocol": 1}));
    holder.done("control.acquire", json!({"desktop": "d1"}));
    let refused = session
        .wire()
        .refused("desktop.click", json!({"x": 5, "y": 5}));
    assert_eq!(refused.code, "human_control_active", "{refused:?}");
    assert!(!refused.message.contains(char::is_control), "{refused:?}");
}
