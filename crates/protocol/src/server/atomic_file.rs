//! Files that are either the old version or the new one, never a part of either.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Replaces `path` by `contents`, mode 0600: written to a temporary file in the same directory,
/// synced, renamed over `path`, and the directory synced. When this returns `Ok`, the new contents
/// survive a power cut; on an error the old file is untouched and no temporary file is left.
///
/// Two writers of one path do not mix: each has a temporary name of its own.
pub fn replace(path: &Path, contents: &[u8]) -> io::Result<()> {
    write_then_rename(path, contents, true)
}

/// Like [`replace`] for files that need not survive a reboot (those in the runtime directory):
/// whole or absent for every reader, but not synced.
pub fn replace_volatile(path: &Path, contents: &[u8]) -> io::Result<()> {
    write_then_rename(path, contents, false)
}

fn write_then_rename(path: &Path, contents: &[u8], durable: bool) -> io::Result<()> {
    let directory = path
        .parent()
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "path has no directory"))?;
    let temporary = temporary_name(path)?;
    let written = (|| {
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&temporary)?;
        file.write_all(contents)?;
        if durable {
            file.sync_all()?;
        }
        fs::rename(&temporary, path)
    })();
    if written.is_err() {
        // The first error is the one worth reporting; what is left may not even exist.
        let _ = fs::remove_file(&temporary);
        return written;
    }
    if durable {
        File::open(directory)?.sync_all()?;
    }
    Ok(())
}

/// A name beside `path` that no other writer uses: hidden, and ending in `.tmp` so that a sweep
/// recognises what a crash left.
fn temporary_name(path: &Path) -> io::Result<PathBuf> {
    let name = path
        .file_name()
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "path has no file name"))?;
    let mut random = [0u8; 6];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    let mut temporary = OsString::from(".");
    temporary.push(name);
    temporary.push(format!(".{}.tmp", hex::encode(random)));
    Ok(path.with_file_name(temporary))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn replaces_whole_and_private() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.json");
        replace(&path, b"one").unwrap();
        replace(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_failed_write_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        // A directory in the way: the rename fails after the temporary file was written.
        let path = dir.path().join("taken");
        fs::create_dir(&path).unwrap();
        fs::write(path.join("child"), b"").unwrap();
        replace(&path, b"x").unwrap_err();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
