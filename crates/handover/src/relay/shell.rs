//! Around the gate: the client's streams, the server, the host and the clock, in one loop.

use std::time::Duration;

use handover_protocol::{ErrorCode, Refusal};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use super::Left;
use super::call::{CallId, Permit};
use super::gate::{Effect, Gate};
use super::link::{Link, News};
use super::records::MAX_RECORD;
use super::splitter::{Piece, Splitter};
use super::stdio::Output;
use super::to_server::{ToServer, written};
use super::upstream::{Program, Streams, Upstream};

/// Bytes that may wait in one direction before its source is no longer read.
const MAX_WAITING: usize = 2 * MAX_RECORD;

/// How long the server may take to end by itself when the client has closed its input.
const LEAVE: Duration = Duration::from_millis(1500);
/// The same while requests have no response yet, for a client that goes on reading.
const LAST_ANSWERS: Duration = Duration::from_secs(10);
/// How long what the server said last may take to be read once it has ended.
const LAST_RECORDS: Duration = Duration::from_millis(500);
/// How long the server's processes get between TERM and KILL.
const END: Duration = Duration::from_millis(500);
/// How long a server that is being started again may take to be there, when the relay itself ends.
const START: Duration = Duration::from_secs(5);
/// How long the client may take to read what is left for it.
const FLUSH: Duration = Duration::from_secs(1);

/// What came back from beside the loop.
enum Done {
    Permit(CallId, Result<Permit, Refusal>),
    Watched(CallId, Result<(), Refusal>),
    Draining(bool),
    Noted,
    Replaced(Result<Server, Refusal>),
}

/// A server that runs.
type Server = (Upstream, Streams);

/// Why the loop ends.
enum End {
    /// The client wants no more.
    Client,
    /// Somebody interrupted the relay.
    Interrupted,
    /// The server has ended, or has to.
    Server(String),
}

/// The parts of a relay.
pub(super) struct Shell {
    gate: Gate,
    link: Link,
    news: mpsc::UnboundedReceiver<News>,
    began: Instant,
    output: Output,
    program: Program,
    /// None while the server is started again.
    upstream: Option<Upstream>,
    /// To the server, until the client has closed its input and everything is passed on.
    to_server: Option<ToServer>,
    from_server: FromServer,
    beside: JoinSet<Done>,
    end: Option<End>,
}

/// What the server writes.
struct FromServer {
    stdout: Option<pipe::Receiver>,
    splitter: Splitter,
    /// Since when it writes no more.
    mute: Option<Instant>,
    /// How it ended, and until when its last words are read.
    exited: Option<(String, Instant)>,
}

impl FromServer {
    fn new(stdout: Option<pipe::Receiver>) -> Self {
        Self {
            stdout,
            splitter: Splitter::new(MAX_RECORD),
            mute: None,
            exited: None,
        }
    }

    /// Reads on; never ends while there is nothing that could be read.
    async fn read(&mut self) -> std::io::Result<usize> {
        match &mut self.stdout {
            Some(stdout) => stdout.read_buf(self.splitter.room()).await,
            None => std::future::pending().await,
        }
    }
}

impl Shell {
    /// Joins the parts.
    pub(super) fn new(
        gate: Gate,
        (link, news): (Link, mpsc::UnboundedReceiver<News>),
        output: Output,
        program: Program,
    ) -> Self {
        Self {
            gate,
            link,
            news,
            began: Instant::now(),
            output,
            program,
            upstream: None,
            to_server: None,
            from_server: FromServer::new(None),
            beside: JoinSet::new(),
            end: None,
        }
    }

