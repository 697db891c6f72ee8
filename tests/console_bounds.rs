//! The web console waits for nobody, holds no more than it must, ends at once, and is started by people alone.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::{
    Console, LONG, Place, Running, SHORT, Session, Signal, Tab, eventually, farewell,
};

#[test]
fn requests_have_bounds() {
    let place = Place::new();
    let console = Console::start(&place, &[]);
    let cookie = console.enter(&console.url());
    let address = console.address();
    let long = "x".repeat(64 << 10);
    let head = |path: &str, more: &str| {
        format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{more}\r\n")
    };
    let many: String = (0..200)
        .map(|number| format!("X-{number}: 1\r\n"))
        .collect();
    for bytes in [
        head("/", &format!("X-Long: {long}\r\n")),
        head(&format!("/{long}"), ""),
        head("/", &many),
        "\0\0\0\0\r\n\r\n".to_owned(),
        "GET / HTTP/9.9\r\n\r\n".to_owned(),
    ] {
        let status = console.raw(bytes.as_bytes()).map(|reply| reply.status);
        let refused = status.is_none_or(|status| (400..500).contains(&status));
        assert!(refused, "{status:?}: {}", &bytes[..40.min(bytes.len())]);
    }
    // Nothing takes a body, however long it says that it is.
    let origin = console.origin();
    let post = format!(
        "POST / HTTP/1.1\r\nHost: {address}\r\nOrigin: {origin}\r\nCookie: {cookie}\r\n\
         Content-Length: 99999999999\r\n\r\n"
    );
    let reply = console.raw(post.as_bytes()).expect("an answer");
    assert_eq!(reply.status, 405);

    // Who says nothing, or not all, is not waited for; others are answered meanwhile.
    let asked = Instant::now();
    let mut slow: Vec<_> = (0..20).map(|_| console.connect()).collect();
    for stream in &mut slow {
        stream.write_all(b"GET / HTTP/1.1\r\nHo").expect("sent");
    }
    assert_eq!(console.get("/", Some(&cookie)).status, 200);
    for mut stream in slow {
        stream.set_read_timeout(Some(LONG)).expect("a timeout");
        let mut said = Vec::new();
        let _ = stream.read_to_end(&mut said);
    }
    assert!(asked.elapsed() < LONG);
}

#[test]
fn websockets_have_bounds() {
    let place = Place::new();
    let console = Console::start(&place, &[]);
    let cookie = console.enter(&console.url());
    // A message that is too long, or none of ours, ends the connection.
    let mut socket = console.socket("/api/live", &cookie);
    // Its end may come before all of it was sent.
    let _ = socket.send("x".repeat((1 << 20) + 1).into());
    farewell(&mut socket, SHORT);
    let mut socket = console.socket("/api/live", &cookie);
    socket.send(vec![1, 2, 3].into()).expect("sent");
    let code = farewell(&mut socket, SHORT).expect("a goodbye").code;
    assert_eq!(u16::from(code), 1003);

    // Only so many at a time; one that ends makes room.
    let mut open: Vec<_> = (0..64)
        .map(|_| console.socket("/api/live", &cookie))
        .collect();
    let (address, origin) = (console.address(), console.origin());
    let fields = [
        ("Host", &*address),
        ("Origin", &*origin),
        ("Cookie", &*cookie),
    ];
    assert_eq!(console.knock("/api/live", &fields).status, 503);
    drop(open.pop());
    eventually("there is room again", SHORT, || {
        (console.knock("/api/live", &fields).status == 101).then_some(())
    });
    // A handshake that is none.
    let reply = console.request("GET", "/api/live", &fields);
    assert_eq!(reply.status, 400);
}

#[test]
fn a_browser_that_does_not_read_holds_up_nobody() {
    let session = Session::with(Place::new(), &[]);
    let id = session.id();
    let console = Console::start(&session.place, &[]);
    let cookie = console.enter(&console.url());
    // Some megabytes of record.
    let line = "all work and no play makes Jack a dull boy ".repeat(20);
    let script = format!("i=0; while [ $i -lt 4000 ]; do echo '{line}'; i=$((i+1)); done");
    let agent = crate::support::scripted::shell(&session, &script);
    crate::support::scripted::becomes(&session, &agent, "done");
    let page = || json!({"limit": 10_000});
    let mut reader = Tab::connect(&console, &cookie);
    let whole = reader.done(&id, "journal", page());
    let bytes = whole.to_string().len();
    assert!(bytes > 1 << 20, "{bytes}");

    // Far more than may wait for it, here and at the host.
    let mut deaf = Tab::connect(&console, &cookie);
    for _ in 0..(96 << 20) / bytes {
        deaf.send(&id, "journal", page());
    }
    let list = reader.done(&id, "list", json!({}));
    for _ in 0..100 {
        assert_eq!(reader.done(&id, "list", json!({})), list);
    }
    let pid = console.running.pid();
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = peak.and_then(|line| line.trim().split(' ').next()?.parse::<usize>().ok());
    assert!(peak.is_some_and(|kib| kib < 200 << 10), "{peak:?} KiB");
}

