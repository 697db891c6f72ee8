//! One running agent: a task that owns its driver and its pipes.

mod activity;
mod effects;
mod ending;
mod input;
mod output;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use handover_protocol::{AgentId, AgentStatus, RequestId, SteerId, SteerState};
use tokio::io::AsyncReadExt;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::driver::{Driver, Effect, Steer};
use crate::environment::{Exit, Pending, Start, Started, Tree};
use crate::manager::Manager;
use crate::manager::receipt::{Receipt, is_final};
use activity::Activity;
use ending::{Close, Verdict};
use input::Input;
use output::{Frames, OutputFile};

/// How long a program may take until it can take work.
pub(crate) const READY_WITHIN: Duration = Duration::from_secs(60);
/// How long a program may take to be quiet after it was asked to end its turn.
pub(crate) const SETTLE: Duration = Duration::from_secs(2);
/// How long after TERM until KILL.
pub(crate) const GRACE: Duration = Duration::from_secs(2);
/// How long a program may take to end by itself after its input was closed.
const LEAVE_WITHIN: Duration = Duration::from_millis(500);
/// How long is read on after a program has ended, for what it started and left.
const DRAIN_WITHIN: Duration = Duration::from_secs(1);
/// Bytes that are read at once.
const PART: usize = 16 << 10;
/// Messages that are taken at once, so that their `handed` is stored at once.
const BATCH: usize = 64;

/// What is to be started.
#[derive(Debug)]
pub(crate) struct Launch {
    pub driver: Box<dyn Driver>,
    pub start: Start,
}

/// What the manager wants of a run, in this order.
#[derive(Debug)]
pub(crate) enum Order {
    /// Put a message to the program.
    Steer {
        /// The agent that it is for: this one, or a subagent of its program.
        agent: AgentId,
        steer: Steer,
        receipt: Arc<Receipt>,
    },
    /// Look again whether there is something to wait for.
    Reconsider,
    /// End the work of one of the program's own subagents.
    InterruptChild {
        name: String,
        reply: oneshot::Sender<bool>,
    },
    /// People were asked a question of the program.
    Asked {
        question: String,
        request: RequestId,
    },
    /// People have decided on a question of the program; `None` if they were not asked any more.
    Decide {
        question: String,
        allow: Option<bool>,
    },
}

/// Runs an agent to its end.
pub(crate) async fn run(
    manager: Manager,
    id: AgentId,
    launch: Launch,
    inbox: mpsc::Receiver<Order>,
    abort: watch::Receiver<bool>,
) {
    let env = manager.inner.env.clone();
    let Launch { driver, start } = launch;
    let framing = start.program.framing;
    let desktop = start.desktop.clone();
    let program = start.program.argv.first().cloned().unwrap_or_default();
    let started = match env.start(&id, start).await {
        Ok(started) => started,
        Err(reason) => {
            let verdict = Verdict::not_started(if reason.starts_with("cannot start") {
                reason
            } else {
                format!("cannot start {program}: {reason}")
            });
            ending::finish(&manager, &id, verdict, Vec::new()).await;
            return;
        }
    };
    let Started {
        stdin,
        stdout,
        stderr,
        exited,
        tree,
    } = started;
    let errors = tokio::spawn(output::copy_errors(stderr, env.error_file(&id)));
    let (decisions, decided) = mpsc::channel(16);
    let run = Run {
        activity: Activity::new(id.clone()),
        file: OutputFile::create(&env.output_file(&id)).await,
        frames: Frames::new(framing),
        input: Some(Input::new(stdin)),
        receivers: HashMap::new(),
        questions: HashMap::new(),
        decisions,
        turn: Turn::Starting,
        close: None,
        last: None,
        desktop,
        manager,
        id,
        driver,
    };
    run.serve(Wires {
        inbox,
        decided,
        abort,
        stdout,
        exited,
        tree,
        errors,
    })
    .await;
}

/// Where a program is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// It cannot take work yet.
    Starting,
    /// It works, or is about to.
    Working,
    /// Its turn has ended.
    Ended,
}

/// A running agent.
struct Run {
    manager: Manager,
    id: AgentId,
    driver: Box<dyn Driver>,
    desktop: Option<handover_protocol::DesktopId>,
    activity: Activity,
    file: OutputFile,
    frames: Frames,
    /// None once it is closed.
    input: Option<Input>,
    /// The agent that each steer under way is for.
    receivers: HashMap<SteerId, AgentId>,
    /// The questions of the program that people were asked.
    questions: HashMap<String, JoinHandle<()>>,
    decisions: mpsc::Sender<Order>,
    turn: Turn,
    /// Set once it is to end.
    close: Option<Close>,
    /// What the last turn came to.
    last: Option<(String, Option<String>)>,
}

/// What a run waits for.
struct Wires {
    inbox: mpsc::Receiver<Order>,
    decided: mpsc::Receiver<Order>,
    abort: watch::Receiver<bool>,
    stdout: Box<dyn tokio::io::AsyncRead + Send + Unpin>,
    exited: Pending<Exit>,
    tree: Box<dyn Tree>,
    /// Answers the end of what the program wrote to its standard error.
    errors: JoinHandle<String>,
}

