//! L5, V1, K2: who watches sees no interruption and changes nothing, the clipboard is for who is in control, and
//! one person asks another for control.

use std::time::Duration;

use serde_json::json;

use crate::support::web::Desk;
use crate::support::{LONG, Typed, copy, eventually, holds_for, selection};

const QUIET: Duration = Duration::from_millis(500);

#[test]
fn a_second_tab_only_watches() {
    let desk = Desk::up();
    let session = &desk.session;
    let typed = Typed::start(session);
    let tab = desk.tab();
    let watcher = desk.another();
    let pictures = watcher.pictures();
    for text in ["a", "ab"] {
        tab.comes_to_front();
        tab.takes();
        watcher.says("holder", "in control");
        tab.types(&text[text.len() - 1..]);
        typed.becomes(text);
        watcher.comes_to_front();
        watcher.types("x");
        watcher.clicks_at(60, 60);
        assert!(!watcher.has("clipboard-open"));
        holds_for("the watcher types nothing", QUIET, || typed.text() == text);
        tab.returns();
        watcher.shows("take-control");
    }
    assert_eq!(watcher.pictures(), pictures, "one connection all the time");
    watcher.sees();
}

#[test]
fn one_asks_and_the_other_gives_or_refuses() {
    let desk = Desk::up();
    let session = &desk.session;
    let typed = Typed::start(session);
    let tab = desk.tab();
    let other = desk.another();
    tab.takes();
    let epoch = session.status()["epoch"].as_u64().expect("an epoch");

    other.clicks("take-options");
    other.fills("take-note", "may I?");
    other.clicks("ask-control");
    other.shows("taking");
    tab.says("asked", "may I?");
    eventually("the title says so", LONG, || {
        tab.title().starts_with("(1)").then_some(())
    });
    tab.clicks("refuse");
    tab.hides("asked");
    other.shows("refused");
    tab.comes_to_front();
    tab.types("a");
    typed.becomes("a");

    other.clicks("ask-control");
    tab.shows("asked");
    // A second click counts for nothing, however soon it comes.
    tab.evaluates(
        "(() => {
            const give = document.querySelector('[data-testid=give]');
            give.click();
            give.click();
        })()",
    );
    tab.hides("held");
    tab.says("after", "You gave control to");
    let complaints = "document.querySelectorAll('.toast.bad').length";
    assert_eq!(tab.evaluates(complaints), 0);
    other.shows("held");
    let status = session.status();
    assert_eq!(status["control"], "human");
    assert!(status["epoch"].as_u64() > Some(epoch), "{status}");
    tab.types("b");
    other.comes_to_front();
    other.types("c");
    typed.becomes("ac");

    // What cannot wait is taken away, after a question.
    tab.clicks("revoke");
    tab.clicks("revoke-confirm");
    other.hides("held");
    other.says("after", "taken away");
    session.becomes("agent", LONG);
}

/// Whoever asks can think better of it, or be gone: then the holder is not asked any more.
#[test]
fn who_asks_can_withdraw() {
    let desk = Desk::up();
    let session = &desk.session;
    let typed = Typed::start(session);
    let tab = desk.tab();
    let other = desk.another();
    tab.takes();
    other.comes_to_front();
    other.clicks("ask-control");
    other.shows("ask-cancel");
    other.is_sound("a person who waits for control");
    tab.shows("asked");
    other.clicks("ask-cancel");
    other.shows("ask-control");
    assert!(!other.has("refused"), "it is no refusal");
    tab.hides("asked");
    eventually("the title is as before", LONG, || {
        (tab.title() == "Handover").then_some(())
    });
    other.clicks("ask-control");
    tab.shows("asked");
    other.closes();
    tab.hides("asked");
    tab.comes_to_front();
    tab.types("a");
    typed.becomes("a");
    tab.returns();
}

/// A request that nobody answers is over after its time, and who is in control goes on.
#[test]
fn who_answers_nothing_goes_on() {
    let desk = Desk::up();
    let session = &desk.session;
    let typed = Typed::start(session);
    let tab = desk.tab();
    tab.takes();
    let ask = json!({"desktop": "d1", "note": "may I?", "waitMs": 500});
    let refused = session.wire().refused("control.request", ask);
    assert_eq!(refused.code, "timeout");
    tab.hides("asked");
    tab.shows("held");
    tab.types("a");
    typed.becomes("a");
    tab.returns();
}

#[test]
fn the_clipboard_is_for_who_is_in_control() {
    let desk = Desk::up();
    let session = &desk.session;
    let display = session.display();
    let tab = desk.tab();
    let watcher = desk.another();
    copy(session, "of the agents");
    tab.takes();
    tab.clicks("clipboard-open");
    tab.fills("clipboard-in", "Grüße, 漢字");
    tab.clicks("clipboard-send");
    eventually("the person's text is on the desktop", LONG, || {
        (selection(&display, "clipboard") == "Grüße, 漢字").then_some(())
    });
    copy(session, "vom Desktop: ü, 字");
    tab.says("clipboard-out", "vom Desktop: ü, 字");
    assert!(!watcher.has("clipboard-open"));
    let text = watcher.evaluates("document.documentElement.outerHTML");
    assert!(!text.to_string().contains("vom Desktop"));

    tab.returns();
    for name in ["clipboard", "primary"] {
        assert_eq!(selection(&display, name), "", "{name} after the end");
    }
    copy(session, "of the agents again");
    // The next one in control does not find what was before.
    watcher.takes();
    watcher.clicks("clipboard-open");
    holds_for("nothing of before is told", QUIET, || {
        watcher.text("clipboard-out").is_empty()
    });
    watcher.returns();
}

/// Where the browser lets the page do it, both clipboards are one while in control, without a click.
#[test]
fn both_clipboards_are_one_where_the_browser_allows_it() {
    let desk = Desk::up();
    let session = &desk.session;
    let display = session.display();
    let allowed = json!({"options": {
        "viewport": {"width": 1280, "height": 800},
        "permissions": ["clipboard-read", "clipboard-write"],
    }});
    let (tab, _) = desk.chromium.opens_as("one", &desk.console.url(), allowed);
    tab.shows("home");
    tab.goes_to_desktop(session);
    tab.evaluates("navigator.clipboard.writeText('from here: ü')");
    copy(session, "of the agents");
    tab.takes();
    eventually("the person's text is on the desktop", LONG, || {
        (selection(&display, "clipboard") == "from here: ü").then_some(())
    });
    copy(session, "vom Desktop: 字");
    eventually("the desktop's text is in the person's", LONG, || {
        let text = tab.evaluates("navigator.clipboard.readText()");
        (text == "vom Desktop: 字").then_some(())
    });
    tab.returns();
    copy(session, "of the agents again");
    holds_for("it is the agents' again", QUIET, || {
        tab.evaluates("navigator.clipboard.readText()") == "vom Desktop: 字"
    });
}

/// While a takeover is private, agents see nothing of it; people who watch do.
#[test]
fn a_private_takeover_is_seen_by_no_agent() {
    let desk = Desk::up();
    let session = &desk.session;
    let tab = desk.tab();
    tab.clicks("take-options");
    tab.clicks("private");
    let watcher = desk.another();
    tab.comes_to_front();
    tab.takes();
    let refused = session.wire().refused("desktop.screenshot", json!({}));
    assert_eq!(refused.code, "private");
    watcher.says("holder", "agents get no picture");
    watcher.sees();
    tab.comes_to_front();
    tab.returns();
    session.wire().done("desktop.screenshot", json!({}));
}
