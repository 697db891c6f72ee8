//! A look at a display's X side, as far as it answers in time.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use handover_protocol::{ForeignClient, Window};

use super::links::Links;
use super::takeover::Survey;
use crate::display::x11::CALL_WITHIN;

/// How long a look may take. Nothing waits for more: a display that is slow to
/// tell of its windows must not hold control up.
const LOOK_WITHIN: Duration = Duration::from_millis(300);

/// How long each of the last looks of a takeover may take, its picture among
/// them, and the first at the lock keys: longer, since agents go on with what
/// was found and put in order then. What takes longer still is left out rather
/// than control held back.
pub const LAST_LOOK_WITHIN: Duration = CALL_WITHIN;

/// The programs and windows on the display, as far as they can be read.
pub async fn survey(links: Arc<Links>) -> Survey {
    let Some(x11) = &links.x11 else {
        return Survey::default();
    };
    // The locks first: they have to be seen before the person can change them.
    let (locks, foreign_clients, windows) = tokio::join!(
        within(LAST_LOOK_WITHIN, x11.locks()),
        foreign_clients(&links),
        in_time(x11.windows())
    );
    Survey {
        locks: locks.unwrap_or_default(),
        foreign_clients,
        windows,
    }
}

/// The programs that can watch the display, as far as they can be read.
pub async fn foreign_clients(links: &Links) -> Vec<ForeignClient> {
    let Some(x11) = &links.x11 else {
        return Vec::new();
    };
    let clients = in_time(x11.clients()).await.unwrap_or_default();
    let clients = clients.into_iter().map(|client| ForeignClient {
        pid: client.pid,
        command: client.pid.and_then(command_of),
    });
    clients.collect()
}

/// The program of a process, as it calls itself.
fn command_of(pid: u32) -> Option<String> {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    Some(name.trim_end().to_owned())
}

/// The windows on the display at the end of a takeover, if they can be read.
pub async fn windows(links: &Links) -> Option<Vec<Window>> {
    within(LAST_LOOK_WITHIN, links.x11.as_ref()?.windows()).await
}

/// What is seen, if it is seen in time.
pub async fn in_time<T, E: std::fmt::Display>(
    looking: impl Future<Output = Result<T, E>>,
) -> Option<T> {
    within(LOOK_WITHIN, looking).await
}

/// What is seen, if it is seen within `bound`.
pub async fn within<T, E: std::fmt::Display>(
    bound: Duration,
    looking: impl Future<Output = Result<T, E>>,
) -> Option<T> {
    match tokio::time::timeout(bound, looking).await {
        Ok(Ok(seen)) => Some(seen),
        Ok(Err(error)) => {
            tracing::warn!(%error, "failed to look at the display");
            None
        }
        Err(_) => None,
    }
}
