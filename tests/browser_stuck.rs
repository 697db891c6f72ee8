//! What an agent has under way in a browser and nothing stops is ended with its page, so that a person has control in
//! any case, and soon: E3 and C4 for pages that hear nothing. The client goes on with the same page: L11.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{
    DevTools, LONG, Session, attached, eventually, holds_for, site, with_browser,
};

/// What the server shows.
const PAGE: &str = "<title>page</title><body style='height:500000px'>Something to see";

/// Reads one request and answers it with a page; what is asked below `/never` only waits until nobody waits for it any
/// more.
fn answer(mut stream: &TcpStream) -> Option<()> {
    let mut lines = BufReader::new(stream).lines();
    let asked = lines.next()?.ok()?;
    while !lines.next()?.ok()?.is_empty() {}
    if asked.contains("/never") {
        return lines.next()?.ok().map(drop);
    }
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close";
    let length = PAGE.len();
    write!(stream, "{head}\r\nContent-Length: {length}\r\n\r\n{PAGE}").ok()
}

/// A script that waits for this server, and then acts.
fn waits(site: &str) -> Value {
    let script = format!(
        "const asks = new XMLHttpRequest(); asks.open('GET', '{site}never', false); \
         try {{ asks.send() }} catch {{}} document.title = 'agent'"
    );
    json!({"expression": script})
}

/// Begins what does not end by itself, and waits until the host has let it pass.
fn begin(client: &mut DevTools, method: &str, params: Value) -> u64 {
    let begun = client.send(method, params);
    // The host takes a client's commands one after the other.
    client.done("Browser.getVersion", json!({}));
    begun
}

/// Takes control within the default drain, and gives it back.
fn takes(session: &Session) {
    let started = Instant::now();
    let mut holder = session.take(json!({}));
    assert!(started.elapsed() < LONG);
    holds_for(
        "control is the person's",
        Duration::from_millis(500),
        || session.status()["control"] == "human",
    );
    holder.give_back();
}

/// The client goes on as before.
fn goes_on(client: &mut DevTools, begun: u64) {
    let cut = client.answer(begun).expect_err("it never ends by itself");
    assert_eq!(cut.code, "interrupted_by_human", "{cut:?}");
    eventually("the page is there again", LONG, || {
        (client.value("document.title + document.readyState") == "pagecomplete").then_some(())
    });
}

#[test]
fn a_script_that_waits_for_a_server_does_not_keep_a_person_out() {
    let site = site(answer);
    let session = with_browser(&site);
    let mut client = attached(&session);
    // What is registered for new documents does not begin in the person's page.
    let registers = json!({"source": "globalThis.registered = Date.now()"});
    client.done("Page.addScriptToEvaluateOnNewDocument", registers);
    let target = client.done("Target.getTargetInfo", json!({}))["targetInfo"]["targetId"].clone();
    // A key that is down then is let go with it.
    let key = json!({"type": "rawKeyDown", "key": "Shift", "code": "ShiftLeft", "windowsVirtualKeyCode": 16});
    client.done("Input.dispatchKeyEvent", key);
    let begun = begin(&mut client, "Runtime.evaluate", waits(&site));
    takes(&session);
    goes_on(&mut client, begun);
    let now = client.done("Target.getTargetInfo", json!({}))["targetInfo"]["targetId"].clone();
    assert_eq!(now, target);
    assert_eq!(client.value("typeof registered"), "undefined");
}

#[test]
fn a_long_gesture_does_not_keep_a_person_out() {
    let session = with_browser(&site(answer));
    let mut client = attached(&session);
    let gesture = json!({"x": 100, "y": 100, "yDistance": -100_000, "speed": 1000});
    let begun = begin(&mut client, "Input.synthesizeScrollGesture", gesture);
    takes(&session);
    goes_on(&mut client, begun);
}

#[test]
fn what_the_browser_loads_for_a_client_does_not_keep_a_person_out() {
    let site = site(answer);
    let session = with_browser(&site);
    let mut client = attached(&session);
    let frame = client.done("Page.getFrameTree", json!({}))["frameTree"]["frame"]["id"].clone();
    let options = json!({"disableCache": true, "includeCredentials": false});
    let loads = json!({"frameId": frame, "url": format!("{site}never"), "options": options});
    let begun = begin(&mut client, "Network.loadNetworkResource", loads);
    takes(&session);
    let cut = client.answer(begun).expect_err("it never ends by itself");
    assert_eq!(cut.code, "interrupted_by_human", "{cut:?}");
    // Its session has ended with that; its connection has not.
    client.speak_for(None);
    client.attach();
    assert_eq!(client.value("document.title"), "page");
}

#[test]
fn neither_does_the_script_of_a_client_that_has_gone() {
    let site = site(answer);
    let session = with_browser(&site);
    let mut client = attached(&session);
    begin(&mut client, "Runtime.evaluate", waits(&site));
    drop(client);
    takes(&session);
    let mut client = attached(&session);
    eventually("the page is there again", LONG, || {
        (client.value("document.title") == "page").then_some(())
    });
}

#[test]
fn a_pause_ends_it_too() {
    let site = site(answer);
    let session = with_browser(&site);
    let mut client = attached(&session);
    let begun = begin(&mut client, "Runtime.evaluate", waits(&site));
    session.wire().done("control.pause", json!({}));
    takes(&session);
    if session.status()["control"] == "paused" {
        session.wire().done("control.resume", json!({}));
    }
    goes_on(&mut client, begun);
}
