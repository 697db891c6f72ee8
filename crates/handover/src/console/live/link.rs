//! One connection to one host for one browser: what the browser asks goes in, what the host says comes
//! out as it was said. It closes with the browser's connection, and the leases that it acquired go the
//! way that they do when a controller is gone.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use handover_protocol::client::CONNECT_TIMEOUT;
use handover_protocol::codec::{Line, LineDecoder};
use handover_protocol::envelope::{Id, request_line};
use handover_protocol::{
    ErrorCode, HelloParams, LeaseName, MAX_ANSWER, MAX_REQUEST, Method, PROTOCOL_VERSION,
    PingParams, Refusal, ViewOpenResult,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;

use super::outlet::{Gone, Outlet};
use super::wire::{self, Said, Told};
use crate::console::grant::Grant;
use crate::console::places;
use crate::console::scope::Passing;

/// How the console introduces itself.
const CLIENT: &str = concat!("console/", env!("CARGO_PKG_VERSION"));
/// Calls that may be under way on one connection; a host allows 256.
const UNDER_WAY: usize = 200;
/// Calls that wait to be written.
pub const TO_WRITE: usize = 64;
/// Bytes read from a host at once.
const READ_BYTES: usize = 64 << 10;
/// How often a host is asked whether it is there.
const PING: Duration = Duration::from_millis(1500);
/// After this long without a word a host does not answer: it had more than half of it for the last ping.
const SILENT: Duration = Duration::from_secs(4);

/// A call that may be made.
#[derive(Debug)]
pub struct Call {
    /// What the browser's answer carries.
    pub id: Id,
    /// The method.
    pub method: Method,
    /// Its parameters, JSON on one line.
    pub params: String,
    /// What becomes of the answer.
    pub passing: Passing,
}

/// A call under way.
#[derive(Debug)]
struct Asked {
    id: Id,
    passing: Passing,
}

/// One connection.
#[derive(Debug)]
pub struct Link {
    session: String,
    out: Outlet,
    grant: Arc<Grant>,
    asked: Mutex<HashMap<u64, Asked>>,
    /// Whether a ping has been sent and nothing heard since.
    pinged: AtomicBool,
}

/// Why a connection has ended, in words for a person.
type Ended = String;

impl Link {
    /// A connection of a browser with `grant` to `session`.
    pub fn new(session: String, out: Outlet, grant: Arc<Grant>) -> Self {
        Self {
            session,
            out,
            grant,
            asked: Mutex::default(),
            pinged: AtomicBool::new(false),
        }
    }

    /// Connects to the host and serves the browser until the host is gone, then says so. All calls get
    /// an answer.
    pub async fn run(self, socket: &Path, mut calls: mpsc::Receiver<Call>) {
        let why = self.converse(socket, &mut calls).await;
        calls.close();
        let refusal = Refusal::new(ErrorCode::SessionUnknown, why.clone());
        let left = std::mem::take(&mut *self.asked());
        for Asked { id, .. } in left.into_values() {
            self.refuse(&id, refusal.clone()).await;
        }
        while let Some(call) = calls.recv().await {
            self.refuse(&call.id, refusal.clone()).await;
        }
        // If the browser is gone, nobody wants to know.
        let _ = self.tell("closed", &json!({"message": why})).await;
    }

    async fn converse(&self, socket: &Path, calls: &mut mpsc::Receiver<Call>) -> Ended {
        let connect = UnixStream::connect(socket);
        let stream = match tokio::time::timeout(CONNECT_TIMEOUT, connect).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return format!("its host cannot be reached: {error}"),
            Err(_) => return "its host does not answer".to_owned(),
        };
        let (read, write) = stream.into_split();
        tokio::select! {
            why = self.ask(write, calls) => why,
            why = self.hear(read) => why,
        }
    }

    /// Writes calls to the host.
    async fn ask(&self, mut host: OwnedWriteHalf, calls: &mut mpsc::Receiver<Call>) -> Ended {
        let hello = HelloParams {
            client: CLIENT.to_owned(),
            protocol: PROTOCOL_VERSION,
            act_as: None,
        };
        let gone = || "its host has ended".to_owned();
        // Numbers and texts can always be written.
        let hello = request_line(&Id::from(0), Method::Hello.name(), &hello).unwrap_or_default();
        if host.write_all(&hello).await.is_err() {
            return gone();
        }
        // Its answer is passed over, like that to the greeting.
        let ping = request_line(&Id::from(0), Method::Ping.name(), &PingParams {});
        let ping = ping.unwrap_or_default();
        let mut pings = tokio::time::interval(PING);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut next = 1;
        loop {
            let call = tokio::select! {
                call = calls.recv() => call,
                _ = pings.tick() => {
                    // One at a time: a host that is stopped finds no more than that when it goes on.
                    let due = !self.pinged.swap(true, Ordering::Relaxed);
                    if due && host.write_all(&ping).await.is_err() {
                        return gone();
                    }
                    continue;
                }
            };
            let Some(Call {
                id,
                method,
                params,
                passing,
            }) = call
            else {
                // The browser is gone, and this task is about to be ended too.
                return gone();
            };
            let line = format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":{next},\"method\":\"{method}\",\"params\":{params}}}\n"
            );
            if line.len() > MAX_REQUEST + 1 {
                let message = format!("a request may have {MAX_REQUEST} bytes; send less at once");
                self.refuse(&id, Refusal::new(ErrorCode::LineTooLong, message))
                    .await;
                continue;
            }
            if self.asked().len() >= UNDER_WAY {
                let message = "too many calls of this session wait for their answers";
                self.refuse(&id, Refusal::new(ErrorCode::QueueFull, message))
                    .await;
                continue;
            }
            self.asked().insert(next, Asked { id, passing });
            next += 1;
            if host.write_all(line.as_bytes()).await.is_err() {
                return gone();
            }
        }
    }

    /// Passes on what the host says, and says when it does not answer and when it does again.
    async fn hear(&self, mut host: OwnedReadHalf) -> Ended {
        let mut decoder = LineDecoder::new(MAX_ANSWER);
        let mut buffer = vec![0; READ_BYTES];
        let gone = "its host has ended".to_owned();
        let mut silent = false;
        loop {
            let Ok(read) = tokio::time::timeout(SILENT, host.read(&mut buffer)).await else {
                if !silent && self.tell("silent", &json!({})).await.is_err() {
                    return gone;
                }
                silent = true;
                continue;
            };
            let Ok(length @ 1..) = read else {
                return gone;
            };
            self.pinged.store(false, Ordering::Relaxed);
            if std::mem::take(&mut silent) && self.tell("answers", &json!({})).await.is_err() {
                return gone;
            }
            decoder.push(&buffer[..length]);
            while let Some(line) = decoder.next_line() {
                let said = match &line {
                    Line::Whole(line) => serde_json::from_slice::<Said<'_>>(line).ok(),
                    Line::TooLong => None,
                };
                let Some(said) = said else {
                    return "its host says what is not understood".to_owned();
                };
                match self.pass(&said).await {
                    Ok(None) => {}
                    Ok(Some(refusal)) => return refusal,
                    Err(Gone) => return gone,
                }
            }
        }
    }

    /// Tells the browser what the console itself has to say of the host.
    async fn tell(&self, method: &str, params: &Value) -> Result<(), Gone> {
        let news = wire::news(Some(&self.session), method, params);
        self.out.send(news).await
    }

    /// Passes one message on; what it says if it refuses the connection as a whole.
    async fn pass(&self, said: &Said<'_>) -> Result<Option<Ended>, Gone> {
        if let Some(method) = &said.method {
            let params = said.params.unwrap_or(RawValue::NULL);
            if self.grant.scope().hears(method, params) {
                let params = places::news(self.grant.scope(), params);
                self.out
                    .send(Told::news(Some(&self.session), method, &params).text())
                    .await?;
            }
            return Ok(None);
        }
        let number = match said.id {
            Some(number @ 1..) => number,
            // The answer to the greeting, or to the connection itself.
            Some(0) | None => return Ok(said.error.map(refusal_message)),
        };
        let asked = self.asked().remove(&number);
        let Some(Asked { id, passing }) = asked else {
            return Ok(None);
        };
        let text = match said.result.filter(|_| passing != Passing::Whole) {
            None => Told::answer(&self.session, &id, said).text(),
            Some(result) => match self.look_at(passing, result) {
                Some(result) => wire::result(&self.session, &id, &result),
                None => {
                    let message =
                        "the host's answer is not understood; are both of the same version?";
                    let refusal = Refusal::new(ErrorCode::ProtocolMismatch, message);
                    wire::refused(&self.session, &id, refusal)
                }
            },
        };
        self.out.send(text).await?;
        Ok(None)
    }

    /// Notes what an answer grants, and takes out of it what the browser does not see.
    fn look_at(&self, passing: Passing, result: &RawValue) -> Option<Value> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Granted {
            lease_id: LeaseName,
        }
        let text = result.get();
        match passing {
            Passing::View => {
                let ViewOpenResult {
                    viewer,
                    socket_path,
                } = serde_json::from_str(text).ok()?;
                self.grant
                    .add_view(&self.session, viewer.clone(), socket_path.into());
                Some(json!({"viewer": viewer}))
            }
            Passing::Lease => {
                let granted: Granted = serde_json::from_str(text).ok()?;
                self.grant.add_lease(granted.lease_id);
                serde_json::from_str(text).ok()
            }
            Passing::List | Passing::Events | Passing::Named | Passing::Whole => {
                let result = serde_json::from_str(text).ok()?;
                Some(self.grant.scope().filter(passing, result))
            }
        }
    }

    async fn refuse(&self, id: &Id, refusal: Refusal) {
        // If the browser is gone, nobody wants to know.
        let _ = self
            .out
            .send(wire::refused(&self.session, id, refusal))
            .await;
    }

    fn asked(&self) -> MutexGuard<'_, HashMap<u64, Asked>> {
        // No code panics while it holds the lock.
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn refusal_message(error: &RawValue) -> String {
    #[derive(Deserialize)]
    struct Error {
        message: String,
    }
    let error = serde_json::from_str::<Error>(error.get());
    error.map_or_else(
        |_| "its host refused the connection".to_owned(),
        |error| error.message,
    )
}
