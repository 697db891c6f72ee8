//! One connection: its lines in, its answers out.

use std::sync::Arc;
use std::time::Duration;

use handover_control::Moment;
use handover_protocol::codec::{Line, LineDecoder};
use handover_protocol::envelope::{BadRequest, Id, Request, error_line, result_line};
use handover_protocol::server::accept::stopped;
use handover_protocol::server::calls::Calls;
use handover_protocol::server::outlet::Outlet;
use handover_protocol::{DesktopId, ErrorCode, MAX_REQUEST, Method, Refusal};
use serde_json::Value;
use tokio::net::UnixStream;
use tokio::sync::watch;
use tokio::task::{self, JoinSet};

use super::boundary::{Desktop, Session};
use super::dispatch::{Call, Outcome, Shared, dispatch};
use super::greeting::Greeting;
use super::power;
use super::refused::{self, Refused};
use crate::callers::{Caller, ConnectionId};
use crate::system::clock;
use crate::system::creds::{CredentialReader, Sender};
use crate::system::hang_up::is_gone;

/// How long a client that has stopped writing may take for the answers that are due to it.
const LAST_ANSWERS: Duration = Duration::from_secs(10);
/// How long the last lines may take to be written.
const LAST_LINES: Duration = Duration::from_secs(2);

/// Serves one connection until it is closed by either side, or the server ends.
pub(super) async fn serve<S: Session>(
    shared: Arc<Shared<S>>,
    stream: UnixStream,
    id: ConnectionId,
    mut stopping: watch::Receiver<bool>,
) {
    let accepted = clock::now();
    let stream = Arc::new(stream);
    let mut reader = match CredentialReader::new(Arc::clone(&stream)) {
        Ok(reader) => reader,
        Err(error) => {
            tracing::warn!(%error, "a connection without its senders' credentials is refused");
            return;
        }
    };
    let goodbye = Goodbye {
        outlet: shared.outlets.add(id),
        shared: Arc::clone(&shared),
        id,
    };
    let outlet = goodbye.outlet.clone();
    // A set of one, so that the writer ends with this task however that ends.
    let mut writer = JoinSet::new();
    writer.spawn(outlet.clone().write_all(Arc::clone(&stream)));
    let mut connection = Connection {
        shared,
        id,
        accepted,
        outlet: outlet.clone(),
        greeting: Arc::default(),
        lines: LineDecoder::new(MAX_REQUEST),
        last_sender: None,
        mixed: false,
        calls: Calls::new(outlet.clone()),
    };
    let half_closed = loop {
        tokio::select! {
            read = reader.read() => match read {
                Ok(Some((bytes, sender))) => connection.take(bytes, sender).await,
                Ok(None) => break !is_gone(&stream),
                Err(error) => {
                    tracing::debug!(%error, "a connection broke");
                    break false;
                }
            },
            Some(()) = connection.calls.ended() => {}
            () = outlet.closed() => break false,
            () = stopped(&mut stopping) => break true,
        }
    };
    // At once and not after the last answers: a controller that is gone must not stay in control.
    goodbye.say();
    if half_closed {
        let answers = async {
            while let Some(()) = connection.calls.ended().await {
                // What it was granted comes too late.
                goodbye.say();
            }
        };
        tokio::select! {
            _ = tokio::time::timeout(LAST_ANSWERS, answers) => {}
            () = outlet.closed() => {}
        }
        outlet.finish();
        // What the client does not read in time is lost to it.
        let _ = tokio::time::timeout(LAST_LINES, writer.join_next()).await;
    }
    outlet.close();
    drop((reader, writer, stream));
    // Acts that are under way come to their own end; what they were granted meanwhile is taken back.
    while let Some(()) = connection.calls.ended().await {
        goodbye.say();
    }
}

/// Tells the desktops that the connection has closed, also if its task panics.
struct Goodbye<S: Session> {
    shared: Arc<Shared<S>>,
    id: ConnectionId,
    outlet: Outlet,
}

impl<S: Session> Goodbye<S> {
    fn say(&self) {
        for desktop in self.shared.session.desktops() {
            desktop.connection_closed(self.id);
        }
    }
}

impl<S: Session> Drop for Goodbye<S> {
    fn drop(&mut self) {
        self.outlet.close();
        self.shared.outlets.remove(self.id);
        self.say();
    }
}

struct Connection<S> {
    shared: Arc<Shared<S>>,
    id: ConnectionId,
    accepted: Moment,
    outlet: Outlet,
    greeting: Arc<Greeting>,
    lines: LineDecoder,
    last_sender: Option<Sender>,
    /// The unfinished line has bytes of more than one sender.
    mixed: bool,
    calls: Calls,
}

