//! What agents do on a desktop is seen where they do it and as it happens, and the record shows it afterwards.

use serde_json::json;

use crate::support::web::Desk;
use crate::support::{LONG, eventually};

#[test]
fn agents_are_seen_at_work() {
    let desk = Desk::up();
    let session = &desk.session;
    let tab = desk.tab();
    assert!(!tab.has("agent-pointer"));
    for (x, y) in [(200, 150), (620, 480)] {
        session
            .wire()
            .done("desktop.click", json!({"x": x, "y": y}));
        tab.says("desktop-feed", &format!("click at {x}, {y}"));
        tab.shows("agent-pointer");
        // Where the tip of the pointer is, in pixels of the desktop.
        let place = format!(
            "(() => {{
                const canvas = document.querySelector('.stage canvas');
                const shown = canvas.getBoundingClientRect();
                const pointer = document.querySelector('[data-testid=agent-pointer]').getBoundingClientRect();
                const scale = shown.width / canvas.width;
                return Math.hypot((pointer.left - shown.left) / scale - {x}, (pointer.top - shown.top) / scale - {y});
            }})()"
        );
        eventually("the pointer is where the click was", LONG, || {
            (tab.evaluates(&place).as_f64()? < 12.0).then_some(())
        });
    }
    tab.takes();
    tab.hides("agent-pointer");
    tab.returns();
}

#[test]
fn the_record_shows_what_happened() {
    let desk = Desk::up();
    let session = &desk.session;
    session
        .wire()
        .done("desktop.click", json!({"x": 7, "y": 9}));
    session.take(json!({"note": "a look"})).give_back();
    session
        .wire()
        .done("control.pause", json!({"desktop": "d1"}));
    let tab = desk.overview();
    tab.goes(&format!("#/{}/record", session.id()));
    for words in ["click at 7, 9", "took control: a look", "paused"] {
        tab.says("timeline", words);
    }
    tab.chooses("filter-kind", "desktop");
    eventually("only actions are shown", LONG, || {
        let text = tab.text("timeline");
        (text.contains("click at 7, 9") && !text.contains("took control")).then_some(())
    });
    // Two choices with nothing drawn between them.
    tab.evaluates(
        "(() => {
            const kind = document.querySelector('[data-testid=filter-kind]');
            kind.value = '';
            kind.dispatchEvent(new Event('change', { bubbles: true }));
            document.querySelector('[data-testid=filter-pictures]').click();
        })()",
    );
    eventually("only what has a picture is shown", LONG, || {
        let text = tab.text("timeline");
        (text.contains("given back") && !text.contains("click at 7, 9")).then_some(())
    });
    let loaded = "[...document.querySelectorAll('[data-testid=timeline] img')].map((one) => one.naturalWidth)";
    eventually("its picture is there", LONG, || {
        let widths = tab.evaluates(loaded);
        (widths.as_array()?.first()?.as_u64()? == 800).then_some(())
    });
    let report = format!(
        "http://{}{}",
        desk.console.address(),
        tab.attribute("report", "href")
    );
    let (report, status) = desk.chromium.opens_as("one", &report, json!({}));
    assert_eq!(status, 200);
    let words = report.evaluates("document.body.innerText").to_string();
    assert!(words.contains("a look"), "{words}");
    let problems = report.does(json!({"do": "problems"}));
    assert_eq!(problems, json!([]), "the report is shown as it is");
}
