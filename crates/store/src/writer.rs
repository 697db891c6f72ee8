//! The one writer: a thread that stores what is queued in one transaction, and keeps in memory what
//! the disk does not take.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use handover_protocol::Source;
use rusqlite::{Connection, Transaction, params};

use crate::chain;
use crate::database::Database;
use crate::error::StoreError;
use crate::event::{Event, NewEvent, Prepared, Recorded, Stored};
use crate::live::Published;
use crate::projection::Put;
use crate::queue::{Answer, Batch, Closing, Queue, Write};
use crate::schema::{SCHEMA_VERSION, Tail};

/// How often a failed write is tried again.
const RETRY: Duration = Duration::from_millis(250);

/// Room for what the disk does not take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SpoolLimits {
    pub(crate) events: usize,
    pub(crate) bytes: usize,
}

/// The state of the writer thread.
pub(crate) struct Writer {
    pub(crate) database: Database,
    pub(crate) path: PathBuf,
    pub(crate) tail: Tail,
    pub(crate) queue: Arc<Queue>,
    pub(crate) published: Arc<Published>,
    pub(crate) spool: Spool,
}

/// What could not be stored yet, in order.
pub(crate) struct Spool {
    limits: SpoolLimits,
    kept: VecDeque<Kept>,
    /// What is kept, as the limit counts it: each event, and each write without any.
    count: usize,
    bytes: usize,
    /// Events that found no room anywhere since the last `gap` event.
    lost: u64,
}

/// A write that waits for the disk.
pub(crate) struct Kept {
    events: Vec<Prepared>,
    puts: Vec<Put>,
}

impl Spool {
    pub(crate) fn new(limits: SpoolLimits) -> Self {
        Self {
            limits,
            kept: VecDeque::new(),
            count: 0,
            bytes: 0,
            lost: 0,
        }
    }

    /// Keeps a write as a whole if there is room: for what nobody waits for, half of it.
    fn keep(&mut self, events: Vec<Prepared>, puts: Vec<Put>, share: usize) -> bool {
        let bytes = events.iter().map(Prepared::bytes).sum::<usize>();
        let count = events.len().max(1);
        if self.count + count > self.limits.events / share
            || self.bytes + bytes > self.limits.bytes / share
        {
            self.lost += events.len() as u64;
            return false;
        }
        self.count += count;
        self.bytes += bytes;
        self.kept.push_back(Kept { events, puts });
        true
    }

    fn is_empty(&self) -> bool {
        self.kept.is_empty() && self.lost == 0
    }

    fn clear(&mut self) {
        self.kept.clear();
        self.count = 0;
        self.bytes = 0;
        self.lost = 0;
    }
}

impl Writer {
    /// Runs until the store is closed.
    pub(crate) fn run(mut self) {
        loop {
            let settled = self.spool.is_empty() && self.published.healthy();
            let batch = self.queue.take((!settled).then_some(RETRY));
            if let Some(Closing(answer)) = self.step(batch) {
                let left = self.spool.count;
                let outcome = if left == 0 {
                    Ok(())
                } else {
                    tracing::error!(left, path = %self.path.display(), "events could not be stored");
                    Err(StoreError::Storage {
                        path: self.path.clone(),
                        reason: format!("{left} events could not be stored"),
                    })
                };
                // Closed before the answer, so that whoever waits finds the file settled.
                drop(self.database);
                self.published.close();
                if let Some(answer) = answer {
                    // The asker may have stopped waiting; there is nobody else to tell.
                    let _ = answer.send(outcome);
                }
                return;
            }
        }
    }

    fn step(&mut self, batch: Batch) -> Option<Closing> {
        self.spool.lost += batch.lost;
        let mut outcome = self.store(&batch.writes);
        if let Err(error @ StoreError::Corrupt { .. }) = &outcome {
            // Only the attempt has shown the damage: once more, on what can be mended.
            self.database.failed(error);
            outcome = self.store(&batch.writes);
        }
        match outcome {
            Ok((events, tail)) => {
                let spooled = self.spool.kept.iter().flat_map(|kept| &kept.puts);
                let fresh = batch.writes.iter().flat_map(|write| &write.puts);
                self.database.committed(spooled.chain(fresh));
                self.stored(batch.writes, events, tail);
            }
            Err(error) => {
                self.database.failed(&error);
                self.failed(batch.writes, &error);
            }
        }
        batch.closing
    }

