//! A link lets in one browser; a phone's link opens one desktop and nothing else.

use serde_json::{Value, json};

use crate::support::web::Chromium;
use crate::support::{Console, LONG, Place, Session, Typed, eventually};

#[test]
fn a_link_lets_in_one_browser() {
    let place = Place::new();
    let console = Console::start(&place, &[]);
    let chromium = Chromium::start(&place);
    let page = chromium.opens(&console.url());
    let address = page.does(json!({"do": "address"}));
    assert!(
        !address.to_string().contains("open"),
        "no secret stays in the address: {address}"
    );
    // The same browser is let in; another is not, not even by the same link.
    chromium.opens(&format!("http://{}/", console.address()));
    for address in [console.url(), format!("http://{}/", console.address())] {
        let (other, status) = chromium.opens_as("other", &address, json!({}));
        assert!([401, 403].contains(&status), "{status}");
        let said = other.evaluates("document.body.innerText");
        assert!(said.to_string().contains("handover console link"), "{said}");
        other.is_sound("a refusal");
    }
}

#[test]
fn a_phone_has_one_desktop_alone() {
    let session = Session::up();
    let typed = Typed::start(&session);
    let _console = Console::start(&session.place, &[]);
    let chromium = Chromium::start(&session.place);
    let link = session
        .cli(&["console", "link", "d1", "--for", "10m"])
        .done();
    let url = link["url"].as_str().expect("a link");
    let (tab, status) = chromium.opens_as("phone", url, phone());
    assert_eq!(status, 200);
    tab.sees();
    // Its clock is an hour ahead, and it counts by the other.
    tab.says("link-left", "9:");
    for elsewhere in ["#/".to_owned(), format!("#/{}/record", session.id())] {
        tab.goes(&elsewhere);
        tab.sees();
        assert!(!tab.has("session-tree") && !tab.has("record-page"));
    }
    tab.takes();
    tab.clicks("keys-open");
    eventually("the keys are beside a picture to be seen", LONG, || {
        let covered = tab.evaluates(
            "(() => {
                const box = (selector) => document.querySelector(selector)?.getBoundingClientRect();
                const [keys, picture] = [box('[data-testid=keys-drawer]'), box('.stage canvas')];
                if (keys === undefined || picture === undefined) return null;
                const wide = Math.min(keys.right, picture.right) - Math.max(keys.left, picture.left);
                const high = Math.min(keys.bottom, picture.bottom) - Math.max(keys.top, picture.top);
                const covered = Math.max(0, wide) * Math.max(0, high) / (picture.width * picture.height);
                return [covered, picture.height];
            })()",
        );
        (covered[0].as_f64()? < 0.01 && covered[1].as_f64()? > 180.0).then_some(())
    });
    tab.is_kept_as("phone-keys");
    tab.clicks("screen-keyboard");
    tab.does(json!({"do": "insert", "text": "from afar ü"}));
    typed.becomes("from afar ü");
    tab.is_sound("a phone in control");
    tab.is_kept_as("phone-in-control");
    tab.returns();
    let (_, status) = chromium.opens_as("thief", url, phone());
    assert_eq!(status, 403);
}

/// A phone whose clock is an hour ahead.
fn phone() -> Value {
    let options = json!({
        "viewport": {"width": 360, "height": 740},
        "hasTouch": true,
        "isMobile": true,
        "deviceScaleFactor": 2,
    });
    json!({"options": options, "aheadMs": 3_600_000})
}

/// Control ends with the link that it came by, and that is counted and announced as its other limits are.
#[test]
fn the_end_of_a_link_is_announced() {
    let session = Session::up();
    let _console = Console::start(&session.place, &[]);
    let chromium = Chromium::start(&session.place);
    let link = ["console", "link", "d1", "--for", "40s"];
    let link = session.cli(&link).done();
    let url = link["url"].as_str().expect("a link");
    let (tab, _) = chromium.opens_as("phone", url, phone());
    tab.sees();
    tab.takes();
    tab.says("held", "with this link");
    assert!(tab.text("countdown").starts_with("0:"));
    tab.says("warning", "The time of this link is nearly over");
    assert!(!tab.has("im-here"), "nothing puts it off");
    tab.is_sound("a link that ends");
    eventually("the page says that it is over", LONG, || {
        let text = tab.evaluates("document.body.innerText");
        text.as_str()?.contains("This link is over").then_some(())
    });
    session.becomes("agent", LONG);
}
