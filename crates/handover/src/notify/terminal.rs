//! The bell and the title of a terminal, to call a person to it.

use std::io::{self, IsTerminal, Write};

use crate::cli::text::shortened;

/// Rings the bell, or whatever the person's terminal does instead.
pub const BELL: &str = "\x07";
/// Keeps the title, to be restored: xterm's window operation 22.
pub const KEEP_TITLE: &str = "\x1b[22;2t";
/// Restores the title that was kept: xterm's window operation 23.
pub const RESTORE_TITLE: &str = "\x1b[23;2t";

/// The longest title, in characters.
const LONGEST: usize = 120;

/// Sets the title. `text` may be by an agent: nothing in it acts on the terminal.
fn title(text: &str) -> String {
    format!("\x1b]2;{}\x1b\\", shortened(text, LONGEST))
}

/// Whether the terminal that `TERM` names has a title.
pub fn has_title(term: Option<&str>) -> bool {
    !matches!(term, None | Some("" | "dumb" | "linux"))
}

/// The bell and title of the terminal that standard error is. The title is restored when it is dropped.
#[derive(Debug)]
pub struct Attention {
    rings: bool,
    has_title: bool,
    titled: bool,
}

impl Attention {
    /// Does nothing if not `wanted`, and where standard error is no terminal.
    pub fn new(wanted: bool) -> Self {
        let rings = wanted && io::stderr().is_terminal();
        let term = std::env::var("TERM").ok();
        Self {
            rings,
            has_title: rings && has_title(term.as_deref()),
            titled: false,
        }
    }

    /// Calls a person: rings, and says why in the title.
    pub fn call(&mut self, why: &str) {
        if !self.rings {
            return;
        }
        let mut bytes = String::new();
        if self.has_title {
            if !self.titled {
                bytes.push_str(KEEP_TITLE);
            }
            bytes.push_str(&title(why));
            self.titled = true;
        }
        bytes.push_str(BELL);
        write(&bytes);
    }

    /// The title is as it was.
    pub fn rest(&mut self) {
        if std::mem::take(&mut self.titled) {
            write(RESTORE_TITLE);
        }
    }
}

impl Drop for Attention {
    fn drop(&mut self) {
        self.rest();
    }
}

/// A terminal that is gone calls nobody, and that is no reason to stop.
fn write(bytes: &str) {
    let mut out = io::stderr().lock();
    let _ = out.write_all(bytes.as_bytes()).and_then(|()| out.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_has_no_escape_but_its_own() {
        let title = title("a1: \u{1b}]2;x\u{7} \u{9c}\n");
        assert_eq!(title.matches('\u{1b}').count(), 2, "{title:?}");
        assert!(!title.contains(['\u{7}', '\u{9c}', '\n']), "{title:?}");
        assert!(super::title(&"x".repeat(1000)).len() < 200);
    }

    #[test]
    fn terminals() {
        assert!(has_title(Some("xterm-256color")) && has_title(Some("tmux")));
        assert!(!has_title(None) && !has_title(Some("dumb")) && !has_title(Some("linux")));
    }
}
