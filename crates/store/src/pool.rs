//! A few threads that each own something (a connection) and do what is asked, first come first served.

use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::{io, thread};

use tokio::sync::{oneshot, watch};

use crate::error::StoreError;

type Task<T> = Box<dyn FnOnce(&mut T) + Send>;

/// Threads that end when the pool is closed or dropped.
pub(crate) struct Pool<T> {
    /// `None` once closed.
    tasks: Mutex<Option<mpsc::SyncSender<Task<T>>>>,
    /// Each thread holds a receiver for as long as it owns something.
    alive: watch::Sender<()>,
}

impl<T: Send + 'static> Pool<T> {
    /// Starts one thread for each of `owned`; at most `waiting` tasks are queued.
    pub(crate) fn start(name: &str, owned: Vec<T>, waiting: usize) -> io::Result<Self> {
        let (tasks, queue) = mpsc::sync_channel::<Task<T>>(waiting);
        let queue = Arc::new(Mutex::new(queue));
        let alive = watch::Sender::new(());
        for mut own in owned {
            let queue = Arc::clone(&queue);
            let alive = alive.subscribe();
            thread::Builder::new()
                .name(name.to_owned())
                .spawn(move || {
                    loop {
                        let task = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
                        match task {
                            Ok(task) => task(&mut own),
                            Err(mpsc::RecvError) => break,
                        }
                    }
                    drop(own);
                    drop(alive);
                })?;
        }
        Ok(Self {
            tasks: Mutex::new(Some(tasks)),
            alive,
        })
    }

    /// Runs `work` on one of the threads.
    pub(crate) async fn run<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut T) -> Result<R, StoreError> + Send + 'static,
    ) -> Result<R, StoreError> {
        let tasks = self
            .tasks
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let (answer, answered) = oneshot::channel();
        tasks
            .ok_or(StoreError::Closed)?
            .try_send(Box::new(move |own| {
                // Whoever stopped waiting needs no answer.
                let _ = answer.send(work(own));
            }))
            .map_err(|error| match error {
                mpsc::TrySendError::Full(_) => StoreError::QueueFull,
                mpsc::TrySendError::Disconnected(_) => StoreError::Closed,
            })?;
        answered.await.unwrap_or(Err(StoreError::Closed))
    }

    /// Ends the threads after what is queued; answers when everything they owned is dropped.
    pub(crate) async fn close(&self) {
        drop(
            self.tasks
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take(),
        );
        self.alive.closed().await;
    }
}
