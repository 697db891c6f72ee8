//! Reading a record from outside of its host, whether that is running or not.
//!
//! A running host has its database to itself. What it has written can be read all the same: the
//! database and its log are copied, and the copy is read.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};

use rusqlite::Connection;

use crate::error::StoreError;
use crate::schema;

/// How often a copy is tried before the host is found to be too busy.
const ATTEMPTS: u32 = 40;
/// The time between two attempts, and the age that the database must have: longer than the steps in
/// which the kernel counts a file's time, so that no change during the copy goes unnoticed.
const SETTLED: Duration = Duration::from_millis(50);

/// A connection for reading, and the copy that it reads, if it is one.
pub(crate) struct Elsewhere {
    pub(crate) connection: Connection,
    _copy: Option<Copy>,
}

/// A private directory that is removed at the end.
struct Copy(PathBuf);

impl Drop for Copy {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            tracing::warn!(%error, dir = %self.0.display(), "a copy of a record was left behind");
        }
    }
}

/// Opens the record in a session's directory for reading.
pub(crate) fn open(dir: &Path) -> Result<Elsewhere, StoreError> {
    for _ in 0..ATTEMPTS {
        if let Some(connection) = schema::open_ended(dir)? {
            return Ok(Elsewhere {
                connection,
                _copy: None,
            });
        }
        if let Some(copy) = copy(dir)? {
            // The copy has no host, so it opens, and its log is merged as after a crash.
            if let Some(connection) = schema::open_ended(&copy.0)? {
                return Ok(Elsewhere {
                    connection,
                    _copy: Some(copy),
                });
            }
        }
        thread::sleep(SETTLED);
    }
    Err(StoreError::Storage {
        path: schema::path_in(dir),
        reason: "its host writes to it without a pause".to_owned(),
    })
}

/// What tells two states of the files apart: the host merges its log into the database now and then,
/// and begins the log anew. In between the log only grows.
#[derive(PartialEq, Eq)]
struct State {
    bytes: u64,
    modified: SystemTime,
    log_begins: Vec<u8>,
}

impl State {
    fn of(database: &Path, log: &Path) -> io::Result<Self> {
        let found = fs::metadata(database)?;
        Ok(Self {
            bytes: found.len(),
            modified: found.modified()?,
            log_begins: begin(log)?,
        })
    }

    fn is_settled(&self) -> bool {
        // A time in the future is one that the kernel did not give.
        self.modified.elapsed().map_or(true, |age| age > SETTLED)
    }
}

/// The head of the log, which is another one each time it is begun anew.
fn begin(log: &Path) -> io::Result<Vec<u8>> {
    use std::io::Read;
    let mut bytes = Vec::new();
    match fs::File::open(log) {
        Ok(file) => {
            file.take(32).read_to_end(&mut bytes)?;
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    Ok(bytes)
}

/// Copies the database and its log; `None` if they changed in a way that makes the copy worthless.
fn copy(dir: &Path) -> Result<Option<Copy>, StoreError> {
    let database = schema::path_in(dir);
    let log = dir.join(format!("{}-wal", schema::DATABASE));
    let state =
        || State::of(&database, &log).map_err(|error| StoreError::io("read", &database, error));
    let before = state()?;
    if !before.is_settled() {
        return Ok(None);
    }
    let copy = Copy(private_dir()?);
    let copied = |from: &Path| {
        let to = copy.0.join(from.file_name().unwrap_or_default());
        match fs::copy(from, &to) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(StoreError::io("copy", from, error))
            }
            _ => Ok(()),
        }
    };
    copied(&database)?;
    copied(&log)?;
    Ok((state()? == before).then_some(copy))
}

fn private_dir() -> Result<PathBuf, StoreError> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    loop {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("handover-record-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        // Making it fails if anything of that name is there, a link included.
        match DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(StoreError::io("create", &path, error)),
        }
    }
}
