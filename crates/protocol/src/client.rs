//! A client of the attach socket.
//!
//! One task reads and one writes, so that a call that is given up never leaves half a line on the
//! socket. When the connection ends, every call that waits fails at once.
//!
//! ```no_run
//! # use handover_protocol::client::{ANSWER_TIMEOUT, CONNECT_TIMEOUT, Client, ClientError};
//! # use handover_protocol::{ListParams, ListResult, Method, SubscribeParams, SubscribeResult};
//! # async fn look(socket: &std::path::Path) -> Result<(), ClientError> {
//! let (client, mut news) = Client::connect(socket, CONNECT_TIMEOUT).await?;
//! client.hello("my-client/1.0", None).await?;
//! let list: ListResult = client
//!     .call(Method::List, &ListParams {}, Some(ANSWER_TIMEOUT))
//!     .await?;
//! println!("{} agents", list.agents.len());
//! let all = SubscribeParams::default();
//! let _: SubscribeResult = client
//!     .call(Method::Subscribe, &all, Some(ANSWER_TIMEOUT))
//!     .await?;
//! while let Some(said) = news.recv().await {
//!     println!("{}: {}", said.method, said.params);
//! }
//! # Ok(())
//! # }
//! ```

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;

use crate::codec::{Line, LineDecoder};
use crate::envelope::{Id, Incoming, request_line};
use crate::error::{ErrorCode, Refusal};
use crate::method::Method;
use crate::{ActAs, HelloParams, HelloResult, MAX_ANSWER, MAX_REQUEST, PROTOCOL_VERSION};

/// How long a connection may take to be accepted.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// How long an answer may take, unless the call is one that waits.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// Notifications that wait to be read; beyond, the host has to wait.
const NOTIFICATIONS: usize = 256;

/// Why a call came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// There is no host behind the socket.
    #[error("no host answers at {}: {source}", path.display())]
    Connect {
        /// The socket.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The connection ended before the answer, and the host did not say why.
    #[error("the connection to the host ended before its answer")]
    Closed,
    /// No answer came in time. What was asked for may still happen.
    #[error("the host did not answer {method} within {} ms", after.as_millis())]
    Timeout {
        /// The method.
        method: &'static str,
        /// The time given.
        after: Duration,
    },
    /// The host refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The request is longer than the protocol allows.
    #[error("the request is longer than {MAX_REQUEST} bytes; send less at once")]
    TooLong,
    /// The host's answer is not what this version expects.
    #[error("the host's answer to {method} is not understood; are both of the same version?")]
    BadAnswer {
        /// The method.
        method: &'static str,
    },
}

impl ClientError {
    /// The stable code.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Connect { .. } | Self::Closed => ErrorCode::SessionUnknown,
            Self::Timeout { .. } => ErrorCode::Timeout,
            Self::Refused(refusal) => refusal.code,
            Self::TooLong => ErrorCode::LineTooLong,
            Self::BadAnswer { .. } => ErrorCode::ProtocolMismatch,
        }
    }
}

impl From<ClientError> for Refusal {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Refused(refusal) => refusal,
            error => Refusal::new(error.code(), error.to_string()),
        }
    }
}

/// News from the host.
#[derive(Clone, Debug, PartialEq)]
pub struct Notification {
    /// Of what kind: `event`, `gap`, `interrupt`, `lease_warning`, `lease_request`,
    /// `lease_request_ended`, `lease_ended`.
    pub method: String,
    /// What is new.
    pub params: Value,
}

/// The notifications of one connection. Read them or drop this: unread ones hold up the answers.
pub type Notifications = mpsc::Receiver<Notification>;

type Answers = HashMap<u64, oneshot::Sender<Result<Value, Refusal>>>;

/// One connection to a host. Clones share it; it closes when the last of them is gone.
#[derive(Clone, Debug)]
pub struct Client {
    connection: Arc<Connection>,
}

#[derive(Debug)]
struct Connection {
    waiting: Arc<Waiting>,
    lines: mpsc::UnboundedSender<Vec<u8>>,
    next_id: AtomicU64,
    reader: AbortHandle,
    writer: AbortHandle,
}

/// The calls that wait for answers; once the connection has ended, how.
#[derive(Debug)]
struct Waiting(Mutex<Result<Answers, Ended>>);

/// How the connection has ended: with what the host said of the connection as a whole, if it did.
#[derive(Clone, Debug)]
struct Ended(Option<Refusal>);

impl From<Ended> for ClientError {
    fn from(Ended(refusal): Ended) -> Self {
        refusal.map_or(Self::Closed, Self::Refused)
    }
}

impl Waiting {
    fn lock(&self) -> MutexGuard<'_, Result<Answers, Ended>> {
        // No code panics while it holds the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why a call cannot be answered any more.
    fn why(&self) -> ClientError {
        match &*self.lock() {
            Err(ended) => ended.clone().into(),
            Ok(_) => ClientError::Closed,
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.reader.abort();
        self.writer.abort();
    }
}

/// Forgets a call that was given up.
struct Forget<'a>(&'a Waiting, u64);

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        if let Ok(answers) = self.0.lock().as_mut() {
            answers.remove(&self.1);
        }
    }
}

impl Client {
    /// Connects to the attach socket at `path` within `timeout`.
    pub async fn connect(
        path: &Path,
        timeout: Duration,
    ) -> Result<(Self, Notifications), ClientError> {
        let stream = match tokio::time::timeout(timeout, UnixStream::connect(path)).await {
            Ok(connected) => connected,
            Err(_) => Err(io::ErrorKind::TimedOut.into()),
        };
        let stream = stream.map_err(|source| ClientError::Connect {
            path: path.to_owned(),
            source,
        })?;
        Ok(Self::over(stream))
    }

