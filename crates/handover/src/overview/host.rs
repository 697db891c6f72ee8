//! The connection to one host: what stands in the session, and what happens in it.

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use handover_protocol::client::{
    CONNECT_TIMEOUT, Client, ClientError, Notification, Notifications,
};
use handover_protocol::{
    Control, Gap, ListParams, ListResult, Method, SessionId, SubscribeParams, SubscribeResult,
};
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, sleep, sleep_until};

use super::feed::Hosts;
use super::model::News;

/// How this program introduces itself.
const CLIENT: &str = concat!("top/", env!("CARGO_PKG_VERSION"));

/// Events before the first connection that are shown too.
const HISTORY: u64 = 500;

/// How soon after one list another may be asked for.
const SPACING: Duration = Duration::from_millis(100);

/// How often a list is asked for although nothing happened: a lease is renewed without an event.
const LEASED: Duration = Duration::from_secs(2);

/// The same while no person has control: it shows that the host still answers.
const QUIET: Duration = Duration::from_secs(3);

/// How long a host that has answered before may take for a list until it is shown not to answer.
const SILENT: Duration = Duration::from_secs(2);

/// The first wait before a lost host is tried again, which doubles up to [`LONGEST_WAIT`].
const FIRST_WAIT: Duration = Duration::from_millis(250);

/// The longest wait before a lost host is tried again.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// What it takes to follow one host.
pub(super) struct Following {
    pub session: SessionId,
    pub socket: PathBuf,
    pub news: mpsc::Sender<(SessionId, News)>,
    pub hosts: Hosts,
    /// Its manifest says something else.
    pub changed: Arc<Notify>,
    /// Told when the connection is lost, which may be the end of the host.
    pub lost: Arc<Notify>,
    /// How long an answer may take.
    pub timeout: Duration,
}

/// Nobody wants to know any more.
struct Unwanted;

/// Why a connection ended.
enum End {
    Unwanted,
    Lost(ClientError),
}

impl From<Unwanted> for End {
    fn from(Unwanted: Unwanted) -> Self {
        Self::Unwanted
    }
}

impl From<ClientError> for End {
    fn from(error: ClientError) -> Self {
        Self::Lost(error)
    }
}

/// Follows the host for as long as somebody wants to know, over lost connections.
pub(super) async fn follow(this: Following) {
    // The number of the last event that was passed on.
    let mut seen = None;
    let mut wait = FIRST_WAIT;
    loop {
        let connected = this.connected(&mut seen, &mut wait).await;
        this.hosts.set(&this.session, None);
        let Err(End::Lost(error)) = connected else {
            return;
        };
        if this.tell(News::Lost(error.to_string())).await.is_err() {
            return;
        }
        this.lost.notify_one();
        sleep(wait).await;
        wait = (wait * 2).min(LONGEST_WAIT);
    }
}

type Listing = Pin<Box<dyn Future<Output = Result<ListResult, ClientError>> + Send>>;

impl Following {
    async fn tell(&self, news: News) -> Result<(), Unwanted> {
        let sent = self.news.send((self.session.clone(), news)).await;
        sent.map_err(|_| Unwanted)
    }

    fn list(&self, client: &Client) -> Listing {
        let (client, timeout) = (client.clone(), self.timeout);
        Box::pin(async move {
            client
                .call(Method::List, &ListParams {}, Some(timeout))
                .await
        })
    }

    /// One connection from its beginning to its end.
    async fn connected(&self, seen: &mut Option<u64>, wait: &mut Duration) -> Result<(), End> {
        let (client, notifications) = Client::connect(&self.socket, CONNECT_TIMEOUT).await?;
        let hello = tokio::time::timeout(self.timeout, client.hello(CLIENT, None));
        let hello = hello.await.map_err(|_| ClientError::Timeout {
            method: Method::Hello.name(),
            after: self.timeout,
        })??;
        self.tell(News::Connected(hello.caller)).await?;
        let since = match *seen {
            Some(seen) => seen,
            None => self.before_now(&client).await?,
        };
        let params = SubscribeParams {
            since: Some(since),
            ..SubscribeParams::default()
        };
        let _: SubscribeResult = client
            .call(Method::Subscribe, &params, Some(self.timeout))
            .await?;
        *seen = Some(since);
        *wait = FIRST_WAIT;
        self.hosts.set(&self.session, Some(client.clone()));
        self.listen(&client, notifications, seen).await
    }

