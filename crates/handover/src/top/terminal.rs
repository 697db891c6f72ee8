//! The terminal: taken over while the screen is shown, and given back as it was, whatever happens.

use std::io::{self, BufWriter, Stdout, Write};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::event::{
    DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture,
};
use crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, SetTitle, disable_raw_mode,
    enable_raw_mode,
};
use crossterm::{cursor, execute, queue};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;

use crate::notify::terminal::{BELL, KEEP_TITLE, RESTORE_TITLE, has_title};

/// Whether the terminal is ours now.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Room for what is written for one frame, so that no half of it is seen.
const FRAME_BYTES: usize = 256 << 10;

/// The screen.
pub struct Screen {
    /// What is drawn to.
    pub terminal: Terminal<CrosstermBackend<BufWriter<Stdout>>>,
    titled: bool,
}

impl Screen {
    /// Takes the terminal over.
    ///
    /// # Errors
    /// If it cannot be written to, or has no such modes.
    pub fn open() -> io::Result<Self> {
        give_back_when_it_panics();
        let titled = has_title(std::env::var("TERM").ok().as_deref());
        take(titled)?;
        let terminal = blank();
        match terminal {
            Ok(terminal) => Ok(Self { terminal, titled }),
            Err(error) => {
                give_back(titled);
                Err(error)
            }
        }
    }

    /// Gives the terminal back for a while.
    pub fn leave(&mut self) {
        give_back(self.titled);
    }

    /// Takes it over again, and draws everything anew.
    ///
    /// # Errors
    /// As [`Screen::open`].
    pub fn come_back(&mut self) -> io::Result<()> {
        take(self.titled)?;
        self.clear()
    }

    /// Forgets what was on it.
    ///
    /// # Errors
    /// If it cannot be written to.
    pub fn clear(&mut self) -> io::Result<()> {
        self.terminal = blank()?;
        execute!(io::stdout(), Clear(ClearType::All))
    }

    /// Sets the terminal's title, which must be harmless, where it has one.
    pub fn title(&mut self, title: &str) -> io::Result<()> {
        if self.titled {
            execute!(io::stdout(), SetTitle(title))?;
        }
        Ok(())
    }

    /// Rings the terminal's bell.
    pub fn ring(&mut self) -> io::Result<()> {
        let mut out = io::stdout();
        out.write_all(BELL.as_bytes())?;
        out.flush()
    }
}

/// A screen of which nothing is drawn yet. ratatui's own way to clear asks the terminal where its cursor
/// is, and the answer would be read in the place of what is typed.
fn blank() -> io::Result<Terminal<CrosstermBackend<BufWriter<Stdout>>>> {
    let out = BufWriter::with_capacity(FRAME_BYTES, io::stdout());
    Terminal::new(CrosstermBackend::new(out))
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back(self.titled);
    }
}

fn take(titled: bool) -> io::Result<()> {
    enable_raw_mode()?;
    let was_ours = TAKEN.swap(true, Ordering::SeqCst);
    let mut out = io::stdout();
    if titled && !was_ours {
        out.write_all(KEEP_TITLE.as_bytes())?;
    }
    execute!(
        out,
        EnterAlternateScreen,
        EnableMouseCapture,
        EnableBracketedPaste,
        cursor::Hide
    )
}

/// Gives the terminal back if it is ours. If it cannot be written to, nobody sees it.
fn give_back(titled: bool) {
    if !TAKEN.swap(false, Ordering::SeqCst) {
        return;
    }
    let mut out = io::stdout();
    let _ = queue!(
        out,
        DisableBracketedPaste,
        DisableMouseCapture,
        LeaveAlternateScreen,
        cursor::Show
    );
    if titled {
        // A terminal that keeps no titles at least loses ours.
        let _ = queue!(out, SetTitle(""));
        let _ = out.write_all(RESTORE_TITLE.as_bytes());
    }
    let _ = out.flush();
    let _ = disable_raw_mode();
}

/// A message of a panic is for a terminal that can show it.
fn give_back_when_it_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            give_back(has_title(std::env::var("TERM").ok().as_deref()));
            before(info);
        }));
    });
}
