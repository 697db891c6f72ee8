//! The server: a thread of its own with a listener on loopback.

use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::header::CONTENT_TYPE;
use hyper::service::service_fn;
use hyper::{Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};

use crate::api::Api;
use crate::body::ReplyBody;
use crate::log::Log;
use crate::reply::{Part, Refusal, Reply};
use crate::request::{Outcome, Request};
use crate::route::{Route, route};
use crate::script::Book;

/// The longest request taken, in bytes.
const LONGEST: usize = 32 * 1024 * 1024;

/// A model server on loopback. Ends, with all its connections, when dropped.
#[derive(Debug)]
pub struct ModelServer {
    port: u16,
    log: Log,
    book: Book,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl ModelServer {
    /// Starts a server on a free port of 127.0.0.1. Blocks nothing, so async tests may do so too.
    ///
    /// # Panics
    /// When the machine gives it no port or no thread.
    pub fn start() -> Self {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        listener.set_nonblocking(true).expect("a socket");
        let port = listener.local_addr().expect("its address").port();
        let (stop, stopped) = oneshot::channel();
        let (log, book) = (Log::default(), Book::default());
        let desk = Desk {
            log: log.clone(),
            book: book.clone(),
        };
        // A runtime of its own: the test may have none, or block the one that it has.
        let thread = thread::Builder::new()
            .name("model".to_owned())
            .spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build()
                    .expect("a runtime");
                runtime.block_on(async {
                    let listener = TcpListener::from_std(listener).expect("a socket");
                    tokio::select! {
                        () = serve(&listener, &desk) => {}
                        _ = stopped => {}
                    }
                });
            })
            .expect("a thread");
        Self {
            port,
            log,
            book,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    /// Its address, without a path: `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Adds replies for the conversation in which the user says `marker`, one for each request in turn.
    /// After the last, and where there is no script, a reply repeats the user's last words.
    pub fn script(&self, marker: &str, replies: impl IntoIterator<Item = Reply>) {
        self.book.script(marker, replies);
    }

    /// Adds a rule, which may reply to any request by looking at it. Rules come before scripts.
    pub fn rule(&self, rule: impl Fn(&Request) -> Option<Reply> + Send + Sync + 'static) {
        self.book.rule(Box::new(rule));
    }

    /// All requests so far, in order of arrival.
    pub fn requests(&self) -> Vec<Request> {
        self.log.all()
    }

    /// Whether a step of an agent's work was asked for with `text` in it.
    pub fn saw(&self, text: &str) -> bool {
        self.log
            .any(|request| request.is_turn() && request.holds(text))
    }

    /// Whether a request that held `text` got a whole reply.
    pub fn answered(&self, text: &str) -> bool {
        self.log.any(|request| answered(request, text))
    }

    /// Waits until the model sees `text`; whether it did within `bound`.
    pub fn sees(&self, text: &str, bound: Duration) -> bool {
        let seen = |request: &Request| request.is_turn() && request.holds(text);
        self.log.wait(seen, bound).is_some()
    }

    /// Waits until a request that held `text` got a whole reply; whether one did within `bound`.
    pub fn answers(&self, text: &str, bound: Duration) -> bool {
        self.log
            .wait(|request| answered(request, text), bound)
            .is_some()
    }

    /// The first request that satisfies `wanted`, now or within `bound`.
    pub fn await_request(
        &self,
        wanted: impl FnMut(&Request) -> bool,
        bound: Duration,
    ) -> Option<Request> {
        self.log.wait(wanted, bound)
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            // It may have ended by itself.
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn answered(request: &Request, text: &str) -> bool {
    request.is_turn() && request.outcome == Outcome::Whole && request.holds(text)
}

/// What every connection needs.
#[derive(Clone)]
struct Desk {
    log: Log,
    book: Book,
}

async fn serve(listener: &TcpListener, desk: &Desk) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Out of descriptors: the next attempt may find some.
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        let desk = desk.clone();
        tokio::spawn(async move {
            let service = service_fn(move |request| {
                let desk = desk.clone();
                async move { Ok::<_, Infallible>(handle(&desk, request).await) }
            });
            // A program may close its connection whenever it likes.
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

async fn handle(desk: &Desk, request: hyper::Request<Incoming>) -> Response<ReplyBody> {
    let (head, body) = request.into_parts();
    let line = format!("{} {}", head.method, head.uri);
    let route = route(&head.method, head.uri.path());
    let body = Limited::new(body, LONGEST).collect().await;
    let body = body.map(|body| body.to_bytes()).unwrap_or_default();
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let api = match route {
        Route::Model { api, .. } => Some(api),
        Route::Aside(_) | Route::Unknown => None,
    };
    let (messages, tools) = api.map(|api| api.read(&body)).unwrap_or_default();
    let (request, entry) = desk.log.add(Request {
        number: 0,
        at: Instant::now(),
        line,
        api,
        body,
        messages,
        tools,
        outcome: Outcome::Open,
    });
    let (api, stream) = match route {
        Route::Model { api, stream } => {
            let stream = stream.unwrap_or_else(|| request.body["stream"] == true);
            (api, stream)
        }
        Route::Aside(answer) => {
            let body = ReplyBody::whole(answer.to_string(), entry, Outcome::Whole);
            return answer_with(StatusCode::OK, JSON, body);
        }
        Route::Unknown => {
            let refusal = Refusal {
                status: 404,
                message: "this server knows no such path".to_owned(),
            };
            return refuse(&refusal, |text| {
                ReplyBody::whole(text, entry, Outcome::Refused)
            });
        }
    };
    let parts = match desk.book.reply(&request).parts(&request) {
        Ok(parts) => parts,
        Err(refusal) => {
            return refuse(&refusal, |text| {
                ReplyBody::whole(text, entry, Outcome::Refused)
            });
        }
    };
    if stream {
        let (sender, chunks) = mpsc::channel(1);
        tokio::spawn(write(api, request, parts, sender));
        let body = ReplyBody::new(chunks, entry, Outcome::Whole);
        return answer_with(StatusCode::OK, "text/event-stream", body);
    }
    for part in &parts {
        if let Part::Hold(hold) = part {
            hold.pass().await;
        }
    }
    let text = api.whole(&request, &parts).to_string();
    answer_with(
        StatusCode::OK,
        JSON,
        ReplyBody::whole(text, entry, Outcome::Whole),
    )
}

/// Writes a streamed reply, chunk by chunk, until the program has closed its connection.
async fn write(api: Api, request: Request, parts: Vec<Part>, sender: mpsc::Sender<Bytes>) {
    let mut stream = api.stream(&request);
    let mut chunk = stream.begin();
    for part in parts {
        match part {
            Part::Text(text) => chunk.push_str(&stream.text(&text)),
            Part::Call { name, arguments } => chunk.push_str(&stream.call(&name, &arguments)),
            Part::Hold(hold) => {
                if sender
                    .send(std::mem::take(&mut chunk).into())
                    .await
                    .is_err()
                {
                    return;
                }
                tokio::select! {
                    () = hold.pass() => {}
                    () = sender.closed() => return,
                }
                continue;
            }
        }
        if sender
            .send(std::mem::take(&mut chunk).into())
            .await
            .is_err()
        {
            return;
        }
    }
    // When this fails the body has noted it already.
    let _ = sender.send((chunk + &stream.end()).into()).await;
}

const JSON: &str = "application/json";

fn refuse(refusal: &Refusal, body: impl FnOnce(String) -> ReplyBody) -> Response<ReplyBody> {
    let status = StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    // All families look for `error.message`; one wants a type beside it.
    let error = json!({"type": "error", "error": {
        "type": "api_error", "message": refusal.message, "code": refusal.status,
    }});
    answer_with(status, JSON, body(error.to_string()))
}

fn answer_with(status: StatusCode, kind: &'static str, body: ReplyBody) -> Response<ReplyBody> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let kind = hyper::header::HeaderValue::from_static(kind);
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}