    /// Writes what is to be said of the database, the spool with its `gap` event, and the batch, in
    /// this order, in one transaction.
    fn store(&mut self, writes: &[Write]) -> Result<(Vec<Event>, Tail), StoreError> {
        if self.database.ready(self.tail)? {
            self.published.replaced();
        }
        let note = self.database.note();
        let mut chain = Chain {
            tail: self.tail,
            events: Vec::with_capacity(writes.len()),
        };
        let (spool, healthy) = (&self.spool, self.published.healthy());
        let mut fill = |transaction: Transaction<'_>| -> rusqlite::Result<()> {
            chain.write(&transaction, note.as_slice(), &[])?;
            let before = chain.tail.seq;
            for kept in &spool.kept {
                chain.write(&transaction, &kept.events, &kept.puts)?;
            }
            if !spool.is_empty() {
                let gap = gap(before, chain.tail.seq, spool.lost);
                chain.write(&transaction, &[gap], &[])?;
            }
            for write in writes {
                chain.write(&transaction, &write.events, &write.puts)?;
            }
            if chain.events.is_empty() && !healthy {
                // Nothing to write, but only a write can show that the disk takes them again.
                transaction.pragma_update(None, "user_version", SCHEMA_VERSION)?;
            }
            transaction.commit()
        };
        fill(self.database.begin()?).map_err(|error| StoreError::sqlite(&self.path, &error))?;
        Ok((chain.events, chain.tail))
    }

    fn stored(&mut self, writes: Vec<Write>, events: Vec<Event>, tail: Tail) {
        if !self.published.healthy() {
            tracing::info!(path = %self.path.display(), "the record takes writes again");
        }
        self.tail = tail;
        self.spool.clear();
        // The batch's own events are the last ones; those before them came from the spool.
        let own: usize = writes.iter().map(|write| write.events.len()).sum();
        let mut receipts = events[events.len() - own..]
            .iter()
            .map(|event| (event.seq, event.hash.clone()))
            .collect::<Vec<_>>()
            .into_iter();
        // Published before the answers, so that who was answered finds its event in every view.
        self.published.publish(events, tail);
        for write in writes {
            let stored = write.events.iter().zip(receipts.by_ref());
            let stored = stored
                .map(|(event, (seq, hash))| Stored {
                    seq,
                    at: event.at,
                    hash,
                })
                .collect();
            // Whoever stopped waiting is not told; the event is stored all the same.
            match write.answer {
                Answer::Refuse(answer) => drop(answer.send(Ok(stored))),
                Answer::Keep(answer) => drop(answer.send(Recorded::Stored(stored))),
                Answer::Soon => {}
            }
        }
    }

    fn failed(&mut self, writes: Vec<Write>, error: &StoreError) {
        if self.published.healthy() {
            tracing::error!(%error, "the record takes no writes");
        }
        self.published.set_healthy(false);
        for write in writes {
            match write.answer {
                Answer::Refuse(answer) => drop(answer.send(Err(error.clone()))),
                Answer::Keep(answer) => {
                    let kept = self.spool.keep(write.events, write.puts, 1);
                    let recorded = if kept {
                        Recorded::Spooled
                    } else {
                        Recorded::Lost
                    };
                    drop(answer.send(recorded));
                }
                Answer::Soon => {
                    self.spool.keep(write.events, write.puts, 2);
                }
            }
        }
    }
}

/// The rows of one transaction.
struct Chain {
    tail: Tail,
    events: Vec<Event>,
}

impl Chain {
    fn write(
        &mut self,
        connection: &Connection,
        events: &[Prepared],
        puts: &[Put],
    ) -> rusqlite::Result<()> {
        for event in events {
            let seq = self.tail.seq + 1;
            let json = event.row(seq);
            let hash = chain::link(&self.tail.hash, &json);
            connection
                .prepare_cached(
                    "INSERT INTO event (seq, kind, agent, body, hash) VALUES (?1, ?2, ?3, ?4, ?5)",
                )?
                .execute(params![
                    i64::try_from(seq).unwrap_or(i64::MAX),
                    event.kind,
                    event.agent,
                    json,
                    hash
                ])?;
            self.tail = Tail { seq, hash };
            self.events.push(Event {
                seq,
                kind: event.kind.to_owned(),
                agent: event.agent.clone(),
                json,
                hash: hex::encode(hash),
            });
        }
        for put in puts {
            put.apply(connection)?;
        }
        Ok(())
    }
}

/// The event that follows what was stored late: rows `before + 1` to `last`, and how many were lost.
/// If nothing could be kept, the range is the gap's own number.
fn gap(before: u64, last: u64, lost: u64) -> Prepared {
    let from = before + 1;
    let mut event = NewEvent::new("gap", Source::Host)
        .field("from", from)
        .field("to", last.max(from));
    if lost > 0 {
        event = event.field("lost", lost);
    }
    Prepared::new(event)
}
