//! What a browser of the web console says reaches the hosts as it is, and what they answer reaches it; its
//! leases end with it, and one host does not hold up another.

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use crate::support::scripted::shell;
use crate::support::{Console, LONG, Place, SHORT, Session, Signal, Tab, eventually, signal};

#[test]
fn a_browser_is_answered_as_the_host_answers() {
    let session = Session::up();
    let id = session.id();
    let console = Console::start(&session.place, &[]);
    let mut browser = console.browser();

    let told = browser.news("sessions");
    assert_eq!(told["scope"], json!({"kind": "all"}));
    assert_eq!(told["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(
        told["home"],
        session.place.path().to_string_lossy().as_ref()
    );
    assert_eq!(told["sessions"].as_array().map(Vec::len), Some(1));
    assert_eq!(told["sessions"][0]["sessionId"], id);
    assert_eq!(
        told["sessions"][0]["desktops"],
        json!([{"id": "d1", "control": "agent"}])
    );

    let mut wire = session.wire();
    let list = browser.done(&id, "list", json!({}));
    assert_eq!(list, wire.done("list", json!({})));

    // Refusals word for word.
    for (method, params) in [
        ("steer", json!({"id": "nobody", "text": "x"})),
        ("steer", json!({})),
        ("steer", json!([])),
        ("abort", json!({"id": "nobody"})),
        ("result", json!({"id": "nobody"})),
        ("answer", json!({"requestId": "r9", "text": "x"})),
        ("control.status", json!({"desktop": "d9"})),
        ("control.renew", json!({"leaseId": "l-1", "token": "t"})),
        ("control.secret", json!({"desktop": "d1", "text": "x"})),
        ("journal", json!({"limit": 0})),
    ] {
        let refused = wire.refused(method, params.clone());
        let answer = browser.call(&id, method, params);
        let error = &answer["error"];
        assert_eq!(error["code"], refused.number, "{method}");
        assert_eq!(error["message"], refused.message, "{method}");
        assert_eq!(error["data"], refused.data, "{method}");
        assert_eq!(answer["session"], id);
    }

    // Newlines between the words of a call are none between calls.
    browser.say(&format!(
        "{{\n\"session\": {id:?},\r\n \"id\": \"mine\", \"method\": \"list\",\n\"params\":\n{{\n}}\n}}"
    ));
    let answer = browser.hear("an answer under a text", |said| said["id"] == "mine");
    assert_eq!(answer["result"], list);

    // The console has no way around its list, and says nothing as somebody else.
    for method in [
        "hello",
        "ping",
        "spawn",
        "desktop.click",
        "desktop.new",
        "control.permit",
        "x",
    ] {
        assert_eq!(
            browser.refused(&id, method, json!({})),
            "method_unknown",
            "{method}"
        );
    }
    assert_eq!(
        browser.refused("zzzzzzzz", "list", json!({})),
        "session_unknown"
    );
    for odd in [
        "",
        "7",
        "{}",
        "{\"id\":1}",
        "[1]",
        "{\"session\":1,\"id\":1,\"method\":\"list\"}",
    ] {
        browser.say(odd);
        let answer = browser.hear(odd, |said| {
            said["id"].is_null() && said["error"].is_object()
        });
        assert_eq!(answer["error"]["data"]["code"], "malformed", "{odd}");
    }
    assert_eq!(browser.done(&id, "list", json!({})), list);

    // The record says whose program it was.
    browser.done(&id, "control.pause", json!({"desktop": "d1"}));
    let paused = session.event("paused");
    let via = format!("console/{}", env!("CARGO_PKG_VERSION"));
    assert_eq!(
        (&paused["actor"]["via"], &paused["source"]),
        (&json!(via), &json!("human"))
    );
}

#[test]
fn news_pass_as_they_come() {
    let session = Session::up();
    let id = session.id();
    let console = Console::start(&session.place, &[]);
    let mut browser = console.browser();
    browser.done(&id, "subscribe", json!({"since": 0}));
    let agent = shell(&session, "echo from the agent");
    let said = browser.hear("what the agent says", |said| {
        said["method"] == "event" && said["params"]["kind"] == "agent_text"
    });
    assert_eq!(
        (&said["session"], &said["params"]["agent"]),
        (&json!(id), &json!(agent))
    );
    assert_eq!(said["params"], session.event("agent_text"));
    let result = eventually("the agent has a result", LONG, || {
        let result = browser.done(&id, "result", json!({"id": agent}));
        (result["status"] == "done").then_some(result)
    });
    assert!(
        result["text"]
            .as_str()
            .is_some_and(|text| text.contains("from the agent"))
    );
    // A long answer arrives whole.
    eventually("the same record", LONG, || {
        let page = browser.done(&id, "journal", json!({"limit": 10_000}));
        (page["events"] == json!(session.journal())).then_some(())
    });
}

#[test]
fn sessions_come_and_go() {
    let session = Session::with(Place::new(), &["--name", "first"]);
    let console = Console::start(&session.place, &[]);
    let mut browser = console.browser();
    let names = |told: &Value| {
        let sessions = told["params"]["sessions"].as_array().expect("a list");
        let names = sessions
            .iter()
            .map(|session| session["name"].as_str().expect("a name"));
        names.map(str::to_owned).collect::<Vec<_>>()
    };
    let wanted = |wanted: &'static [&'static str]| {
        move |told: &Value| {
            told["method"] == "sessions" && {
                let mut names = names(told);
                names.sort();
                names == wanted
            }
        }
    };
    browser.hear("the first session", wanted(&["first"]));
    let other = session.cli(&["up", "--new", "--name", "second"]).done();
    let told = browser.hear("the second session", wanted(&["first", "second"]));
    // The newest comes first.
    assert_eq!(names(&told), ["second", "first"]);
    let second = other["sessionId"].as_str().expect("an id").to_owned();
    browser.done(&second, "list", json!({}));
    signal(
        i32::try_from(other["pid"].as_i64().expect("a pid")).expect("a pid"),
        Signal::KILL,
    );
    let closed = browser.hear("the end of its host", |said| said["method"] == "closed");
    assert_eq!(closed["session"], second);
    assert!(closed["params"]["message"].is_string());
    browser.hear("one session is left", wanted(&["first"]));
    // That may have been said before the second came, too.
    eventually("the other is unknown", LONG, || {
        let answer = browser.call(&second, "list", json!({}));
        (answer["error"]["data"]["code"] == "session_unknown").then_some(())
    });
    browser.done(&session.id(), "list", json!({}));
    // It comes back, and the browser finds it again.
    session.cli(&["up", "--session", &second]).done();
    browser.hear("it is back", wanted(&["first", "second"]));
    eventually("it answers", LONG, || {
        let answer = browser.call(&second, "list", json!({}));
        answer["result"].is_object().then_some(())
    });
}

