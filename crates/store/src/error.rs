//! What can go wrong, in words that name the file and the remedy.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A failure of the store.
///
/// Cloneable, since one failed transaction answers every caller whose event was in it. No variant
/// carries the content of an event.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// There is no database where one was expected.
    #[error(
        "there is no record at {}: restore it from a backup, or start a new session", path.display()
    )]
    Missing {
        /// Where the database should be.
        path: PathBuf,
    },
    /// A database was to be created where one already is.
    #[error("there is already a record at {}: bring that session back instead", path.display())]
    Exists {
        /// The database that is there.
        path: PathBuf,
    },
    /// The file is not a database, is empty, or fails SQLite's checks.
    #[error(
        "the record {} is damaged ({reason}): move this file and its -wal and -shm neighbours away \
         to keep them for inspection, restore them from a backup, or start a new session", path.display()
    )]
    Corrupt {
        /// The damaged file.
        path: PathBuf,
        /// What was found, without content.
        reason: String,
    },
    /// The database was written by a later version of this program.
    #[error(
        "the record {} has format {found}, this program knows up to {supported}: use a newer handover",
        path.display()
    )]
    NewerSchema {
        /// The database.
        path: PathBuf,
        /// Its format.
        found: i64,
        /// The latest format that this program can read.
        supported: i64,
    },
    /// SQLite could not complete a read or a write; most often the disk is full.
    #[error("could not use the record {}: {reason}: free space on that disk, then try again", path.display())]
    Storage {
        /// The database.
        path: PathBuf,
        /// SQLite's message.
        reason: String,
    },
    /// A file or directory could not be used.
    #[error("could not {what} {}: {source}", path.display())]
    Io {
        /// The verb, such as `write`.
        what: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The system's error.
        source: Arc<io::Error>,
    },
    /// The event is larger than the store accepts.
    #[error("the event has {bytes} bytes, at most {limit} are stored: shorten its text")]
    EventTooLarge {
        /// Size of the event as canonical JSON, in bytes.
        bytes: usize,
        /// The limit, in bytes.
        limit: usize,
    },
    /// More is waiting to be written or read than the store keeps in memory.
    #[error("the store has too much waiting: try again in a moment")]
    QueueFull,
    /// The store was closed, or its thread ended.
    #[error("the store is closed")]
    Closed,
    /// An evidence file's extension is not one to eight lower-case letters or digits.
    #[error(
        "{extension:?} is no extension for evidence: use one to eight lower-case letters or digits"
    )]
    BadExtension {
        /// The extension that was given.
        extension: String,
    },
}

impl StoreError {
    /// An error of the file system.
    pub(crate) fn io(what: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io {
            what,
            path: path.to_owned(),
            source: Arc::new(source),
        }
    }

    /// An error of SQLite on the database at `path`: damage, or a failure to read or write.
    pub(crate) fn sqlite(path: &Path, error: &rusqlite::Error) -> Self {
        use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
        match error.sqlite_error_code() {
            Some(DatabaseCorrupt | NotADatabase) => Self::corrupt(path, error.to_string()),
            _ => Self::Storage {
                path: path.to_owned(),
                reason: error.to_string(),
            },
        }
    }

    /// Damage found in the database at `path`.
    pub(crate) fn corrupt(path: &Path, reason: impl Into<String>) -> Self {
        Self::Corrupt {
            path: path.to_owned(),
            reason: reason.into(),
        }
    }
}
