//! `desktop new --attach` puts another RFB server behind the same gate: agents act through it, a person takes
//! over, watchers only watch.

use std::path::PathBuf;

use serde_json::json;

use crate::support::{
    Place, Recorder, Running, SHORT, Session, Viewer, What, eventually, own_number, plain_server,
};

/// A display server that is not ours, without a password.
struct Foreign {
    _server: Running,
    display: crate::support::Display,
    socket: PathBuf,
}

impl Foreign {
    fn start(place: &Place) -> Self {
        let socket = place.path().join("other.rfb");
        let authority = place.path().join("other.auth");
        let display = format!(":{}", own_number());
        // One entry for any host and display, as xauth would write it.
        let mut entry = vec![0xFF, 0xFF, 0, 0, 0, 0, 0, 18];
        entry.extend(b"MIT-MAGIC-COOKIE-1\x00\x10");
        entry.extend([7; 16]);
        std::fs::write(&authority, entry).expect("a file");
        let path = authority.to_str().expect("a path of ours");
        let server = plain_server(
            place,
            &display,
            "640x480",
            &socket,
            &["-AlwaysShared=1", "-auth", path],
        );
        let display = crate::support::Display {
            name: display,
            authority,
        };
        Self {
            _server: server,
            display,
            socket,
        }
    }
}

#[test]
fn another_server_behind_the_same_gate() {
    let place = Place::new();
    let foreign = Foreign::start(&place);
    let session = Session::with(place, &[]);
    let target = format!("unix:{}", foreign.socket.display());
    let made = session.cli(&["desktop", "new", "--attach", &target]).done();
    assert_eq!(
        (&made["id"], &made["size"]),
        (&json!("d1"), &json!("640x480"))
    );

    let recorder = Recorder::everything(&foreign.display);
    // Something to see: a picture that is all black is refused.
    let _window = Recorder::window(&foreign.display);
    let mut agent = session.wire();
    agent.done("desktop.click", json!({"x": 5, "y": 5}));
    eventually("the click", SHORT, || {
        (recorder.count(What::Button {
            down: true,
            number: 1,
        }) == 1)
            .then_some(())
    });
    let (watcher, _) = session.viewer();
    watcher.first_frame();
    let mut holder = session.take(json!({}));
    watcher.tap("w");
    holder.viewer.key(0xFFE1, true);
    eventually("the person's key", SHORT, || {
        (recorder.held().len() == 1).then_some(())
    });
    assert_eq!(
        agent.refused("desktop.click", json!({"x": 5, "y": 5})).code,
        "human_control_active"
    );
    holder.give_back();
    eventually("it is released", SHORT, || {
        recorder.held().is_empty().then_some(())
    });
    assert_eq!(
        recorder.presses(u32::from(b'w')),
        0,
        "a watcher's key reached the display"
    );
    agent.done("desktop.screenshot", json!({}));
    agent.done("desktop.click", json!({"x": 5, "y": 5}));
}

/// A target that is not there is a clear refusal, and leaves nothing behind.
#[test]
fn a_target_that_is_not_there() {
    let session = Session::with(Place::new(), &[]);
    for target in ["unix:/nonexistent/rfb", "127.0.0.1:1", "nonsense"] {
        let refused = session.cli(&["desktop", "new", "--attach", target]);
        assert!([1, 2].contains(&refused.code), "{target}: {refused:?}");
        assert!(refused.out.contains(target), "{target}: {refused:?}");
    }
    assert_eq!(
        session.wire().done("list", json!({}))["desktops"],
        json!([])
    );
}

/// A viewer that connects to the other server past the gate is outside of our hands; through the gate it is
/// view-only like any other.
#[test]
fn viewers_of_an_attached_desktop_only_watch() {
    let place = Place::new();
    let foreign = Foreign::start(&place);
    let session = Session::with(place, &[]);
    let target = format!("unix:{}", foreign.socket.display());
    session.cli(&["desktop", "new", "--attach", &target]).done();
    let recorder = Recorder::everything(&foreign.display);
    let watchers: Vec<Viewer> = (0..5).map(|_| session.viewer().0).collect();
    for watcher in &watchers {
        watcher.first_frame();
        watcher.tap("w");
        watcher.pointer(1, 9, 9);
    }
    session.wire().done("desktop.key", json!({"keys": "a"}));
    eventually("the agent's key", SHORT, || {
        (recorder.presses(u32::from(b'a')) == 1).then_some(())
    });
    assert_eq!(recorder.presses(u32::from(b'w')), 0);
    assert!(watchers.iter().all(Viewer::open));
}
