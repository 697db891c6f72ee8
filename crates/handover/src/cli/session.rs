//! A connection to the host of the chosen session.

use std::path::Path;
use std::time::Duration;

use handover_protocol::client::{CONNECT_TIMEOUT, Client, ClientError, Notifications};
use handover_protocol::{HelloParams, HelloResult, Method, PROTOCOL_VERSION};
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
    patience: Duration,
}

impl Session {
    /// Connects to the session that the options, the environment and the directory choose.
    pub async fn open(context: &Context) -> Result<Self, Failure> {
        Self::at(&discover::socket(context)?, context).await
    }

    /// Connects to the host behind `socket`.
    pub async fn at(socket: &Path, context: &Context) -> Result<Self, Failure> {
        let connected = Self::connect(socket, context.timeout, context.patience).await;
        connected.map_err(|error| discover::unanswered(socket, error))
    }

    /// The same, for those who tell a lost connection from a refusal.
    pub async fn connect(
        socket: &Path,
        timeout: Duration,
        patience: Duration,
    ) -> Result<Self, ClientError> {
        let (client, notifications) = Client::connect(socket, CONNECT_TIMEOUT).await?;
        let params = HelloParams {
            client: CLIENT.to_owned(),
            protocol: PROTOCOL_VERSION,
            act_as: None,
        };
        let hello = client.call(Method::Hello, &params, Some(timeout)).await?;
        Ok(Self {
            client,
            notifications,
            hello,
            timeout,
            patience,
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

    /// Calls `method`, which has a time limit of its own, or starts or ends processes.
    pub async fn call_patiently<P: Serialize, R: DeserializeOwned>(
        &self,
        method: Method,
        params: &P,
    ) -> Result<R, Failure> {
        Ok(self
            .client
            .call(method, params, Some(self.patience))
            .await?)
    }

    /// The same, where the call may take `longer` than others.
    pub async fn call_longer<P: Serialize, R: DeserializeOwned>(
        &self,
        method: Method,
        params: &P,
        longer: Duration,
    ) -> Result<R, Failure> {
        let limit = self.patience.saturating_add(longer);
        Ok(self.client.call(method, params, Some(limit)).await?)
    }

    /// Calls `method` and waits as long as it takes.
    pub async fn wait_for<P: Serialize, R: DeserializeOwned>(
        &self,
        method: Method,
        params: &P,
    ) -> Result<R, Failure> {
        Ok(self.client.call(method, params, None).await?)
    }
}
