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
    /// Bytes of the ended sessions together.
    pub bytes: u64,
    /// How many ended sessions are kept.
    pub ended_sessions: usize,
}

impl Default for Limits {
    /// 1 GiB and 20 ended sessions.
    fn default() -> Self {
        Self {
            bytes: 1 << 30,
            ended_sessions: 20,
        }
    }
}

/// What was removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pruned {
    /// The directories of the sessions that were removed.
    pub removed: Vec<PathBuf>,
    /// Bytes that the remaining ended sessions take.
    pub bytes: u64,
}

struct Session {
    dir: PathBuf,
    bytes: u64,
    used: SystemTime,
    kept: bool,
}

/// Removes the oldest ended sessions below `root` until the limits hold.
///
/// `is_kept` is asked for each session's directory, and again right before a removal, so that a session
/// that was brought back meanwhile is kept. Those that it answers for are neither removed nor counted: what
/// a live one takes is no reason to remove others. Directories that hold no record are not sessions and stay.
///
/// # Errors
/// When `root` cannot be read. A session that cannot be removed is left, logged and counted.
pub fn prune(
    root: &Path,
    limits: Limits,
    is_kept: impl Fn(&Path) -> bool,
) -> Result<Pruned, StoreError> {
    let mut sessions = find(root, &is_kept)?;
    sessions.sort_by_key(|session| session.used);
    sessions.retain(|session| !session.kept);
    let mut bytes: u64 = sessions.iter().map(|session| session.bytes).sum();
    let mut ended = sessions.len();
    let mut removed = Vec::new();
    for session in sessions {
        if ended <= limits.ended_sessions && bytes <= limits.bytes {
            break;
        }
        if is_kept(&session.dir) {
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

fn find(root: &Path, is_kept: impl Fn(&Path) -> bool) -> Result<Vec<Session>, StoreError> {
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
            kept: is_kept(&dir),
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
