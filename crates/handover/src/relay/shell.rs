//! Around the gate: the client's streams, the server, the host and the clock, in one loop.

use std::time::Duration;

use handover_protocol::{ErrorCode, Refusal};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use super::call::{CallId, Permit};
use super::gate::{Effect, Gate};
use super::link::{Link, News};
use super::records::MAX_RECORD;
use super::splitter::{Piece, Splitter};
use super::stdio::Output;
use super::upstream::Upstream;

/// Bytes that may wait in one direction before its source is no longer read.
const MAX_WAITING: usize = 2 * MAX_RECORD;
/// Bytes read from the server at once.
const CHUNK: usize = 128 << 10;

/// How long the server may take to end by itself when the client has closed its input.
const LEAVE: Duration = Duration::from_millis(1500);
/// The same while requests have no response yet, for a client that goes on reading.
const LAST_ANSWERS: Duration = Duration::from_secs(10);
/// How long what the server said last may take to be read once it has ended.
const LAST_RECORDS: Duration = Duration::from_millis(500);
/// How long the server's processes get between TERM and KILL.
const END: Duration = Duration::from_millis(500);
/// How long the client may take to read what is left for it.
const FLUSH: Duration = Duration::from_secs(1);

/// What came back from beside the loop.
enum Done {
    Permit(CallId, Result<Permit, Refusal>),
    Watched(CallId, Result<(), Refusal>),
    Draining(bool),
    Completed,
}

/// Why the loop ends.
enum End {
    /// The client wants no more.
    Client,
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
    /// To the server, until the client has closed its input and everything is passed on.
    to_server: Option<ToServer>,
    beside: JoinSet<Done>,
    end: Option<End>,
}

impl Shell {
    /// Joins the parts.
    pub(super) fn new(
        gate: Gate,
        (link, news): (Link, mpsc::UnboundedReceiver<News>),
        stdin: pipe::Sender,
        output: Output,
    ) -> Self {
        Self {
            gate,
            link,
            news,
            began: Instant::now(),
            output,
            to_server: Some(ToServer::start(stdin)),
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
        mut input: mpsc::Receiver<Vec<u8>>,
        mut upstream: Upstream,
        stdout: pipe::Receiver,
    ) -> Result<(), Refusal> {
        let end = match Signals::new() {
            Ok(mut signals) => {
                self.relay(&mut input, &mut upstream, stdout, &mut signals)
                    .await
            }
            Err(error) => End::Server(format!("signals cannot be waited for: {error}")),
        };
        let why = match &end {
            End::Client => "the client has left",
            End::Server(why) => why,
        };
        self.gate.end(why);
        self.carry_out();
        // Permits end with the processes: the host sees for itself when there are none.
        self.to_server = None;
        upstream.end(END).await;
        // A client that does not read is not waited for.
        let _ = timeout(FLUSH, self.output.finish()).await;
        match end {
            End::Client => Ok(()),
            End::Server(why) => Err(Refusal::new(ErrorCode::Internal, why)),
        }
    }

    async fn relay(
        &mut self,
        input: &mut mpsc::Receiver<Vec<u8>>,
        upstream: &mut Upstream,
        mut stdout: pipe::Receiver,
        signals: &mut Signals,
    ) -> End {
        let mut from_client = Splitter::new(MAX_RECORD);
        let mut from_server = Splitter::new(MAX_RECORD);
        let mut buffer = vec![0; CHUNK];
        // When the client closed its input.
        let mut closed: Option<Instant> = None;
        // How the server ended, and until when its last words are read.
        let mut exited: Option<(String, Instant)> = None;
        // Whether it writes no more, and until when it may take to end then.
        let mut silent = false;
        let mut mute: Option<Instant> = None;
        loop {
            self.carry_out();
            if let Some(end) = self.end.take() {
                return end;
            }
            if closed.is_some() && self.gate.has_passed_all() {
                // Its writer writes what it has and closes the server's input.
                self.to_server = None;
            }
            if let Some((why, _)) = exited.take_if(|_| silent) {
                return if closed.is_some() {
                    End::Client
                } else {
                    End::Server(why)
                };
            }
            let waiting = self.gate.held_bytes() + self.to_server_waiting();
            let room = self.output.waiting() < MAX_WAITING;
            let reads_client = closed.is_none() && waiting < MAX_WAITING && room;
            let leave = closed.map(|at| {
                at + if self.gate.is_idle() {
                    LEAVE
                } else {
                    LAST_ANSWERS
                }
            });
            let last_words = exited.as_ref().map(|(_, until)| *until);
            let due = self.gate.deadline().map(|due| self.began + due);
            let wake = [leave, last_words, mute, due].into_iter().flatten().min();
            tokio::select! {
                chunk = input.recv(), if reads_client => match chunk {
                    Some(chunk) => {
                        let now = self.began.elapsed();
                        from_client.push(&chunk, |piece| match piece {
                            Piece::Record(record) => self.gate.client_wrote(record, now),
                            Piece::TooLong => self.gate.client_wrote_too_much(),
                        });
                    }
                    None => closed = Some(Instant::now()),
                },
                read = stdout.read(&mut buffer), if room && !silent => match read {
                    Ok(length @ 1..) => {
                        from_server.push(&buffer[..length], |piece| match piece {
                            Piece::Record(record) => self.gate.server_wrote(record),
                            Piece::TooLong => self.gate.server_wrote_too_much(),
                        });
                    }
                    Ok(0) | Err(_) => {
                        silent = true;
                        mute = Some(Instant::now() + LAST_RECORDS);
                    }
                },
                Some(news) = self.news.recv() => {
                    let now = self.began.elapsed();
                    match news {
                        News::Interrupt(permit) => self.gate.interrupt(&permit, now),
                        News::Gone => self.gate.host_gone(now),
                    }
                }
                Some(done) = self.beside.join_next() => self.done(done.ok()),
                why = upstream.ended(), if exited.is_none() => {
                    exited = Some((why, Instant::now() + LAST_RECORDS));
                }
                () = self.output.written(), if !room => {}
                () = written(self.to_server.as_ref()), if waiting >= MAX_WAITING => {}
                () = self.output.gone() => return End::Client,
                () = signals.any() => return End::Client,
                () = sleep_until(wake.unwrap_or(self.began)), if wake.is_some() => {
                    let now = Instant::now();
                    if leave.is_some_and(|at| at <= now) {
                        return End::Client;
                    }
                    silent |= last_words.is_some_and(|at| at <= now);
                    if mute.is_some_and(|at| at <= now) {
                        let why = "the server closed its output".to_owned();
                        exited.get_or_insert((why, now));
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
            Some(Done::Completed) => {}
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
                        Done::Completed
                    });
                }
                Effect::AskDraining => {
                    self.beside
                        .spawn(async move { Done::Draining(link.draining().await) });
                }
                Effect::EndServer(why) => {
                    self.end.get_or_insert(End::Server(why));
                }
            }
        }
    }
}