    /// The place in the record where what is shown begins.
    async fn before_now(&self, client: &Client) -> Result<u64, ClientError> {
        // Tells where the record stands, and selects no event: they would wait unread.
        let nothing = SubscribeParams {
            kinds: Some(vec![String::new()]),
            ..SubscribeParams::default()
        };
        let now: SubscribeResult = client
            .call(Method::Subscribe, &nothing, Some(self.timeout))
            .await?;
        Ok(now.cursor.saturating_sub(HISTORY))
    }

    /// Passes on what the host says, and asks it how all stands when that may have changed.
    async fn listen(
        &self,
        client: &Client,
        mut notifications: Notifications,
        seen: &mut Option<u64>,
    ) -> Result<(), End> {
        let mut listing: Option<Listing> = Some(self.list(client));
        let mut asked = Instant::now();
        let mut due = asked + QUIET;
        // Something changed after the list was asked for.
        let mut again = false;
        // Until when the list may take; no time for the first one, which a host that begins may be busy for.
        let mut patience = None;
        loop {
            let idle = listing.is_none();
            let listed = async {
                match &mut listing {
                    Some(listing) => listing.await,
                    None => std::future::pending().await,
                }
            };
            let changed = tokio::select! {
                answer = listed => {
                    let list = answer?;
                    let leased = list.desktops.iter().any(|desktop| desktop.control == Control::Human);
                    (listing, patience) = (None, None);
                    due = Instant::now() + if leased { LEASED } else { QUIET };
                    self.tell(News::Listed(Box::new(list))).await?;
                    std::mem::take(&mut again)
                }
                () = sleep_until(due), if idle => {
                    asked = Instant::now();
                    listing = Some(self.list(client));
                    patience = Some(asked + SILENT);
                    false
                }
                // It may be stopped. The connection is kept: the answer may come yet.
                () = sleep_until(patience.unwrap_or(asked)), if patience.is_some() => {
                    patience = None;
                    let silent = ClientError::Timeout { method: Method::List.name(), after: SILENT };
                    self.tell(News::Lost(silent.to_string())).await?;
                    false
                }
                news = notifications.recv() => match news {
                    Some(news) => self.heard(news, seen).await?,
                    None => return Err(ClientError::Closed.into()),
                },
                () = self.changed.notified() => true,
            };
            if changed && listing.is_some() {
                again = true;
            } else if changed {
                due = due.min(asked + SPACING);
            }
        }
    }

    /// Passes a notification on; true if a list is due after it.
    async fn heard(&self, news: Notification, seen: &mut Option<u64>) -> Result<bool, Unwanted> {
        match news.method.as_str() {
            "event" => {
                let Ok(event) = serde_json::from_value::<handover_protocol::Event>(news.params)
                else {
                    // Of a newer host; the numbers before and after it tell of no gap.
                    return Ok(false);
                };
                *seen = Some(event.seq);
                let changes = changes(&event.kind);
                self.tell(News::Event(Box::new(event))).await?;
                Ok(changes)
            }
            "gap" => {
                if let Ok(gap) = serde_json::from_value::<Gap>(news.params) {
                    *seen = Some(gap.to);
                    self.tell(News::Gap(gap)).await?;
                }
                Ok(true)
            }
            _ => Ok(false),
        }
    }
}

/// Whether what `list` answers may be otherwise after an event of this kind.
fn changes(kind: &str) -> bool {
    let only_acts =
        kind.starts_with("desktop_") && kind != "desktop_new" && kind != "desktop_destroy";
    !only_acts && !matches!(kind, "agent_text" | "agent_tool")
}
