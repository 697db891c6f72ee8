//! Clients that come and go, stop reading, or share a socket.

use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use handover_protocol::client::CONNECT_TIMEOUT;
use handover_protocol::{ErrorCode, Interrupt, Method};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType};
use serde_json::json;
use tokio::io::AsyncWriteExt;

use super::fake::PERSON;
use super::{Client, Harness, PATIENCE, limits, outcome, until};
use crate::attach::Notice;
use crate::callers::{CallerKind, ConnectionId};

#[tokio::test]
async fn desktops_learn_at_once_that_a_client_is_gone() {
    let harness = Harness::start().await;
    let desktop = harness.session.desktop();
    let mut first = harness.connect().await;
    first.call(Method::Ping, json!({})).await.unwrap();
    // With a call under way, as of a controller that is killed.
    first
        .send("desktop.launch", json!({"command": ["sleep"]}))
        .await;
    let second = harness.connect().await;
    drop(first);
    until("the first is gone", || {
        desktop.closed.lock().unwrap().contains(&ConnectionId(1))
    })
    .await;
    assert!(!desktop.closed.lock().unwrap().contains(&ConnectionId(2)));
    // What the call came to after that is taken back as well.
    let before = desktop.closed.lock().unwrap().len();
    desktop.slow.add_permits(1);
    until("it is told again", || {
        desktop.closed.lock().unwrap().len() > before
    })
    .await;
    drop(second);
    until("the second is gone", || {
        desktop.closed.lock().unwrap().contains(&ConnectionId(2))
    })
    .await;
}

#[tokio::test]
async fn a_client_that_only_stops_writing_still_gets_its_answers() {
    let harness = Harness::start().await;
    let mut client = harness.connect().await;
    let slow = client
        .send("desktop.launch", json!({"command": ["sleep"]}))
        .await;
    client.writer.shutdown().await.unwrap();
    let desktop = harness.session.desktop();
    until("its control would end", || {
        !desktop.closed.lock().unwrap().is_empty()
    })
    .await;
    desktop.slow.add_permits(1);
    assert!(outcome(&client.answer(slow).await).is_ok());
    assert_eq!(client.line().await, None);
}

#[tokio::test]
async fn a_client_that_never_reads_is_dropped_and_harms_nobody() {
    let harness = Harness::start().await;
    let mut lazy = harness.connect().await;
    let mut other = harness.connect().await;
    other.call(Method::Ping, json!({})).await.unwrap();
    // Each answer has 512 KiB.
    for _ in 0..36 {
        lazy.send("desktop.screenshot", json!({})).await;
    }
    let desktop = harness.session.desktop();
    until("it is dropped", || {
        desktop.closed.lock().unwrap().contains(&ConnectionId(1))
    })
    .await;
    assert!(other.call(Method::Ping, json!({})).await.is_ok());
}

#[tokio::test]
async fn closing_waits_for_nobody() {
    let mut harness = Harness::start().await;
    let mut clients = Vec::new();
    for _ in 0..50 {
        let mut client = harness.connect().await;
        client.send("desktop.screenshot", json!({})).await;
        client
            .send(
                "request_status",
                json!({"requestId": "r1", "waitMs": 60_000}),
            )
            .await;
        clients.push(client);
    }
    // One that connected late and says nothing, and one with a call that never ends.
    clients.push(harness.connect().await);
    let mut stuck = harness.connect().await;
    stuck.call(Method::Ping, json!({})).await.unwrap();
    stuck
        .send("desktop.launch", json!({"command": ["sleep"]}))
        .await;
    let begun = Instant::now();
    harness
        .server
        .take()
        .unwrap()
        .close(Duration::from_millis(300))
        .await;
    assert!(
        begun.elapsed() < Duration::from_secs(15),
        "closing took {:?}",
        begun.elapsed()
    );
    assert_eq!(stuck.line().await, None);
}

#[tokio::test]
async fn closing_lets_answers_through() {
    let mut harness = Harness::start().await;
    let mut client = harness.connect().await;
    let slow = client
        .send("desktop.launch", json!({"command": ["sleep"]}))
        .await;
    client.call(Method::Ping, json!({})).await.unwrap();
    let server = harness.server.take().unwrap();
    let closing = tokio::spawn(server.close(Duration::from_secs(10)));
    harness.session.desktop().slow.add_permits(1);
    assert!(outcome(&client.answer(slow).await).is_ok());
    closing.await.unwrap();
    assert_eq!(client.line().await, None);
}

/// A client that is turned away learns why, whether it writes before it reads or not.
async fn is_turned_away(harness: &Harness) {
    let mut silent = harness.connect().await;
    let told = silent.line().await.unwrap();
    assert_eq!(told["error"]["data"]["code"], "queue_full");
    assert_eq!(silent.line().await, None);
    let path = harness.dir.path().join("attach.sock");
    let (client, _notifications) =
        handover_protocol::client::Client::connect(&path, CONNECT_TIMEOUT)
            .await
            .unwrap();
    let refused = client.hello("test", None).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::QueueFull);
}

