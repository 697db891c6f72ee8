//! The file: where it is, and its text.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::problem::Problem;

/// The largest file that is read, in bytes.
pub const LARGEST: u64 = 64 << 10;

/// Why there is no configuration. Nothing of it is used then.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// The file cannot be read.
    #[error("{} cannot be read: {error}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The file says something that is not understood.
    #[error("{0}")]
    Wrong(Box<Problem>),
}

/// Where this user's file is, there or not. `None` without a home directory.
pub fn of_user() -> Option<PathBuf> {
    below(|name| std::env::var_os(name))
}

fn below(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let absolute = |name| {
        let path = variable(name).map(PathBuf::from);
        path.filter(|path| path.is_absolute())
    };
    let configurations =
        absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")));
    Some(configurations?.join("handover/config.toml"))
}

/// The text of a small file that people write; `None` if it is not there.
pub fn read(path: &Path) -> Result<Option<String>, Trouble> {
    let unreadable = |error| Trouble::Unreadable {
        path: path.to_owned(),
        error,
    };
    match read_limited(path, LARGEST) {
        Ok(bytes) => match String::from_utf8(bytes) {
            Ok(text) => Ok(Some(text)),
            Err(error) => {
                let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
                let line = valid.iter().filter(|byte| **byte == b'\n').count() + 1;
                let what = format!("line {line} is not UTF-8");
                Err(unreadable(io::Error::new(io::ErrorKind::InvalidData, what)))
            }
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unreadable(error)),
    }
}

/// Reads a regular file of at most `most` bytes, without waiting for the other end of a pipe.
pub fn read_limited(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(nonblocking)
        .open(path)?;
    let unfit = |what: String| Err(io::Error::new(io::ErrorKind::InvalidData, what));
    if !file.metadata()?.is_file() {
        return unfit("it is no file".to_owned());
    }
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return unfit(format!("it is larger than {most} bytes"));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_it_is() {
        let of = |set: &[(&str, &str)]| {
            below(|name| {
                let found = set.iter().find(|(set, _)| *set == name);
                found.map(|(_, value)| OsString::from(value))
            })
        };
        let home = ("HOME", "/home/ada");
        let below_home = Some("/home/ada/.config/handover/config.toml".into());
        assert_eq!(of(&[home]), below_home);
        assert_eq!(of(&[home, ("XDG_CONFIG_HOME", "")]), below_home);
        assert_eq!(of(&[home, ("XDG_CONFIG_HOME", "relative")]), below_home);
        assert_eq!(
            of(&[("XDG_CONFIG_HOME", "/x")]),
            Some("/x/handover/config.toml".into())
        );
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn what_is_no_small_text_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("c");
        assert!(read(&path).unwrap().is_none());
        assert!(read(dir.path()).is_err());
        std::fs::write(&path, b"a = 1\n\xff").unwrap();
        let trouble = read(&path).unwrap_err().to_string();
        assert!(trouble.contains("line 2 is not UTF-8"), "{trouble}");
        let large = std::fs::File::create(&path).unwrap();
        large.set_len(LARGEST + 1).unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("larger"));
        large.set_len(LARGEST).unwrap();
        assert!(read(&path).is_ok());
    }
}