    /// Speaks to the host at the other end of `stream`. Must be called within a tokio runtime.
    pub fn over(stream: UnixStream) -> (Self, Notifications) {
        let (read, write) = stream.into_split();
        let waiting = Arc::new(Waiting(Mutex::new(Ok(HashMap::new()))));
        let (lines, to_write) = mpsc::unbounded_channel();
        let (notify, notifications) = mpsc::channel(NOTIFICATIONS);
        let reader = tokio::spawn(read_all(read, Arc::clone(&waiting), notify)).abort_handle();
        let writer = tokio::spawn(write_all(write, to_write)).abort_handle();
        let next_id = AtomicU64::new(1);
        let connection = Connection {
            waiting,
            lines,
            next_id,
            reader,
            writer,
        };
        (
            Self {
                connection: Arc::new(connection),
            },
            notifications,
        )
    }

    /// Whether the connection has ended, so that every further call fails.
    pub fn is_closed(&self) -> bool {
        self.connection.waiting.lock().is_err()
    }

    /// Introduces the client, so that the record knows it; `act_as` gives up power.
    pub async fn hello(
        &self,
        client: &str,
        act_as: Option<ActAs>,
    ) -> Result<HelloResult, ClientError> {
        let params = HelloParams {
            client: client.to_owned(),
            protocol: PROTOCOL_VERSION,
            act_as,
        };
        self.call(Method::Hello, &params, Some(ANSWER_TIMEOUT))
            .await
    }

    /// Calls `method` and reads its result as `R`. Without `timeout` it waits until the
    /// connection ends.
    pub async fn call<P: Serialize, R: DeserializeOwned>(
        &self,
        method: Method,
        params: &P,
        timeout: Option<Duration>,
    ) -> Result<R, ClientError> {
        let value = self.call_value(method, params, timeout).await?;
        let method = method.name();
        serde_json::from_value(value).map_err(|_| ClientError::BadAnswer { method })
    }

    /// Calls `method` and leaves its result as it came.
    pub async fn call_value<P: Serialize>(
        &self,
        method: Method,
        params: &P,
        timeout: Option<Duration>,
    ) -> Result<Value, ClientError> {
        let connection = &*self.connection;
        let id = connection.next_id.fetch_add(1, Ordering::Relaxed);
        // Parameters are structs of this crate, all of which can be written as JSON.
        let line = request_line(&id.into(), method.name(), params).map_err(|_| {
            ClientError::BadAnswer {
                method: method.name(),
            }
        })?;
        if line.len() > MAX_REQUEST + 1 {
            return Err(ClientError::TooLong);
        }
        let (answer, answered) = oneshot::channel();
        match connection.waiting.lock().as_mut() {
            Ok(answers) => answers.insert(id, answer),
            Err(ended) => return Err(ended.clone().into()),
        };
        let _forget = Forget(&connection.waiting, id);
        connection
            .lines
            .send(line)
            .map_err(|_| connection.waiting.why())?;
        let answered = match timeout {
            None => answered.await,
            Some(after) => match tokio::time::timeout(after, answered).await {
                Ok(answered) => answered,
                Err(_) => {
                    return Err(ClientError::Timeout {
                        method: method.name(),
                        after,
                    });
                }
            },
        };
        Ok(answered.map_err(|_| connection.waiting.why())??)
    }
}

async fn write_all(mut socket: OwnedWriteHalf, mut lines: mpsc::UnboundedReceiver<Vec<u8>>) {
    while let Some(line) = lines.recv().await {
        if socket.write_all(&line).await.is_err() {
            // The reader sees the end too, and tells the callers.
            return;
        }
    }
}

async fn read_all(
    mut socket: OwnedReadHalf,
    waiting: Arc<Waiting>,
    notify: mpsc::Sender<Notification>,
) {
    let mut decoder = LineDecoder::new(MAX_ANSWER);
    let mut buffer = vec![0; 64 << 10];
    let mut refusal = None;
    'connection: while let Ok(length @ 1..) = socket.read(&mut buffer).await {
        decoder.push(&buffer[..length]);
        while let Some(line) = decoder.next_line() {
            let Line::Whole(line) = line else {
                break 'connection;
            };
            match Incoming::parse(&line) {
                Ok(Incoming::Answer {
                    id: Id::Number(id),
                    outcome,
                }) => {
                    let answer = id
                        .as_u64()
                        .and_then(|id| waiting.lock().as_mut().ok()?.remove(&id));
                    if let Some(answer) = answer {
                        // A caller that has just given up does not mind.
                        let _ = answer.send(outcome);
                    }
                }
                Ok(Incoming::Notification { method, params }) => {
                    // It fails if nobody wants to know.
                    let _ = notify.send(Notification { method, params }).await;
                }
                // Of the connection as a whole, such as that there is no room for it.
                Ok(Incoming::Answer {
                    id: Id::Null,
                    outcome: Err(said),
                }) => refusal = Some(said),
                // Nothing was asked under such an id; whoever waits runs into its timeout.
                Ok(Incoming::Answer { .. }) => {}
                Err(_) => break 'connection,
            }
        }
    }
    // Dropping the senders wakes every caller.
    *waiting.lock() = Err(Ended(refusal));
}

#[cfg(test)]
mod tests;
