//! One client of an [`AttachServer`](super::AttachServer): its lines in, its answers out.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use tokio::net::UnixStream;
use tokio::sync::watch;
use tokio::task::{self, AbortHandle, JoinSet};

use super::accept::stopped;
use super::attach::Shared;
use super::calls::Calls;
use super::control::AgentControl;
use super::events::NewEvent;
use super::outlet::Outlet;
use crate::codec::{Line, LineDecoder};
use crate::envelope::{BadRequest, Id, Request, error_line, read_params, result_line};
use crate::{
    ActAs, Actor, AgentId, CallerKind, CallerView, ErrorCode, HelloParams, HelloResult, Hidden,
    ListParams, ListResult, MAX_REQUEST, Method, PROTOCOL_VERSION, PingParams, PingResult, Refusal,
    Source, SubscribeParams, SubscribeResult, check_kinds,
};

/// The methods of an [`AttachServer`](super::AttachServer).
pub const SUPPORTED: [Method; 7] = [
    Method::Hello,
    Method::Ping,
    Method::List,
    Method::Steer,
    Method::Abort,
    Method::Result,
    Method::Subscribe,
];

/// How long a client that has stopped writing may take for the answers that are due to it.
const LAST_ANSWERS: Duration = Duration::from_secs(10);
/// How long the last lines may take to be written.
const LAST_LINES: Duration = Duration::from_secs(2);
/// Longest client name that is kept, in characters.
const MAX_NAME: usize = 100;

