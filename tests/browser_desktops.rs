//! A desktop's browser is driven through the gate: by agents while control is with them, by nobody while a
//! person has it, and by the same connections again after the hand-back.

use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{
    DevTools, LONG, Place, Session, Signal, Wire, alive, attached, cdp_socket, click, command_line,
    eventually, shows, signal, with_browser,
};

/// A page that counts the clicks it gets.
const PAGE: &str = "data:text/html,<title>page</title><body onclick='window.clicks=(window.clicks||0)+1;document.title=`clicked ${clicks}`'><input id=i autofocus>";

/// The browser's main process.
fn browser(session: &Session) -> i32 {
    let is_browser = |pid: &i32| {
        let line = command_line(*pid);
        line.contains("--remote-debugging-pipe") && !line.contains("--type=")
    };
    let processes = session.place.processes();
    processes.into_iter().find(is_browser).expect("a browser")
}

#[test]
fn agents_drive_the_browser_and_in_human_time_nobody_does() {
    let session = with_browser(PAGE);
    let path = cdp_socket(&session);
    let mode = std::fs::metadata(&path).expect("a socket").permissions();
    assert_eq!(mode.mode() & 0o777, 0o600);
    let mut client = DevTools::connect(&path);
    client.attach();
    assert!(!path.exists(), "one socket, one client");
    assert_eq!(client.value("document.title"), "page");

    let mut holder = session.take(json!({}));
    let mut all = vec![
        ("Runtime.evaluate", json!({"expression": "1"})),
        ("Runtime.callFunctionOn", json!({})),
        ("Page.navigate", json!({"url": "about:blank"})),
        ("Input.insertText", json!({"text": "x"})),
        (
            "Input.dispatchMouseEvent",
            json!({"type": "mouseMoved", "x": 1, "y": 1}),
        ),
        ("DOM.setAttributeValue", json!({})),
        ("Storage.clearCookies", json!({})),
        ("Target.createTarget", json!({"url": "about:blank"})),
        (
            "Target.attachToTarget",
            json!({"targetId": "x", "flatten": true}),
        ),
        ("Page.captureScreenshot", json!({})),
        ("DOM.getDocument", json!({})),
        ("Accessibility.getFullAXTree", json!({})),
        ("Network.getResponseBody", json!({"requestId": "1"})),
    ];
    all.push(("Never.heardOf", json!({})));
    for (method, params) in &all {
        let refused = client.refused(method, params.clone());
        assert_eq!(refused.number, -32050, "{method}");
        assert_eq!(refused.code, "human_control_active", "{method}");
        assert!(refused.data["lease"]["leaseId"].is_string(), "{method}");
        assert!(refused.message.contains("hand-back"), "{}", refused.message);
    }
    client.done("Browser.getVersion", json!({}));
    let recorded = session.event("relay_refused");
    assert_eq!(recorded["source"], "agent");
    assert_eq!(recorded["tool"], "cdp:Runtime.evaluate");
    assert_eq!(recorded["code"], "human_control_active");

    holder.give_back();
    assert_eq!(client.value("document.title"), "page");
    session.wire().done("control.pause", json!({}));
    let refused = client.refused("Runtime.evaluate", json!({"expression": "1"}));
    assert_eq!(refused.code, "paused");
}

#[test]
fn no_port_is_open_and_nothing_of_the_host_is_in_its_environment() {
    let mut place = Place::new();
    place.set("A_SECRET_TOKEN", "s3cret");
    let session = Session::with(place, &[]);
    let made = session
        .cli(&["desktop", "new", "--size", "800x600", "--browser"])
        .done();
    assert_eq!(made["id"], "d1");
    let browser = browser(&session);
    let environment = std::fs::read(format!("/proc/{browser}/environ")).expect("its environment");
    let environment = String::from_utf8_lossy(&environment).into_owned();
    for absent in ["A_SECRET_TOKEN", "HANDOVER_SESSION", "WAYLAND"] {
        assert!(!environment.contains(absent), "{absent}");
    }
    let line = command_line(browser);
    assert!(!line.contains("remote-debugging-port"), "{line}");
    let root = rustix::process::geteuid().is_root();
    assert_eq!(line.contains("--no-sandbox"), root);
    // What it listens on, by the inodes of its sockets.
    let sockets: Vec<String> = std::fs::read_dir(format!("/proc/{browser}/fd"))
        .expect("its descriptors")
        .filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok())
        .filter_map(|link| {
            Some(
                link.to_str()?
                    .strip_prefix("socket:[")?
                    .trim_end_matches(']')
                    .to_owned(),
            )
        })
        .collect();
    for table in ["tcp", "tcp6"] {
        let table =
            std::fs::read_to_string(format!("/proc/{browser}/net/{table}")).unwrap_or_default();
        for row in table.lines().skip(1) {
            let columns: Vec<&str> = row.split_whitespace().collect();
            let listens = columns.get(3) == Some(&"0A");
            assert!(
                !listens
                    || !sockets
                        .iter()
                        .any(|inode| columns.get(9) == Some(&inode.as_str())),
                "{row}"
            );
        }
    }
}