/// The one ordered way to the server.
struct ToServer {
    records: mpsc::UnboundedSender<Vec<u8>>,
    waiting: std::sync::Arc<std::sync::atomic::AtomicUsize>,
    written: std::sync::Arc<tokio::sync::Notify>,
}

impl ToServer {
    fn start(mut stdin: pipe::Sender) -> Self {
        let (records, mut to_write) = mpsc::unbounded_channel::<Vec<u8>>();
        let to_server = Self {
            records,
            waiting: Default::default(),
            written: Default::default(),
        };
        let (waiting, written) = (to_server.waiting.clone(), to_server.written.clone());
        tokio::spawn(async move {
            while let Some(record) = to_write.recv().await {
                // A server that reads no more is about to end, or only writes: what it was to read is
                // dropped, so that nothing waits for it.
                let _ = stdin.write_all(&record).await;
                waiting.fetch_sub(record.len(), std::sync::atomic::Ordering::AcqRel);
                written.notify_one();
            }
        });
        to_server
    }

    fn send(&self, record: Vec<u8>) {
        self.waiting
            .fetch_add(record.len(), std::sync::atomic::Ordering::AcqRel);
        // The writer lives as long as this.
        let _ = self.records.send(record);
    }

    fn waiting(&self) -> usize {
        self.waiting.load(std::sync::atomic::Ordering::Acquire)
    }
}

async fn written(to_server: Option<&ToServer>) {
    match to_server {
        Some(to_server) => to_server.written.notified().await,
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

    async fn any(&mut self) {
        let [a, b, c] = &mut self.0;
        tokio::select! {
            _ = a.recv() => {}
            _ = b.recv() => {}
            _ = c.recv() => {}
        }
    }
}
