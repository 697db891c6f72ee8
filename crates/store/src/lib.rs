//! The record of a session: one SQLite database with one writer, and a directory of evidence files.
//!
//! Events are durable, ordered and hash-chained rows; the key/value projections beside them change in
//! the same transaction as the event that explains them. A [`Store`] is a cheap handle to one writer
//! thread, which drains its queue, writes everything in one transaction, syncs once and answers all.
//!
//! Invariants:
//! - what was acknowledged as stored survives a kill of the process and a loss of power;
//! - sequence numbers have no holes: whatever could not be kept is named by a `gap` event;
//! - files that are damaged while in use are mended, and what was lost with them is said;
//! - a read never waits for the writer, and the writer never waits for a reader;
//! - a database that is damaged, empty or missing is an error that names it, never a fresh start.
#![forbid(unsafe_code)]

mod append;
mod chain;
mod database;
mod elsewhere;
mod error;
mod event;
mod evidence;
mod live;
mod pool;
mod projection;
mod prune;
mod queue;
mod read;
mod schema;
mod store;
mod stored;
mod verify;
mod writer;

pub use chain::GENESIS;
pub use error::StoreError;
pub use event::{Event, NewEvent, Recorded, Stored};
pub use evidence::Evidence;
pub use handover_protocol::{Actor, Source, Timestamp};
pub use live::{Live, LiveEvent, LiveItem};
pub use projection::Put;
pub use prune::{Limits, Pruned, prune};
pub use read::{MAX_PAGE, Page, Query, events_dir};
pub use schema::{DATABASE, EVIDENCE, SCHEMA_VERSION};
pub use store::{Mode, Options, Store};
pub use stored::Projections;
pub use verify::{Flaw, Problem, VerifyReport, verify_dir};
