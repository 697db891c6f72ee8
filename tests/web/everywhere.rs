//! The console is small and fast, is used without pointing, and can be read by those who do not see: every
//! screen, in light and in dark, on a phone and on a large display.

use serde_json::{Value, json};

use crate::support::scripted::Scripted;
use crate::support::web::{Chromium, Desk, Page};
use crate::support::{Console, LONG, Place, Typed, Wire, eventually};

/// The most that the whole app may take over the wire, in bytes.
const WIRE: u64 = 300_000;

/// Shows the screen in all sizes, keeps pictures of it, and checks it on a phone and, in both colours, on a desk.
fn everywhere(tab: &Page, name: &str) {
    let sizes = [
        (3840, 2160, "light"),
        (360, 740, "light"),
        (1280, 800, "dark"),
        (1280, 800, "light"),
    ];
    for (width, height, scheme) in sizes {
        tab.resizes(width, height);
        tab.shows_in(scheme);
        let wide = tab.evaluates("document.documentElement.scrollWidth > innerWidth");
        assert_eq!(wide, false, "{name} is wider than {width} pixels");
        tab.is_kept_as(&format!("{name}-{width}x{height}-{scheme}"));
        if width != 3840 {
            tab.is_sound(&format!("{name}, {width} pixels, {scheme}"));
        }
    }
}

#[test]
fn what_is_read_is_accessible() {
    let desk = Desk::up();
    let session = &desk.session;
    let agent = Scripted::start(session, "hold", json!({"desktop": "d1", "name": "painter"}));
    agent.hears("hold");
    session
        .wire()
        .done("desktop.click", json!({"x": 300, "y": 200}));
    session.take(json!({"note": "a look"})).give_back();
    let ask = json!({"desktop": "d1", "reason": "a captcha"});
    session.wire().done("request_human", ask);
    let tab = desk.overview();
    tab.says("needs-you", "captcha");
    everywhere(&tab, "overview");
    let id = session.id();
    tab.goes(&format!("#/{id}"));
    tab.shows("session-page");
    everywhere(&tab, "session");
    tab.goes(&format!("#/{id}/agent/{}", agent.id));
    tab.says("transcript", "a look");
    everywhere(&tab, "agent");
    tab.goes(&format!("#/{id}/record"));
    tab.says("timeline", "took control");
    everywhere(&tab, "record");
}

#[test]
fn what_is_acted_on_is_accessible() {
    let desk = Desk::up();
    let session = &desk.session;
    let _typed = Typed::start(session);
    let tab = desk.tab();
    everywhere(&tab, "desktop");
    tab.takes();
    everywhere(&tab, "in-control");
    for drawer in ["keys", "clipboard", "secret"] {
        tab.clicks(&format!("{drawer}-open"));
        tab.shows(&format!("{drawer}-drawer"));
        tab.is_sound(drawer);
    }
    tab.is_kept_as("secret");
    tab.returns();
    tab.clicks("take-options");
    tab.is_sound("the terms");
    for (button, dialog) in [("emergency-stop", "stop-dialog"), ("help", "help-dialog")] {
        tab.clicks(button);
        tab.shows(dialog);
        tab.is_sound(dialog);
        tab.is_kept_as(dialog);
        tab.presses("Escape");
        tab.hides(dialog);
    }
}

#[test]
fn control_is_taken_and_returned_without_pointing() {
    let desk = Desk::up();
    let session = &desk.session;
    let typed = Typed::start(session);
    let tab = desk.overview();
    tab.shows("desktop-d1");
    tab.tabs_to(&format!("session-{}", session.id()));
    tab.presses("ArrowDown");
    tab.presses("Enter");
    tab.sees();
    tab.tabs_to("take-control");
    tab.presses("Enter");
    tab.shows("held");
    tab.types("by keys");
    typed.becomes("by keys");
    tab.presses("Control+Alt+Shift");
    tab.presses("Shift+Tab");
    assert_eq!(
        tab.evaluates("document.activeElement.dataset.testid"),
        "note"
    );
    tab.types("done");
    tab.presses("Enter");
    tab.hides("held");
    session.becomes("agent", LONG);
    assert_eq!(session.event("takeover_return")["note"], "done");
    // The way on begins where the way back ended.
    tab.shows("take-control");
    eventually("the keyboard is at the strip", LONG, || {
        (tab.evaluates("document.activeElement.ariaLabel") == "Control").then_some(())
    });
    typed.becomes("by keys");
}

#[test]
fn the_app_is_small_and_asks_nobody_else() {
    let desk = Desk::up();
    let tab = desk.tab();
    let loaded = tab.evaluates(
        "[...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]
            .map((one) => [new URL(one.name).origin === location.origin, one.encodedBodySize, one.name])",
    );
    let loaded: Vec<(bool, u64, String)> = serde_json::from_value(loaded).expect("a list");
    let whole: u64 = loaded.iter().map(|(_, size, _)| size).sum();
    println!("the app takes {whole} bytes: {loaded:#?}");
    assert!(loaded.iter().all(|(own, ..)| *own), "{loaded:#?}");
    assert!(
        loaded.len() >= 4,
        "the page, its style, its script and noVNC: {loaded:#?}"
    );
    assert!(whole < WIRE, "{whole} bytes");
}

#[test]
fn twenty_sessions_are_listed() {
    let place = Place::new();
    let up = |number: usize| {
        let name = format!("work-{number:02}");
        let mut command = place.handover();
        crate::support::Running::start(command.args(["up", "--json", "--new", "--name", &name]))
    };
    let starting: Vec<_> = (0..20).map(up).collect();
    let hosts: Vec<Value> = starting
        .into_iter()
        .map(|host| host.finish(LONG).done())
        .collect();
    let console = Console::start(&place, &[]);
    let chromium = Chromium::start(&place);
    let tab = chromium.opens(&console.url());
    eventually("all are listed", LONG, || {
        (tab.count("session-*") == 20 + 1).then_some(())
    });
    for number in 0..20 {
        tab.says("session-*", &format!("work-{number:02}"));
    }
    tab.is_sound("twenty sessions");
    tab.is_kept_as("twenty-sessions");
    // The one in which a person is needed comes first.
    let oldest = &hosts[0];
    let mut wire = Wire::connect(oldest["socketPath"].as_str().expect("a path").as_ref());
    wire.done("hello", json!({"client": "tests", "protocol": 1}));
    wire.done("request_human", json!({"reason": "a captcha"}));
    let first = format!(
        "session-{}",
        oldest["sessionId"].as_str().expect("a session id")
    );
    eventually("it is the first in the tree", LONG, || {
        let first_row =
            "document.querySelector('[data-testid^=session-]:not([role=tree])').dataset.testid";
        (tab.evaluates(first_row) == first).then_some(())
    });
    // One that comes is listed and one that goes is not, without a reload.
    up(20).finish(LONG).done();
    tab.says("session-*", "work-20");
    let mut command = place.handover();
    crate::support::Running::start(command.args(["down", "--all", "--json"])).finish(LONG);
    eventually("none is listed", LONG, || {
        (tab.count("session-*") == 0).then_some(())
    });
    tab.says("home", "No session is running");
}
