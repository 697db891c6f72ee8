//! The relay's connection to the host, made when a call needs it and made again when the host is back.
//!
//! It greets as an agent, whoever started the relay. Once it has spoken to a session it only ever returns
//! to that one. Every failure refuses the call that asked: without the host nothing acts.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use handover_protocol::client::{CONNECT_TIMEOUT, Client, ClientError, Notifications};
use handover_protocol::{
    ActAs, ControlCompleteParams, ControlCompleteResult, ControlPermitParams, ControlPermitResult,
    ControlStatusParams, ControlStatusResult, DesktopId, ErrorCode, Interrupt, Method, Phase,
    RELAYED, Refusal, SessionId,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::{Mutex, mpsc};

use super::call::Permit;

/// How the relay introduces itself.
const CLIENT: &str = "relay";

/// How long the host may take to answer. The gate gives up a permit before that, and gives back one that
/// comes later.
const ANSWER: Duration = Duration::from_secs(10);

/// The longest part of a tool's name that the host is told, in bytes.
const MAX_TOOL: usize = 200;

/// Finds the attach socket: of that session, or of the one that the command line means.
pub(super) type Locate = dyn Fn(Option<&SessionId>) -> Result<PathBuf, Refusal> + Send + Sync;

/// What the host says unasked.
#[derive(Debug)]
pub(super) enum News {
    /// A person asks for control.
    Interrupt(Permit),
    /// The connection has ended.
    Gone,
}

/// See the module. Clones share the connection.
#[derive(Clone)]
pub(super) struct Link {
    locate: Arc<Locate>,
    desktop: Option<DesktopId>,
    /// The pid of the keeper of the relayed server.
    keeper: u32,
    news: mpsc::UnboundedSender<News>,
    state: Arc<Mutex<State>>,
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
            state,
        };
        (link, arriving)
    }

    /// A permit to call `tool`. Its arguments stay here.
    ///
    /// # Errors
    /// The host's refusal, or why there is no host.
    pub(super) async fn permit(&self, tool: &str) -> Result<Permit, Refusal> {
        let (link, client) = self.connected().await?;
        let params = ControlPermitParams {
            desktop: self.desktop.clone(),
            what: format!("{RELAYED}{}", beginning(tool)),
            keeper: Some(self.keeper),
        };
        let given: ControlPermitResult = call(&client, Method::ControlPermit, &params).await?;
        Ok(Permit {
            link,
            name: given.permit,
        })
    }

    /// Gives a permit back, if the connection that it was given on is still there.
    pub(super) async fn complete(&self, permit: Permit) {
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
        let done: Result<ControlCompleteResult, _> =
            call(&client, Method::ControlComplete, &params).await;
        if let Err(refusal) = done {
            tracing::debug!(%refusal, "a permit cannot be given back");
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

    /// Whether a person waits for control. If the host cannot say, nobody is known to.
    pub(super) async fn draining(&self) -> bool {
        let status = self.status().await;
        status.is_ok_and(|status| status.phase == Phase::Draining)
    }

    async fn status(&self) -> Result<ControlStatusResult, Refusal> {
        let (_, client) = self.connected().await?;
        let params = ControlStatusParams {
            desktop: self.desktop.clone(),
        };
        call(&client, Method::ControlStatus, &params).await
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
) -> Result<R, Refusal> {
    client
        .call(method, params, Some(ANSWER))
        .await
        .map_err(|error| match error {
            ClientError::Closed => Refusal::new(
                ErrorCode::SessionUnknown,
                "the session's host has ended, so nothing may act",
            ),
            error => error.into(),
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
    let _ = news.send(News::Gone);
}

/// Not more of a tool's name than the host takes.
fn beginning(tool: &str) -> &str {
    let mut end = tool.len().min(MAX_TOOL);
    while !tool.is_char_boundary(end) {
        end -= 1;
    }
    &tool[..end]
}