#[test]
fn a_stopped_host_holds_up_nobody_else() {
    let session = Session::with(Place::new(), &[]);
    let other = session.cli(&["up", "--new"]).done();
    let (stopped, pid) = (
        other["sessionId"].as_str().expect("an id").to_owned(),
        i32::try_from(other["pid"].as_i64().expect("a pid")).expect("a pid"),
    );
    let console = Console::start(&session.place, &[]);
    let mut browser = console.browser();
    browser.done(&stopped, "list", json!({}));
    signal(pid, Signal::STOP);
    let mut waiting = Vec::new();
    for _ in 0..100 {
        waiting.push(browser.send(&stopped, "list", json!({})));
        browser.done(&session.id(), "list", json!({}));
    }
    signal(pid, Signal::CONT);
    for id in waiting {
        browser.hear("a late answer", |said| {
            said["id"] == id && said["result"].is_object()
        });
    }
    // A call that waits does not either.
    let request = session
        .wire()
        .done("request_human", json!({"reason": "stuck"}));
    let waits = json!({"requestId": request["requestId"], "waitMs": 30_000});
    let id = browser.send(&session.id(), "request_status", waits);
    browser.done(&session.id(), "list", json!({}));
    let answer = json!({"requestId": request["requestId"], "text": "go on"});
    browser.done(&session.id(), "answer", answer);
    let answered = browser.hear("the wait is over", |said| said["id"] == id);
    assert_eq!(answered["result"]["text"], "go on");
}

#[test]
fn a_viewer_is_a_viewer_of_that_browser_alone() {
    let session = Session::up();
    let id = session.id();
    let console = Console::start(&session.place, &[]);
    let cookie = console.enter(&console.url());
    let mut browser = Tab::connect(&console, &cookie);
    let view = browser.done(&id, "view.open", json!({"desktop": "d1"}));
    let viewer = view["viewer"].as_str().expect("a name");
    assert_eq!(
        view,
        json!({"viewer": viewer}),
        "the socket is nobody's business"
    );
    let path = format!("/api/view/{id}/{viewer}");

    let url = session.cli(&["console", "link"]).done()["url"]
        .as_str()
        .expect("a link")
        .to_owned();
    let stranger = console.enter(&url);
    let (address, origin) = (console.address(), console.origin());
    let knock = |path: &str, cookie: &str| {
        let fields = [
            ("Host", address.as_str()),
            ("Origin", origin.as_str()),
            ("Cookie", cookie),
            ("Sec-WebSocket-Protocol", "chat, binary"),
        ];
        console.knock(path, &fields)
    };
    assert_eq!(knock(&path, &stranger).status, 404);
    for other in [
        format!("/api/view/{id}/v99"),
        format!("/api/view/zzzzzzzz/{viewer}"),
        format!("/api/view/{id}/..%2f{viewer}"),
        format!("/api/view/{id}/%2e%2e%2fattach.sock"),
    ] {
        assert_eq!(knock(&other, &cookie).status, 404, "{other}");
    }
    // What only looks like a WebSocket does not use the viewer up.
    assert_eq!(console.get(&path, Some(&cookie)).status, 400);
    let reply = knock(&path, &cookie);
    assert_eq!(
        (reply.status, reply.field("sec-websocket-protocol")),
        (101, Some("binary"))
    );
    // The socket of a viewer is for one client.
    assert_eq!(knock(&path, &cookie).status, 404);

    let view = browser.done(&id, "view.open", json!({"desktop": "d1"}));
    let path = format!(
        "/api/view/{id}/{}",
        view["viewer"].as_str().expect("a name")
    );
    let mut socket = console.socket(&path, &cookie);
    let mut heard = Vec::new();
    let mut read = |socket: &mut tokio_tungstenite::tungstenite::WebSocket<_>, length: usize| {
        while heard.len() < length {
            if let Message::Binary(bytes) = socket.read().expect("bytes") {
                heard.extend_from_slice(&bytes);
            }
        }
        heard.drain(..length).collect::<Vec<u8>>()
    };
    // An RFB handshake: the version, one security type (none), its result, the size.
    assert_eq!(read(&mut socket, 12), b"RFB 003.008\n");
    // Messages may be cut anywhere.
    socket.send(b"RFB 00".to_vec().into()).expect("sent");
    socket.send(b"3.008\n".to_vec().into()).expect("sent");
    assert_eq!(read(&mut socket, 2), [1, 1]);
    socket.send(vec![1].into()).expect("sent");
    assert_eq!(read(&mut socket, 4), [0; 4]);
    socket.send(vec![1].into()).expect("sent");
    let size = read(&mut socket, 4);
    assert_eq!(size, [3, 32, 2, 88], "800x600");
}

