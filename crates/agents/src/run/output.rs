//! What a program writes: told apart into lines for its driver, and kept in files.

use std::path::{Path, PathBuf};

use tokio::fs::{File, OpenOptions};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};

use crate::driver::{Framing, MAX_LINE};

/// Bytes of standard output that are kept in a file; what comes after is left out.
const MAX_OUTPUT: u64 = 64 << 20;
/// Bytes of standard error that are kept in a file.
const MAX_ERRORS: u64 = 16 << 20;
/// Bytes of standard error that an error message shows.
const SHOWN_ERRORS: usize = 1000;

/// Tells what a program writes apart.
#[derive(Debug)]
pub(super) struct Frames {
    framing: Framing,
    /// The beginning of a line.
    rest: Vec<u8>,
    /// The present line is too long; the rest of it is passed over.
    skipping: bool,
}

impl Frames {
    pub fn new(framing: Framing) -> Self {
        Self {
            framing,
            rest: Vec::new(),
            skipping: false,
        }
    }

    /// Calls `take` for each part that is complete.
    pub fn split(&mut self, mut data: &[u8], mut take: impl FnMut(&[u8])) {
        if self.framing == Framing::Bytes {
            take(data);
            return;
        }
        while let Some(end) = data.iter().position(|&byte| byte == b'\n') {
            let (line, after) = (&data[..end], &data[end + 1..]);
            data = after;
            if std::mem::take(&mut self.skipping) || self.is_too_long(line) {
                self.rest.clear();
            } else if self.rest.is_empty() {
                take(line);
            } else {
                self.rest.extend_from_slice(line);
                take(&self.rest);
                self.rest.clear();
            }
        }
        if self.skipping {
            return;
        }
        if self.is_too_long(data) {
            self.rest = Vec::new();
            self.skipping = true;
        } else {
            self.rest.extend_from_slice(data);
        }
    }

    /// The last line, if it has no end.
    pub fn finish(&mut self, mut take: impl FnMut(&[u8])) {
        if !self.rest.is_empty() {
            take(&std::mem::take(&mut self.rest));
        }
    }

    fn is_too_long(&self, more: &[u8]) -> bool {
        let too_long = self.rest.len() + more.len() > MAX_LINE;
        if too_long {
            tracing::warn!("a program wrote a line of more than {MAX_LINE} bytes; it is left out");
        }
        too_long
    }
}

/// The file that takes a program's output as it is. One that cannot be written is logged, and the
/// agent goes on.
#[derive(Debug)]
pub(super) struct OutputFile {
    file: Option<File>,
    written: u64,
    max: u64,
}

impl OutputFile {
    pub async fn create(path: &Path) -> Self {
        Self::bounded(path, MAX_OUTPUT).await
    }

    async fn bounded(path: &Path, max: u64) -> Self {
        let opened = OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o600)
            .open(path)
            .await;
        if let Err(error) = &opened {
            tracing::warn!(%error, path = %path.display(), "an agent's output cannot be kept");
        }
        Self {
            file: opened.ok(),
            written: 0,
            max,
        }
    }

    /// Writes, up to the bound.
    pub async fn write(&mut self, data: &[u8]) {
        let Some(file) = &mut self.file else {
            return;
        };
        let room = usize::try_from(self.max - self.written).unwrap_or(usize::MAX);
        let data = &data[..data.len().min(room)];
        if let Err(error) = file.write_all(data).await {
            tracing::warn!(%error, "an agent's output is not kept any more");
            self.file = None;
            return;
        }
        self.written += data.len() as u64;
        if self.written == self.max {
            tracing::warn!(max = self.max, "an agent's output is left out from here on");
            self.finish().await;
        }
    }

    /// Nothing is written any more.
    pub async fn finish(&mut self) {
        if let Some(mut file) = self.file.take() {
            // What was not written is no reason to fail the agent.
            let _ = file.flush().await;
        }
    }
}

/// Keeps what a program writes to its standard error. Answers the end of it, for error messages.
pub(super) async fn copy_errors(
    mut stderr: Box<dyn AsyncRead + Send + Unpin>,
    path: PathBuf,
) -> String {
    let mut file = OutputFile::bounded(&path, MAX_ERRORS).await;
    let mut last: Vec<u8> = Vec::new();
    let mut part = Vec::with_capacity(2 << 10);
    while let Ok(1..) = stderr.read_buf(&mut part).await {
        file.write(&part).await;
        last.append(&mut part);
        let surplus = last.len().saturating_sub(SHOWN_ERRORS);
        last.drain(..surplus);
    }
    file.finish().await;
    String::from_utf8_lossy(&last).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lines(frames: &mut Frames, data: &[u8]) -> Vec<Vec<u8>> {
        let mut found = Vec::new();
        frames.split(data, |line| found.push(line.to_vec()));
        found
    }

    proptest! {
        #[test]
        fn lines_are_the_same_however_they_are_cut(
            text in prop::collection::vec(prop::sample::select(b"ab\n\xe2\x80\xa8".to_vec()), 0..200),
            cuts in prop::collection::vec(1usize..20, 1..40),
        ) {
            let mut whole = Frames::new(Framing::Lines);
            let mut expected = lines(&mut whole, &text);
            whole.finish(|line| expected.push(line.to_vec()));
            let mut parts = Frames::new(Framing::Lines);
            let mut found = Vec::new();
            let mut rest = &text[..];
            for cut in cuts.iter().cycle() {
                let (part, after) = rest.split_at((*cut).min(rest.len()));
                found.extend(lines(&mut parts, part));
                rest = after;
                if rest.is_empty() {
                    break;
                }
            }
            parts.finish(|line| found.push(line.to_vec()));
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_left_out_and_the_next_is_read() {
        let mut frames = Frames::new(Framing::Lines);
        let part = vec![b'x'; MAX_LINE / 4 + 1];
        for _ in 0..5 {
            assert!(lines(&mut frames, &part).is_empty());
        }
        assert_eq!(lines(&mut frames, b"y\nnext\n"), [b"next".to_vec()]);
    }

    #[tokio::test]
    async fn an_output_file_is_private_and_bounded() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.out");
        let mut file = OutputFile::bounded(&path, 10).await;
        file.write(b"0123456").await;
        file.write(b"789abc").await;
        file.write(b"def").await;
        file.finish().await;
        assert_eq!(std::fs::read(&path).unwrap(), b"0123456789");
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[tokio::test]
    async fn of_errors_the_end_is_shown_and_all_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.log");
        let text = "x".repeat(5000) + "the end";
        let shown = copy_errors(Box::new(std::io::Cursor::new(text.clone())), path.clone()).await;
        assert_eq!(shown.len(), SHOWN_ERRORS);
        assert!(shown.ends_with("the end"));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    }
}
