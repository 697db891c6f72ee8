//! A place in a reply where the server waits for the test.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

/// A place in a reply where the server waits until the test lets it go on. Clones are the same place.
///
/// While it waits, what came before has been sent: a program that streams has it already.
#[derive(Clone, Debug)]
pub struct Hold {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    reached: Mutex<bool>,
    changed: Condvar,
    released: watch::Sender<bool>,
}

impl Hold {
    /// A new place, closed.
    #[expect(
        clippy::new_without_default,
        reason = "two defaults would not be the same place"
    )]
    pub fn new() -> Self {
        Self {
            shared: Arc::new(Shared {
                reached: Mutex::new(false),
                changed: Condvar::new(),
                released: watch::Sender::new(false),
            }),
        }
    }

    /// Waits until a reply has come to this place, at most `bound`; whether one has.
    pub fn reached(&self, bound: Duration) -> bool {
        let reached = self.shared.reached.lock();
        let (reached, _) = self
            .shared
            .changed
            .wait_timeout_while(
                reached.unwrap_or_else(PoisonError::into_inner),
                bound,
                |reached| !*reached,
            )
            .unwrap_or_else(PoisonError::into_inner);
        *reached
    }

    /// Lets every reply pass, now and later.
    pub fn release(&self) {
        self.shared.released.send_replace(true);
    }

    /// Marks the place as reached and waits for the release.
    pub(crate) async fn pass(&self) {
        *self
            .shared
            .reached
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = true;
        self.shared.changed.notify_all();
        // Cannot fail: the sender lives as long as `self`.
        let _ = self
            .shared
            .released
            .subscribe()
            .wait_for(|released| *released)
            .await;
    }
}
