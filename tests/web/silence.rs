//! L2: a host that is stopped does not look alive, holds up no other, and leaves nobody in control of what it does
//! not answer for; neither does a connection that stays away.

use serde_json::json;

use crate::support::web::{Desk, Page};
use crate::support::{Console, LONG, Running, Session, Signal, Typed, eventually, signal};

/// Waits until the tree says this of `what`, and nothing else.
fn tree_says(tab: &Page, what: &str, wanted: &str, other: &str) {
    eventually(&format!("{what} is {wanted:?}"), LONG, || {
        let text = tab.text(what);
        (text.contains(wanted) && !text.contains(other)).then_some(())
    });
}

#[test]
fn a_stopped_host_does_not_look_alive() {
    let desk = Desk::up();
    let session = &desk.session;
    let mut up = session.place.handover();
    let up = up.args(["up", "--json", "--new", "--desktop", "--name", "other"]);
    let other = Running::start(up).finish(LONG).done();
    let other = other["sessionId"].as_str().expect("an id");
    let row = format!("session-{}", session.id());
    let tab = desk.overview();
    tab.shows(&format!("session-{other}"));
    tab.goes_to_desktop(session);

    signal(session.host(), Signal::STOP);
    tab.says(&row, "does not answer");
    tab.says("desktop-page", &format!("kill -CONT {}", session.host()));
    tab.says("desktop-control", "not known");
    let disabled = tab.evaluates("document.querySelector('[data-testid=take-control]').disabled");
    assert_eq!(disabled, true);
    tab.is_sound("a session that does not answer");
    tab.is_kept_as("does-not-answer");
    // Whoever comes now is told the same.
    tab.reloads();
    tab.says(&row, "does not answer");

    // The other one goes on.
    tab.goes(&format!("#/{other}/desktop/d1"));
    tab.sees();
    tab.takes();
    tab.returns();
    // So does what stops everything: it reaches the one now and the other when it can.
    tab.clicks("emergency-stop");
    tab.clicks("emergency-confirm");
    tab.says("stop-dialog", "does not answer");
    tab.clicks("stop-cancel");
    tab.says("desktop-control", "paused");
    signal(session.host(), Signal::CONT);
    tree_says(&tab, &row, "", "does not answer");
    session.becomes("paused", LONG);
}

#[test]
fn control_of_a_stopped_host_is_kept_for_a_moment_and_no_longer() {
    let desk = Desk::up();
    let session = &desk.session;
    let typed = Typed::start(session);
    let tab = desk.tab();
    tab.takes();
    let lease = session.status()["lease"]["leaseId"].clone();
    signal(session.host(), Signal::STOP);
    tab.says("lost", "does not answer");
    tree_says(
        &tab,
        "desktop-d1",
        "connection broken",
        "you are in control",
    );
    tab.types("lost");
    signal(session.host(), Signal::CONT);
    tab.shows("held");
    assert_eq!(session.status()["lease"]["leaseId"], lease);
    tab.types("a");
    typed.becomes("a");

    signal(session.host(), Signal::STOP);
    tab.shows("lost");
    tab.says("after", "has ended");
    tree_says(&tab, "desktop-d1", "not known", "you are in control");
    signal(session.host(), Signal::CONT);
    // What the page said is so: it does not keep others waiting for the end of the lease.
    session.becomes("agent", LONG);
    session.event("takeover_cancelled");
    tree_says(
        &tab,
        "desktop-d1",
        "agents in control",
        "you are in control",
    );
    tab.takes();
    tab.returns();
}

/// L2: neither the end of the console nor that of the host leaves anybody in control, and the page says so.
#[test]
fn what_ends_below_the_page_ends_control() {
    let mut session = Session::up();
    let console = Console::start(&session.place, &[]);
    let chromium = crate::support::web::Chromium::start(&session.place);
    let terms = json!({"lingerMs": 1_000});
    let tab = chromium.at_desktop_with(&console.url(), &session, terms.clone());
    tab.takes();
    signal(console.running.pid(), Signal::KILL);
    tab.shows("lost");
    tab.says("link", "No connection");
    session.becomes("agent", LONG);
    // For as long as it could be taken up again.
    tab.says("after", "has ended");
    tree_says(&tab, "desktop-d1", "not known", "you are in control");
    // What cannot be asked for now is not offered, whoever had control last.
    for button in ["revoke", "ask-control", "take-control"] {
        let offered = format!("document.querySelector('[data-testid={button}]:enabled') !== null");
        assert_eq!(tab.evaluates(&offered), false, "{button}");
    }
    let old = tab;

    let console = Console::start(&session.place, &[]);
    let tab = chromium.at_desktop_with(&console.url(), &session, terms);
    tab.takes();
    signal(session.host(), Signal::KILL);
    tab.shows("lost");
    tab.says("after", "has ended");
    tree_says(&tab, "desktop-d1", "not known", "you are in control");
    session.again();
    session.becomes("agent", LONG);
    tab.shows("take-control");
    tab.sees();
    tab.takes();
    tab.returns();
    assert!(!old.has("held"));
}
