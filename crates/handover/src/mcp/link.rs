//! The connection to the host, which comes and goes while the server stays.
//!
//! It is made at the first call, so that an agent's program may start before the session does, and
//! made again after the host went away. Once it has spoken to a session it only ever returns to
//! that one. Every step has a deadline: a call gets an answer or a refusal, whatever the host does.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use handover_protocol::client::{CONNECT_TIMEOUT, Client, ClientError};
use handover_protocol::{
    ActAs, AgentId, ErrorCode, HelloResult, Method, Refusal, SessionId, SpawnCaller,
};
use serde_json::Value;
use tokio::sync::Mutex;

/// Longest time until a connection is there, waiting for other calls that connect included.
const CONNECTION_TIME: Duration = Duration::from_secs(15);

/// How the server introduces itself.
const CLIENT: &str = "mcp";

/// Finds the attach socket: of that session, or of the one that the command line means.
type Locate = dyn Fn(Option<&SessionId>) -> Result<PathBuf, Refusal> + Send + Sync;

/// A connection that is made when it is needed. Clones share it.
#[derive(Clone)]
pub(super) struct Link {
    locate: Arc<Locate>,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    connection: Option<Connection>,
    /// The session that was spoken to first.
    session: Option<SessionId>,
}

/// A connection, and what the host said in greeting.
#[derive(Clone)]
struct Connection {
    client: Client,
    greeting: Arc<HelloResult>,
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").finish_non_exhaustive()
    }
}

impl Link {
    /// A link that finds the host's socket with `locate`, given the session to return to, if any.
    pub(super) fn new(
        locate: impl Fn(Option<&SessionId>) -> Result<PathBuf, Refusal> + Send + Sync + 'static,
    ) -> Self {
        Self {
            locate: Arc::new(locate),
            state: Arc::default(),
        }
    }

    /// Calls a method of the host, which may take `within` to answer.
    ///
    /// # Errors
    /// The host's refusal; `session_unknown` when there is no host yet; `desktop_gone` when it went
    /// away; `timeout` when it does not answer.
    pub(super) async fn call(
        &self,
        method: Method,
        params: Value,
        within: Duration,
    ) -> Result<Value, Refusal> {
        let connection = self.connected().await?;
        Self::ask(&connection, method, params, within).await
    }

    /// Starts an agent. The parameters get what proves who asks, and the agent that it works for: the
    /// one whose server this is, if the host knows it.
    ///
    /// # Errors
    /// As [`Self::call`].
    pub(super) async fn spawn(
        &self,
        mut params: Value,
        within: Duration,
    ) -> Result<Value, Refusal> {
        let connection = self.connected().await?;
        let greeting = &connection.greeting;
        let caller = SpawnCaller {
            name: CLIENT.to_owned(),
            token: greeting.caller_token.clone(),
        };
        params["caller"] = serde_json::to_value(caller)
            .map_err(|_| Refusal::new(ErrorCode::Internal, "the caller cannot be passed on"))?;
        if let Some(agent) = &greeting.caller.agent {
            params["parent"] = agent.as_str().into();
        }
        Self::ask(&connection, Method::Spawn, params, within).await
    }

    /// The agent that the host takes this server for.
    ///
    /// # Errors
    /// As [`Self::call`].
    pub(super) async fn own_agent(&self) -> Result<Option<AgentId>, Refusal> {
        let connection = self.connected().await?;
        Ok(connection.greeting.caller.agent.clone())
    }

    async fn connected(&self) -> Result<Connection, Refusal> {
        tokio::time::timeout(CONNECTION_TIME, self.connection())
            .await
            .map_err(|_| Refusal::new(ErrorCode::Timeout, "the session's host does not answer"))?
    }

    async fn ask(
        connection: &Connection,
        method: Method,
        params: Value,
        within: Duration,
    ) -> Result<Value, Refusal> {
        let client = &connection.client;
        match client.call_value(method, &params, Some(within)).await {
            Ok(result) => Ok(result),
            Err(ClientError::Closed) => Err(Refusal::new(
                ErrorCode::DesktopGone,
                "the session's host ended before it answered; what was asked for may or may not \
                 have happened",
            )),
            Err(error) => Err(error.into()),
        }
    }

    /// The connection that there is, or a new one.
    async fn connection(&self) -> Result<Connection, Refusal> {
        let mut state = self.state.lock().await;
        let open = |connection: &&Connection| !connection.client.is_closed();
        if let Some(connection) = state.connection.as_ref().filter(open) {
            return Ok(connection.clone());
        }
        state.connection = None;
        let path = (self.locate)(state.session.as_ref()).map_err(|r| gone(r, &state))?;
        // Notifications are of no interest here; without a reader they are dropped.
        let (client, _) = Client::connect(&path, CONNECT_TIMEOUT)
            .await
            .map_err(|error| gone(error.into(), &state))?;
        let greeting = client.hello(CLIENT, Some(ActAs::Agent)).await;
        let greeting = greeting.map_err(|error| gone(error.into(), &state))?;
        if state
            .session
            .as_ref()
            .is_some_and(|session| *session != greeting.session_id)
        {
            return Err(Refusal::new(
                ErrorCode::DesktopGone,
                "the session has ended, and another one answers in its place",
            ));
        }
        state.session = Some(greeting.session_id.clone());
        let connection = Connection {
            client,
            greeting: Arc::new(greeting),
        };
        state.connection = Some(connection.clone());
        Ok(connection)
    }
}

/// A session that cannot be reached is gone if it was there before.
fn gone(refusal: Refusal, state: &State) -> Refusal {
    match &state.session {
        Some(session) if refusal.code == ErrorCode::SessionUnknown => Refusal::new(
            ErrorCode::DesktopGone,
            format!("the host of session {session} is not running, and its desktop with it"),
        )
        .with("session", session),
        _ => refusal,
    }
}
