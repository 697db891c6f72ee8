//! The handle that the host holds.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use rusqlite::Connection;
use serde_json::Value;
use tokio::sync::oneshot;

use crate::database::Database;
use crate::error::StoreError;
use crate::evidence::{self, Evidence};
use crate::live::{Live, Published};
use crate::pool::Pool;
use crate::projection;
use crate::queue::Queue;
use crate::read::{self, Page, Query, Reader};
use crate::schema;
use crate::verify::{VerifyReport, verify};
use crate::writer::{Spool, SpoolLimits, Writer};

/// Reads that may wait, and evidence files that may wait to be written.
const READS: usize = 256;
const FILES: usize = 16;
/// Connections for reading.
const READERS: usize = 2;

/// Whether a database is expected at the place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// A new session: there must be none.
    Create,
    /// A session that is brought back: there must be one, since a missing record is damage.
    Existing,
    /// Either.
    CreateOrExisting,
}

/// How to open a store, and its bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Whether a database is expected.
    pub mode: Mode,
    /// Writes that may wait.
    pub queue: usize,
    /// Events kept in memory while the disk takes none.
    pub spool_events: usize,
    /// Bytes of those events.
    pub spool_bytes: usize,
    /// Events that a subscriber may be behind before it gets a gap.
    pub live: usize,
    /// How the keys of projections begin that are many or large. Of these no copy is kept in memory, so
    /// they are lost with a file that is damaged while in use.
    pub on_disk_only: &'static [&'static str],
}

impl Options {
    /// The usual bounds: 4,096 waiting writes, 10,000 spooled events of at most 16 MiB, and 1,024
    /// events that a subscriber may be behind. A copy of every projection is kept in memory.
    #[must_use]
    pub fn new(mode: Mode) -> Self {
        Self {
            mode,
            queue: 4096,
            spool_events: 10_000,
            spool_bytes: 16 << 20,
            live: 1024,
            on_disk_only: &[],
        }
    }
}

/// A cheap handle to a session's record. The writer ends, after what is queued, with the last handle.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    dir: PathBuf,
    queue: Arc<Queue>,
    published: Arc<Published>,
    readers: Pool<Reader>,
    files: Pool<()>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.queue.close(None);
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store")
            .field("dir", &self.inner.dir)
            .finish_non_exhaustive()
    }
}

impl Store {
    /// Opens the record in a session's directory, which must exist.
    ///
    /// Blocks for the check of an existing database; call it before the work begins.
    ///
    /// # Errors
    /// [`StoreError::Missing`], [`StoreError::Exists`], [`StoreError::Corrupt`],
    /// [`StoreError::NewerSchema`], or a failure to read or write.
    pub fn open(dir: &Path, options: Options) -> Result<Self, StoreError> {
        let path = schema::path_in(dir);
        let there = path
            .try_exists()
            .map_err(|error| StoreError::io("read", &path, error))?;
        match (options.mode, there) {
            (Mode::Create, true) => return Err(StoreError::Exists { path }),
            (Mode::Create | Mode::CreateOrExisting, false) => schema::create(dir)?,
            (Mode::Existing | Mode::CreateOrExisting, _) => {}
        }
        evidence::prepare(dir)?;
        let (database, tail) = Database::open(dir, options.on_disk_only)?;
        let queue = Arc::new(Queue::new(options.queue));
        let published = Arc::new(Published::new(tail, options.live));
        let readers = (0..READERS)
            .map(|_| Reader::open(dir, Arc::clone(&published)))
            .collect::<Result<Vec<_>, _>>()?;
        let started = |error| StoreError::io("start a thread for", &path, error);
        let readers = Pool::start("record-read", readers, READS).map_err(started)?;
        let files = Pool::start("record-files", vec![()], FILES).map_err(started)?;
        let writer = Writer {
            database,
            path: path.clone(),
            tail,
            queue: Arc::clone(&queue),
            published: Arc::clone(&published),
            spool: Spool::new(SpoolLimits {
                events: options.spool_events,
                bytes: options.spool_bytes,
            }),
        };
        thread::Builder::new()
            .name("record-write".to_owned())
            .spawn(move || writer.run())
            .map_err(started)?;
        Ok(Self {
            inner: Arc::new(Inner {
                dir: dir.to_owned(),
                queue,
                published,
                readers,
                files,
            }),
        })
    }

