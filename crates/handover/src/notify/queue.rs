//! What waits to be told by one way. The oldest is lost when too much does.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::Job;

/// The most that waits.
const MOST: usize = 64;

/// A queue between the reader and one worker.
#[derive(Debug)]
pub struct Queue {
    way: &'static str,
    waiting: Mutex<VecDeque<Job>>,
    more: Condvar,
}

impl Queue {
    /// An empty one; `way` is for the log.
    pub fn new(way: &'static str) -> Self {
        Self {
            way,
            waiting: Mutex::default(),
            more: Condvar::new(),
        }
    }

    /// Adds one. Does not wait.
    pub fn put(&self, job: Job) {
        let lost = {
            let mut waiting = self.waiting();
            waiting.push_back(job);
            (waiting.len() > MOST).then(|| waiting.pop_front())
        };
        if lost.is_some() {
            tracing::warn!(
                way = self.way,
                "too much waits to be told: the oldest notice is lost"
            );
        }
        self.more.notify_one();
    }

    /// Takes the oldest, once there is one.
    pub fn next(&self) -> Job {
        let mut waiting = self.waiting();
        loop {
            if let Some(job) = waiting.pop_front() {
                return job;
            }
            waiting = self
                .more
                .wait(waiting)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<Job>> {
        // Nothing panics while it holds this lock.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::super::message::{Message, tests::request};
    use super::super::receipt::tests::Told;
    use super::*;
    use crate::config::Notify;

    #[test]
    fn the_oldest_is_lost_and_dealt_with() {
        let (queue, told) = (Queue::new("test"), Told::default());
        for number in 0..MOST as u64 + 2 {
            let notice = request();
            queue.put(Job {
                message: Message {
                    title: number.to_string(),
                    ..Message::of(&notice)
                },
                notice,
                notify: Notify::default(),
                came: std::time::Instant::now(),
                _receipt: told.receipt(number),
            });
        }
        assert_eq!(told.said(), "0\n1\n");
        assert_eq!(queue.next().message.title, "2");
        assert_eq!(queue.waiting().len(), MOST - 1);
    }
}
