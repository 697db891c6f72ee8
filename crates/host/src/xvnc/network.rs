//! Cutting Xvnc off from the network.
//!
//! A program on the display can make Xvnc dial out and give whoever listens full control (`vncconfig
//! -connect`), and that cannot be switched off. In an empty network namespace there is nobody to
//! dial; sockets with a path in the file system go on working.

use std::process::Stdio;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::process::Command;
use tokio::sync::OnceCell;
use tokio::time::timeout;

/// Whether Xvnc is cut off from the network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Network {
    /// In an empty network namespace.
    Isolated,
    /// In an empty network namespace, and for that in a user namespace.
    IsolatedAsUser,
    /// In the user's network, because the kernel refused a namespace; why, for `doctor` and the record.
    Shared(String),
}

impl Network {
    /// What to put before the command. `unshare` executes the program in its own place: the pid stays.
    pub(super) fn prefix(&self) -> &'static [&'static str] {
        match self {
            Self::Isolated => &["unshare", "-n", "--"],
            Self::IsolatedAsUser => &["unshare", "-rn", "--"],
            Self::Shared(_) => &[],
        }
    }
}

/// What works here, tried once in the life of the process.
pub(super) async fn isolation() -> Network {
    static TRIED: OnceCell<Network> = OnceCell::const_new();
    TRIED
        .get_or_init(|| async {
            let mut refusal = String::new();
            for candidate in [Network::Isolated, Network::IsolatedAsUser] {
                match try_out(candidate.prefix()).await {
                    Ok(()) => return candidate,
                    Err(reason) => refusal = reason,
                }
            }
            tracing::warn!(%refusal, "Xvnc shares the network: no empty network namespace");
            Network::Shared(refusal)
        })
        .await
        .clone()
}

async fn try_out(prefix: &[&str]) -> Result<(), String> {
    let [program, arguments @ ..] = prefix else {
        return Ok(());
    };
    let mut command = Command::new(program);
    command
        .args(arguments)
        .arg("true")
        .stdin(Stdio::null())
        .kill_on_drop(true);
    match timeout(Duration::from_secs(5), command.output()).await {
        Ok(Ok(output)) if output.status.success() => Ok(()),
        Ok(Ok(output)) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Ok(Err(error)) => Err(format!("unshare (package util-linux): {error}")),
        Err(_) => Err("unshare did not answer".to_owned()),
    }
}
