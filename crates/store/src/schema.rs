//! The database file: where it is, how it is created, and how damage is found before it is used.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::chain::{self, Hash};
use crate::error::StoreError;

/// Name of the database in a session's directory.
pub const DATABASE: &str = "session.db";
/// Name of the directory of evidence files in a session's directory.
pub const EVIDENCE: &str = "evidence";
/// The format that this program writes, kept in SQLite's `user_version`.
pub const SCHEMA_VERSION: i64 = 1;

/// Marks the file as ours in SQLite's header: "HOVR".
const APPLICATION_ID: i64 = 0x484f_5652;

/// SQLite's file layer for the host: other processes are locked out, and the index of the log is kept
/// in memory instead of in a mapped file, which somebody could cut short under our feet (`SIGBUS`).
const ALONE: &str = "unix-excl";

/// How long a connection waits for a foreign lock on the database, such as a backup's.
const BUSY: Duration = Duration::from_secs(1);

const READ_ONLY: OpenFlags =
    OpenFlags::SQLITE_OPEN_READ_ONLY.union(OpenFlags::SQLITE_OPEN_NO_MUTEX);

const SCHEMA: &str = "
CREATE TABLE event (
    seq   INTEGER PRIMARY KEY,
    kind  TEXT NOT NULL,
    agent TEXT,
    body  TEXT NOT NULL,
    hash  BLOB NOT NULL
) STRICT;
CREATE TABLE projection (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
";

/// The end of the chain: the last row's number and link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tail {
    pub(crate) seq: u64,
    pub(crate) hash: Hash,
}

/// The database in a session's directory.
pub(crate) fn path_in(dir: &Path) -> PathBuf {
    dir.join(DATABASE)
}

/// Creates an empty database under another name and renames it into place, so that a half-made one is
/// never found, and an empty file at that place can only be damage.
pub(crate) fn create(dir: &Path) -> Result<(), StoreError> {
    let fresh = Fresh::begin(dir)?;
    let fill = || -> rusqlite::Result<()> {
        let connection = Connection::open(&fresh.path)?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "application_id", APPLICATION_ID)?;
        connection.pragma_update(None, "user_version", SCHEMA_VERSION)?;
        connection.execute_batch(SCHEMA)?;
        connection.close().map_err(|(_, error)| error)
    };
    fill().map_err(|error| StoreError::sqlite(&fresh.path, &error))?;
    fresh.put_in_place(dir)
}

/// Puts a copy of what `connection` sees into place; `false` if it does not see a whole record that
/// ends at `tail`.
///
/// # Errors
/// When the disk does not take the copy.
pub(crate) fn copy(connection: &Connection, dir: &Path, tail: Tail) -> Result<bool, StoreError> {
    let fresh = Fresh::begin(dir)?;
    let fill = || -> rusqlite::Result<bool> {
        connection.execute("VACUUM INTO ?1", [&*fresh.path.to_string_lossy()])?;
        let copied = Connection::open(&fresh.path)?;
        let found: String = copied.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
        let whole = found == "ok" && self::tail(&copied)? == tail;
        copied.close().map_err(|(_, error)| error)?;
        Ok(whole)
    };
    match fill() {
        Ok(true) => fresh.put_in_place(dir).map(|()| true),
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DiskFull) => {
            Err(StoreError::sqlite(&fresh.path, &error))
        }
        Ok(false) | Err(_) => Ok(false),
    }
}

/// A new file that is to become the database.
struct Fresh {
    path: PathBuf,
    file: File,
}

impl Fresh {
    fn begin(dir: &Path) -> Result<Self, StoreError> {
        for suffix in ["", "-wal", "-shm", "-journal"] {
            remove_if_there(&dir.join(format!("{DATABASE}.new{suffix}")))?;
        }
        let path = dir.join(format!("{DATABASE}.new"));
        // Created here with its final mode: SQLite would use the umask.
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .map_err(|error| StoreError::io("create", &path, error))?;
        Ok(Self { path, file })
    }

    /// Makes the file durable and gives it the database's name. A log of that name belongs to what was
    /// there before and would be merged into it.
    fn put_in_place(self, dir: &Path) -> Result<(), StoreError> {
        self.file
            .sync_all()
            .map_err(|error| StoreError::io("write", &self.path, error))?;
        remove_if_there(&dir.join(format!("{DATABASE}-wal")))?;
        fs::rename(&self.path, path_in(dir))
            .map_err(|error| StoreError::io("rename", &self.path, error))?;
        sync_dir(dir)
    }
}