#[test]
fn it_ends_at_once_and_says_how() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 0)] {
        let session = Session::up();
        let console = Console::start(&session.place, &[]);
        let mut browser = console.browser();
        browser.done(&session.id(), "subscribe", json!({}));
        let asked = Instant::now();
        console.running.signal(signal);
        let goodbye = browser.goodbye(SHORT).expect("a goodbye");
        assert_eq!(u16::from(goodbye.code), 1001);
        let outcome = console.running.finish(LONG);
        assert!(
            asked.elapsed() < Duration::from_secs(5),
            "{:?}",
            asked.elapsed()
        );
        assert_eq!(outcome.code, code, "{outcome:?}");
        // The session goes on.
        assert_eq!(session.status()["control"], "agent");
    }
}

#[test]
fn a_port_that_is_taken_is_named_with_what_to_do() {
    let place = Place::new();
    let console = Console::start(&place, &[]);
    let address = console.address();
    let start = |options: &[&str]| {
        let mut command = place.handover();
        Running::start(command.args(["console", "--json"]).args(options)).finish(LONG)
    };
    let port = address.rsplit_once(':').expect("a port").1;
    let taken = start(&["--port", port]);
    assert_eq!(taken.refused(), "bad_params");
    let said = taken.json()["error"]["message"].to_string();
    assert!(said.contains(&address) && said.contains("--port"), "{said}");
    // Which of two ports is meant is not guessed.
    let both = start(&["--listen", "127.0.0.1:1", "--port", "2"]);
    assert_eq!(both.code, 2, "{both:?}");
    let said = both.json()["error"]["message"].to_string();
    assert!(
        said.contains("--listen 127.0.0.1:1") && said.contains("--port 2"),
        "{said}"
    );
}

#[test]
fn only_a_person_starts_one() {
    let place = Place::new();
    // Below an agent program, without a terminal to ask at.
    let program = env!("CARGO_BIN_EXE_handover");
    let mut detached = place.command("setsid");
    detached
        .arg("--wait")
        .arg(program)
        .args(["console", "--json", "--port", "0"]);
    detached.env("CLAUDECODE", "1");
    assert_eq!(
        Running::start(&mut detached).finish(LONG).refused(),
        "caller_refused"
    );

    // With one, the person there is asked, before anything listens.
    for (answer, listens) in [("yes\n", true), ("no\n", false)] {
        let mut terminal = place.command("script");
        let inside = format!("{program} console --json --port 0");
        terminal.args(["-qec", &inside, "/dev/null"]);
        terminal.env("CLAUDECODE", "1").env("SHELL", "/bin/sh");
        let (terminal, mut person) = Running::start_with_input(&mut terminal);
        eventually("the person is asked", LONG, || {
            // The question has no end of line.
            terminal
                .out()
                .contains("serve the web console in your name")
                .then_some(())
        });
        assert!(!terminal.out().contains("\"url\""));
        person.write_all(answer.as_bytes()).expect("typed");
        if listens {
            eventually("it listens", LONG, || {
                terminal.out().contains("\"url\"").then_some(())
            });
        } else {
            let outcome = terminal.finish(LONG);
            assert!(outcome.out.contains("caller_refused"), "{outcome:?}");
        }
    }

    // An agent, wherever it runs it.
    let session = Session::up();
    let results = session.place.path().join("agent");
    let script = format!(
        "{program} console --json --port 0 >{0}.new; {program} console link --json >>{0}.new; mv {0}.new {0}",
        results.display()
    );
    let _console = Console::start(&session.place, &[]);
    crate::support::scripted::shell(&session, &script);
    let said = eventually("the agent was answered", LONG, || {
        std::fs::read_to_string(&results).ok()
    });
    let codes: Vec<_> = said
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .map(|said| said["error"]["code"].clone())
        .collect();
    assert_eq!(codes, ["caller_refused", "caller_refused"], "{said}");
}
