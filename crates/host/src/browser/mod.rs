//! The browser of a desktop: a Chromium whose DevTools only the host holds, and the sockets by which
//! programs reach them through the gate of [`handover_cdp`].
//!
//! The two pipes that Chromium listens on end with the host, and Chromium ends with them: no browser is
//! ever driven, or left to itself with what an agent has set going, without somebody who can hold agents
//! back. The desktop goes on without it.

mod chromium;
mod client;
mod pipe;
mod task;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use handover_control::Moment;
use handover_protocol::{ErrorCode, Refusal, Size};
use tokio::sync::{Semaphore, mpsc};

use crate::callers::Caller;
use crate::desktop::{Permits, Programs};
use crate::system::creds::Sender;
use crate::system::socket;

pub use chromium::{BrowserCommand, command};

/// Most clients of one browser, whether connected or not.
pub const MAX_CLIENTS: usize = 16;

/// Who the process is that connected at that moment, if it may drive a browser.
pub type AdmitClient = dyn Fn(Sender, Moment) -> Result<Caller, Refusal> + Send + Sync;

/// The browser of one desktop.
pub(crate) struct Browser {
    events: mpsc::Sender<task::Event>,
    places: Arc<Semaphore>,
    numbers: AtomicU64,
    /// Where the clients' sockets are.
    dir: PathBuf,
    admit: Arc<AdmitClient>,
}

impl Browser {
    /// Starts a browser on a desktop and waits for its first page.
    ///
    /// # Errors
    /// `display_unavailable` if it does not come up.
    pub(crate) async fn start(
        programs: &Programs,
        permits: Permits,
        command: &BrowserCommand,
        size: Size,
        admit: Arc<AdmitClient>,
    ) -> Result<Self, Refusal> {
        let dir = programs.files.dir.clone();
        let pipe = chromium::launch(programs, command, size).await?;
        let (events, inbox) = mpsc::channel(task::QUEUE);
        tokio::spawn(task::Task::new(pipe, permits).run(inbox));
        Ok(Self {
            events,
            places: Arc::new(Semaphore::new(MAX_CLIENTS)),
            numbers: AtomicU64::new(0),
            dir,
            admit,
        })
    }

    /// Makes a socket for one client.
    ///
    /// # Errors
    /// `desktop_gone` if the browser has ended, `queue_full` if there are [`MAX_CLIENTS`].
    pub(crate) fn open(&self) -> Result<PathBuf, Refusal> {
        if self.events.is_closed() {
            return Err(Refusal::new(
                ErrorCode::DesktopGone,
                "the browser of this desktop has ended; make another desktop with `handover desktop new --browser`",
            ));
        }
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
            return Err(Refusal::new(
                ErrorCode::QueueFull,
                format!(
                    "this browser has {MAX_CLIENTS} clients, which is the limit; close one and try again"
                ),
            ));
        };
        let number = self.numbers.fetch_add(1, Ordering::Relaxed) + 1;
        let path = self.dir.join(format!("cdp-{number}.sock"));
        let listener = socket::bind_private(&path)
            .and_then(|listener| client::Waiting::new(listener, path.clone()))
            .map_err(|error| Refusal::new(ErrorCode::Internal, error.to_string()))?;
        let client = handover_cdp::ClientId(number);
        let serving = client::serve(client, listener, self.admit.clone(), self.events.clone());
        tokio::spawn(async move {
            serving.await;
            drop(place);
        });
        Ok(path)
    }
}
