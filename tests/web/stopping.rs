//! L10: a desktop is paused and everything is stopped from everywhere, after one question.

use serde_json::json;

use crate::support::scripted::{Scripted, becomes, shell};
use crate::support::web::Desk;
use crate::support::{LONG, eventually};

#[test]
fn a_desktop_is_paused_and_goes_on() {
    let desk = Desk::up();
    let session = &desk.session;
    let tab = desk.tab();
    tab.clicks("pause");
    tab.clicks("pause-cancel");
    assert_eq!(session.status()["control"], "agent");
    tab.clicks("pause");
    tab.clicks("pause-confirm");
    tab.shows("resume");
    session.becomes("paused", LONG);
    eventually("the page says why", LONG, || {
        let strip = tab.evaluates("document.querySelector('.strip').innerText");
        strip
            .as_str()
            .is_some_and(|said| said.contains("A person paused it"))
            .then_some(())
    });
    let refused = session
        .wire()
        .refused("desktop.click", json!({"x": 1, "y": 1}));
    assert_eq!(refused.code, "paused");
    // A person may act meanwhile, and leaves it paused.
    tab.takes();
    tab.returns();
    session.becomes("paused", LONG);
    tab.clicks("resume");
    tab.clicks("resume-confirm");
    session.becomes("agent", LONG);
    tab.shows("pause");
}

#[test]
fn everything_is_stopped_after_one_question() {
    let desk = Desk::up();
    let session = &desk.session;
    let agents = [
        Scripted::start(session, "hold", json!({"desktop": "d1"})).id,
        shell(session, "sleep 1000"),
    ];
    let tab = desk.overview();
    for hash in [
        "#/".to_owned(),
        format!("#/{}", session.id()),
        format!("#/{}/record", session.id()),
        format!("#/{}/agent/{}", session.id(), agents[0]),
    ] {
        tab.goes(&hash);
        tab.clicks("emergency-stop");
        tab.says("stop-dialog", "2 agents");
        tab.clicks("stop-cancel");
        tab.hides("stop-dialog");
    }
    tab.goes_to_desktop(session);
    tab.takes();
    // The keys for it are heard while the keyboard is with the picture.
    tab.presses("Control+Alt+Shift+KeyX");
    tab.clicks("emergency-confirm");
    tab.hides("stop-dialog");
    session.becomes("paused", LONG);
    for agent in &agents {
        becomes(session, agent, "aborted");
    }
    tab.hides("held");
    tab.shows("resume");
}
