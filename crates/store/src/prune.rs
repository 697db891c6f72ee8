//! Keeping the disk: the oldest ended sessions go when there are too many, or when all take too much.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::error::StoreError;
use crate::schema::DATABASE;

/// What ended sessions may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of all sessions together, live ones included.
    pub bytes: u64,
    /// How many ended sessions are kept.
    pub ended_sessions: usize,
}

impl Default for Limits {
    /// 100 MiB and 20 ended sessions.
    fn default() -> Self {
        Self {
            bytes: 100 << 20,
            ended_sessions: 20,
        }
    }
}

/// What was removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pruned {
    /// The directories of the sessions that were removed.
    pub removed: Vec<PathBuf>,
    /// Bytes that the remaining sessions take.
    pub bytes: u64,
}

struct Session {
    dir: PathBuf,
    bytes: u64,
    used: SystemTime,
    live: bool,
}

/// Removes the oldest ended sessions below `root` until the limits hold.
///
/// `is_live` is asked for each session's directory, and again right before a removal, so that a session
/// that was brought back meanwhile is kept; a live one is never removed, even when it alone exceeds the
/// limit. Directories that hold no record are not sessions and stay.
///
/// # Errors
/// When `root` cannot be read. A session that cannot be removed is left, logged and counted.
pub fn prune(
    root: &Path,
    limits: Limits,
    is_live: impl Fn(&Path) -> bool,
) -> Result<Pruned, StoreError> {
    let mut sessions = find(root, &is_live)?;
    sessions.sort_by_key(|session| session.used);
    let mut bytes: u64 = sessions.iter().map(|session| session.bytes).sum();
    let mut ended = sessions.iter().filter(|session| !session.live).count();
    let mut removed = Vec::new();
    for session in sessions.into_iter().filter(|session| !session.live) {
        if ended <= limits.ended_sessions && bytes <= limits.bytes {
            break;
        }
        if is_live(&session.dir) {
            ended -= 1;
            continue;
        }
        match remove(&session.dir) {
            Ok(()) => {
                ended -= 1;
                bytes = bytes.saturating_sub(session.bytes);
                removed.push(session.dir);
            }
            Err(error) => {
                tracing::warn!(%error, dir = %session.dir.display(), "could not remove an ended session");
            }
        }
    }
    Ok(Pruned { removed, bytes })
}

fn find(root: &Path, is_live: impl Fn(&Path) -> bool) -> Result<Vec<Session>, StoreError> {
    let entries = match fs::read_dir(root) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(StoreError::io("read", root, error)),
    };
    let mut sessions = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| StoreError::io("read", root, error))?;
        let dir = entry.path();
        // The type of the entry itself: a symbolic link is never followed.
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        let Ok(record) = fs::symlink_metadata(dir.join(DATABASE)) else {
            continue;
        };
        sessions.push(Session {
            bytes: size(&dir),
            used: last_use(&dir, &record),
            live: is_live(&dir),
            dir,
        });
    }
    Ok(sessions)
}

/// The latest change of the record: the log beside it is younger than the database until it is merged.
fn last_use(dir: &Path, record: &fs::Metadata) -> SystemTime {
    let database = record.modified().unwrap_or(SystemTime::UNIX_EPOCH);
    fs::symlink_metadata(dir.join(format!("{DATABASE}-wal")))
        .and_then(|log| log.modified())
        .map_or(database, |log| log.max(database))
}

fn size(dir: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(dir) else {
        return 0;
    };
    entries
        .flatten()
        .map(|entry| match entry.metadata() {
            Ok(found) if found.is_dir() => size(&entry.path()),
            Ok(found) => found.len(),
            Err(_) => 0,
        })
        .sum()
}

/// Removes the record last: a removal that is cut short leaves a session that the next run finds again.
fn remove(dir: &Path) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_name() == DATABASE {
            continue;
        }
        if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
        } else {
            fs::remove_file(entry.path())?;
        }
    }
    fs::remove_dir_all(dir)
}
