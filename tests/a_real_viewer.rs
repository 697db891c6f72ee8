//! The story of a takeover with a real viewer on a person's screen: `watch --control` opens it, hands act in it,
//! and closing it returns control.

use crate::support::{LONG, Running, Seat, Session, Typed, eventually, takeovers};

#[test]
fn a_person_acts_through_tigervncs_viewer() {
    let session = Session::up();
    let typed = Typed::start(&session);
    let seat = Seat::start(&session.place);
    let mut command = session.place.handover();
    command
        .args(["watch", "--control", "--json", "--note", "by hand"])
        .env("DISPLAY", seat.display());
    let controller = Running::start(&mut command);
    eventually("the viewer is connected", LONG, || {
        let status = session.status();
        (status["control"] == "human" && status["lease"]["viewerConnected"] == true).then_some(())
    });
    // The click focuses the viewer on the person's screen, and the terminal on the desktop.
    let click = [
        "search",
        "--onlyvisible",
        "--name",
        "TigerVNC",
        "mousemove",
        "--window",
        "%1",
    ];
    let click = [
        &click[..],
        &["100", "80", "click", "1", "sleep", "0.3", "key", "x"],
    ]
    .concat();
    eventually("the person's hands reach the terminal", LONG, || {
        (seat.hands(&click) && typed.text().contains('x')).then_some(())
    });
    seat.hands(&["type", "--delay", "20", "By Hand 42!"]);
    eventually("what the hands typed", LONG, || {
        typed.text().ends_with("By Hand 42!").then_some(())
    });

    eventually("the viewer's window is closed", LONG, || {
        seat.hands(&["key", "alt+F4"]);
        (!crate::support::alive(controller.pid())).then_some(())
    });
    let outcome = controller.finish(LONG);
    assert_eq!(outcome.code, 0, "{outcome:?}");
    session.becomes("agent", LONG);
    let records = takeovers(&session.journal());
    assert_eq!(records.len(), 1);
    assert_eq!(records[0].how, "return");
    assert_eq!(session.status()["lastHandBack"]["note"], "by hand");
}

/// V6: taking and returning control again and again restarts no server and no viewer.
#[test]
fn a_watching_viewer_stays_through_takeovers() {
    let session = Session::up();
    let server = session.display_server();
    let seat = Seat::start(&session.place);
    let mut command = session.place.handover();
    let watcher = Running::start(
        command
            .args(["watch", "--json"])
            .env("DISPLAY", seat.display()),
    );
    eventually("a window of the viewer", LONG, || {
        seat.hands(&["search", "--name", "TigerVNC"]).then_some(())
    });
    for _ in 0..3 {
        session.take(serde_json::json!({})).give_back();
    }
    assert!(
        crate::support::alive(watcher.pid()),
        "{}{}",
        watcher.out(),
        watcher.err()
    );
    assert!(
        seat.hands(&["search", "--name", "TigerVNC"]),
        "the viewer's window is gone"
    );
    assert_eq!(session.display_server(), server);
}
