//! What the notifier says of itself: its standard error, which the host has made a file.

use std::io::{self, Write};
use std::os::fd::AsFd;

use rustix::fs::{FileType, fstat, ftruncate};

/// The longest that the file gets, in bytes. A receiver that is away for long is told of many times.
const LONGEST: u64 = 1 << 20;

/// Writes to standard error. What a file there has no more room for begins it anew.
#[derive(Clone, Copy, Debug)]
pub struct Log;

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut out = io::stderr().lock();
        make_room(&out, bytes.len())?;
        out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// Empties a file that `more` bytes would make longer than it may be. It is open to append, so what is written
/// next stands at its beginning.
fn make_room(file: impl AsFd, more: usize) -> io::Result<()> {
    let stat = fstat(&file)?;
    let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    let length = u64::try_from(stat.st_size).unwrap_or(0);
    let more = u64::try_from(more).unwrap_or(u64::MAX);
    if is_file && length.saturating_add(more) > LONGEST {
        ftruncate(&file, 0)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;

    use super::*;

    #[test]
    fn a_file_that_is_full_begins_anew() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let mut file = OpenOptions::new()
            .append(true)
            .create(true)
            .open(&path)
            .unwrap();
        let line = "x".repeat(999) + "\n";
        for _ in 0..1500 {
            make_room(&file, line.len()).unwrap();
            file.write_all(line.as_bytes()).unwrap();
            assert!(file.metadata().unwrap().len() <= LONGEST);
        }
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), 1500 - 1048);
    }

    #[test]
    fn what_is_no_file_is_left_alone() {
        let (_reader, writer) = io::pipe().unwrap();
        make_room(&writer, usize::MAX).unwrap();
    }
}
