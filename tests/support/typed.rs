//! A terminal on a desktop that writes down exactly what was typed into it.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::json;
use x11rb::protocol::xproto::{AtomEnum, ConnectionExt as _};

use super::clock::{LONG, eventually};
use super::session::Session;

/// Terminals that this process has started.
static STARTED: AtomicU32 = AtomicU32::new(0);

/// A focused xterm in raw mode whose input goes to a file.
pub struct Typed {
    file: PathBuf,
    /// Its process id, as `desktop.launch` answered it.
    pub pid: i32,
}

impl Typed {
    /// Starts the terminal and waits until it has the focus.
    pub fn start(session: &Session) -> Self {
        let file = session.place.path().join("typed");
        let _ = fs::remove_file(&file);
        // An earlier one may still have the focus.
        let name = format!("typed{}", STARTED.fetch_add(1, Ordering::Relaxed));
        let read = format!("stty raw -echo; exec cat >{}", file.display());
        let command = json!([
            "xterm",
            "-u8",
            "-name",
            name,
            "-geometry",
            "60x10+20+20",
            "-e",
            "sh",
            "-c",
            read
        ]);
        let launched = session.wire().done(
            "desktop.launch",
            json!({"desktop": "d1", "command": command}),
        );
        let x = session.display().connect();
        eventually("the terminal reads and has the focus", LONG, || {
            let focus = x.get_input_focus().ok()?.reply().ok()?.focus;
            let class = x.get_property(false, focus, AtomEnum::WM_CLASS, AtomEnum::STRING, 0, 64);
            let class = class.ok()?.reply().ok()?.value;
            let is_ours = class.split(|&byte| byte == 0).next() == Some(name.as_bytes());
            (file.exists() && is_ours).then_some(())
        });
        Self {
            file,
            pid: i32::try_from(launched["pid"].as_i64().expect("a pid")).expect("a pid"),
        }
    }

    /// What was typed so far.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.file).unwrap_or_default()).into_owned()
    }

    /// Waits until exactly `text` was typed.
    pub fn becomes(&self, text: &str) {
        let started = std::time::Instant::now();
        while self.text() != text {
            assert!(
                started.elapsed() < LONG,
                "typed {:?}, not {text:?}",
                self.text()
            );
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }
}
