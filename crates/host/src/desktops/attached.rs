//! Desktops that front an RFB server which the host did not start.
//!
//! What only the host's own displays guarantee is missing there: the server may
//! have other clients, knows no view-only password of ours, and may know no
//! fences, in which case a request for a pixel takes their place.

use std::sync::Arc;

use handover_control::Epoch;
use handover_protocol::{DesktopId, Refusal, Size};
use handover_rfb::gate;
use handover_rfb::handshake::Credentials;

use super::assemble::Server;
use super::stored::{self, Row};
use super::{DesktopSet, Entry, Watch};
use crate::desktop::{Beginning, DesktopHandle};
use crate::display::{Address, SizeChanges, Upstream};
use crate::record::not_recorded;

/// How control of a desktop that is new begins.
pub(super) fn fresh() -> Beginning {
    Beginning::new(Epoch::default())
}

/// Where a target is: `unix:PATH` or `HOST:PORT`.
///
/// # Errors
/// `bad_params`, which says what is expected.
pub fn address(target: &str) -> Result<Address, Refusal> {
    if let Some(path) = target.strip_prefix("unix:")
        && path.starts_with('/')
    {
        return Ok(Address::Unix(path.into()));
    }
    let port = target.rsplit_once(':').filter(|(host, _)| !host.is_empty());
    match port.map(|(_, port)| port.parse::<u16>()) {
        Some(Ok(port)) if port > 0 => Ok(Address::Tcp(target.to_owned())),
        _ => Err(Refusal::bad_param(
            "attach",
            format!(
                "`attach` is {target:?}; give unix:/PATH of an RFB server's socket, or HOST:PORT"
            ),
        )),
    }
}

/// The person knows the target, and not yet the desktop's name.
fn not_there(target: &str, refusal: Refusal) -> Refusal {
    let message = format!(
        "{}; is {target:?} an RFB server without a password, and does it run?",
        refusal.message
    );
    Refusal { message, ..refusal }
}

impl DesktopSet {
    /// Fronts the server at `target`.
    pub(super) async fn attach(
        &self,
        id: &DesktopId,
        target: &str,
        beginning: Beginning,
    ) -> Result<DesktopHandle, Refusal> {
        let upstream = Upstream::new(address(target)?);
        let row = Row::Attached {
            target: target.to_owned(),
        };
        stored::keep(&self.shared.store, id, &row)
            .await
            .map_err(|error| not_recorded(&error))?;
        let server = Server {
            id: id.clone(),
            size: Size::default(),
            upstream,
            full: Credentials::None,
            view_only: Credentials::None,
            gate: gate::Upstream::FOREIGN,
            changes: SizeChanges::AtCapture,
            x11: None,
            programs: None,
            beginning,
        };
        match self.connect(server).await {
            Ok(handle) => {
                self.insert(
                    id,
                    Entry {
                        handle: handle.clone(),
                        watch: Arc::new(Watch::nothing()),
                        traces: None,
                    },
                );
                Ok(handle)
            }
            Err(refusal) => {
                stored::forget(&self.shared.store, id).await;
                Err(not_there(target, refusal))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_sockets_or_ports() {
        assert_eq!(
            address("unix:/run/x").ok(),
            Some(Address::Unix("/run/x".into()))
        );
        assert_eq!(
            address("127.0.0.1:5901").ok(),
            Some(Address::Tcp("127.0.0.1:5901".into()))
        );
        for bad in [
            "", "unix:", "unix:rel", "host", "host:", ":5901", "h:0", "h:x",
        ] {
            assert!(address(bad).is_err(), "{bad}");
        }
    }
}
