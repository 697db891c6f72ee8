//! Writing to the record.

use serde_json::Value;
use tokio::sync::oneshot;

use crate::error::StoreError;
use crate::event::{MAX_EVENT_BYTES, NewEvent, Prepared, Recorded, Stored};
use crate::projection::Put;
use crate::queue::{Answer, Write};
use crate::store::Store;

impl Store {
    /// Stores an event; it is durable when this answers. Calls are ordered as they are made, whether
    /// or not they are awaited at once: the event is queued before the first await.
    ///
    /// # Errors
    /// When the disk does not take it, it is too large, or too much is waiting. Nothing is kept then.
    pub fn append(
        &self,
        event: NewEvent,
    ) -> impl Future<Output = Result<Stored, StoreError>> + use<> {
        self.append_with(event, Vec::new())
    }

    /// Stores an event and changes projections in the same transaction.
    ///
    /// # Errors
    /// As [`Store::append`].
    pub fn append_with(
        &self,
        event: NewEvent,
        puts: Vec<Put>,
    ) -> impl Future<Output = Result<Stored, StoreError>> + use<> {
        let written = self.append_all(vec![event], puts);
        async move { written.await?.pop().ok_or(StoreError::Closed) }
    }

    /// Stores several events, one right after the other, and changes projections, all in the same
    /// transaction: all of it is kept or nothing.
    ///
    /// # Errors
    /// As [`Store::append`].
    pub fn append_all(
        &self,
        events: Vec<NewEvent>,
        puts: Vec<Put>,
    ) -> impl Future<Output = Result<Vec<Stored>, StoreError>> + use<> {
        let (answer, answered) = oneshot::channel();
        let events: Vec<_> = events.into_iter().map(Prepared::new).collect();
        let queued = match events.iter().find(|event| event.bytes() > MAX_EVENT_BYTES) {
            Some(event) => Err(StoreError::EventTooLarge {
                bytes: event.bytes(),
                limit: MAX_EVENT_BYTES,
            }),
            None => self.queue().push(Write {
                events,
                puts,
                answer: Answer::Refuse(answer),
            }),
        };
        async move {
            queued?;
            answered.await.unwrap_or(Err(StoreError::Closed))
        }
    }

    /// Records an event that must not be refused, such as the end of a takeover: while the disk takes
    /// nothing it is kept in memory in its order, and followed by a `gap` event once stored. Events
    /// that are too large are replaced by a note of their size.
    pub fn append_spooled(&self, event: NewEvent) -> impl Future<Output = Recorded> + use<> {
        self.append_spooled_with(event, Vec::new())
    }

    /// As [`Store::append_spooled`], with changes of projections that share the event's fate.
    pub fn append_spooled_with(
        &self,
        event: NewEvent,
        puts: Vec<Put>,
    ) -> impl Future<Output = Recorded> + use<> {
        let written = self.append_all_spooled(vec![event], puts);
        async move {
            match written.await {
                Recorded::Stored(mut stored) => match stored.pop() {
                    Some(stored) => Recorded::Stored(stored),
                    None => Recorded::Lost,
                },
                Recorded::Spooled => Recorded::Spooled,
                Recorded::Lost => Recorded::Lost,
            }
        }
    }

    /// As [`Store::append_spooled`], for several events and projections that share their fate.
    pub fn append_all_spooled(
        &self,
        events: Vec<NewEvent>,
        puts: Vec<Put>,
    ) -> impl Future<Output = Recorded<Vec<Stored>>> + use<> {
        let (answer, answered) = oneshot::channel();
        let queued = self.queue().push(Write {
            events: shortened(events),
            puts,
            answer: Answer::Keep(answer),
        });
        async move {
            match queued {
                Ok(()) => answered.await.unwrap_or(Recorded::Lost),
                Err(_) => Recorded::Lost,
            }
        }
    }

    /// Records an event in order with the rest, without waiting for it: for acts whose answer does not
    /// depend on the record. It is spooled like the others, with less room.
    pub fn append_soon(&self, event: NewEvent) {
        self.append_all_soon(vec![event], Vec::new());
    }

    /// Changes projections in order with the rest, without waiting for it: for state that can be found
    /// out again if it is lost. Spooled as the events of [`Store::append_soon`] are.
    pub fn put_soon(&self, puts: Vec<Put>) {
        self.append_all_soon(Vec::new(), puts);
    }

    /// As [`Store::append_soon`], for several events and projections that share their fate.
    pub fn append_all_soon(&self, events: Vec<NewEvent>, puts: Vec<Put>) {
        // A full queue counts what it loses; a closed one means that the session is over.
        let _ = self.queue().push(Write {
            events: shortened(events),
            puts,
            answer: Answer::Soon,
        });
    }

    /// Sets one projection; durable when this answers.
    ///
    /// # Errors
    /// As [`Store::append`].
    pub async fn put(
        &self,
        key: impl Into<String>,
        value: impl Into<Value>,
    ) -> Result<(), StoreError> {
        let put = Put::set(key, value);
        self.append_all(Vec::new(), vec![put]).await.map(drop)
    }

    /// Removes one projection; durable when this answers.
    ///
    /// # Errors
    /// As [`Store::append`].
    pub async fn delete(&self, key: impl Into<String>) -> Result<(), StoreError> {
        let put = Put::delete(key);
        self.append_all(Vec::new(), vec![put]).await.map(drop)
    }
}

fn shortened(events: Vec<NewEvent>) -> Vec<Prepared> {
    events.into_iter().map(Prepared::shortened).collect()
}
