//! A connection to the host of the chosen session.

use std::path::Path;
use std::time::Duration;

use handover_protocol::client::{CONNECT_TIMEOUT, Client, ClientError, Notifications};
use handover_protocol::{HelloResult, Method};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::context::Context;
use super::discover;
use super::failure::Failure;

/// How the command line introduces itself.
pub const CLIENT: &str = concat!("handover-cli/", env!("CARGO_PKG_VERSION"));

/// A connection to a host.
#[derive(Debug)]
pub struct Session {
    /// The connection.
    pub client: Client,
    /// What the host says unasked.
    pub notifications: Notifications,
    /// Who the host is, and who it takes us for.
    pub hello: HelloResult,
    timeout: Duration,
}

impl Session {
    /// Connects to the session that the options, the environment and the directory choose.
    pub async fn open(context: &Context) -> Result<Self, Failure> {
        Self::at(&discover::socket(context)?, context.timeout).await
    }

    /// Connects to the host behind `socket`; answers may take as long as `timeout`.
    pub async fn at(socket: &Path, timeout: Duration) -> Result<Self, Failure> {
        Ok(Self::connect(socket, timeout).await?)
    }

    /// The same, for those who tell a lost connection from a refusal.
    pub async fn connect(socket: &Path, timeout: Duration) -> Result<Self, ClientError> {
        let (client, notifications) = Client::connect(socket, CONNECT_TIMEOUT).await?;
        let hello = client.hello(CLIENT, None).await?;
        Ok(Self {
            client,
            notifications,
            hello,
            timeout,
        })
    }

    /// Calls `method`, whose answer comes at once.
    pub async fn call<P: Serialize, R: DeserializeOwned>(
        &self,
        method: Method,
        params: &P,
    ) -> Result<R, Failure> {
        Ok(self.client.call(method, params, Some(self.timeout)).await?)
    }

    /// Calls `method`, which has a time limit of its own or none.
    pub async fn wait_for<P: Serialize, R: DeserializeOwned>(
        &self,
        method: Method,
        params: &P,
    ) -> Result<R, Failure> {
        Ok(self.client.call(method, params, None).await?)
    }
}
