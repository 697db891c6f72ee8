//! The exclusive lock that decides who owns a session.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags, flock};
use thiserror::Error;

/// Why a lock was not taken.
#[derive(Debug, Error)]
pub enum LockError {
    /// A living process holds it.
    #[error("{} is held by a running host{}", path.display(), holder.map(|pid| format!(" (pid {pid})")).unwrap_or_default())]
    Held {
        /// The lock file.
        path: PathBuf,
        /// What the holder wrote about itself; for people, not for decisions.
        holder: Option<u32>,
    },
    /// The file could not be opened or locked.
    #[error("cannot lock {}: {source}", path.display())]
    Io {
        /// The lock file.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
}

/// An exclusive lock on a file, held until this is dropped or the process ends. The kernel keeps
/// it: a corrupt or empty file changes nothing, and a dead holder holds nothing.
///
/// The file is never removed by its holder, only together with its whole directory while the lock
/// is held: removing it alone would let two processes lock two files of one name.
#[derive(Debug)]
pub struct FileLock {
    file: File,
    path: PathBuf,
}

impl FileLock {
    /// Takes the lock without waiting, creating the file (0600) if need be, and writes our pid into
    /// it. Refuses a symbolic link.
    pub fn try_acquire(path: &Path) -> Result<Self, LockError> {
        let io = |source: io::Error| LockError::Io {
            path: path.to_owned(),
            source,
        };
        loop {
            let mut file = OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .mode(0o600)
                .custom_flags(OFlags::NOFOLLOW.bits() as i32)
                .open(path)
                .map_err(io)?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(rustix::io::Errno::WOULDBLOCK) => {
                    return Err(LockError::Held {
                        path: path.to_owned(),
                        holder: read_holder(&mut file),
                    });
                }
                Err(errno) => return Err(io(errno.into())),
            }
            // Between our open and our lock the previous holder may have removed the directory: then
            // we hold a file that nobody else can see, and must look again.
            if !same_file(&file, path).map_err(io)? {
                continue;
            }
            file.set_len(0).map_err(io)?;
            writeln!(file, "{}", std::process::id()).map_err(io)?;
            return Ok(Self {
                file,
                path: path.to_owned(),
            });
        }
    }

    /// Whether some process holds the lock at this moment. Only for display and for skipping work:
    /// whoever wants to change something takes the lock.
    pub fn is_held(path: &Path) -> bool {
        let Ok(file) = OpenOptions::new()
            .read(true)
            .custom_flags(OFlags::NOFOLLOW.bits() as i32)
            .open(path)
        else {
            return false;
        };
        flock(&file, FlockOperation::NonBlockingLockShared) == Err(rustix::io::Errno::WOULDBLOCK)
    }

    /// The lock file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // Said explicitly: a child between fork and exec shares the description and would keep the
        // lock alive for that instant.
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

fn same_file(file: &File, path: &Path) -> io::Result<bool> {
    let ours = file.metadata()?;
    match std::fs::symlink_metadata(path) {
        Ok(there) => Ok(ours.dev() == there.dev() && ours.ino() == there.ino()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn read_holder(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.rewind().ok()?;
    // A pid is short; a corrupt file of any size is not read further.
    file.take(32).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_holder_at_a_time_and_its_pid_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("host.lock");
        let held = FileLock::try_acquire(&path).unwrap();
        assert!(FileLock::is_held(&path));
        match FileLock::try_acquire(&path) {
            Err(LockError::Held { holder, .. }) => assert_eq!(holder, Some(std::process::id())),
            other => panic!("expected a refusal, got {other:?}"),
        }
        drop(held);
        assert!(!FileLock::is_held(&path));
        FileLock::try_acquire(&path).unwrap();
    }

    #[test]
    fn a_corrupt_file_neither_blocks_nor_frees() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("host.lock");
        std::fs::write(&path, [0xff; 4096]).unwrap();
        let held = FileLock::try_acquire(&path).unwrap();
        std::fs::write(&path, [0xff; 4096]).unwrap();
        assert!(matches!(
            FileLock::try_acquire(&path),
            Err(LockError::Held { holder: None, .. })
        ));
        drop(held);
    }

    #[test]
    fn a_symbolic_link_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("host.lock");
        std::os::unix::fs::symlink(dir.path().join("elsewhere"), &path).unwrap();
        assert!(matches!(
            FileLock::try_acquire(&path),
            Err(LockError::Io { .. })
        ));
    }
}