#[test]
fn a_takeover_cuts_off_a_long_script_and_the_same_page_goes_on_after_it() {
    let session = with_browser(PAGE);
    let mut client = attached(&session);
    let busy = client.send(
        "Runtime.evaluate",
        json!({"expression": "for (;;) { window.turns = (window.turns || 0) + 1 }"}),
    );
    let sleeping = client.send(
        "Runtime.evaluate",
        json!({"expression": "new Promise(() => {})", "awaitPromise": true}),
    );
    let started = Instant::now();
    let mut holder = session.take(json!({}));
    assert!(
        started.elapsed() < Duration::from_secs(10),
        "{:?}",
        started.elapsed()
    );
    // Either the browser says that it was ended, or the gate does.
    let _ = client.answer(busy);
    let cut = client.answer(sleeping).expect_err("it waits for ever");
    assert_eq!(cut.code, "interrupted_by_human");
    assert_eq!(
        client
            .refused("Runtime.evaluate", json!({"expression": "1"}))
            .code,
        "human_control_active"
    );

    // The page is the person's, and listens: nothing is left over that ends its next script.
    click(&holder, 400, 400);
    shows(&session, "clicked 1");
    holder.give_back();
    assert_eq!(client.value("window.clicks"), 1);
    let turns = client.value("window.turns");
    assert_eq!(client.value("window.turns"), turns, "the script goes on");
}

#[test]
fn clients_are_kept_apart() {
    let session = with_browser(PAGE);
    let mut one = attached(&session);
    let mut other = attached(&session);
    one.done("Runtime.enable", json!({}));
    one.done(
        "Runtime.evaluate",
        json!({"expression": "console.log('of one')"}),
    );
    one.event("Runtime.consoleAPICalled", |_| true);
    assert_eq!(other.value("document.title"), "page");
    let foreign = one.session().expect("a session").to_owned();
    other.speak_for(Some(foreign));
    let refused = other.refused("Runtime.evaluate", json!({"expression": "1"}));
    assert_eq!(refused.number, -32001);
    other.speak_for(None);
    for method in [
        "Browser.close",
        "Target.exposeDevToolsProtocol",
        "Target.sendMessageToTarget",
        "Tethering.bind",
    ] {
        assert_eq!(other.refused(method, json!({})).number, -32050, "{method}");
    }
    let targets = other.done("Target.getTargets", json!({}));
    let tunnel = json!({"targetId": targets["targetInfos"][0]["targetId"]});
    assert_eq!(
        other.refused("Target.attachToTarget", tunnel).number,
        -32602
    );
    // One that leaves takes nothing of another's with it.
    drop(other);
    assert_eq!(one.value("1 + 1"), 2);
}

#[test]
fn a_tab_of_the_person_is_not_held_up_and_heard_of_afterwards() {
    let session = with_browser(PAGE);
    let mut client = DevTools::connect(&cdp_socket(&session));
    let follow = json!({"autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true});
    client.done("Target.setAutoAttach", follow);
    let page = client.event("Target.attachedToTarget", |event| {
        event["targetInfo"]["type"] == "page"
    });
    client.speak_for(page["sessionId"].as_str().map(str::to_owned));
    client.done("Page.enable", json!({}));
    client.value("document.body.onclick = () => { window.open('about:blank#own') }; 0");

    let mut holder = session.take(json!({}));
    click(&holder, 400, 400);
    shows(&session, "about:blank");
    holder.give_back();
    // Its address may not have been known yet when it began.
    let own = client.event("Target.attachedToTarget", |event| {
        event["targetInfo"]["type"] == "page"
    });
    assert_eq!(own["waitingForDebugger"], false);
    client.speak_for(own["sessionId"].as_str().map(str::to_owned));
    assert_eq!(client.value("location.hash"), "#own");
}

#[test]
fn the_browser_ends_with_its_host_and_the_desktop_goes_on_without_it() {
    let mut session = with_browser(PAGE);
    let mut client = attached(&session);
    let browser = browser(&session);
    signal(session.host(), Signal::KILL);
    assert!(client.closed());
    eventually("the browser has ended", LONG, || {
        (!alive(browser)).then_some(())
    });
    session.again();
    session
        .wire()
        .done("desktop.screenshot", json!({"desktop": "d1"}));
    let refused = session.wire().refused("cdp.open", json!({"desktop": "d1"}));
    assert_eq!(refused.code, "bad_params");
    assert!(refused.message.contains("--browser"), "{}", refused.message);
}

#[test]
fn a_browser_that_has_ended_is_said_to_have() {
    let session = with_browser(PAGE);
    let mut client = attached(&session);
    let waiting = client.send(
        "Runtime.evaluate",
        json!({"expression": "new Promise(() => {})", "awaitPromise": true}),
    );
    let _ = waiting;
    signal(browser(&session), Signal::KILL);
    assert!(client.closed());
    eventually("it is said", LONG, || {
        let said: Result<Value, _> = session.wire().call("cdp.open", json!({}));
        said.err()
            .filter(|refused| refused.code == "desktop_gone")
            .map(drop)
    });
    // Nothing of it holds up a takeover.
    session.take(json!({})).give_back();
    session
        .wire()
        .done("desktop.destroy", json!({"desktop": "d1"}));
    assert!(
        session
            .place
            .processes()
            .iter()
            .all(|&pid| !command_line(pid).contains("--remote-debugging-pipe"))
    );
}

#[test]
fn what_is_no_address_is_refused_before_anything_is_made() {
    let session = Session::with(Place::new(), &[]);
    let mut wire: Wire = session.wire();
    for address in ["--no-sandbox", "not an address"] {
        let refused = wire.refused("desktop.new", json!({"browser": address}));
        assert_eq!(refused.code, "bad_params", "{address}");
    }
    let attached = json!({"browser": true, "attach": "unix:/nowhere"});
    assert_eq!(wire.refused("desktop.new", attached).code, "bad_params");
    assert_eq!(wire.done("list", json!({}))["desktops"], json!([]));
}
