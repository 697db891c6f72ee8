//! K1: however a person at the console loses control, no key and no button stays pressed.

use serde_json::json;

use crate::support::web::{Desk, Page, asleep};
use crate::support::{LONG, Recorder, Session, What, eventually, takeovers};

/// Holds Shift, a letter and a button, has control ended by `end`, and checks what the display was told.
fn ends(session: &Session, tab: &Page, how: &str, end: impl FnOnce()) {
    let before = takeovers(&session.journal()).len();
    let recorder = Recorder::everything(&session.display());
    tab.takes();
    tab.points(200, 200);
    tab.holds("Shift");
    tab.holds("G");
    tab.button(true);
    tab.points(220, 230);
    let button = What::Button {
        down: true,
        number: 1,
    };
    eventually("Shift, a letter and a button are held", LONG, || {
        let held = recorder.held();
        (held.len() == 3 && held.contains(&button)).then_some(())
    });
    end();
    eventually(&format!("{how}: everything is released"), LONG, || {
        recorder.held().is_empty().then_some(())
    });
    session.becomes("agent", LONG);
    let all = takeovers(&session.journal());
    assert_eq!(all.len(), before + 1);
    assert_eq!(all[before].how, how);
    let late = recorder
        .seen()
        .into_iter()
        .find(|seen| seen.after > all[before].end + 1.0);
    assert!(late.is_none(), "after the end: {late:?}");
    let x = session.display().connect();
    let root = x11rb::connection::Connection::setup(&x).roots[0].root;
    let pointer = x11rb::protocol::xproto::ConnectionExt::query_pointer(&x, root)
        .expect("sent")
        .reply()
        .expect("reply");
    assert_eq!(u16::from(pointer.mask), 0, "{how}: something is held");
}

#[test]
fn whatever_ends_control_lets_everything_go() {
    let desk = Desk::up();
    let session = &desk.session;
    let terms = json!({"ttlMs": 12_000, "lingerMs": 1_000});
    let first = desk.tab_with(terms.clone());
    let again = || desk.another_with(terms.clone());

    ends(session, &first, "return", || {
        // The pointer is busy: the button is pressed as an assistive program does it.
        first.evaluates("document.querySelector('[data-testid=return-control]').click()");
        first.hides("held");
    });
    first.button(false);
    first.lets_go("G");
    first.lets_go("Shift");

    // The page sleeps, and nobody renews.
    ends(session, &first, "timeout", || {
        let sleeping = asleep(&session.place);
        session.becomes("agent", LONG);
        drop(sleeping);
    });
    first.shows("after");

    // Another person takes it away.
    let second = again();
    ends(session, &second, "revoked", || {
        session
            .wire()
            .done("control.revoke", json!({"desktop": "d1", "force": true}));
    });

    let third = again();
    ends(session, &third, "timeout", || third.closes());

    let fourth = again();
    ends(session, &fourth, "timeout", || fourth.crashes());
}

/// The keys that leave the picture are not left behind in it; control stays.
#[test]
fn leaving_the_picture_lets_the_keys_go() {
    let desk = Desk::up();
    let session = &desk.session;
    let tab = desk.tab();
    let recorder = Recorder::everything(&session.display());
    tab.takes();
    tab.holds("g");
    eventually("the key is held", LONG, || {
        (recorder.held().len() == 1).then_some(())
    });
    tab.presses("Control+Alt+Shift");
    eventually("all keys are released", LONG, || {
        recorder.held().is_empty().then_some(())
    });
    tab.lets_go("g");
    let focused = tab.evaluates("document.activeElement.dataset.testid");
    assert_eq!(focused, "return-control");
    assert_eq!(session.status()["control"], "human");
    // Keys that are held down by a click go with their panel.
    tab.clicks("keys-open");
    tab.clicks("hold-ctrl");
    eventually("Ctrl is held", LONG, || {
        (recorder.held().len() == 1).then_some(())
    });
    tab.clicks("drawer-close");
    eventually("Ctrl is released", LONG, || {
        recorder.held().is_empty().then_some(())
    });
    // Even if nothing was drawn between the clicks.
    let ctrl = 0xffe3;
    let before = recorder.presses(ctrl);
    tab.clicks("keys-open");
    tab.shows("hold-ctrl");
    tab.evaluates(
        "for (const what of ['hold-ctrl', 'drawer-close']) {
             document.querySelector(`[data-testid=${what}]`).click();
         }",
    );
    eventually("Ctrl is held and released", LONG, || {
        (recorder.presses(ctrl) > before && recorder.held().is_empty()).then_some(())
    });
    tab.returns();
}
