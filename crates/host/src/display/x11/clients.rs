//! The programs connected to a display.

use x11rb::protocol::res::{ClientIdMask, ClientIdSpec, ConnectionExt as _};

use super::{Session, X11Error};

/// A program that is connected to the display.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XClient {
    /// The first of its resource ids, which names the connection.
    pub base: u32,
    /// Its process, where the display knows it; `None` for one from another machine.
    pub pid: Option<u32>,
}

pub(super) fn list(session: &Session) -> Result<Vec<XClient>, X11Error> {
    let connection = &session.connection;
    // The pids came with version 1.2 of the extension.
    connection.res_query_version(1, 2)?.reply()?;
    let clients = connection.res_query_clients()?;
    // Client 0 in a question stands for all of them.
    let everyone = [ClientIdSpec {
        client: 0,
        mask: ClientIdMask::LOCAL_CLIENT_PID,
    }];
    let pids = connection.res_query_client_ids(&everyone)?.reply()?.ids;
    let ours = std::process::id();
    Ok(clients
        .reply()?
        .clients
        .into_iter()
        .map(|client| XClient {
            base: client.resource_base,
            pid: pids
                .iter()
                .find(|id| id.spec.client == client.resource_base)
                .and_then(|id| id.value.first().copied())
                .filter(|&pid| pid != 0),
        })
        .filter(|client| client.base != 0 && client.pid != Some(ours))
        .collect())
}

/// The process that owns a window, where the display knows it.
pub(super) fn pid_of(session: &Session, window: u32) -> Option<u32> {
    let owner = [ClientIdSpec {
        client: window,
        mask: ClientIdMask::LOCAL_CLIENT_PID,
    }];
    let reply = session.connection.res_query_client_ids(&owner).ok()?;
    let ids = reply.reply().ok()?.ids;
    ids.first()?.value.first().copied().filter(|&pid| pid != 0)
}
