//! The task between a browser and its clients: it alone owns the gate and the pipe.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::time::Duration;

use handover_cdp::{ClientId, Effect, Gate, Held, Permit, Refused, TooLong, Verdict};
use handover_control::{Control, PermitId, Phase};
use handover_protocol::Refusal;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};

use super::client::Outbox;
use super::pipe::Pipe;
use crate::callers::Caller;
use crate::desktop::{By, DEFAULT_DRAIN_MS, Permits};

/// Messages of all clients that may wait for the task. Each may be long.
pub(super) const QUEUE: usize = 8;

/// Bytes that may wait for the browser before clients are kept waiting.
const MAX_BACKLOG: usize = 64 << 20;

/// How long what is under way may go on once a takeover has begun. Short enough that a person hardly
/// notices, long enough for most commands.
const GRACE: Duration = Duration::from_millis(250);

/// How long reading commands may go on after that, until their answers are not waited for.
const SETTLE: Duration = Duration::from_millis(250);

/// How long what was cut off may take after that, until it is ended with its page. So much less than the default drain
/// that the browser can do that before it is over, and long enough for a slow machine.
const STUCK: Duration = Duration::from_millis(2_000);

/// How long that may take until it is looked after once more.
const AGAIN: Duration = Duration::from_secs(1);

/// What is left of the default drain then, in milliseconds, is more than a second.
const _: () = assert!(
    (GRACE.as_millis() + SETTLE.as_millis() + STUCK.as_millis() + AGAIN.as_millis()) as u64 + 1_000
        < DEFAULT_DRAIN_MS
);

/// Different commands whose refusals are recorded, for each client and epoch.
const MAX_RECORDED: usize = 64;

/// What comes from the clients.
pub(super) enum Event {
    /// One has connected. Nothing of it is read before `ready` is told; dropping that closes it.
    Connected {
        client: ClientId,
        caller: Box<Caller>,
        outbox: Outbox,
        ready: oneshot::Sender<()>,
    },
    /// It sent a message.
    Message(ClientId, Vec<u8>),
    /// It sent one that is too long.
    TooLong(ClientId, TooLong),
    /// It writes no more, and is gone once it has its last answers.
    Finished(ClientId),
    /// It has closed its connection.
    Left(ClientId),
}

struct Client {
    by: By,
    outbox: Outbox,
    ready: Option<oneshot::Sender<()>>,
    /// It writes no more.
    finished: bool,
    /// The commands whose refusals are on record, and in which epoch.
    recorded: (u64, BTreeSet<String>),
}

/// How far the end of what is under way has come, before control is granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Drain {
    /// It may still end by itself.
    Waiting(Instant),
    /// It was cut off.
    CutOff(Instant),
    /// What only reads was given up, and the rest is waited for.
    Settled(Instant),
    /// It was ended with its page.
    Ended(Instant),
}

/// What woke the task.
enum Woken {
    Control(bool),
    Timer,
    Browser(io::Result<Vec<u8>>),
    Event(Option<Event>),
}

pub(super) struct Task {
    pipe: Pipe,
    permits: Permits,
    gate: Gate,
    clients: BTreeMap<ClientId, Client>,
    drain: Option<Drain>,
}

impl Task {
    pub(super) fn new(pipe: Pipe, permits: Permits) -> Self {
        Self {
            pipe,
            permits,
            gate: Gate::new(),
            clients: BTreeMap::new(),
            drain: None,
        }
    }

    /// Runs until the browser or the desktop has ended, or nobody can connect any more.
    pub(super) async fn run(mut self, mut events: mpsc::Receiver<Event>) {
        let mut control = self.permits.control();
        control.mark_changed();
        loop {
            let deadline = self.drain.map(|drain| match drain {
                Drain::Waiting(until)
                | Drain::CutOff(until)
                | Drain::Settled(until)
                | Drain::Ended(until) => until,
            });
            let timer = async {
                match deadline {
                    Some(until) => sleep_until(until).await,
                    None => std::future::pending().await,
                }
            };
            let writable = self.pipe.backlog() < MAX_BACKLOG;
            let woken = tokio::select! {
                biased;
                changed = control.changed() => Woken::Control(changed.is_ok()),
                () = timer => Woken::Timer,
                message = self.pipe.receive() => Woken::Browser(message),
                event = events.recv(), if writable => Woken::Event(event),
            };
            match woken {
                Woken::Control(true) => {
                    let view = control.borrow_and_update().clone();
                    self.control(view.control, view.phase);
                }
                Woken::Timer => self.due(),
                Woken::Browser(Ok(message)) => self.gate.from_browser(&message),
                Woken::Event(Some(event)) => self.event(event).await,
                Woken::Browser(Err(error)) => {
                    tracing::warn!(desktop = %self.permits.desktop(), %error, "the browser has ended");
                    break;
                }
                Woken::Control(false) | Woken::Event(None) => break,
            }
            self.effects().await;
            self.part().await;
        }
        // What it was doing has ended with it.
        self.gate.ended();
        self.effects().await;
    }

