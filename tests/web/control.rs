//! L10, V2, K5: one click takes control and one returns it, on the connection on which the desktop is watched;
//! what is typed arrives as it stands on the person's own keyboard; the note reaches the agents.

use serde_json::json;
use x11rb::protocol::xproto::CreateWindowAux;

use crate::support::scripted::Scripted;
use crate::support::web::{Desk, Page};
use crate::support::{LONG, Recorder, Session, Typed, What, cover, eventually, holds_for, wall_ms};

/// How long nothing may happen after input that is dropped.
const QUIET: std::time::Duration = std::time::Duration::from_millis(500);

/// A desktop covered in one colour.
fn paint(session: &Session, colour: u32) -> impl Sized + use<> {
    let x = session.display().connect();
    cover(&x, CreateWindowAux::new().background_pixel(colour));
    x
}

fn shows_colour(tab: &Page, colour: [u8; 3]) {
    // Where the pointer is not.
    eventually("the browser shows the colour", LONG, || {
        (tab.colour(200, 150) == colour).then_some(())
    });
}

#[test]
fn a_person_watches_takes_types_and_returns() {
    let desk = Desk::up();
    let session = &desk.session;
    let agent = Scripted::start(session, "hold", json!({"desktop": "d1"}));
    agent.hears("hold");
    let tab = desk.tab();

    // What is seen is the real screen, as it changes.
    let painted = paint(session, 0x0012_B45A);
    shows_colour(&tab, [0x12, 0xB4, 0x5A]);
    drop(painted);
    let typed = Typed::start(session);
    let recorder = Recorder::everything(&session.display());
    tab.says("desktop-control", "agent");
    let pictures = tab.pictures();
    is_ignored(&tab, &recorder);

    let before = session.status()["epoch"].as_u64().expect("an epoch");
    tab.takes();
    assert_eq!(session.status()["control"], "human");
    tab.shows("countdown");
    // The keyboard is with the picture: nothing else is to be clicked.
    tab.types("Hands on é ß € @ Ω");
    typed.becomes("Hands on é ß € @ Ω");
    tab.clicks_at(120, 100);
    let release = What::Button {
        down: false,
        number: 1,
    };
    eventually("the click reaches the desktop", LONG, || {
        (recorder.count(release) == 1).then_some(())
    });
    // An input method has no keys.
    // Whoever is so quick has the field that they chose, not the panel's first.
    tab.evaluates(
        "new MutationObserver((_, observer) => {
             const field = document.querySelector('[data-testid=screen-keyboard]');
             if (field === null) return;
             observer.disconnect();
             field.focus();
         }).observe(document.body, { childList: true, subtree: true })",
    );
    tab.clicks("keys-open");
    tab.shows("screen-keyboard");
    tab.does(json!({"do": "insert", "text": "字ñ"}));
    typed.becomes("Hands on é ß € @ Ω字ñ");

    tab.fills("note", "solved the captcha");
    tab.returns();
    tab.says("after", "You gave control back");
    assert_eq!(session.status()["control"], "agent");
    let returned = session.event("takeover_return");
    assert_eq!(returned["note"], "solved the captcha");
    assert_eq!(session.status()["epoch"].as_u64(), Some(before + 2));
    let told = agent.hears("Control of desktop d1 is back");
    assert!(told.contains("> solved the captcha"), "{told}");
    is_ignored(&tab, &recorder);
    assert_eq!(tab.pictures(), pictures, "the same connection");
    tab.is_sound("the story");
}

/// Keys and clicks in the picture come to nothing.
fn is_ignored(tab: &Page, recorder: &Recorder) {
    let begun = wall_ms();
    tab.clicks_at(130, 110);
    tab.types("Not é");
    holds_for("the person only watches", QUIET, || {
        recorder.since(begun).is_empty()
    });
}

/// What a browser or the system keeps to itself is at hand.
#[test]
fn special_keys_reach_the_desktop() {
    let desk = Desk::up();
    let tab = desk.tab();
    let recorder = Recorder::everything(&desk.session.display());
    tab.takes();
    tab.clicks("keys-open");
    // The first keysym of F1 is 0xffbe.
    for number in 1..=12 {
        tab.clicks(&format!("key-f{number}"));
        eventually(&format!("F{number} arrives"), LONG, || {
            (recorder.presses(0xffbd + number) == 1).then_some(())
        });
    }
    tab.clicks("key-ctrl-alt-del");
    let (ctrl, alt, delete) = (0xffe3, 0xffe9, 0xffff);
    eventually("Ctrl, Alt and Delete arrive", LONG, || {
        (recorder.presses(delete) == 1 && recorder.held().is_empty()).then_some(())
    });
    let keys: Vec<(bool, u32)> = recorder
        .seen()
        .iter()
        .filter_map(|seen| match seen.what {
            What::Key { down, keysym } if keysym == ctrl || keysym == alt || keysym == delete => {
                Some((down, keysym))
            }
            _ => None,
        })
        .collect();
    let expected = [
        (true, ctrl),
        (true, alt),
        (true, delete),
        (false, delete),
        (false, alt),
        (false, ctrl),
    ];
    assert_eq!(keys, expected);
    tab.returns();
}

/// A11: a secret goes to the focused window of the desktop, and nowhere else.
#[test]
fn a_secret_reaches_the_application_alone() {
    let desk = Desk::up();
    let session = &desk.session;
    let typed = Typed::start(session);
    let tab = desk.tab();
    tab.takes();
    tab.clicks("secret-open");
    assert_eq!(tab.attribute("secret-field", "type"), "password");
    tab.fills("secret-field", "corréct horse");
    tab.clicks("secret-send");
    // It is said for some seconds only.
    tab.says("toasts", "secret");
    typed.becomes("corréct horse");
    assert_eq!(tab.text("secret-field"), "");
    let page = tab.evaluates("document.documentElement.outerHTML");
    assert!(!page.to_string().contains("corréct"), "it is in the page");
    tab.returns();
    assert!(!tab.has("secret-open"), "only who is in control has it");

    let journal = session.journal();
    let acts = journal.iter().filter(|event| event["act"] == "secret");
    assert_eq!(acts.count(), 1, "that it happened is on record");
    for event in &journal {
        let event = event.to_string();
        assert!(!event.contains("corréct"), "{event}");
        assert!(!event.contains("\"chars\":13"), "{event}");
    }
    assert!(
        !desk.console.running.out().contains("corréct")
            && !desk.console.running.err().contains("corréct")
    );
}

/// The limits of a takeover are announced ahead; that on input is put off by a click.
#[test]
fn limits_are_announced() {
    let desk = Desk::up();
    let session = &desk.session;
    // The warning comes when a quarter of it is left: time enough for a busy machine to answer it.
    let idle = json!({"idleMs": 32_000});
    let tab = desk.tab_with(idle);
    tab.takes();
    let begun = session.status()["lease"]["leaseId"].clone();
    tab.shows("warning");
    tab.evaluates("document.querySelector('[data-testid=im-here]').click()");
    tab.hides("warning");
    assert_eq!(session.status()["lease"]["leaseId"], begun);
    tab.returns();

    let maximum = json!({"maxMs": 3_000});
    let tab = desk.another_with(maximum);
    tab.clicks("take-control");
    tab.shows("after");
    tab.says("after", "control");
    session.becomes("agent", LONG);
    session.event("takeover_timeout");
}