impl<S: Session> Connection<S> {
    /// Takes bytes of one sender, and begins what they complete.
    async fn take(&mut self, bytes: &[u8], sender: Sender) {
        if self.lines.is_inside_line() && self.last_sender != Some(sender) {
            self.mixed = true;
        }
        self.last_sender = Some(sender);
        self.lines.push(bytes);
        while let Some(line) = self.lines.next_line() {
            let mixed = std::mem::take(&mut self.mixed);
            match line {
                Line::TooLong => {
                    let bad = BadRequest::too_long();
                    self.outlet.push(error_line(&bad.id, bad.error));
                }
                Line::Whole(line) => self.line(&line, sender, mixed).await,
            }
            // A client that floods its connection must not keep others from theirs.
            task::yield_now().await;
        }
    }

    async fn line(&mut self, line: &[u8], sender: Sender, mixed: bool) {
        let request = match Request::parse(line) {
            Ok(request) => request,
            Err(bad) => return self.outlet.push(error_line(&bad.id, bad.error)),
        };
        let method = match request.method() {
            Ok(method) => method,
            Err(refusal) => return self.refuse(request.id.as_ref(), refusal),
        };
        let caller = match self.identify(sender, mixed) {
            Ok(caller) => caller,
            Err(refusal) => {
                refused::record_unknown(&self.shared.store, sender, method, refusal.code);
                return self.refuse(request.id.as_ref(), refusal);
            }
        };
        if let Err(refusal) = self.calls.check_room() {
            refused::record(&self.shared.store, &caller, method, None, refusal.code);
            return self.refuse(request.id.as_ref(), refusal);
        }
        self.begin(request, method, caller).await;
    }

    fn identify(&self, sender: Sender, mixed: bool) -> Result<Caller, Refusal> {
        if mixed {
            return Err(Refusal::new(
                ErrorCode::CallerRefused,
                "this line was written by more than one process: each must use its own connection",
            ));
        }
        let mut caller = self
            .shared
            .session
            .identify(sender, self.id, self.accepted)?;
        self.greeting.apply(&mut caller);
        Ok(caller)
    }

    async fn begin(&mut self, request: Request, method: Method, caller: Caller) {
        let call = Call {
            caller,
            method,
            params: request.params,
            greeting: Arc::clone(&self.greeting),
            outlet: self.outlet.clone(),
        };
        let id = request.id.clone();
        let work = answer(Arc::clone(&self.shared), call, request.id);
        self.calls.begin(id, work).await;
    }

    /// Answers a request; a notification gets no answer.
    fn refuse(&self, id: Option<&Id>, refusal: Refusal) {
        if let Some(id) = id {
            self.outlet.push(error_line(id, refusal.into()));
        }
    }
}

/// Does a call and answers it.
async fn answer<S: Session>(shared: Arc<Shared<S>>, call: Call, id: Option<Id>) {
    let (caller, method) = (call.caller.clone(), call.method);
    let (greeting, outlet) = (Arc::clone(&call.greeting), call.outlet.clone());
    let named = named_desktop(call.params.as_ref());
    let params = call.params.as_ref();
    let allowed = tokio::select! {
        biased;
        allowed = power::check(&*shared.session, &greeting, &caller, method, params) => allowed,
        // A question on the caller's terminal ends with the caller: what is typed there from now on is
        // no answer to it. Nothing has begun, and nobody is left to be told.
        () = outlet.closed() => return,
    };
    let outcome = match allowed {
        Ok(()) => dispatch(&shared, call).await,
        Err(refusal) => Err(refusal.into()),
    };
    let push = |line: &dyn Fn(&Id) -> Vec<u8>| {
        if let Some(id) = &id {
            outlet.push(line(id));
        }
    };
    match outcome {
        Ok(Outcome::Answer(result)) => push(&|id| result_line(id, &result)),
        Ok(Outcome::List(result)) => push(&|id| result_line(id, &*result)),
        Ok(Outcome::Journal(result)) => push(&|id| result_line(id, &result)),
        Ok(Outcome::Subscribed(result, subscription)) => {
            push(&|id| result_line(id, &result));
            let events = tokio::spawn(subscription.run(outlet.clone()));
            greeting.subscribed(events.abort_handle());
        }
        Err(Refused { refusal, recorded }) => {
            if !recorded {
                // Only a name that is a desktop's: nothing else of the parameters reaches the record.
                let desktop = named.and_then(|name| shared.find(Some(&name)).ok());
                let desktop = desktop.map(|desktop| desktop.id().clone());
                refused::record(&shared.store, &caller, method, desktop, refusal.code);
            }
            push(&|id| error_line(id, refusal.clone().into()));
        }
    }
}

fn named_desktop(params: Option<&Value>) -> Option<DesktopId> {
    params?.get("desktop")?.as_str().map(DesktopId::from)
}