/// Serves one connection until it is closed by either side, or the server ends.
pub(super) async fn serve<C: AgentControl>(
    shared: Arc<Shared<C>>,
    stream: UnixStream,
    caller: CallerView,
    mut stopping: watch::Receiver<bool>,
) {
    let stream = Arc::new(stream);
    let outlet = Outlet::beside(&shared.together);
    // A set of one, so that the writer ends with this task however that ends.
    let mut writer = JoinSet::new();
    writer.spawn(outlet.clone().write_all(Arc::clone(&stream)));
    let mut connection = Connection {
        shared,
        caller,
        via: String::new(),
        outlet: outlet.clone(),
        lines: LineDecoder::new(MAX_REQUEST),
        calls: Calls::new(outlet.clone()),
        subscription: None,
    };
    let mut buffer = vec![0; 16 << 10];
    let half_closed = loop {
        tokio::select! {
            read = read(&stream, &mut buffer) => match read {
                Ok(0) => break true,
                Ok(length) => connection.take(&buffer[..length]).await,
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
    if let Some(subscription) = connection.subscription.take() {
        subscription.abort();
    }
    if half_closed {
        let answers = async { while connection.calls.ended().await.is_some() {} };
        tokio::select! {
            _ = tokio::time::timeout(LAST_ANSWERS, answers) => {}
            () = outlet.closed() => {}
        }
        outlet.finish();
        // What the client does not read in time is lost to it.
        let _ = tokio::time::timeout(LAST_LINES, writer.join_next()).await;
    }
    outlet.close();
    drop((writer, stream));
    // Calls that are under way come to their own end.
    while connection.calls.ended().await.is_some() {}
}

async fn read(stream: &UnixStream, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        stream.readable().await?;
        match stream.try_read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            read => return read,
        }
    }
}

struct Connection<C> {
    shared: Arc<Shared<C>>,
    /// Who connected, as far as the kernel and its `hello` say.
    caller: CallerView,
    /// The client's name for itself.
    via: String,
    outlet: Outlet,
    lines: LineDecoder,
    calls: Calls,
    /// The latest one; an earlier one ends.
    subscription: Option<AbortHandle>,
}

impl<C> Drop for Connection<C> {
    /// Also if its task is given up: what runs in tasks of its own ends with it.
    fn drop(&mut self) {
        self.outlet.close();
        if let Some(subscription) = self.subscription.take() {
            subscription.abort();
        }
    }
}

impl<C: AgentControl> Connection<C> {
    async fn take(&mut self, bytes: &[u8]) {
        self.lines.push(bytes);
        while let Some(line) = self.lines.next_line() {
            let read = match line {
                Line::TooLong => Err(BadRequest::too_long()),
                Line::Whole(line) => Request::parse(&line),
            };
            match read {
                Ok(request) => self.request(request).await,
                Err(bad) => self.outlet.push(error_line(&bad.id, bad.error)),
            }
            // A client that floods its connection must not keep others from theirs.
            task::yield_now().await;
        }
    }

    async fn request(&mut self, request: Request) {
        let Request { id, method, params } = request;
        let answered = match supported(&method) {
            Ok(Method::Hello) => self.hello(params).and_then(value),
            Ok(Method::Ping) => ping(params).and_then(value),
            Ok(Method::Subscribe) => return self.subscribe(id.as_ref(), params),
            Ok(method) => match self.calls.check_room() {
                Ok(()) => return self.begin(id, method, params).await,
                Err(refusal) => Err(refusal),
            },
            Err(refusal) => Err(refusal),
        };
        answer(&self.outlet, id.as_ref(), answered);
    }

    fn hello(&mut self, params: Option<Value>) -> Result<HelloResult, Refusal> {
        let params: HelloParams = read_params(Method::Hello, params)?;
        if params.protocol != PROTOCOL_VERSION {
            return Err(Refusal::new(
                ErrorCode::ProtocolMismatch,
                format!("this program speaks version {PROTOCOL_VERSION} of the protocol only"),
            )
            .with("protocol", PROTOCOL_VERSION));
        }
        // It is shown to people, also within lines of text: it must not look like a line of its own.
        let name = params.client.chars().filter(|c| !c.is_control());
        self.via = name.take(MAX_NAME).collect();
        // Given up for good: a later `hello` cannot take it back.
        if params.act_as == Some(ActAs::Agent) {
            self.caller.kind = CallerKind::Agent;
        }
        Ok(HelloResult {
            protocol: PROTOCOL_VERSION,
            session_id: self.shared.session_id.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            caller: self.caller.clone(),
            // It would prove the caller to `spawn`, which is not served.
            caller_token: Hidden::new(""),
        })
    }

    fn subscribe(&mut self, id: Option<&Id>, params: Option<Value>) {
        let subscription = read_params(Method::Subscribe, params).and_then(|params| {
            let params: SubscribeParams = params;
            check_kinds(
                Method::Subscribe,
                params.kinds.as_deref().unwrap_or_default(),
            )?;
            Ok(self.shared.events.subscribe(params))
        });
        let subscription = match subscription {
            Ok(subscription) => subscription,
            Err(refusal) => return answer(&self.outlet, id, Err(refusal)),
        };
        let cursor = subscription.cursor();
        answer(&self.outlet, id, value(SubscribeResult { cursor }));
        let events = tokio::spawn(subscription.run(self.outlet.clone()));
        if let Some(earlier) = self.subscription.replace(events.abort_handle()) {
            earlier.abort();
        }
    }

    /// Begins what only the program's own agents can answer.
    async fn begin(&mut self, id: Option<Id>, method: Method, params: Option<Value>) {
        let call = Call {
            shared: Arc::clone(&self.shared),
            caller: self.caller.clone(),
            via: self.via.clone(),
        };
        let (outlet, asked) = (self.outlet.clone(), id.clone());
        let work = async move {
            let answered = call.put(method, params).await;
            answer(&outlet, asked.as_ref(), answered);
        };
        self.calls.begin(id, work).await;
    }
}

/// A call to the program's agents.
struct Call<C> {
    shared: Arc<Shared<C>>,
    caller: CallerView,
    via: String,
}

impl<C: AgentControl> Call<C> {
    async fn put(self, method: Method, params: Option<Value>) -> Result<Value, Refusal> {
        let control = &self.shared.control;
        match method {
            Method::Steer => {
                let params: crate::SteerParams = read_params(method, params)?;
                let (agent, text) = (params.id.clone(), params.text.clone());
                let steered = control.steer(&self.caller, params).await?;
                let done = NewEvent::new("human_intervention", Source::Human)
                    .field("act", "steer")
                    .field("text", text.expose())
                    .field("steerId", &steered.steer_id);
                self.announce(&agent, done).await;
                value(steered)
            }
            Method::Abort => {
                let params: crate::AbortParams = read_params(method, params)?;
                let aborted = control.abort(&self.caller, params).await?;
                let done = NewEvent::new("human_intervention", Source::Human).field("act", "abort");
                self.announce(&aborted.id, done).await;
                self.shared.events.agents_changed();
                value(aborted)
            }
            Method::Result => value(control.result(read_params(method, params)?).await?),
            // What is left of the supported ones.
            _ => {
                let ListParams {} = read_params(Method::List, params)?;
                value(ListResult {
                    session: self.shared.session_id.clone(),
                    desktops: Vec::new(),
                    agents: control.list().await,
                    requests: Vec::new(),
                })
            }
        }
    }

    /// Tells what a person has done to an agent, for whoever follows; what agents do is not announced.
    async fn announce(&self, agent: &AgentId, done: NewEvent) {
        if self.caller.kind != CallerKind::Human {
            return;
        }
        let mut done = done.agent(agent).actor(Actor {
            uid: self.caller.uid,
            pid: self.caller.pid,
            agent: None,
            via: self.via.clone(),
            evidence: None,
        });
        let agents = self.shared.control.list().await;
        if let Some(view) = agents.iter().find(|view| view.id == *agent) {
            done = done.field("agentType", &view.kind);
        }
        self.shared.events.tell(done);
    }
}

fn ping(params: Option<Value>) -> Result<PingResult, Refusal> {
    let PingParams {} = read_params(Method::Ping, params)?;
    Ok(PingResult {
        protocol: PROTOCOL_VERSION,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    })
}

fn supported(name: &str) -> Result<Method, Refusal> {
    let method = name.parse().ok().filter(|name| SUPPORTED.contains(name));
    method.ok_or_else(|| {
        let message = "this program has no such method; `data.supported` lists those it has";
        Refusal::new(ErrorCode::MethodUnknown, message)
            .with("supported", SUPPORTED.map(Method::name))
    })
}

/// Answers a request; a notification gets no answer.
fn answer(outlet: &Outlet, id: Option<&Id>, answered: Result<Value, Refusal>) {
    if let Some(id) = id {
        outlet.push(match answered {
            Ok(result) => result_line(id, &result),
            Err(refusal) => error_line(id, refusal.into()),
        });
    }
}

fn value(result: impl Serialize) -> Result<Value, Refusal> {
    serde_json::to_value(result).map_err(|_| {
        Refusal::new(
            ErrorCode::Internal,
            "the answer could not be written as JSON",
        )
    })
}
