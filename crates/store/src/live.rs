//! Live events: every subscriber sees each stored event once and in order, or is told what it missed.

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use handover_protocol::envelope::notification_line_of;
use tokio::sync::broadcast;

use crate::event::Event;
use crate::schema::Tail;

/// What the writer shows to everyone else.
pub(crate) struct Published {
    tail: Mutex<Tail>,
    /// `None` once the store is closed, which ends every subscription.
    sender: Mutex<Option<broadcast::Sender<Arc<LiveEvent>>>>,
    healthy: AtomicBool,
    /// Grows each time the database is replaced by another file.
    generation: AtomicU64,
}

impl Published {
    pub(crate) fn new(tail: Tail, capacity: usize) -> Self {
        Self {
            tail: Mutex::new(tail),
            sender: Mutex::new(Some(broadcast::Sender::new(capacity))),
            healthy: AtomicBool::new(true),
            generation: AtomicU64::new(0),
        }
    }

    /// Whether the last write succeeded.
    pub(crate) fn healthy(&self) -> bool {
        self.healthy.load(Ordering::Acquire)
    }

    pub(crate) fn set_healthy(&self, healthy: bool) {
        self.healthy.store(healthy, Ordering::Release);
    }

    /// Which file the database is: readers of an earlier one open it anew.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// The database is another file from now on.
    pub(crate) fn replaced(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
    }

    /// Shows events that are durable.
    pub(crate) fn publish(&self, events: Vec<Event>, tail: Tail) {
        *self.tail.lock().unwrap_or_else(PoisonError::into_inner) = tail;
        self.set_healthy(true);
        if let Some(sender) = &*self.sender() {
            for event in events {
                // An error only means that nobody is subscribed.
                let _ = sender.send(Arc::new(LiveEvent {
                    event,
                    line: OnceLock::new(),
                }));
            }
        }
    }

    /// Ends every subscription.
    pub(crate) fn close(&self) {
        *self.sender() = None;
    }

    pub(crate) fn tail(&self) -> Tail {
        *self.tail.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn subscribe(&self) -> Live {
        // Subscribed first: an event between the two steps is then seen twice by us, and not missed.
        let receiver = self
            .sender()
            .as_ref()
            .map_or_else(|| broadcast::channel(1).1, broadcast::Sender::subscribe);
        let cursor = self.tail().seq;
        Live {
            receiver,
            seen: cursor,
            held: None,
        }
    }

    fn sender(&self) -> MutexGuard<'_, Option<broadcast::Sender<Arc<LiveEvent>>>> {
        self.sender.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A stored event that all subscribers share.
#[derive(Debug)]
pub struct LiveEvent {
    event: Event,
    /// Made for the first subscriber that sends it.
    line: OnceLock<Arc<Vec<u8>>>,
}

impl LiveEvent {
    /// The line of its notification `event`, newline included: one for all subscribers.
    #[must_use]
    pub fn line(&self) -> Arc<Vec<u8>> {
        // The stored text is the event as it goes over the wire, and has no newline.
        let make = || Arc::new(notification_line_of("event", &self.event.json));
        self.line.get_or_init(make).clone()
    }
}

impl Deref for LiveEvent {
    type Target = Event;

    fn deref(&self) -> &Event {
        &self.event
    }
}

/// What a subscriber receives.
#[derive(Debug, Clone)]
pub enum LiveItem {
    /// A stored event.
    Event(Arc<LiveEvent>),
    /// The subscriber was too slow: these events are only in the record.
    Gap {
        /// First number missed.
        from: u64,
        /// Last number missed.
        to: u64,
    },
}

/// A subscription to events as they are stored.
#[derive(Debug)]
pub struct Live {
    receiver: broadcast::Receiver<Arc<LiveEvent>>,
    seen: u64,
    /// The event that revealed a gap, to be given after it.
    held: Option<Arc<LiveEvent>>,
}

impl Live {
    /// The number of the last event before this subscription, or of the last one it gave.
    #[must_use]
    pub fn cursor(&self) -> u64 {
        self.seen
    }

    /// The next event or gap; `None` once the store is closed. Losing the future loses nothing.
    pub async fn next(&mut self) -> Option<LiveItem> {
        loop {
            let event = match self.held.take() {
                Some(event) => event,
                None => match self.receiver.recv().await {
                    Ok(event) => event,
                    // The next event's number says what is missing.
                    Err(broadcast::error::RecvError::Lagged(_)) => continue,
                    Err(broadcast::error::RecvError::Closed) => return None,
                },
            };
            if event.seq <= self.seen {
                continue;
            }
            let expected = self.seen + 1;
            if event.seq > expected {
                let to = event.seq - 1;
                self.seen = to;
                self.held = Some(event);
                return Some(LiveItem::Gap { from: expected, to });
            }
            self.seen = event.seq;
            return Some(LiveItem::Event(event));
        }
    }
}
