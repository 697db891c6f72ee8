//! The relay's connection to the host, made when a call needs it and made again when the host is back.
//!
//! It greets as an agent, whoever started the relay. Once it has spoken to a session it only ever returns
//! to that one. Every failure refuses the call that asked: without the host nothing acts.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use handover_protocol::client::{CONNECT_TIMEOUT, Client, ClientError, Notifications};
use handover_protocol::{
    ActAs, Control, ControlCompleteParams, ControlCompleteResult, ControlPermitParams,
    ControlPermitResult, ControlStatusParams, ControlStatusResult, DesktopId, ErrorCode, Interrupt,
    Method, Phase, RELAYED, Refusal, SessionId,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::{Mutex, Semaphore, mpsc};
use tokio::time::sleep;

use super::call::Permit;
use crate::which;

/// How the relay introduces itself.
const CLIENT: &str = "relay";

/// How long the host may take to answer anything but the question for a permit. Such a question is waited for as
/// long as the connection lasts: the gate gives it up, and gives back a permit that comes after all.
const ANSWER: Duration = Duration::from_secs(10);

/// Most questions for a permit that the host has not answered.
const MAX_ASKED: usize = 10_000;

/// Permits that are asked for at once, and given back at once. The host refuses what is more than 256 calls of
/// one connection, and a permit whose return it has refused would hold up every takeover.
const ASKED_AT_ONCE: usize = 128;
const GIVEN_BACK_AT_ONCE: usize = 64;

/// When a permit is given back again that the host had no room to take.
const AGAIN: Duration = Duration::from_millis(20);

/// The longest part of a tool's name that the host is told, in bytes.
const MAX_TOOL: usize = 200;

/// Finds the attach socket: of that session, or of the one that the command line means.
pub(super) type Locate = dyn Fn(Option<&SessionId>) -> Result<PathBuf, Refusal> + Send + Sync;

/// What the host says unasked.
#[derive(Debug)]
pub(super) enum News {
    /// A person asks for control.
    Interrupt(Permit),
    /// This connection has ended.
    Gone(u64),
}

/// See the module. Clones share the connection.
#[derive(Clone)]
pub(super) struct Link {
    locate: Arc<Locate>,
    desktop: Option<DesktopId>,
    /// The pid of the keeper of the relayed server.
    keeper: u32,
    news: mpsc::UnboundedSender<News>,
    /// For questions for permits.
    places: Arc<Semaphore>,
    state: Arc<Mutex<State>>,
    /// Whose turn it is. Neither is ever closed.
    asking: Arc<Semaphore>,
    giving_back: Arc<Semaphore>,
}

#[derive(Default)]
struct State {
    client: Option<Client>,
    /// How many connections there were.
    count: u64,
    /// The session that was spoken to first.
    session: Option<SessionId>,
}

impl Link {
    /// A link for calls on `desktop` by what is below `keeper`, and where its news arrive.
    pub(super) fn new(
        locate: Arc<Locate>,
        desktop: Option<DesktopId>,
        keeper: u32,
    ) -> (Self, mpsc::UnboundedReceiver<News>) {
        let (news, arriving) = mpsc::unbounded_channel();
        let state = Arc::default();
        let link = Self {
            locate,
            desktop,
            keeper,
            news,
            places: Arc::new(Semaphore::new(MAX_ASKED)),
            state,
            asking: Arc::new(Semaphore::new(ASKED_AT_ONCE)),
            giving_back: Arc::new(Semaphore::new(GIVEN_BACK_AT_ONCE)),
        };
        (link, arriving)
    }

    /// Its calls are by what is below another keeper from now on. Clones that were made before go on as they are.
    pub(super) fn is_for(&mut self, keeper: u32) {
        self.keeper = keeper;
    }

    /// A permit to call `tool`. Its arguments stay here.
    ///
    /// # Errors
    /// The host's refusal, or why there is no host.
    pub(super) async fn permit(&self, tool: &str) -> Result<Permit, Refusal> {
        let Ok(_place) = self.places.try_acquire() else {
            return Err(Refusal::new(
                ErrorCode::Timeout,
                "the session's host does not answer, so nothing may act",
            ));
        };
        let _turn = self.asking.acquire().await;
        let (link, client) = self.connected().await?;
        let params = ControlPermitParams {
            desktop: self.desktop.clone(),
            what: format!("{RELAYED}{}", beginning(tool)),
            keeper: Some(self.keeper),
        };
        let given: ControlPermitResult =
            call(&client, Method::ControlPermit, &params, None).await?;
        Ok(Permit {
            link,
            name: given.permit,
        })
    }

    /// Lets the host keep in the record that the call of `tool` was not made.
    pub(super) async fn record_refusal(&self, tool: &str) {
        // It refuses, and records what it refuses. If control has come back meanwhile, nothing is done with it.
        if let Ok(permit) = self.permit(tool).await {
            self.complete(permit).await;
        }
    }

    /// Gives a permit back, if the connection that it was given on is still there.
    pub(super) async fn complete(&self, permit: Permit) {
        let _turn = self.giving_back.acquire().await;
        let client = {
            let state = self.state.lock().await;
            state.client.clone().filter(|_| state.count == permit.link)
        };
        let Some(client) = client else {
            return;
        };
        let params = ControlCompleteParams {
            desktop: self.desktop.clone(),
            permit: permit.name,
        };
        loop {
            let done: Result<ControlCompleteResult, _> =
                call(&client, Method::ControlComplete, &params, None).await;
            match done {
                Err(refusal) if refusal.code == ErrorCode::QueueFull => sleep(AGAIN).await,
                Err(refusal) => {
                    tracing::debug!(%refusal, "a permit cannot be given back");
                    return;
                }
                Ok(_) => return,
            }
        }
    }

    /// Whether the desktop may be looked at now.
    ///
    /// # Errors
    /// `private` if the person in control asked not to be watched, or why that is not known.
    pub(super) async fn watched(&self) -> Result<(), Refusal> {
        let lease = self.status().await?.lease;
        match lease.filter(|lease| lease.private) {
            None => Ok(()),
            Some(lease) => Err(Refusal::new(
                ErrorCode::Private,
                format!(
                    "{} has control and asked not to be watched; wait for the hand-back",
                    lease.holder
                ),
            )
            .with("lease", lease)),
        }
    }

    /// Whether a person waits for control, or has paused the desktop. If the host cannot say, nobody is known to.
    pub(super) async fn draining(&self) -> bool {
        let status = self.status().await;
        status.is_ok_and(|status| {
            status.phase == Phase::Draining || status.control == Control::Paused
        })
    }

    async fn status(&self) -> Result<ControlStatusResult, Refusal> {
        let (_, client) = self.connected().await?;
        let params = ControlStatusParams {
            desktop: self.desktop.clone(),
        };
        call(&client, Method::ControlStatus, &params, Some(ANSWER)).await
    }

    async fn connected(&self) -> Result<(u64, Client), Refusal> {
        let mut state = self.state.lock().await;
        if let Some(client) = state.client.as_ref().filter(|client| !client.is_closed()) {
            return Ok((state.count, client.clone()));
        }
        state.client = None;
        let path = (self.locate)(state.session.as_ref())?;
        let (client, notifications) = Client::connect(&path, CONNECT_TIMEOUT).await?;
        let greeting = client.hello(CLIENT, Some(ActAs::Agent)).await?;
        let session = state.session.get_or_insert(greeting.session_id.clone());
        if *session != greeting.session_id {
            return Err(Refusal::new(
                ErrorCode::SessionUnknown,
                format!("session {session} has ended, and another one answers in its place"),
            ));
        }
        state.count += 1;
        state.client = Some(client.clone());
        tokio::spawn(listen(notifications, state.count, self.news.clone()));
        Ok((state.count, client))
    }
}

async fn call<P: Serialize, R: DeserializeOwned>(
    client: &Client,
    method: Method,
    params: &P,
    within: Option<Duration>,
) -> Result<R, Refusal> {
    client
        .call(method, params, within)
        .await
        .map_err(|error| match error {
            ClientError::Closed => Refusal::new(
                ErrorCode::SessionUnknown,
                "the session's host has ended, so nothing may act",
            ),
            error => which::desktop(error.into(), || {
                Some("start the relay with `--desktop D`".to_owned())
            }),
        })
}

async fn listen(mut said: Notifications, link: u64, news: mpsc::UnboundedSender<News>) {
    while let Some(notification) = said.recv().await {
        if notification.method != "interrupt" {
            continue;
        }
        let Ok(Interrupt { permit: name }) = serde_json::from_value(notification.params) else {
            continue;
        };
        // Nobody listens when the relay is about to end.
        let _ = news.send(News::Interrupt(Permit { link, name }));
    }
    let _ = news.send(News::Gone(link));
}

/// Not more of a tool's name than the host takes.
fn beginning(tool: &str) -> &str {
    let mut end = tool.len().min(MAX_TOOL);
    while !tool.is_char_boundary(end) {
        end -= 1;
    }
    &tool[..end]
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
    use tokio::net::UnixListener;
    use tokio::time::{sleep, timeout};

    use super::*;

    /// A host that was stopped still gives the permit that it was asked for. It must be given back, so it must
    /// arrive.
    #[tokio::test(start_paused = true)]
    async fn a_permit_that_comes_very_late_arrives() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("attach.sock");
        let listener = UnixListener::bind(&path).unwrap();
        tokio::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let (read, mut write) = stream.into_split();
            let mut lines = BufReader::new(read).lines();
            while let Some(line) = lines.next_line().await.unwrap() {
                let asked: Value = serde_json::from_str(&line).unwrap();
                let result = if asked["method"] == "hello" {
                    json!({
                        "protocol": 1, "sessionId": "s", "version": "0", "callerToken": "t",
                        "caller": {"kind": "agent", "pid": 1, "uid": 1},
                    })
                } else {
                    sleep(ANSWER * 100).await;
                    json!({"permit": "p1", "epoch": 1})
                };
                let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": result});
                let line = format!("{answer}\n");
                write.write_all(line.as_bytes()).await.unwrap();
            }
        });
        let (link, _news) = Link::new(Arc::new(move |_| Ok(path.clone())), None, 1);
        let other = link.clone();
        let asking = tokio::spawn(async move { other.permit("act").await });
        let early = timeout(ANSWER * 2, link.permit("act")).await;
        assert!(early.is_err(), "{early:?}");
        let permit = asking.await.unwrap().unwrap();
        assert_eq!((permit.link, permit.name.as_str()), (1, "p1"));
    }

    #[tokio::test]
    async fn there_is_an_end_to_what_is_asked() {
        let (link, _news) = Link::new(Arc::new(|_| Ok(PathBuf::from("/nowhere"))), None, 1);
        let all = u32::try_from(MAX_ASKED).unwrap();
        let _places = link.places.acquire_many(all).await.unwrap();
        assert_eq!(
            link.permit("act").await.unwrap_err().code,
            ErrorCode::Timeout
        );
    }
}
