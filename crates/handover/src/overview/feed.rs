//! Hosts come and go: each live one has a connection that feeds the overview.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use handover_protocol::client::Client;
use handover_protocol::{Manifest, SessionId};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;

use super::host::{self, Following};
use super::model::News;

/// How often it is looked for hosts.
const LOOK: Duration = Duration::from_secs(1);

/// News that wait to be read; beyond, the hosts have to wait, and say what they left out.
const WAITING: usize = 1024;

/// The connections on which a person acts, by session.
#[derive(Clone, Debug, Default)]
pub struct Hosts {
    connected: Arc<Mutex<HashMap<SessionId, Client>>>,
}

impl Hosts {
    /// The connection to a session's host, if there is one now.
    pub fn client(&self, id: &SessionId) -> Option<Client> {
        self.lock().get(id).cloned()
    }

    pub(super) fn set(&self, id: &SessionId, client: Option<Client>) {
        match client {
            Some(client) => self.lock().insert(id.clone(), client),
            None => self.lock().remove(id),
        };
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<SessionId, Client>> {
        // No code panics while it holds the lock.
        self.connected
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is new in all sessions, until it is dropped.
#[derive(Debug)]
pub struct Feed {
    /// What is new, and in which session.
    pub news: mpsc::Receiver<(SessionId, News)>,
    /// The connections to act on.
    pub hosts: Hosts,
    _looking: Task,
}

/// A task that ends with whoever started it.
#[derive(Debug)]
struct Task(JoinHandle<()>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Begins to follow the hosts that `discover` finds, which may block; each call on a host may take as
/// long as `timeout`. Must be called within a tokio runtime.
pub fn watch<D>(discover: D, timeout: Duration) -> Feed
where
    D: Fn() -> Vec<Manifest> + Send + Sync + 'static,
{
    let (sender, news) = mpsc::channel(WAITING);
    let hosts = Hosts::default();
    let looking = Task(tokio::spawn(look(
        Arc::new(discover),
        sender,
        hosts.clone(),
        timeout,
    )));
    Feed {
        news,
        hosts,
        _looking: looking,
    }
}

/// One host that is followed.
struct Followed {
    manifest: Manifest,
    changed: Arc<Notify>,
    _task: Task,
}

async fn look<D>(
    discover: Arc<D>,
    news: mpsc::Sender<(SessionId, News)>,
    hosts: Hosts,
    timeout: Duration,
) where
    D: Fn() -> Vec<Manifest> + Send + Sync + 'static,
{
    let mut followed: HashMap<SessionId, Followed> = HashMap::new();
    let lost = Arc::new(Notify::new());
    loop {
        let discover = Arc::clone(&discover);
        // It reads files, and must not hold up what is shown.
        let Ok(live) = tokio::task::spawn_blocking(move || discover()).await else {
            return;
        };
        for id in ended(&followed, &live) {
            followed.remove(&id);
            hosts.set(&id, None);
            if news.send((id, News::Gone)).await.is_err() {
                return;
            }
        }
        for manifest in live {
            let id = manifest.session_id.clone();
            match followed.get_mut(&id) {
                Some(known) if known.manifest == manifest => continue,
                Some(known) => known.manifest = manifest.clone(),
                None => {}
            }
            // Before anything that its host says.
            let found = News::Found(Box::new(manifest.clone()));
            if news.send((id.clone(), found)).await.is_err() {
                return;
            }
            if let Some(known) = followed.get(&id) {
                known.changed.notify_one();
                continue;
            }
            let changed = Arc::new(Notify::new());
            let task = host::follow(Following {
                session: id.clone(),
                socket: PathBuf::from(&manifest.socket_path),
                news: news.clone(),
                hosts: hosts.clone(),
                changed: Arc::clone(&changed),
                lost: Arc::clone(&lost),
                timeout,
            });
            let task = Task(tokio::spawn(task));
            followed.insert(
                id,
                Followed {
                    manifest,
                    changed,
                    _task: task,
                },
            );
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            () = lost.notified() => {}
        }
    }
}

/// The sessions whose host is no longer there, or is another one.
fn ended(followed: &HashMap<SessionId, Followed>, live: &[Manifest]) -> Vec<SessionId> {
    let same = |known: &Manifest| {
        live.iter().any(|found| {
            let host = |of: &Manifest| (of.session_id.clone(), of.pid, of.start_ticks);
            host(found) == host(known)
        })
    };
    let ended = followed.values().filter(|known| !same(&known.manifest));
    ended
        .map(|known| known.manifest.session_id.clone())
        .collect()
}