#[test]
fn leases_end_with_the_tab() {
    let session = Session::up();
    let id = session.id();
    let console = Console::start(&session.place, &[]);
    let cookie = console.enter(&console.url());
    let take = |linger: u64| {
        let mut tab = Tab::connect(&console, &cookie);
        let view = tab.done(&id, "view.open", json!({"desktop": "d1"}));
        let granted = tab.done(
            &id,
            "control.acquire",
            json!({"desktop": "d1", "viewer": view["viewer"], "onDisconnect": "linger",
                   "lingerMs": linger}),
        );
        (tab, granted)
    };
    // A tab that is closed, or whose browser dies, holds control no longer than it asked to.
    for vanish in [false, true] {
        let (mut tab, granted) = take(300);
        tab.done(&id, "control.renew", proof(&granted));
        if vanish {
            tab.vanish();
        } else {
            drop(tab);
        }
        session.becomes("agent", SHORT);
    }
    // One that comes back in time goes on.
    let (tab, granted) = take(30_000);
    tab.vanish();
    let mut tab = Tab::connect(&console, &cookie);
    let view = tab.done(&id, "view.open", json!({"desktop": "d1"}));
    let mut reclaim = proof(&granted);
    reclaim["viewer"] = view["viewer"].clone();
    let again = eventually("the lease can be reclaimed", SHORT, || {
        let answer = tab.call(&id, "control.reclaim", reclaim.clone());
        answer["result"]
            .is_object()
            .then(|| answer["result"].clone())
    });
    assert_eq!(session.status()["control"], "human");
    // Another tab of the same browser is another holder.
    let mut second = Tab::connect(&console, &cookie);
    assert_eq!(
        second.refused(&id, "control.acquire", json!({"desktop": "d1"})),
        "human_lease_held"
    );
    drop(second);
    tab.done(&id, "control.renew", proof(&again));
    tab.done(&id, "control.return", {
        let mut give = proof(&again);
        give["note"] = "done".into();
        give
    });
    assert_eq!(tab.news("lease_ended")["end"], "return");
    assert_eq!(session.becomes("agent", SHORT)["control"], "agent");
    // The console itself dies: nothing is left of anybody's control.
    let (_tab, _granted) = take(300);
    console.running.signal(Signal::KILL);
    session.becomes("agent", SHORT);
}

fn proof(granted: &Value) -> Value {
    json!({"leaseId": granted["leaseId"], "token": granted["token"]})
}

/// A host that is stopped is told of, and so is that it goes on; others go on all the while.
#[test]
fn a_silent_host_is_told_of() {
    let session = Session::up();
    let id = session.id();
    let console = Console::start(&session.place, &[]);
    let mut browser = console.browser();
    let now = browser.news("sessions")["now"].as_str().map(str::len);
    assert_eq!(now, Some("2026-01-31T09:30:00.250Z".len()));
    browser.done(&id, "list", json!({}));
    signal(session.host(), Signal::STOP);
    let late = browser.send(&id, "list", json!({}));
    let told = browser.hear("that it is silent", |said| said["method"] == "silent");
    assert_eq!(told["session"], id);
    signal(session.host(), Signal::CONT);
    let told = browser.hear("that it answers", |said| said["method"] == "answers");
    assert_eq!(told["session"], id);
    // It was not asked in vain.
    browser.hear("its late answer", |said| said["id"] == late);
}
