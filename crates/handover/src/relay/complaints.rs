//! What the server writes to its standard error, passed on to ours: line by line, without secrets, and
//! without ever holding the server up.

use std::io::{self, Write};
use std::sync::mpsc;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::redact::Redactor;

/// The longest line that is passed on, in bytes; the rest of a longer one is left out.
const MAX_LINE: usize = 8 << 10;
/// Lines that wait to be written; further ones are left out, and counted.
const WAITING: usize = 256;

/// Lines out of bytes, each cut at [`MAX_LINE`].
#[derive(Debug, Default)]
struct Lines {
    line: Vec<u8>,
    cut: bool,
}

impl Lines {
    /// Takes bytes, and gives each line that they end.
    fn push(&mut self, bytes: &[u8], mut ended: impl FnMut(String)) {
        for &byte in bytes {
            if byte == b'\n' {
                self.end(&mut ended);
            } else if self.line.len() < MAX_LINE {
                self.line.push(byte);
            } else {
                self.cut = true;
            }
        }
    }

    /// Gives what there is of a line.
    fn end(&mut self, mut ended: impl FnMut(String)) {
        let mut line = String::from_utf8_lossy(&self.line).into_owned();
        if std::mem::take(&mut self.cut) {
            line.push_str(" … (the rest is left out)");
        }
        self.line.clear();
        ended(line);
    }
}

/// How long what was said last may take to be written.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// Complaints that are being passed on.
#[derive(Debug)]
pub(super) struct Complaints(oneshot::Receiver<()>);

impl Complaints {
    /// Waits until everything is written, if that does not take long.
    pub(super) async fn finish(self) {
        // Otherwise somebody still holds the pipe, or nobody reads.
        let _ = timeout(LAST_WORDS, self.0).await;
    }
}

/// Passes everything on until the last who could write has gone.
///
/// # Errors
/// If there is no thread to be had.
pub(super) fn pass_on(from: pipe::Receiver, redactor: Redactor) -> io::Result<Complaints> {
    let (lines, to_write) = mpsc::sync_channel::<String>(WAITING);
    let (finish, finished) = oneshot::channel();
    let write = move || {
        for line in to_write {
            if writeln!(io::stderr().lock(), "{line}").is_err() {
                break;
            }
        }
        let _ = finish.send(());
    };
    std::thread::Builder::new()
        .name("complaints".to_owned())
        .spawn(write)?;
    tokio::spawn(read(from, redactor, lines));
    Ok(Complaints(finished))
}

async fn read(mut from: pipe::Receiver, redactor: Redactor, lines: mpsc::SyncSender<String>) {
    let mut buffer = vec![0; 16 << 10];
    let mut split = Lines::default();
    let mut left_out = 0_u64;
    let mut pass = |line: String| {
        if left_out > 0 {
            let note = format!("handover relay: {left_out} lines of the server are left out");
            if lines.try_send(note).is_err() {
                left_out += 1;
                return;
            }
            left_out = 0;
        }
        left_out += u64::from(lines.try_send(redactor.clean(&line)).is_err());
    };
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        split.push(&buffer[..length], &mut pass);
    }
    if !split.line.is_empty() {
        split.end(&mut pass);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_in_pieces_of_any_size() {
        for size in 1..9 {
            let mut lines = Lines::default();
            let mut seen = Vec::new();
            for piece in "eins\n\nzwölf\nrest".as_bytes().chunks(size) {
                lines.push(piece, |line| seen.push(line));
            }
            assert_eq!(seen, ["eins", "", "zwölf"]);
            lines.end(|line| seen.push(line));
            assert_eq!(seen[3], "rest");
        }
    }

    #[test]
    fn a_long_line_is_cut_and_not_kept() {
        let mut lines = Lines::default();
        let mut seen = Vec::new();
        for _ in 0..1000 {
            lines.push(&[b'x'; 1000], |line| seen.push(line));
        }
        assert_eq!(lines.line.len(), MAX_LINE);
        lines.push(b"\nnext\n", |line| seen.push(line));
        assert!(seen[0].len() < MAX_LINE + 100 && seen[0].contains("left out"));
        assert_eq!(seen[1], "next");
    }
}
