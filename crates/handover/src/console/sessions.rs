//! The live sessions of this user, as their manifests tell. Looked at while somebody wants to know.

use std::sync::Arc;
use std::time::Duration;

use handover_protocol::Manifest;
use tokio::sync::{Notify, watch};

/// How often the manifests are read. A host writes its own at most five times a second.
const EVERY: Duration = Duration::from_millis(500);

/// Live sessions, newest first.
pub type Live = Arc<Vec<Manifest>>;

/// What is known of them.
#[derive(Debug)]
pub struct Sessions {
    known: watch::Sender<Live>,
    /// Look at once.
    look: Notify,
}

impl Sessions {
    /// Nothing is looked at yet.
    pub fn new() -> Self {
        Self {
            known: watch::Sender::new(Live::default()),
            look: Notify::new(),
        }
    }

    /// Looks now.
    pub async fn refresh(&self) -> Live {
        let found = tokio::task::spawn_blocking(|| {
            let live = handover_host::discover().live;
            live.into_iter()
                .map(|found| found.manifest)
                .collect::<Vec<_>>()
        });
        // It cannot be cancelled, and does not panic.
        let found = Arc::new(found.await.unwrap_or_default());
        self.known.send_if_modified(|known| {
            let changed = *known != found;
            if changed {
                *known = Arc::clone(&found);
            }
            changed
        });
        found
    }

    /// What is known, and all that comes of it from now on.
    pub async fn follow(&self) -> watch::Receiver<Live> {
        self.refresh().await;
        let mut following = self.known.subscribe();
        following.mark_changed();
        self.look.notify_one();
        following
    }

    /// The session called `id`, if it is live.
    pub async fn find(&self, id: &str) -> Option<Manifest> {
        let is = |manifest: &&Manifest| manifest.session_id.as_str() == id;
        // It may have begun a moment ago.
        let live = self.refresh().await;
        live.iter().find(is).cloned()
    }

    /// Something has happened to one of them: look at once.
    pub fn hint(&self) {
        self.look.notify_one();
    }

    /// Looks again and again for as long as somebody follows. Does not end.
    pub async fn watch(&self) {
        loop {
            if self.known.receiver_count() == 0 {
                self.look.notified().await;
            }
            self.refresh().await;
            tokio::select! {
                () = tokio::time::sleep(EVERY) => {}
                () = self.look.notified() => {}
            }
        }
    }
}
