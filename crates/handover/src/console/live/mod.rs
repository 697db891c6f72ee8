//! The live connection of one browser: one WebSocket for all sessions that it may see.

mod link;
mod outlet;
mod wire;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{Stream, StreamExt};
use handover_host::system::clock;
use handover_protocol::envelope::Id;
use handover_protocol::{ErrorCode, Refusal};
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use self::link::{Call, Link};
use self::outlet::{Gone, Outlet};
pub use self::outlet::{PING, SILENT};
use self::wire::Request;
use super::grant::Grant;
use super::state::Console;

/// The longest message of a browser, in bytes: that of a request on the attach socket.
pub const MAX_MESSAGE: usize = handover_protocol::MAX_REQUEST;
/// How long a browser may take to read a goodbye.
const GOODBYE: Duration = Duration::from_millis(500);

/// Serves a browser with `grant` until it is gone, its time is over, or the console ends.
pub async fn serve<S>(socket: WebSocketStream<S>, grant: Arc<Grant>, console: Arc<Console>)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let (sink, messages) = socket.split();
    let (out, queue) = outlet::outlet();
    let sending = queue.drain(sink);
    tokio::pin!(sending);
    let mut browser = Browser {
        out: out.clone(),
        grant: Arc::clone(&grant),
        console: Arc::clone(&console),
        links: HashMap::new(),
        running: JoinSet::new(),
    };
    let (code, reason) = tokio::select! {
        () = &mut sending => return,
        end = browser.listen(messages) => end,
        _ = tell_sessions(&out, &grant, &console) => return,
        () = console.over(&grant) => (CloseCode::Policy, "the time of this link is over"),
        () = console.stopped() => (CloseCode::Away, "the console has ended"),
    };
    // First the connections to the hosts: whatever the browser does now, it controls nothing.
    drop(browser);
    out.close(code, reason);
    let _ = tokio::time::timeout(GOODBYE, sending).await;
}

/// Tells of every change among the sessions.
async fn tell_sessions(out: &Outlet, grant: &Grant, console: &Console) -> Result<(), Gone> {
    let mut following = console.sessions.follow().await;
    let mut told = None;
    while following.changed().await.is_ok() {
        let live = Arc::clone(&following.borrow_and_update());
        let shown = live
            .iter()
            .filter_map(|manifest| grant.scope().manifest(manifest));
        let mut news = json!({
            "sessions": shown.collect::<Vec<_>>(),
            "scope": grant.scope().to_json(grant.until().map(|until| until.shown)),
            "version": env!("CARGO_PKG_VERSION"),
            "home": console.home(grant.scope()),
        });
        // What a browser of one desktop sees changes less often.
        if told.as_ref() != Some(&news) {
            told = Some(news.clone());
            // By which a browser with another clock counts.
            news["now"] = json!(clock::wall());
            out.send(wire::news(None, "sessions", &news)).await?;
        }
    }
    Ok(())
}

/// One browser, with its connections to hosts.
struct Browser {
    out: Outlet,
    grant: Arc<Grant>,
    console: Arc<Console>,
    links: HashMap<String, mpsc::Sender<Call>>,
    /// Ended when the browser is gone.
    running: JoinSet<()>,
}

impl Browser {
    /// Takes what the browser says until it is gone; answers with what to say goodbye with.
    async fn listen<M>(&mut self, mut messages: M) -> (CloseCode, &'static str)
    where
        M: Stream<Item = tokio_tungstenite::tungstenite::Result<Message>> + Unpin,
    {
        let gone = (CloseCode::Normal, "");
        loop {
            let Ok(message) = tokio::time::timeout(SILENT, messages.next()).await else {
                return (CloseCode::Away, "this browser does not answer");
            };
            match message {
                Some(Ok(Message::Text(text))) => {
                    if self.ask(&text).await.is_err() {
                        return gone;
                    }
                }
                Some(Ok(Message::Binary(_))) => return (CloseCode::Unsupported, "text is due"),
                // Answered by the library; after a goodbye nothing else comes.
                Some(Ok(
                    Message::Ping(_) | Message::Pong(_) | Message::Frame(_) | Message::Close(_),
                )) => {}
                None => return gone,
                Some(Err(_)) => return (CloseCode::Protocol, "this is no message"),
            }
        }
    }

    /// Makes one call, or refuses it.
    async fn ask(&mut self, text: &str) -> Result<(), Gone> {
        while self.running.try_join_next().is_some() {}
        let Ok(request) = serde_json::from_str::<Request<'_>>(text) else {
            // Without its words: they may hold typed text.
            let message = "a request is {session, id, method, params}";
            let refusal = Refusal::new(ErrorCode::Malformed, message);
            return self.out.send(wire::refused("", &Id::Null, refusal)).await;
        };
        let id = request.id.clone();
        match self.admit(&request).await {
            Ok(()) => Ok(()),
            Err(refusal) => {
                self.out
                    .send(wire::refused(&request.session, &id, refusal))
                    .await
            }
        }
    }

    async fn admit(&mut self, request: &Request<'_>) -> Result<(), Refusal> {
        let scope = self.grant.scope();
        let method = scope.method(&request.method)?;
        let has_lease = |lease: &str| self.grant.has_lease(lease);
        let (params, passing) = scope.admit(&request.session, method, request.params, has_lease)?;
        let call = Call {
            id: request.id.clone(),
            method,
            params,
            passing,
        };
        let call = match self.links.get(&*request.session) {
            None => call,
            Some(link) => match link.try_send(call) {
                Ok(()) => return Ok(()),
                Err(mpsc::error::TrySendError::Full(_)) => return Err(full()),
                // Its host was gone; there may be another by now.
                Err(mpsc::error::TrySendError::Closed(call)) => call,
            },
        };
        self.links.remove(&*request.session);
        let Some(manifest) = self.console.sessions.find(&request.session).await else {
            let message = "there is no such session, or its host has ended";
            return Err(Refusal::new(ErrorCode::SessionUnknown, message));
        };
        let link = self.connect(&request.session, manifest.socket_path.into());
        link.try_send(call).map_err(|_| full())
    }

    /// Begins a connection to a session's host.
    fn connect(&mut self, session: &str, socket: PathBuf) -> &mpsc::Sender<Call> {
        let (calls, to_write) = mpsc::channel(link::TO_WRITE);
        let link = Link::new(
            session.to_owned(),
            self.out.clone(),
            Arc::clone(&self.grant),
        );
        let console = Arc::clone(&self.console);
        self.running.spawn(async move {
            link.run(&socket, to_write).await;
            console.sessions.hint();
        });
        self.links
            .entry(session.to_owned())
            .insert_entry(calls)
            .into_mut()
    }
}

fn full() -> Refusal {
    let message = "too many calls of this session wait for their host; it may be stopped";
    Refusal::new(ErrorCode::QueueFull, message)
}

#[cfg(test)]
mod tests;
