//! The ways to a browser's DevTools: standard streams, a WebSocket with a secret, and chrome-devtools-mcp,
//! which says what it lacks.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::process::Stdio;

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::{self, Message};

use crate::support::{LONG, Place, Running, cdp_socket, eventually, with_browser};

const PAGE: &str = "data:text/html,<title>page</title>";

#[test]
fn the_protocol_is_spoken_on_standard_streams() {
    let session = with_browser(PAGE);
    let mut command = session.place.handover();
    let (running, mut input) = Running::start_with_input(command.args(["browser", "cdp"]));
    let ask = json!({"id": 7, "method": "Browser.getVersion"});
    writeln!(input, "{ask}").expect("it reads");
    let said = running.line("an answer", |line| line["id"] == 7);
    assert!(said["result"]["product"].is_string(), "{said}");
    // It ends with its client.
    drop(input);
    assert_eq!(running.finish(LONG).code, 0);
}

#[test]
fn answers_that_are_due_come_after_the_last_command() {
    let session = with_browser(PAGE);
    let ask = json!({"id": 7, "method": "Runtime.evaluate", "params": {"expression": "1"}});
    // A client that is done with writing, first of the host's socket, then of standard input.
    let mut stream = UnixStream::connect(cdp_socket(&session)).expect("a connection");
    stream.set_read_timeout(Some(LONG)).expect("a timeout");
    writeln!(stream, "{ask}").expect("it reads");
    stream.shutdown(Shutdown::Write).expect("it is open");
    let mut said = String::new();
    stream
        .read_to_string(&mut said)
        .expect("an answer and the end");
    assert_eq!(said.lines().count(), 1, "{said}");
    let said: Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!(said["id"], 7, "{said}");

    let mut command = session.place.handover();
    let (running, mut input) = Running::start_with_input(command.args(["browser", "cdp"]));
    writeln!(input, "{ask}").expect("it reads");
    drop(input);
    let outcome = running.finish(LONG);
    assert_eq!(
        (outcome.code, outcome.json()["id"].clone()),
        (0, json!(7)),
        "{outcome:?}"
    );
}

#[test]
fn whoever_is_left_by_the_browser_ends_and_says_so() {
    let session = with_browser(PAGE);
    let mut command = session.place.handover();
    let (streams, mut input) = Running::start_with_input(command.args(["browser", "cdp"]));
    let ask = json!({"id": 7, "method": "Browser.getVersion"});
    writeln!(input, "{ask}").expect("it reads");
    streams.line("an answer", |line| line["id"] == 7);
    let waiting = session.start(&["browser", "cdp", "--ws"]);
    eventually("a WebSocket", LONG, || {
        waiting.out().contains("ws://").then_some(())
    });
    session.cli(&["desktop", "destroy", "d1"]).done();
    for left in [streams, waiting] {
        let outcome = left.finish(LONG);
        assert_eq!(outcome.code, 1, "{outcome:?}");
        assert!(
            format!("{outcome:?}").contains("the browser has ended"),
            "{outcome:?}"
        );
    }
}

#[test]
fn the_websockets_secret_is_good_for_one_connection_and_for_no_web_page() {
    let session = with_browser(PAGE);
    let mut bridge = session.place.handover();
    let mut bridge = bridge
        .args(["--json", "browser", "cdp", "--ws"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut line = String::new();
    let out = bridge.stdout.as_mut().expect("piped");
    BufReader::new(out).read_line(&mut line).expect("a line");
    let said: Value = serde_json::from_str(&line).expect("JSON");
    let address = said["webSocketDebuggerUrl"].as_str().expect("an address");
    let (host, secret) = address
        .strip_prefix("ws://")
        .and_then(|rest| rest.split_once('/'))
        .expect("an address");
    let ask = |path: &str, head: &str| {
        let mut stream = TcpStream::connect(host).expect("it listens");
        stream.set_read_timeout(Some(LONG)).expect("a timeout");
        let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==";
        let request = format!("GET /{path} HTTP/1.1\r\n{head}\r\n{upgrade}\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut status = [0; 12];
        stream.read_exact(&mut status).expect("it answers");
        (stream, String::from_utf8_lossy(&status).into_owned())
    };
    let named = format!("Host: {host}");
    for (path, head) in [
        ("", named.clone()),
        (&secret[1..], named.clone()),
        (secret, "Host: evil.example".to_owned()),
        (secret, format!("{named}\r\nOrigin: http://{host}")),
    ] {
        assert_eq!(ask(path, &head).1, "HTTP/1.1 404", "{path} {head}");
    }
    let (_client, status) = ask(secret, &named);
    assert_eq!(status, "HTTP/1.1 101");
    eventually("the port is closed", LONG, || {
        TcpStream::connect(host).err()
    });
    bridge.kill().expect("it runs");
    bridge.wait().expect("it ends");
}

/// A program that drives the browser is an agent's, whoever has started it: a person acts in the window.
#[test]
fn what_is_refused_on_any_way_in_is_recorded_as_an_agents() {
    let session = with_browser(PAGE);
    let waiting = session.start(&["browser", "cdp", "--ws"]);
    let said = waiting.line("an address", |line| {
        line["webSocketDebuggerUrl"].is_string()
    });
    let address = said["webSocketDebuggerUrl"].as_str().expect("an address");
    let port = address
        .strip_prefix("ws://")
        .and_then(|at| at.split_once('/'));
    let stream = TcpStream::connect(port.expect("an address").0).expect("it listens");
    stream.set_read_timeout(Some(LONG)).expect("a timeout");
    let (mut socket, _) = tungstenite::client(address, stream).expect("a WebSocket");
    let mut command = session.place.handover();
    let (streams, mut input) = Running::start_with_input(command.args(["browser", "cdp"]));

    let mut holder = session.take(json!({}));
    let key = json!({"type": "keyDown", "key": "a"});
    let ask = json!({"id": 7, "method": "Input.dispatchKeyEvent", "params": key});
    writeln!(input, "{ask}").expect("it reads");
    let refused = streams.line("an answer", |line| line["id"] == 7);
    assert_eq!(refused["error"]["code"], -32050, "{refused}");
    socket
        .send(Message::text(ask.to_string()))
        .expect("it reads");
    let refused = socket.read().expect("an answer").into_text().expect("text");
    assert!(refused.contains("human_control_active"), "{refused}");
    let recorded = eventually("both are on record", LONG, || {
        let refused = session.events("relay_refused");
        (refused.len() == 2).then_some(refused)
    });
    for event in recorded {
        assert_eq!(event["source"], "agent", "{event}");
        assert_eq!(event["tool"], "cdp:Input.dispatchKeyEvent", "{event}");
    }
    holder.give_back();
}

#[test]
fn chrome_devtools_mcp_that_cannot_be_installed_is_said_to_be() {
    for (name, value, says) in [
        ("PATH", "/nowhere", "npm cannot be run"),
        ("npm_config_offline", "true", "needs the npm registry"),
    ] {
        let mut place = Place::new();
        place.set(name, value);
        let data = place.path().join("data");
        place.set("XDG_DATA_HOME", data);
        let outcome = Running::start(place.handover().args(["browser", "mcp"])).finish(LONG);
        assert_eq!(outcome.code, 1, "{outcome:?}");
        let said = format!("{outcome:?}");
        assert!(said.contains(says), "{said}");
    }
}