/// Opens the writer's connection after checking the file, and reads the end of the chain.
pub(crate) fn open_writer(dir: &Path) -> Result<(Connection, Tail), StoreError> {
    let path = path_in(dir);
    check_file(&path)?;
    let open = || -> Result<(Connection, Tail), StoreError> {
        let sqlite = |error: rusqlite::Error| StoreError::sqlite(&path, &error);
        let connection = Connection::open_with_flags_and_vfs(
            &path,
            OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
            ALONE,
        )
        .map_err(sqlite)?;
        connection.busy_timeout(BUSY).map_err(sqlite)?;
        check_version(&connection, &path)?;
        let mode: String = connection
            .pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))
            .map_err(sqlite)?;
        if mode != "wal" {
            return Err(StoreError::Storage {
                path: path.clone(),
                reason: format!("the file system offers no write-ahead log (mode {mode})"),
            });
        }
        connection
            .pragma_update(None, "synchronous", "FULL")
            .map_err(sqlite)?;
        // A burst must not leave a large log behind for good.
        connection
            .pragma_update(None, "journal_size_limit", 8 << 20)
            .map_err(sqlite)?;
        let found: String = connection
            .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
            .map_err(sqlite)?;
        if found != "ok" {
            return Err(StoreError::corrupt(&path, found));
        }
        let tail = tail(&connection).map_err(sqlite)?;
        Ok((connection, tail))
    };
    let opened = open();
    if let Err(error @ StoreError::Corrupt { .. }) = &opened {
        tracing::error!(%error, "the record cannot be used");
    }
    opened
}

/// Opens another connection of the process that writes; this one cannot.
pub(crate) fn open_reader(dir: &Path) -> Result<Connection, StoreError> {
    let path = path_in(dir);
    check_file(&path)?;
    let connection = Connection::open_with_flags_and_vfs(&path, READ_ONLY, ALONE)
        .and_then(|connection| {
            connection.busy_timeout(BUSY)?;
            // Closing it must not touch the files that the writer uses.
            connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
            // Kilobytes, negative by SQLite's convention. What is read is mostly read once.
            connection.pragma_update(None, "cache_size", -512)?;
            Ok(connection)
        })
        .map_err(|error| StoreError::sqlite(&path, &error))?;
    check_version(&connection, &path)?;
    Ok(connection)
}

/// Opens the database of a host that is not running, for reading; `None` if a host has it.
pub(crate) fn open_ended(dir: &Path) -> Result<Option<Connection>, StoreError> {
    let path = path_in(dir);
    check_file(&path)?;
    let connection = Connection::open_with_flags(&path, READ_ONLY)
        .map_err(|error| StoreError::sqlite(&path, &error))?;
    match connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(())) {
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => Ok(None),
        Err(error) => Err(StoreError::sqlite(&path, &error)),
        Ok(()) => {
            check_version(&connection, &path)?;
            Ok(Some(connection))
        }
    }
}

/// The last row's number and link.
pub(crate) fn tail(connection: &Connection) -> rusqlite::Result<Tail> {
    use rusqlite::OptionalExtension;
    let last: Option<(i64, Hash)> = connection
        .query_row(
            "SELECT seq, hash FROM event ORDER BY seq DESC LIMIT 1",
            [],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .optional()?;
    Ok(match last {
        Some((seq, hash)) => Tail {
            seq: u64::try_from(seq).unwrap_or(0),
            hash,
        },
        None => Tail {
            seq: 0,
            hash: chain::START,
        },
    })
}

fn check_file(path: &Path) -> Result<(), StoreError> {
    match fs::metadata(path) {
        Ok(found) if !found.is_file() => Err(StoreError::corrupt(path, "it is not a file")),
        // SQLite takes an empty file for a new database; here it can only have been emptied.
        Ok(found) if found.len() == 0 => Err(StoreError::corrupt(path, "it is empty")),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(StoreError::Missing {
            path: path.to_owned(),
        }),
        Err(error) => Err(StoreError::io("read", path, error)),
    }
}

fn check_version(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    let number = |name: &str| -> Result<i64, StoreError> {
        connection
            .pragma_query_value(None, name, |row| row.get(0))
            .map_err(|error| StoreError::sqlite(path, &error))
    };
    if number("application_id")? != APPLICATION_ID {
        return Err(StoreError::corrupt(path, "it is no record of a session"));
    }
    match number("user_version")? {
        SCHEMA_VERSION => Ok(()),
        found if found > SCHEMA_VERSION => Err(StoreError::NewerSchema {
            path: path.to_owned(),
            found,
            supported: SCHEMA_VERSION,
        }),
        found => Err(StoreError::corrupt(path, format!("its format is {found}"))),
    }
}

/// Makes the entries of a directory durable.
pub(crate) fn sync_dir(dir: &Path) -> Result<(), StoreError> {
    File::open(dir)
        .and_then(|handle| handle.sync_all())
        .map_err(|error| StoreError::io("sync", dir, error))
}

fn remove_if_there(path: &Path) -> Result<(), StoreError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(StoreError::io("remove", path, error))
        }
        _ => Ok(()),
    }
}
