//! Browser desktops: a session with one, its clients, and the person before it.

use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::json;

use super::clock::{LONG, eventually};
use super::devtools::DevTools;
use super::place::Place;
use super::session::{Holder, Session};

/// A session whose only desktop, `d1`, has a browser that shows `address`, which has the title `page`.
pub fn with_browser(address: &str) -> Session {
    let session = Session::with(Place::new(), &[]);
    show_browser(&session, address);
    session
}

/// Makes a session's first desktop, `d1`: as [`with_browser`].
pub fn show_browser(session: &Session, address: &str) {
    let made = session.wire().done(
        "desktop.new",
        json!({"size": "800x600", "browser": address}),
    );
    assert_eq!(made["id"], "d1");
    is_painted(session, "page");
}

/// Waits until the browser's first page has this title, is loaded and has been painted: before that a page hears
/// no clicks and keys of a person.
pub fn is_painted(session: &Session, title: &str) {
    let mut client = DevTools::connect(&cdp_socket(session));
    eventually("the page is loaded", LONG, || {
        let targets = client.done("Target.getTargets", json!({}));
        let mut targets = targets["targetInfos"].as_array()?.iter();
        targets.any(|target| target["title"] == title).then_some(())
    });
    client.attach();
    client.value(
        "new Promise(go => { \
            const painted = () => requestAnimationFrame(() => requestAnimationFrame(() => go(0))); \
            document.readyState === 'complete' ? painted() : addEventListener('load', painted) })",
    );
}

/// A server whose connections `answer` serves, for as long as the test's process lives. Its address, such as
/// `http://127.0.0.1:4711/`.
pub fn site<T: 'static>(answer: fn(&TcpStream) -> T) -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(stream) = stream else { return };
            // A browser connects ahead and may ask on another connection first.
            std::thread::spawn(move || drop(answer(&stream)));
        }
    });
    format!("http://127.0.0.1:{port}/")
}

/// A new socket for one client of the browser.
pub fn cdp_socket(session: &Session) -> PathBuf {
    let opened = session.wire().done("cdp.open", json!({"desktop": "d1"}));
    opened["socketPath"].as_str().expect("a path").into()
}

/// A client that is attached to the browser's page.
pub fn attached(session: &Session) -> DevTools {
    let mut client = DevTools::connect(&cdp_socket(session));
    client.attach();
    client
}

/// The person clicks.
pub fn click(holder: &Holder, x: u16, y: u16) {
    for mask in [0, 1, 0] {
        holder.viewer.pointer(mask, x, y);
    }
}

/// The person clicks until a window's title has `text` in it.
pub fn clicks_until(session: &Session, holder: &Holder, (x, y): (u16, u16), text: &str) {
    acts_until(session, text, || click(holder, x, y));
}

/// The person acts until a window's title has `text` in it: a page that was not painted yet hears nothing.
pub fn acts_until(session: &Session, text: &str, act: impl Fn()) {
    let mut acted: Option<Instant> = None;
    eventually(text, LONG, || {
        // Late enough that what was heard has been done.
        if acted.is_none_or(|at| at.elapsed() > Duration::from_secs(10)) {
            act();
            acted = Some(Instant::now());
        }
        is_shown(session, text).then_some(())
    });
}

/// Waits until a window's title has `text` in it.
pub fn shows(session: &Session, text: &str) {
    eventually(text, LONG, || is_shown(session, text).then_some(()));
}

fn is_shown(session: &Session, text: &str) -> bool {
    let windows = session.wire().done("desktop.windows", json!({}));
    windows.to_string().contains(text)
}
