//! The writer's queue: bounded, drained as a whole, with more room for what must not be refused.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

use crate::error::StoreError;
use crate::event::{Prepared, Recorded, Stored};
use crate::projection::Put;

/// What is written in one piece.
pub(crate) struct Write {
    pub(crate) events: Vec<Prepared>,
    pub(crate) puts: Vec<Put>,
    pub(crate) answer: Answer,
}

impl Write {
    /// How many events it has.
    pub(crate) fn count(&self) -> u64 {
        self.events.len() as u64
    }
}

/// What becomes of a write that the disk does not take, and who waits for it.
pub(crate) enum Answer {
    /// It is refused.
    Refuse(oneshot::Sender<Result<Vec<Stored>, StoreError>>),
    /// It is spooled.
    Keep(oneshot::Sender<Recorded<Vec<Stored>>>),
    /// It is spooled while there is plenty of room, and nobody waits.
    Soon,
}

/// Why the writer woke up.
pub(crate) struct Batch {
    /// Everything that was waiting, in order.
    pub(crate) writes: Vec<Write>,
    /// Events that found no room in the queue since the last batch.
    pub(crate) lost: u64,
    /// Present once the store is closing; nothing comes after this batch.
    pub(crate) closing: Option<Closing>,
}

/// Who waits for the store to be closed.
pub(crate) struct Closing(pub(crate) Option<oneshot::Sender<Result<(), StoreError>>>);

/// See the module's text.
pub(crate) struct Queue {
    state: Mutex<State>,
    wake: Condvar,
    limit: usize,
}

#[derive(Default)]
struct State {
    writes: VecDeque<Write>,
    lost: u64,
    closing: Option<Closing>,
    closed: bool,
}

impl Queue {
    /// A queue that refuses ordinary writes beyond `limit`.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            state: Mutex::default(),
            wake: Condvar::new(),
            limit,
        }
    }

    /// Adds a write. What nobody waits for may fill half of the queue, what can be refused all of it,
    /// and what must be kept twice as much.
    pub(crate) fn push(&self, write: Write) -> Result<(), StoreError> {
        let mut state = self.lock();
        if state.closed {
            return Err(StoreError::Closed);
        }
        let limit = match write.answer {
            Answer::Soon => self.limit / 2,
            Answer::Refuse(_) => self.limit,
            Answer::Keep(_) => self.limit * 2,
        };
        if state.writes.len() >= limit {
            if !matches!(write.answer, Answer::Refuse(_)) {
                state.lost += write.count();
            }
            return Err(StoreError::QueueFull);
        }
        state.writes.push_back(write);
        drop(state);
        self.wake.notify_one();
        Ok(())
    }

    /// Lets the writer finish what is waiting and end; `answer` learns whether all of it was stored.
    pub(crate) fn close(&self, answer: Option<oneshot::Sender<Result<(), StoreError>>>) {
        let mut state = self.lock();
        if state.closed {
            return;
        }
        state.closed = true;
        state.closing = Some(Closing(answer));
        drop(state);
        self.wake.notify_one();
    }

    /// Takes everything that waits; blocks until there is something or `patience` has passed.
    pub(crate) fn take(&self, patience: Option<Duration>) -> Batch {
        let idle = |state: &mut State| {
            state.writes.is_empty() && state.lost == 0 && state.closing.is_none()
        };
        let state = self.lock();
        let mut state = match patience {
            None => self
                .wake
                .wait_while(state, idle)
                .unwrap_or_else(PoisonError::into_inner),
            Some(patience) => {
                self.wake
                    .wait_timeout_while(state, patience, idle)
                    .unwrap_or_else(PoisonError::into_inner)
                    .0
            }
        };
        Batch {
            writes: std::mem::take(&mut state.writes).into(),
            lost: std::mem::take(&mut state.lost),
            closing: state.closing.take(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it holds this lock, and the state is valid at every step.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
