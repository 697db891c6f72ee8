//! A7: one host a session. Of those who race for it one serves, whatever the umask, and no live socket is ever
//! replaced or unlinked. No host is started from within what a host supervises.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::Value;

use crate::support::{
    LONG, Outcome, Place, Running, SHORT, Session, Signal, alive, eventually, signal,
};

/// The command line under an umask that keeps nobody out.
fn open_to_all(place: &Place, arguments: &str) -> Command {
    let program = env!("CARGO_BIN_EXE_handover");
    let mut command = place.command("sh");
    command.args([
        "-c",
        &format!("umask 000; exec {program} {arguments} --json"),
    ]);
    command
}

/// The process that listens on a socket, if one does.
fn listener(path: &Path) -> Option<i32> {
    let stream = UnixStream::connect(path).ok()?;
    let peer = rustix::net::sockopt::socket_peercred(&stream).ok()?;
    Some(peer.pid.as_raw_nonzero().get())
}

/// Looks again and again whether a socket, once it is there, is the same file of the same process, open to
/// nobody else, until it is told to stop.
fn watch(path: &Path, host: i32, stop: &AtomicBool) -> u64 {
    let file = fs::symlink_metadata(path).expect("the socket").ino();
    let mut looks = 0;
    while !stop.load(Ordering::Relaxed) {
        let meta = fs::symlink_metadata(path).expect("a live socket is never unlinked");
        assert_eq!(meta.ino(), file, "a live socket is never replaced");
        assert_eq!(meta.permissions().mode() & 0o777, 0o600);
        assert_eq!(listener(path), Some(host));
        looks += 1;
    }
    looks
}

/// Twelve rounds of a host that dies or is stopped, and four that race to be the next; and others that start and
/// end sessions beside it, which sweep what the dead leave.
#[test]
fn of_those_who_race_one_serves() {
    let mut session = Session::with(Place::new(), &[]);
    let id = session.id();
    for round in 0..12 {
        if round % 2 == 0 {
            signal(session.host(), Signal::KILL);
            let host = session.host();
            eventually("the host has gone", SHORT, || (!alive(host)).then_some(()));
        } else {
            assert_eq!(session.cli(&["down", "--session", &id]).code, 0);
        }
        let racers: Vec<Running> = (0..4)
            .map(|_| {
                Running::start(&mut open_to_all(
                    &session.place,
                    &format!("up --session {id}"),
                ))
            })
            .collect();
        let mut beside = session.place.handover();
        beside
            .current_dir(session.place.path())
            .args(["up", "--new", "--json"]);
        let beside = Running::start(&mut beside);
        let ended: Vec<Outcome> = racers.into_iter().map(|racer| racer.finish(LONG)).collect();
        let won: Vec<Value> = ended
            .iter()
            .filter(|outcome| outcome.code == 0)
            .map(Outcome::json)
            .collect();
        assert_eq!(won.len(), 1, "round {round}: {ended:?}");
        for lost in ended.iter().filter(|outcome| outcome.code != 0) {
            assert_eq!(lost.refused(), "already_running", "round {round}");
        }
        session.said = won.into_iter().next().expect("one");
        assert_eq!(listener(&session.socket()), Some(session.host()));
        let other = beside.finish(LONG).done();
        let other = other["sessionId"].as_str().expect("an id").to_owned();
        assert_eq!(session.cli(&["down", "--session", &other]).code, 0);
        assert_eq!(listener(&session.socket()), Some(session.host()));
    }
}

/// A live host's socket stays its own while others try to take its session, and come and go beside it.
#[test]
fn a_live_socket_is_never_touched() {
    let session = Session::with(Place::new(), &[]);
    let (id, host, socket) = (session.id(), session.host(), session.socket());
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let watcher = scope.spawn(|| watch(&socket, host, &stop));
        for _ in 0..8 {
            let commands = [
                format!("up --session {id}"),
                format!("host --session {id}"),
                format!("up --session {id}"),
            ];
            let racers = commands.map(|it| Running::start(&mut open_to_all(&session.place, &it)));
            let other = session.start(&["up", "--new"]).finish(LONG).done();
            for racer in racers {
                assert_eq!(racer.finish(LONG).refused(), "already_running");
            }
            let other = other["sessionId"].as_str().expect("an id").to_owned();
            assert_eq!(session.cli(&["down", "--session", &other]).code, 0);
        }
        stop.store(true, Ordering::Relaxed);
        let looks = watcher.join().expect("what is watched stays as it is");
        assert!(looks > 100, "{looks} looks");
    });
}

/// An agent that could start a host would be its own supervisor there: however it hides, it is refused.
#[test]
fn a_host_within_an_agents_tree_does_not_bind() {
    let session = Session::with(Place::new(), &[]);
    let program = env!("CARGO_BIN_EXE_handover");
    let roots = format!(
        "XDG_RUNTIME_DIR={} XDG_STATE_HOME={} HOME={}",
        session.place.runtime().display(),
        session.place.state().display(),
        session.place.path().display()
    );
    let hidden = session.place.path().join("hidden");
    let script = format!(
        "{program} up --new --json; {program} host --json; env -i {roots} {program} host --json; \
         setsid -f sh -c 'env -i {roots} {program} host --json >{0}.new; mv {0}.new {0}'; \
         until [ -e {0} ]; do sleep 0.05; done; cat {0}",
        hidden.display()
    );
    let command = ["agent", "run", "--driver", "command", "--wait", "--"];
    let outcome = session.cli(&[&command[..], &["sh", "-c", &script]].concat());
    let result = outcome.done();
    let text = result["text"].as_str().expect("a text");
    let codes: Vec<String> = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .map(|said| said["error"]["code"].as_str().unwrap_or("none").to_owned())
        .collect();
    assert_eq!(codes, ["caller_refused"; 4], "{result}");
    let live = session.cli(&["sessions"]).done();
    assert_eq!(live["sessions"].as_array().map(Vec::len), Some(1), "{live}");
}