    /// The value of a projection.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn get(&self, key: impl Into<String>) -> Result<Option<Value>, StoreError> {
        let key = key.into();
        self.read(move |connection| projection::get(connection, &key))
            .await
    }

    /// Every projection whose key starts with `prefix`, in byte order of the keys.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn list(
        &self,
        prefix: impl Into<String>,
    ) -> Result<Vec<(String, Value)>, StoreError> {
        self.list_page(prefix, "", usize::MAX).await
    }

    /// The same for the keys after `after`, at most `limit` of them.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn list_page(
        &self,
        prefix: impl Into<String>,
        after: impl Into<String>,
        limit: usize,
    ) -> Result<Vec<(String, Value)>, StoreError> {
        let (prefix, after) = (prefix.into(), after.into());
        self.read(move |connection| projection::list(connection, &prefix, &after, limit))
            .await
    }

    /// One page of events.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn events(&self, query: Query) -> Result<Page, StoreError> {
        self.read(move |connection| read::page(connection, &query))
            .await
    }

    /// Events from now on.
    #[must_use]
    pub fn subscribe(&self) -> Live {
        self.inner.published.subscribe()
    }

    /// The number of the last stored event; 0 when there is none.
    #[must_use]
    pub fn last_seq(&self) -> u64 {
        self.inner.published.tail().seq
    }

    /// The head of the chain, in hexadecimal.
    #[must_use]
    pub fn head(&self) -> String {
        hex::encode(self.inner.published.tail().hash)
    }

    /// Whether the disk took the last write. While it is `false` the store tries again by itself, and
    /// acts that grant power are to be refused.
    #[must_use]
    pub fn healthy(&self) -> bool {
        self.inner.published.healthy()
    }

    /// Writes an evidence file; it is durable when this answers, so that an event may name it.
    ///
    /// # Errors
    /// When the disk does not take it, or the extension is not one to eight lower-case letters or digits.
    pub async fn put_evidence(
        &self,
        bytes: Vec<u8>,
        extension: &str,
    ) -> Result<Evidence, StoreError> {
        let (dir, extension) = (self.inner.dir.clone(), extension.to_owned());
        self.inner
            .files
            .run(move |()| evidence::put(&dir, &bytes, &extension))
            .await
    }

    /// Checks the whole chain; see [`crate::verify_dir`].
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn verify(&self, expected_head: Option<&str>) -> Result<VerifyReport, StoreError> {
        let (dir, head) = (self.inner.dir.clone(), expected_head.map(str::to_owned));
        let (answer, answered) = oneshot::channel();
        // On a thread of its own: a long check must not keep readers waiting.
        thread::Builder::new()
            .name("record-verify".to_owned())
            .spawn(move || {
                let report = schema::open_reader(&dir)
                    .and_then(|mut connection| verify(&mut connection, &dir, head.as_deref()));
                // Whoever stopped waiting needs no answer.
                let _ = answer.send(report);
            })
            .map_err(|error| StoreError::io("start a thread for", &self.inner.dir, error))?;
        answered.await.unwrap_or(Err(StoreError::Closed))
    }

    /// Stores what is queued and closes the database. Other handles get [`StoreError::Closed`] from
    /// then on.
    ///
    /// # Errors
    /// When events are left that the disk does not take, or the store was already closed.
    pub async fn close(&self) -> Result<(), StoreError> {
        // The writer goes last: a connection that cannot write would leave the log beside the database.
        self.inner.files.close().await;
        self.inner.readers.close().await;
        let (answer, answered) = oneshot::channel();
        self.inner.queue.close(Some(answer));
        answered.await.unwrap_or(Err(StoreError::Closed))
    }

    /// What waits to be written.
    pub(crate) fn queue(&self) -> &Queue {
        &self.inner.queue
    }

    /// The session's directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.inner.dir
    }

    async fn read<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<R> + Send + 'static,
    ) -> Result<R, StoreError> {
        let path = schema::path_in(&self.inner.dir);
        self.inner
            .readers
            .run(move |reader| {
                work(reader.connection()?).map_err(|error| StoreError::sqlite(&path, &error))
            })
            .await
    }
}
