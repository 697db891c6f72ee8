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
use handover_protocol::{ActAs, ErrorCode, Method, Refusal, SessionId};
use serde_json::Value;
use tokio::sync::Mutex;

/// Longest time until a connection is there, waiting for other calls that connect included.
const CONNECTION_TIME: Duration = Duration::from_secs(15);

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
    client: Option<Client>,
    /// The session that was spoken to first.
    session: Option<SessionId>,
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
        let client = tokio::time::timeout(CONNECTION_TIME, self.client())
            .await
            .map_err(|_| {
                Refusal::new(ErrorCode::Timeout, "the session's host does not answer")
            })??;
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
    async fn client(&self) -> Result<Client, Refusal> {
        let mut state = self.state.lock().await;
        if let Some(client) = state.client.as_ref().filter(|client| !client.is_closed()) {
            return Ok(client.clone());
        }
        state.client = None;
        let path = (self.locate)(state.session.as_ref()).map_err(|r| gone(r, &state))?;
        // Notifications are of no interest here; without a reader they are dropped.
        let (client, _) = Client::connect(&path, CONNECT_TIMEOUT)
            .await
            .map_err(|error| gone(error.into(), &state))?;
        let greeting = client.hello("mcp", Some(ActAs::Agent)).await;
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
        state.session = Some(greeting.session_id);
        state.client = Some(client.clone());
        Ok(client)
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