#[tokio::test]
async fn one_process_cannot_take_every_place() {
    let harness = Harness::start().await;
    let mut clients = Vec::new();
    for _ in 0..limits().by_process {
        clients.push(harness.connect().await);
    }
    is_turned_away(&harness).await;
    let last = clients.last_mut().unwrap();
    assert!(last.call(Method::Ping, json!({})).await.is_ok());
    drop(clients);
    let served = async {
        loop {
            let mut late = harness.connect().await;
            // One that is turned away may be so before it writes; it gets a line without an id.
            let ping = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
            let _ = late.writer.write_all(ping).await;
            if late.line().await.is_some_and(|line| line["id"] == 1) {
                return;
            }
        }
    };
    tokio::time::timeout(PATIENCE, served)
        .await
        .expect("there is room again");
}

/// Another process with as many connections as one may have, until its input is closed.
fn crowd(socket: &Path) -> Child {
    let address = SocketAddrUnix::new(socket).unwrap();
    let connect_all = move || {
        for _ in 0..limits().by_process {
            // Not closed by what the process becomes.
            let stream = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None)?;
            rustix::net::connect(&stream, &address)?;
            std::mem::forget(stream);
        }
        Ok(())
    };
    let mut command = Command::new("cat");
    command.stdin(Stdio::piped());
    // SAFETY: between fork and exec it only makes system calls, without memory of its own.
    unsafe { command.pre_exec(connect_all) };
    command.spawn().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_cannot_lock_people_out() {
    let harness = Harness::start().await;
    let path = harness.dir.path().join("attach.sock");
    harness.session.become_kind(CallerKind::App {
        desktop: "d1".into(),
    });
    let mut crowds = Vec::new();
    for _ in 0..limits().by_programs / limits().by_process {
        crowds.push(crowd(&path));
    }
    is_turned_away(&harness).await;
    harness.session.become_kind(PERSON);
    let mut person = harness.connect().await;
    assert!(person.call(Method::Ping, json!({})).await.is_ok());
    for mut crowd in crowds {
        drop(crowd.stdin.take());
        crowd.wait().unwrap();
    }
}

#[tokio::test]
async fn news_reach_one_connection_in_order() {
    let harness = Harness::start().await;
    let mut client = harness.connect().await;
    let mut other = harness.connect().await;
    client.call(Method::Ping, json!({})).await.unwrap();
    other.call(Method::Ping, json!({})).await.unwrap();
    for n in 1..=3 {
        let permit = format!("p{n}").into();
        harness
            .outlets
            .notify(ConnectionId(1), &Notice::Interrupt(Interrupt { permit }));
    }
    harness.outlets.notify(
        ConnectionId(99),
        &Notice::Interrupt(Interrupt { permit: "p".into() }),
    );
    for n in 1..=3 {
        let line = client.line().await.unwrap();
        assert_eq!(
            (&line["method"], &line["params"]["permit"]),
            (&json!("interrupt"), &json!(format!("p{n}")))
        );
        assert!(line.get("id").is_none());
    }
    let id = other.send("ping", json!({})).await;
    assert_eq!(other.line().await.unwrap()["id"], id);
}

/// The socket of a client as the standard output of another process.
fn write_as_another(client: Client, text: &str) -> Client {
    let Client {
        reader,
        writer,
        next,
    } = client;
    let stream = reader
        .into_inner()
        .reunite(writer)
        .unwrap()
        .into_std()
        .unwrap();
    stream.set_nonblocking(false).unwrap();
    let status = std::process::Command::new("printf")
        .args(["%s", text])
        .stdout(Stdio::from(OwnedFd::from(stream.try_clone().unwrap())))
        .status()
        .unwrap();
    assert!(status.success());
    stream.set_nonblocking(true).unwrap();
    let (reader, writer) = tokio::net::UnixStream::from_std(stream)
        .unwrap()
        .into_split();
    Client {
        reader: tokio::io::BufReader::new(reader),
        writer,
        next,
    }
}

#[tokio::test]
async fn a_line_of_two_writers_is_nobodys() {
    let harness = Harness::start().await;
    let mut client = harness.connect().await;
    client
        .write(r#"{"jsonrpc":"2.0","id":1,"method":"control"#)
        .await;
    let mut client = write_as_another(client, ".acquire\"}\n");
    let answer = client.line().await.unwrap();
    assert_eq!(answer["error"]["data"]["code"], "caller_refused");
    // Whole lines of several writers each have their own.
    let mut client = write_as_another(
        client,
        "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}\n",
    );
    assert!(outcome(&client.answer(2).await).is_ok());
    client.next = 2;
    assert!(client.call(Method::Ping, json!({})).await.is_ok());
}
