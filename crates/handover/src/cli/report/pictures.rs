//! Pictures of the record, for the page to hold.

use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Bytes of pictures that a page holds; the others are named only.
const MOST: usize = 32 << 20;

/// What a PNG file begins with.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

/// The evidence of one session.
#[derive(Debug)]
pub struct Pictures {
    session: PathBuf,
    evidence: Option<PathBuf>,
    left: usize,
}

/// What became of a picture that an event names.
#[derive(Debug, PartialEq, Eq)]
pub enum Picture {
    /// A `data:` address.
    Inline(String),
    /// It is there, but the page holds enough.
    TooMuch,
    /// It is no longer there, or is no picture of this session.
    Missing,
}

impl Pictures {
    /// Those in the session's directory `dir`.
    pub fn of(dir: &Path) -> Self {
        let evidence = dir.join("evidence").canonicalize().ok();
        Self {
            session: dir.to_owned(),
            evidence,
            left: MOST,
        }
    }

    /// The picture at `path`, as an event gives it: absolute, or within the session's directory
    /// or its evidence.
    pub fn take(&mut self, path: &str) -> Picture {
        let Some(evidence) = &self.evidence else {
            return Picture::Missing;
        };
        let file = [self.session.join(path), evidence.join(path)]
            .into_iter()
            .find_map(|file| file.canonicalize().ok())
            // Whatever an event says, no other file gets into a page that is passed on.
            .filter(|file| file.starts_with(evidence));
        let Some(bytes) = file.and_then(|file| std::fs::read(file).ok()) else {
            return Picture::Missing;
        };
        if !bytes.starts_with(PNG) {
            return Picture::Missing;
        }
        if bytes.len() > self.left {
            return Picture::TooMuch;
        }
        self.left -= bytes.len();
        Picture::Inline(format!("data:image/png;base64,{}", STANDARD.encode(bytes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pictures_of_the_session() {
        let dir = tempfile::tempdir().unwrap();
        let session = dir.path().join("session");
        std::fs::create_dir_all(session.join("evidence")).unwrap();
        let picture = [PNG, b"x"].concat();
        std::fs::write(session.join("evidence/1.png"), &picture).unwrap();
        std::fs::write(session.join("evidence/2.png"), b"secret").unwrap();
        std::fs::write(dir.path().join("other.png"), &picture).unwrap();
        std::os::unix::fs::symlink(dir.path().join("other.png"), session.join("evidence/3.png"))
            .unwrap();

        let mut pictures = Pictures::of(&session);
        let absolute = session.join("evidence/1.png");
        for path in ["1.png", "evidence/1.png", absolute.to_str().unwrap()] {
            assert!(matches!(pictures.take(path), Picture::Inline(_)), "{path}");
        }
        for path in ["2.png", "3.png", "4.png", "../other.png", "/etc/passwd", ""] {
            assert_eq!(pictures.take(path), Picture::Missing, "{path}");
        }
        pictures.left = 3;
        assert_eq!(pictures.take("1.png"), Picture::TooMuch);
    }
}
