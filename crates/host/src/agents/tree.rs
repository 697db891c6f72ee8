//! The processes of one agent, followed to their end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use handover_agents::environment::{Exit, Pending, Tree};
use handover_protocol::AgentId;
use tokio::sync::{mpsc, oneshot};

use super::environment::Parts;
use super::leftovers;
use crate::keeper::client::{Keeper, KeeperEvent};
use crate::keeper::wire;
use crate::system::process::ProcessIdentity;

/// Below one agent's keeper. Dropping it lets the keeper go, which then ends the tree by itself.
pub(super) struct AgentTree {
    state: Arc<State>,
}

struct State {
    agent: AgentId,
    parts: Arc<Parts>,
    process: ProcessIdentity,
    /// None once it was let go.
    keeper: Mutex<Option<Keeper>>,
    /// It is being ended in order, so its going is no surprise.
    ending: AtomicBool,
}

impl State {
    fn keeper(&self) -> Option<Keeper> {
        self.keeper
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn let_go(&self) {
        *self.keeper.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Nothing runs below the keeper any more.
    fn over(&self, left: &[ProcessIdentity]) {
        if !left.is_empty() {
            tracing::error!(agent = %self.agent, ?left, "processes could not be killed");
        }
        self.parts.callers.agent_ended(self.process);
        // A keeper that ends in order has removed its socket itself.
        let _ = std::fs::remove_file(self.parts.paths.agent_keeper_socket(&self.agent));
        self.parts.requests.cancel_of(&self.agent);
        if left.is_empty() {
            leftovers::forget(&self.parts.store, &self.agent);
        }
    }
}

impl AgentTree {
    /// Follows the keeper of an agent whose program is `program`. The second comes when that program
    /// has ended.
    pub(super) fn follow(
        agent: AgentId,
        parts: Arc<Parts>,
        keeper: Keeper,
        program: u32,
        events: mpsc::UnboundedReceiver<KeeperEvent>,
    ) -> (Self, Pending<Exit>) {
        let state = Arc::new(State {
            agent,
            parts,
            process: keeper.process(),
            keeper: Mutex::new(Some(keeper)),
            ending: AtomicBool::new(false),
        });
        let (exit, exited) = oneshot::channel();
        tokio::spawn(follow(Arc::clone(&state), program, events, exit));
        let exited = async move { exited.await.unwrap_or_else(|_| ended("nobody follows it")) };
        (Self { state }, Box::pin(exited))
    }
}

impl Tree for AgentTree {
    fn end(&self, grace: Duration) -> Pending<Vec<u32>> {
        let state = Arc::clone(&self.state);
        Box::pin(async move {
            let Some(keeper) = state.keeper() else {
                return Vec::new();
            };
            state.ending.store(true, Ordering::Release);
            let left = keeper.end(grace).await;
            state.over(&left);
            left.into_iter().map(|process| process.pid).collect()
        })
    }
}

impl Drop for AgentTree {
    fn drop(&mut self) {
        self.state.let_go();
    }
}

async fn follow(
    state: Arc<State>,
    program: u32,
    mut events: mpsc::UnboundedReceiver<KeeperEvent>,
    exit: oneshot::Sender<Exit>,
) {
    let mut exit = Some(exit);
    let mut tell = |how: Exit| {
        if let Some(exit) = exit.take() {
            // Whoever ran the agent may have stopped listening.
            let _ = exit.send(how);
        }
    };
    while let Some(event) = events.recv().await {
        match event {
            KeeperEvent::ChildExited { pid, exit } if pid == program => tell(said(exit)),
            KeeperEvent::ChildExited { .. } | KeeperEvent::ServerExited { .. } => {}
            KeeperEvent::Gone => break,
        }
    }
    if state.ending.load(Ordering::Acquire) {
        // Unless it has ended by itself before.
        return tell(ended("it was ended"));
    }
    // Nothing keeps what was below a keeper that is gone; one that was let go ends its tree itself.
    if let Some(keeper) = state.keeper() {
        tracing::warn!(agent = %state.agent, "the agent's keeper is gone");
        let left = keeper.kill_leftovers().await;
        state.over(&left);
    } else {
        state.over(&[]);
    }
    tell(ended("the end of its keeper, which was killed"));
}

fn said(exit: wire::Exit) -> Exit {
    match exit {
        wire::Exit::Code(code) => Exit {
            success: code == 0,
            how: format!("exit code {code}"),
        },
        wire::Exit::Signal(signal) => Exit {
            success: false,
            how: format!("signal {signal}"),
        },
    }
}

fn ended(how: &str) -> Exit {
    Exit {
        success: false,
        how: how.to_owned(),
    }
}