    /// Control has moved, or is about to.
    fn control(&mut self, control: Control, phase: Phase) {
        match (control, phase) {
            (Control::Agent, Phase::Draining) => {
                self.gate.release();
                if self.drain.is_none() && self.gate.is_busy() {
                    self.drain = Some(Drain::Waiting(Instant::now() + GRACE));
                }
            }
            (Control::Agent, _) => {
                self.drain = None;
                self.gate.open();
            }
            (Control::Human | Control::Paused, _) => {
                self.gate.close();
                // A pause waits for nothing, a takeover out of it does.
                let begun = self
                    .drain
                    .filter(|drain| !matches!(drain, Drain::Waiting(_)));
                let busy = self.gate.is_busy();
                self.drain = busy.then(|| begun.unwrap_or(Drain::CutOff(Instant::now() + SETTLE)));
            }
        }
    }

    fn due(&mut self) {
        self.drain = match self.drain {
            Some(Drain::Waiting(_)) => {
                self.gate.cut_off();
                Some(Drain::CutOff(Instant::now() + SETTLE))
            }
            Some(Drain::CutOff(_)) => {
                self.gate.settle();
                Some(Drain::Settled(Instant::now() + STUCK))
            }
            Some(Drain::Settled(_)) if self.gate.is_busy() => {
                tracing::warn!(desktop = %self.permits.desktop(), "what was cut off in a browser goes on; it is ended with its page");
                self.gate.end_stuck();
                Some(Drain::Ended(Instant::now() + AGAIN))
            }
            Some(Drain::Ended(_)) => {
                self.gate.end_stuck();
                None
            }
            Some(Drain::Settled(_)) | None => None,
        };
    }

    async fn event(&mut self, event: Event) {
        match event {
            Event::Connected {
                client,
                caller,
                outbox,
                ready,
            } => {
                let by = By::from(&*caller);
                let entry = Client {
                    by,
                    outbox,
                    ready: Some(ready),
                    finished: false,
                    recorded: (0, BTreeSet::new()),
                };
                self.clients.insert(client, entry);
                self.gate.connect(client);
            }
            Event::Message(client, message) => {
                if let Verdict::NeedsPermit(held) = self.gate.from_client(client, &message) {
                    self.ask(client, &held).await;
                }
            }
            Event::TooLong(client, error) => {
                tracing::warn!(client = client.0, %error, "closes a browser's client");
                self.close(client);
            }
            Event::Finished(client) => {
                if let Some(client) = self.clients.get_mut(&client) {
                    client.finished = true;
                }
            }
            Event::Left(client) => self.close(client),
        }
    }

    /// Parts with the clients that write no more and have all their answers.
    async fn part(&mut self) {
        let finished = self.clients.iter().filter(|(_, client)| client.finished);
        let finished: Vec<ClientId> = finished.map(|(id, _)| *id).collect();
        let answered = finished.into_iter().filter(|id| !self.gate.owes(*id));
        let answered: Vec<ClientId> = answered.collect();
        if !answered.is_empty() {
            answered.into_iter().for_each(|client| self.close(client));
            self.effects().await;
        }
    }

    /// Asks for the permit of a command. The desktop answers at once, so others wait no longer than that.
    async fn ask(&mut self, client: ClientId, held: &Held) {
        let Some(asking) = self.clients.get(&client) else {
            return;
        };
        match self.permits.permit(&asking.by, held.method()).await {
            Ok(permit) => self.gate.permitted(held, Permit(permit.0)),
            Err(refusal) => {
                self.record(client, held.method(), &refusal).await;
                let refused = Refused {
                    code: refusal.code.as_str().to_owned(),
                    message: refusal.message,
                    data: refusal.data,
                };
                self.gate.refused(held, &refused);
            }
        }
    }

    /// Keeps a refusal in the record, the first of each command in an epoch.
    async fn record(&mut self, client: ClientId, method: &str, refusal: &Refusal) {
        let epoch = self.permits.control().borrow().epoch.0;
        let Some(client) = self.clients.get_mut(&client) else {
            return;
        };
        if client.recorded.0 != epoch {
            client.recorded = (epoch, BTreeSet::new());
        }
        let is_name = method.len() <= 64
            && method
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || c == '.');
        let seen = &mut client.recorded.1;
        if is_name && seen.len() < MAX_RECORDED && seen.insert(method.to_owned()) {
            let tool = format!("cdp:{method}");
            self.permits
                .record_refusal(&client.by, &tool, refusal.code)
                .await;
        }
    }

    fn close(&mut self, client: ClientId) {
        self.clients.remove(&client);
        self.gate.disconnect(client);
    }

    async fn effects(&mut self) {
        while let Some(effect) = self.gate.poll_effect() {
            match effect {
                Effect::ToBrowser(message) => self.pipe.send(message),
                Effect::ToClient(client, message) => {
                    let sent = self.clients.get(&client);
                    if sent.is_some_and(|client| !client.outbox.send(message)) {
                        tracing::warn!(
                            client = client.0,
                            "closes a browser's client that does not read"
                        );
                        self.close(client);
                    }
                }
                Effect::Ready(client) => {
                    let ready = self.clients.get_mut(&client);
                    if let Some(ready) = ready.and_then(|client| client.ready.take()) {
                        // It may have left; then that is the next event.
                        let _ = ready.send(());
                    }
                }
                Effect::Close(client) => self.close(client),
                Effect::Complete(permit) => self.permits.complete(PermitId(permit.0)).await,
            }
        }
    }
}
