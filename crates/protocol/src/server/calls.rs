//! The calls of one connection that are under way.

use std::collections::HashMap;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::task::Poll;

use tokio::task::{self, JoinError, JoinSet, unconstrained};

use super::outlet::Outlet;
use crate::envelope::{Id, error_line};
use crate::{ErrorCode, Refusal};

/// Calls of one connection that may be under way at once.
pub const MAX_CALLS: usize = 256;

/// The calls of one connection. Dropping it gives all of them up.
#[derive(Debug)]
pub struct Calls {
    outlet: Outlet,
    tasks: JoinSet<()>,
    /// The requests that `tasks` answer.
    ids: HashMap<task::Id, Option<Id>>,
}

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Calls {
    /// None, of the connection that `outlet` answers.
    pub fn new(outlet: Outlet) -> Self {
        Self {
            outlet,
            tasks: JoinSet::new(),
            ids: HashMap::new(),
        }
    }

    /// Refuses one more than [`MAX_CALLS`].
    ///
    /// # Errors
    /// `queue_full`.
    pub fn check_room(&mut self) -> Result<(), Refusal> {
        // What was answered counts no more, also where many lines came before anybody looked.
        while let Some(ended) = self.tasks.try_join_next_with_id() {
            self.note(ended);
        }
        if self.tasks.len() < MAX_CALLS {
            return Ok(());
        }
        Err(Refusal::new(
            ErrorCode::QueueFull,
            format!("{MAX_CALLS} calls of this connection are under way: wait for an answer"),
        ))
    }

    /// Begins a call, which answers the request `id` itself. It is taken as far as it goes at once, so
    /// that calls take effect in the order of their lines; what then has to wait, waits in a task of
    /// its own. One that panics is answered with `internal`.
    pub async fn begin(&mut self, id: Option<Id>, work: impl Future<Output = ()> + Send + 'static) {
        let mut work: Work = Box::pin(work);
        // Without the runtime's budget, which would make a call wait behind later ones.
        let first = poll_fn(|context| {
            let mut step = pin!(unconstrained(work.as_mut()));
            let polled = catch_unwind(AssertUnwindSafe(|| step.as_mut().poll(context)));
            Poll::Ready(polled)
        });
        match first.await {
            Ok(Poll::Ready(())) => {}
            Ok(Poll::Pending) => {
                let task = self.tasks.spawn(work);
                self.ids.insert(task.id(), id);
            }
            // The panic itself is in the log; the work is dropped and not polled again.
            Err(_) => self.failed(id.as_ref()),
        }
    }

    /// Waits until one of them has ended; `None` if none is under way. Dropping the future loses
    /// nothing.
    pub async fn ended(&mut self) -> Option<()> {
        let ended = self.tasks.join_next_with_id().await?;
        self.note(ended);
        Some(())
    }

    fn note(&mut self, ended: Result<(task::Id, ()), JoinError>) {
        match ended {
            Ok((task, ())) => {
                self.ids.remove(&task);
            }
            Err(error) => {
                tracing::error!(%error, "a call failed");
                let id = self.ids.remove(&error.id()).flatten();
                self.failed(id.as_ref());
            }
        }
    }

    fn failed(&self, id: Option<&Id>) {
        let message = "the call failed by a fault of the host; its log says more";
        if let Some(id) = id {
            let refusal = Refusal::new(ErrorCode::Internal, message);
            self.outlet.push(error_line(id, refusal.into()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_has_ended_leaves_room_at_once() {
        let mut calls = Calls::new(Outlet::new());
        for _ in 0..MAX_CALLS {
            calls.begin(None, task::yield_now()).await;
        }
        calls.check_room().expect_err("all of them are under way");
        for _ in 0..MAX_CALLS {
            task::yield_now().await;
        }
        calls.check_room().expect("none is");
    }
}
