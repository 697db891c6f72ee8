//! `hello`: who the client says it is, what it gives up, and the token that proves it later.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use handover_protocol::{
    ActAs, ErrorCode, HelloParams, HelloResult, Hidden, PROTOCOL_VERSION, Refusal, SessionId,
    SpawnCaller,
};
use sha2::{Digest, Sha256};
use tokio::task::AbortHandle;

use crate::callers::Caller;

/// Longest client name that is kept, in characters.
const MAX_NAME: usize = 100;

/// What is known of a connection beyond the sender of each of its lines.
#[derive(Debug, Default)]
pub(super) struct Greeting {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    via: String,
    /// Given up for good: a later `hello` cannot take it back.
    as_agent: bool,
    /// SHA-256 of the token of the latest `hello`.
    token: Option<[u8; 32]>,
    /// Processes for which a person has confirmed, by pid and start.
    confirmed: HashSet<(u32, u64)>,
    subscription: Option<AbortHandle>,
}

impl Greeting {
    /// Takes note of a `hello`.
    ///
    /// # Errors
    /// `protocol_mismatch`.
    pub(super) fn hello(
        &self,
        session: SessionId,
        mut caller: Caller,
        params: HelloParams,
    ) -> Result<HelloResult, Refusal> {
        if params.protocol != PROTOCOL_VERSION {
            return Err(Refusal::new(
                ErrorCode::ProtocolMismatch,
                format!(
                    "this host speaks version {PROTOCOL_VERSION} of the protocol: use a client of the \
                     host's version, {}",
                    env!("CARGO_PKG_VERSION")
                ),
            )
            .with("protocol", PROTOCOL_VERSION));
        }
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|error| {
            Refusal::new(ErrorCode::Internal, format!("no random bytes: {error}"))
        })?;
        let token = hex::encode(bytes);
        let mut state = self.state();
        // It is shown to people, also within lines of text: it must not look like a line of its own.
        let name = params.client.chars().filter(|c| !c.is_control());
        state.via = name.take(MAX_NAME).collect();
        state.as_agent |= params.act_as == Some(ActAs::Agent);
        state.token = Some(hash(&token));
        drop(state);
        self.apply(&mut caller);
        Ok(HelloResult {
            protocol: PROTOCOL_VERSION,
            session_id: session,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            caller: caller.view(),
            caller_token: Hidden::new(token),
        })
    }

    /// Names the client, and takes from a caller what its client gave up.
    pub(super) fn apply(&self, caller: &mut Caller) {
        let state = self.state();
        caller.via.clone_from(&state.via);
        if state.as_agent {
            caller.give_up_power();
        }
    }

    /// Checks the `caller` of a `spawn` against this connection's `hello`.
    ///
    /// # Errors
    /// `caller_refused`.
    pub(super) fn check_spawner(&self, spawner: Option<&SpawnCaller>) -> Result<(), Refusal> {
        if let (Some(spawner), Some(known)) = (spawner, self.state().token) {
            let right = known == hash(spawner.token.expose());
            if right && !spawner.name.trim().is_empty() {
                return Ok(());
            }
        }
        Err(Refusal::new(
            ErrorCode::CallerRefused,
            "`caller` needs a name, and as token the `callerToken` that this connection's `hello` \
             was answered with",
        ))
    }

    pub(super) fn is_confirmed(&self, caller: &Caller) -> bool {
        self.state()
            .confirmed
            .contains(&(caller.pid, caller.start_ticks))
    }

    pub(super) fn confirmed(&self, caller: &Caller) {
        self.state()
            .confirmed
            .insert((caller.pid, caller.start_ticks));
    }

    /// Keeps the connection's one subscription; an earlier one ends.
    pub(super) fn subscribed(&self, subscription: AbortHandle) {
        if let Some(earlier) = self.state().subscription.replace(subscription) {
            earlier.abort();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it holds this lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Comparing hashes takes the same time however much of a guessed token is right.
fn hash(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}