impl Run {
    async fn serve(mut self, mut wires: Wires) {
        let mut effects = Vec::new();
        if *wires.abort.borrow() {
            // Aborted while it was started: it is given no work.
            let mut close = Close::abort();
            close.settled();
            self.close = Some(close);
            return self.wind_up(wires, None, true).await;
        }
        self.driver.begin(&mut effects);
        self.apply(&mut effects).await;
        // Not filled with zeros, so that it takes memory only as far as a program writes.
        let mut part = Vec::with_capacity(PART);
        let mut reading = true;
        let mut batch = Vec::new();
        let ready_by = Instant::now() + READY_WITHIN;
        let exit = loop {
            let deadline = match &self.close {
                Some(close) => Some(close.by),
                None if self.turn == Turn::Starting => Some(ready_by),
                None => None,
            };
            tokio::select! {
                biased;
                () = asked_to_end(&mut wires.abort), if self.close.is_none() => {
                    self.begin_abort(&mut wires.inbox, &mut effects);
                }
                () = until(deadline) => {
                    if self.close.is_some() {
                        break None;
                    }
                    self.fail(format!(
                        "its program was not ready within {} s",
                        READY_WITHIN.as_secs()
                    ));
                }
                exit = &mut wires.exited => break Some(exit),
                Some(order) = wires.decided.recv() => {
                    self.order(order, &mut effects).await;
                }
                taken = wires.inbox.recv_many(&mut batch, BATCH), if self.close.is_none() => {
                    debug_assert!(taken > 0, "the manager holds the other end");
                    for order in batch.drain(..) {
                        self.order(order, &mut effects).await;
                    }
                }
                () = self.activity.due() => self.activity.flush(&self.manager),
                // Last, since a program may always have something to say.
                read = wires.stdout.read_buf(&mut part), if reading => match read {
                    Ok(0) | Err(_) => reading = false,
                    Ok(_) => {
                        self.read(&part, &mut effects).await;
                        part.clear();
                    }
                },
            }
            self.apply(&mut effects).await;
            self.consider_end(&mut wires.inbox);
            if self.close.as_ref().is_some_and(|close| close.is_over()) {
                break None;
            }
        };
        self.wind_up(wires, exit, reading).await;
    }

    /// Hands what the program wrote to the driver.
    async fn read(&mut self, data: &[u8], effects: &mut Vec<Effect>) {
        self.file.write(data).await;
        let driver = &mut self.driver;
        self.frames
            .split(data, |frame| driver.output(frame, effects));
    }

    async fn order(&mut self, order: Order, effects: &mut Vec<Effect>) {
        match order {
            Order::Steer {
                agent,
                steer,
                receipt,
            } => {
                let mut known = receipt.watch();
                let stored = known.wait_for(|known| known.stored.is_some()).await;
                if !stored.is_ok_and(|known| known.stored == Some(true) && !is_final(known.state)) {
                    return;
                }
                if !self.manager.inner.env.healthy() {
                    let reason = "the record cannot be written, and would miss it";
                    self.manager
                        .receipt(&agent, &steer.id, SteerState::Dropped, Some(reason));
                    return;
                }
                if self.input.as_ref().is_none_or(Input::is_full) {
                    let reason = "its program does not read what it is sent";
                    self.manager
                        .receipt(&agent, &steer.id, SteerState::Dropped, Some(reason));
                    return;
                }
                self.receivers.insert(steer.id.clone(), agent);
                self.driver.steer(steer, effects);
            }
            Order::Reconsider => {}
            Order::InterruptChild { name, reply } => {
                let done = self.driver.interrupt_child(&name, effects);
                // Whoever asked may have gone.
                let _ = reply.send(done);
            }
            Order::Asked { question, request } => {
                // It may have taken the question back meanwhile.
                if self.questions.contains_key(&question) {
                    self.manager.asks(&self.id, &question, request);
                }
            }
            Order::Decide { question, allow } => {
                self.questions.remove(&question);
                self.driver
                    .decide(&question, allow.unwrap_or(false), effects);
                self.asked_no_more(&question);
            }
        }
    }

    fn asked_no_more(&self, question: &str) {
        if self.manager.asks_no_more(&self.id, question) {
            let status = match self.turn {
                Turn::Starting => AgentStatus::Starting,
                Turn::Working => AgentStatus::Running,
                Turn::Ended => AgentStatus::Waiting,
            };
            self.manager.set_status(&self.id, status);
        }
    }

    /// Ends the agent once its turn has ended, nothing waits for it, and it waits for nothing.
    fn consider_end(&mut self, inbox: &mut mpsc::Receiver<Order>) {
        if self.turn != Turn::Ended || self.close.is_some() {
            return;
        }
        let waits = || {
            let desktops = self.manager.desktops_of(&self.id);
            let env = &self.manager.inner.env;
            env.waits_for(&self.id, &desktops).is_some()
        };
        if waits() {
            self.manager.set_status(&self.id, AgentStatus::Waiting);
            // What comes from here on wakes one that is seen to wait; what came before is seen now.
            if waits() {
                return;
            }
        }
        // Whoever wants to send a message from here on is told that it has ended; what was accepted
        // before is a next turn.
        if self.manager.close_inbox(&self.id, inbox) {
            self.input = None;
            self.close = Some(Close::after_turn());
        }
    }

    fn begin_abort(&mut self, inbox: &mut mpsc::Receiver<Order>, effects: &mut Vec<Effect>) {
        inbox.close();
        while let Ok(order) = inbox.try_recv() {
            if let Order::Steer { agent, steer, .. } = order {
                let reason = "the agent was aborted before it was handed over";
                self.manager
                    .receipt(&agent, &steer.id, SteerState::Dropped, Some(reason));
            }
        }
        self.close = Some(Close::abort());
        self.driver.interrupt(effects);
    }

    /// Ends the agent as failed.
    fn fail(&mut self, reason: String) {
        // An end that is under way already is not made another.
        if self.close.is_none() {
            self.close = Some(Close::failed(reason));
        }
    }
}

async fn asked_to_end(abort: &mut watch::Receiver<bool>) {
    if abort.wait_for(|&abort| abort).await.is_err() {
        // The manager keeps the other end as long as the agent has not ended.
        std::future::pending::<()>().await;
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
