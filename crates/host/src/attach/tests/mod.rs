//! The server over a real socket, with a session that only notes what it is asked.

mod agents;
mod calls;
mod clients;
mod fake;
mod people;
mod record;
mod requests;

use std::sync::Arc;
use std::time::Duration;

use handover_protocol::Method;
use handover_store::{Mode, Options, Store};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

use super::{ConnectionLimits, Outlets, Parts, Server};
use crate::requests::Requests;
use crate::system::socket::bind_private;
use fake::FakeSession;

/// Longer than anything here takes, so that a fault is a failure and not a hang.
const PATIENCE: Duration = Duration::from_secs(60);

/// Fewer connections than usual, so that a test can take all of them.
fn limits() -> ConnectionLimits {
    ConnectionLimits::within(512)
}

/// A server with its session and record.
struct Harness {
    dir: tempfile::TempDir,
    session: Arc<FakeSession>,
    store: Store,
    requests: Arc<Requests>,
    outlets: Outlets,
    server: Option<Server>,
}

impl Harness {
    async fn start() -> Self {
        Self::with(Options::new(Mode::Create)).await
    }

    async fn with(options: Options) -> Self {
        Self::within(options, limits()).await
    }

    async fn within(options: Options, limits: ConnectionLimits) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), options).unwrap();
        let requests = Arc::new(Requests::open(store.clone()).await.unwrap());
        let session = Arc::new(FakeSession::new());
        let outlets = Outlets::new();
        let listener = bind_private(&dir.path().join("attach.sock")).unwrap();
        let parts = Parts {
            session: Arc::clone(&session),
            store: store.clone(),
            requests: Arc::clone(&requests),
            outlets: outlets.clone(),
            limits,
        };
        let server = Some(Server::start(listener, parts).unwrap());
        Self {
            dir,
            session,
            store,
            requests,
            outlets,
            server,
        }
    }

    async fn connect(&self) -> Client {
        let stream = UnixStream::connect(self.dir.path().join("attach.sock"))
            .await
            .unwrap();
        let (reader, writer) = stream.into_split();
        Client {
            reader: BufReader::new(reader),
            writer,
            next: 0,
        }
    }

    /// Everything in the record, once all that was done before is in it.
    async fn events(&self) -> Vec<serde_json::Map<String, Value>> {
        self.store.put("settled", true).await.unwrap();
        let page = self
            .store
            .events(handover_store::Query::default())
            .await
            .unwrap();
        page.events
            .iter()
            .map(handover_store::Event::to_map)
            .collect()
    }
}

/// A client that speaks lines.
struct Client {
    reader: BufReader<OwnedReadHalf>,
    writer: OwnedWriteHalf,
    next: u64,
}

impl Client {
    async fn write(&mut self, text: &str) {
        self.writer.write_all(text.as_bytes()).await.unwrap();
    }

    /// Sends a request and returns its id.
    async fn send(&mut self, method: &str, params: Value) -> u64 {
        self.next += 1;
        let line = json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params});
        self.write(&format!("{line}\n")).await;
        self.next
    }

    /// The next line, or `None` at the end of the stream.
    async fn line(&mut self) -> Option<Value> {
        let mut line = String::new();
        let read = tokio::time::timeout(PATIENCE, self.reader.read_line(&mut line));
        // A reset is an end as well.
        let count = read.await.expect("the server answers").unwrap_or(0);
        (count > 0).then(|| serde_json::from_str(&line).unwrap())
    }

    /// The answer to a request; what comes before it is dropped.
    async fn answer(&mut self, id: u64) -> Value {
        loop {
            let line = self.line().await.expect("the connection stays open");
            if line["id"] == id {
                return line;
            }
        }
    }

    /// The result of a call, or its stable code.
    async fn call(&mut self, method: Method, params: Value) -> Result<Value, String> {
        let id = self.send(method.name(), params).await;
        outcome(&self.answer(id).await)
    }

    async fn hello(&mut self, params: Value) -> Result<Value, String> {
        let mut all = json!({"client": "test", "protocol": 1});
        all.as_object_mut()
            .unwrap()
            .extend(params.as_object().unwrap().clone());
        self.call(Method::Hello, all).await
    }
}

fn outcome(answer: &Value) -> Result<Value, String> {
    match answer.get("error") {
        None => Ok(answer["result"].clone()),
        Some(error) => Err(error["data"]["code"].as_str().unwrap().to_owned()),
    }
}

/// Waits for something that another task brings about.
async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    if tokio::time::timeout(PATIENCE, waiting).await.is_err() {
        panic!("waited in vain until {what}");
    }
}
