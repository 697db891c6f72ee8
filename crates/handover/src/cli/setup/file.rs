//! A configuration file of another program: read whole, replaced whole, with what it was kept beside it.

use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use super::edit::NAME;

/// The largest file that is looked at, in bytes.
const LARGEST: u64 = 16 << 20;
/// What the copy of the earlier text is called: the file's name and this.
const BACKUP: &str = ".handover-backup";

/// A file as it was when it was read.
#[derive(Debug)]
pub struct Original {
    /// Where it is, past any links that lead to it.
    path: PathBuf,
    /// What was in it, if it was there.
    text: Option<String>,
}

impl Original {
    /// Reads a file. That it is not there is no error.
    pub fn read(path: &Path) -> io::Result<Self> {
        let path = behind_links(path)?;
        let text = read(&path)?;
        Ok(Self { path, text })
    }

    /// What was in it, if it was there.
    pub fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// Replaces it by `text`, or makes it. Returns where its earlier text is kept.
    ///
    /// The program that it belongs to may write it at any time: what it has written meanwhile is not
    /// overwritten. On an error the file is as it was.
    pub fn replace(&self, text: &str) -> io::Result<Option<PathBuf>> {
        let backup = self.keep()?;
        let mode = match &self.text {
            Some(_) => Some(fs::metadata(&self.path)?),
            None => {
                if let Some(directory) = self.path.parent() {
                    fs::create_dir_all(directory)?;
                }
                None
            }
        };
        write(&self.path, text, mode.as_ref(), || self.confirm_unchanged())?;
        Ok(backup)
    }

    /// Removes it, and its directory if that is called as we are and nothing else is in it. Returns where its
    /// text is kept, if it is to be kept: there is no need where all of it was ours.
    pub fn delete(&self, keep: bool) -> io::Result<Option<PathBuf>> {
        let backup = if keep { self.keep()? } else { None };
        self.confirm_unchanged()?;
        fs::remove_file(&self.path)?;
        let directory = self.path.parent();
        if let Some(directory) = directory.filter(|directory| directory.ends_with(NAME)) {
            // Refused if anything is in it.
            let _ = fs::remove_dir(directory);
        }
        Ok(backup)
    }

    fn keep(&self) -> io::Result<Option<PathBuf>> {
        let Some(text) = &self.text else {
            return Ok(None);
        };
        let mut backup = OsString::from(&self.path);
        backup.push(BACKUP);
        let backup = PathBuf::from(backup);
        let like = fs::metadata(&self.path)?;
        write(&backup, text, Some(&like), || Ok(()))?;
        Ok(Some(backup))
    }

    fn confirm_unchanged(&self) -> io::Result<()> {
        if read(&self.path)? == self.text {
            return Ok(());
        }
        Err(io::Error::other(
            "it was changed meanwhile; try again when its program does not run",
        ))
    }
}

/// The file that a path means. A link that leads nowhere is not replaced by a file.
fn behind_links(path: &Path) -> io::Result<PathBuf> {
    match path.canonicalize() {
        Ok(path) => Ok(path),
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Err(_) if fs::symlink_metadata(path).is_ok() => Err(io::Error::new(
            io::ErrorKind::NotFound,
            "it is a link to a file that is not there",
        )),
        Err(_) => Ok(path.to_owned()),
    }
}

fn read(path: &Path) -> io::Result<Option<String>> {
    // Not blocking: a pipe is refused below, not waited for.
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(nonblocking)
        .open(path);
    let file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let unfit = |what: &str| Err(io::Error::new(io::ErrorKind::InvalidData, what));
    if !file.metadata()?.is_file() {
        return unfit("it is no file");
    }
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST {
        return unfit("it is larger than 16 MiB");
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Some(text)),
        Err(error) => {
            let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = valid.iter().filter(|byte| **byte == b'\n').count() + 1;
            unfit(&format!("it is not UTF-8 (line {line})"))
        }
    }
}

/// Whole or not at all, with the mode and the owner of `like`; else private. `last` is asked right before
/// the file takes its place.
fn write(
    path: &Path,
    text: &str,
    like: Option<&Metadata>,
    last: impl FnOnce() -> io::Result<()>,
) -> io::Result<()> {
    let mut passing = OsString::from(path);
    passing.push(format!(".{}.tmp", std::process::id()));
    let written = (|| {
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&passing)?;
        file.write_all(text.as_bytes())?;
        if let Some(like) = like {
            let own = file.metadata()?;
            if (own.uid(), own.gid()) != (like.uid(), like.gid()) {
                chown(&passing, Some(like.uid()), Some(like.gid()))?;
            }
            file.set_permissions(fs::Permissions::from_mode(like.mode() & 0o7777))?;
        }
        file.sync_all()?;
        last()?;
        fs::rename(&passing, path)
    })();
    if let Err(error) = written {
        // Another process of this id cannot have made it: only a crash can have left it.
        let _ = fs::remove_file(&passing);
        return Err(error);
    }
    match path.parent() {
        Some(directory) => File::open(directory)?.sync_all(),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_file_keeps_its_mode_and_its_links_and_what_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let (real, link) = (dir.path().join("real"), dir.path().join("link"));
        fs::write(&real, "old").unwrap();
        fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
        symlink("real", &link).unwrap();
        let backup = Original::read(&link).unwrap().replace("new").unwrap();
        let backup = backup.unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&real).unwrap(), "new");
        assert_eq!(fs::read_to_string(&backup).unwrap(), "old");
        for path in [&real, &backup] {
            assert_eq!(fs::metadata(path).unwrap().mode() & 0o7777, 0o640);
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 3);
    }

    #[test]
    fn a_new_file_is_private_and_its_directory_is_made() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("handover/b.json");
        let original = Original::read(&path).unwrap();
        assert_eq!(original.text(), None);
        assert_eq!(original.replace("{}").unwrap(), None);
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o600);
        Original::read(&path).unwrap().delete(false).unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_is_removed_can_be_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        fs::write(&path, "theirs").unwrap();
        let backup = Original::read(&path).unwrap().delete(true).unwrap();
        assert_eq!(fs::read_to_string(backup.unwrap()).unwrap(), "theirs");
        assert!(!path.exists());
    }

    #[test]
    fn what_was_written_meanwhile_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        fs::write(&path, "old").unwrap();
        let original = Original::read(&path).unwrap();
        fs::write(&path, "newer").unwrap();
        original.replace("ours").unwrap_err();
        original.delete(false).unwrap_err();
        assert_eq!(fs::read_to_string(&path).unwrap(), "newer");
    }

    #[test]
    fn what_is_no_text_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        Original::read(dir.path()).unwrap_err();
        fs::write(&path, b"a\nb\xff").unwrap();
        let error = Original::read(&path).unwrap_err().to_string();
        assert!(error.contains("line 2"), "{error}");
        symlink("nowhere", dir.path().join("link")).unwrap();
        Original::read(&dir.path().join("link")).unwrap_err();
        let large = File::create(dir.path().join("large")).unwrap();
        large.set_len(LARGEST + 1).unwrap();
        Original::read(&dir.path().join("large")).unwrap_err();
    }
}