    /// Relays until either side ends, and then leaves nothing behind.
    ///
    /// # Errors
    /// If the server ended first.
    pub(super) async fn run(
        mut self,
        mut input: mpsc::Receiver<Vec<Piece>>,
        server: Server,
    ) -> Result<Left, Refusal> {
        self.serve(server);
        let end = match Signals::new() {
            Ok(mut signals) => self.relay(&mut input, &mut signals).await,
            Err(error) => End::Server(format!("signals cannot be waited for: {error}")),
        };
        let why = match &end {
            End::Client | End::Interrupted => "the client has left",
            End::Server(why) => why,
        };
        self.gate.end(why);
        self.carry_out();
        // Permits end with the processes: the host sees for itself when there are none.
        self.to_server = None;
        match self.upstream.take() {
            Some(upstream) => upstream.end(END).await,
            // It must not begin to run when nobody is there any more.
            None => drop(timeout(START, self.end_replacement()).await),
        }
        // A client that does not read is not waited for.
        let _ = timeout(FLUSH, self.output.finish()).await;
        match end {
            End::Client => Ok(Left::Client),
            End::Interrupted => Ok(Left::Interrupted),
            End::Server(why) => Err(Refusal::new(ErrorCode::Internal, why)),
        }
    }

    async fn end_replacement(&mut self) {
        while let Some(done) = self.beside.join_next().await {
            if let Ok(Done::Replaced(replaced)) = done {
                if let Ok((upstream, _streams)) = replaced {
                    upstream.end(Duration::ZERO).await;
                }
                return;
            }
        }
    }

    /// This is the server from now on.
    fn serve(&mut self, (upstream, Streams { stdin, stdout }): Server) {
        self.link.is_for(upstream.keeper());
        self.upstream = Some(upstream);
        self.to_server = Some(ToServer::start(stdin));
        self.from_server = FromServer::new(Some(stdout));
    }

    /// Ends the server, and starts it again.
    fn replace(&mut self) {
        let Some(upstream) = self.upstream.take() else {
            return;
        };
        self.to_server = None;
        self.from_server = FromServer::new(None);
        let program = self.program.clone();
        self.beside.spawn(async move {
            upstream.end(END).await;
            Done::Replaced(Upstream::start(program).await)
        });
    }

    async fn relay(
        &mut self,
        input: &mut mpsc::Receiver<Vec<Piece>>,
        signals: &mut Signals,
    ) -> End {
        // When the client closed its input.
        let mut closed: Option<Instant> = None;
        loop {
            self.carry_out();
            if let Some(end) = self.end.take() {
                return end;
            }
            if closed.is_some() && self.gate.has_passed_all() {
                // Its writer writes what it has and closes the server's input.
                self.to_server = None;
            }
            let silent = self.from_server.mute.is_some();
            let hears_more = self.gate.may_be_interrupted();
            let exited = &mut self.from_server.exited;
            let over =
                exited.take_if(|(_, until)| silent && (!hears_more || *until <= Instant::now()));
            if let Some((why, _)) = over {
                if closed.is_some() {
                    return End::Client;
                }
                self.gate.server_ended(&why);
                continue;
            }
            let waiting = self.gate.held_bytes() + self.to_server_waiting();
            let room = self.output.waiting() < MAX_WAITING;
            let reads_client =
                closed.is_none() && waiting < MAX_WAITING && room && !self.gate.is_away();
            let leave = closed.map(|at| {
                at + if self.gate.is_idle() {
                    LEAVE
                } else {
                    LAST_ANSWERS
                }
            });
            let exited = self.from_server.exited.is_some();
            let last_words = self.from_server.exited.as_ref().map(|(_, until)| *until);
            let mute = self.from_server.mute.map(|since| since + LAST_RECORDS);
            let due = self.gate.deadline().map(|due| self.began + due);
            let wake = [leave, last_words, mute, due].into_iter().flatten().min();
            tokio::select! {
                pieces = input.recv(), if reads_client => match pieces {
                    Some(pieces) => {
                        let now = self.began.elapsed();
                        for piece in pieces {
                            match piece {
                                Piece::Record(record) => self.gate.client_wrote(record, now),
                                Piece::TooLong => self.gate.client_wrote_too_much(),
                            }
                        }
                    }
                    None => closed = Some(Instant::now()),
                },
                read = self.from_server.read(), if room && !silent => match read {
                    Ok(1..) => self.from_server.splitter.split(|piece| match piece {
                        Piece::Record(record) => self.gate.server_wrote(record),
                        Piece::TooLong => self.gate.server_wrote_too_much(),
                    }),
                    Ok(0) | Err(_) => self.from_server.mute = Some(Instant::now()),
                },
                Some(news) = self.news.recv() => {
                    let now = self.began.elapsed();
                    match news {
                        News::Interrupt(permit) => self.gate.interrupt(&permit, now),
                        News::Gone(link) => self.gate.host_gone(link, now),
                    }
                }
                Some(done) = self.beside.join_next() => self.done(done.ok()),
                why = ended(&mut self.upstream), if !exited => {
                    self.from_server.exited = Some((why, Instant::now() + LAST_RECORDS));
                }
                () = self.output.written(), if !room => {}
                () = written(self.to_server.as_ref()), if waiting >= MAX_WAITING => {}
                () = self.output.gone() => return End::Client,
                end = signals.any() => return end,
                () = sleep_until(wake.unwrap_or(self.began)), if wake.is_some() => {
                    let now = Instant::now();
                    if leave.is_some_and(|at| at <= now) {
                        return End::Client;
                    }
                    if last_words.is_some_and(|at| at <= now) {
                        self.from_server.mute.get_or_insert(now);
                    }
                    if mute.is_some_and(|at| at <= now) {
                        let why = "the server closed its output".to_owned();
                        self.from_server.exited.get_or_insert((why, now));
                    }
                    self.gate.tick(self.began.elapsed());
                }
            }
        }
    }

