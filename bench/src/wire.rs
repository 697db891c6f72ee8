//! A blocking connection to a host, over the client that every program uses.

use std::{path::Path, time::Duration};

use handover_protocol::{
    Hidden, Method,
    client::{CONNECT_TIMEOUT, Client, ClientError, Notifications},
};
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};

use crate::Outcome;

/// How long an answer may take: longer than anything measured here.
const ANSWER: Duration = Duration::from_secs(15);

/// One connection, with a runtime of its own so that it can be used from any one thread.
pub struct Wire {
    client: Client,
    /// Kept so that notifications are not a closed channel to the client; nothing is read from it, and
    /// far fewer arrive than it holds.
    _notifications: Notifications,
    /// What a `spawn` has to show.
    token: Hidden,
    runtime: Runtime,
}

impl Wire {
    /// Connects and says hello.
    pub fn connect(socket: &Path) -> Outcome<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (client, notifications, hello) = runtime.block_on(async {
            let (client, notifications) = Client::connect(socket, CONNECT_TIMEOUT).await?;
            let hello = client.hello("bench", None).await?;
            Ok::<_, ClientError>((client, notifications, hello))
        })?;
        Ok(Self {
            client,
            _notifications: notifications,
            token: hello.caller_token,
            runtime,
        })
    }

    /// Starts an agent, whose name it answers.
    pub fn spawn(&self, driver: &str, prompt: &str, args: &[&str]) -> Outcome<String> {
        let caller = json!({"name": "bench", "token": self.token.expose()});
        let params = json!({"driver": driver, "prompt": prompt, "args": args, "caller": caller});
        let spawned = self.call(Method::Spawn, params)?;
        let id = spawned["id"].as_str().ok_or("`spawn` named no agent")?;
        Ok(id.to_owned())
    }

    /// Calls a method and waits for its answer.
    pub fn call(&self, method: Method, params: Value) -> Result<Value, ClientError> {
        self.runtime
            .block_on(self.client.call_value(method, &params, Some(ANSWER)))
    }
}