    fn to_server_waiting(&self) -> usize {
        self.to_server.as_ref().map_or(0, ToServer::waiting)
    }

    fn done(&mut self, done: Option<Done>) {
        match done {
            Some(Done::Permit(call, answer)) => self.gate.permitted(call, answer),
            Some(Done::Watched(call, answer)) => self.gate.watched(call, answer),
            Some(Done::Draining(waits)) => self.gate.draining(waits),
            Some(Done::Noted) => {}
            Some(Done::Replaced(Ok(server))) => {
                self.serve(server);
                self.gate.server_is_back(self.began.elapsed());
            }
            Some(Done::Replaced(Err(refusal))) => {
                self.end.get_or_insert(End::Server(refusal.message));
            }
            // A task that panicked: its call runs into its deadline.
            None => {}
        }
    }

    /// Does what the gate wants.
    fn carry_out(&mut self) {
        for effect in self.gate.effects() {
            let link = self.link.clone();
            match effect {
                Effect::ToServer(record) => {
                    if let Some(to_server) = &self.to_server {
                        to_server.send(record);
                    }
                }
                Effect::ToClient(record) => self.output.send(record),
                Effect::AskPermit { call, tool } => {
                    self.beside
                        .spawn(async move { Done::Permit(call, link.permit(&tool).await) });
                }
                Effect::AskWatched { call } => {
                    self.beside
                        .spawn(async move { Done::Watched(call, link.watched().await) });
                }
                Effect::Complete(permit) => {
                    self.beside.spawn(async move {
                        link.complete(permit).await;
                        Done::Noted
                    });
                }
                Effect::Record { tool } => {
                    self.beside.spawn(async move {
                        link.record_refusal(&tool).await;
                        Done::Noted
                    });
                }
                Effect::AskDraining => {
                    self.beside
                        .spawn(async move { Done::Draining(link.draining().await) });
                }
                Effect::EndServer(why) => {
                    self.end.get_or_insert(End::Server(why));
                }
                Effect::ReplaceServer(why) => {
                    tracing::warn!("the server is ended and started again: {why}");
                    self.replace();
                }
            }
        }
    }
}

/// Waits for the end of the server's own process; for ever if there is none.
async fn ended(upstream: &mut Option<Upstream>) -> String {
    match upstream {
        Some(upstream) => upstream.ended().await,
        None => std::future::pending().await,
    }
}

/// The signals that end a relay.
struct Signals([Signal; 3]);

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self([
            signal(SignalKind::terminate())?,
            signal(SignalKind::interrupt())?,
            signal(SignalKind::hangup())?,
        ]))
    }

    async fn any(&mut self) -> End {
        let [terminate, interrupt, hangup] = &mut self.0;
        tokio::select! {
            _ = terminate.recv() => End::Client,
            _ = interrupt.recv() => End::Interrupted,
            _ = hangup.recv() => End::Client,
        }
    }
}
