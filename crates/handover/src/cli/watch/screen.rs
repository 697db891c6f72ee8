//! What the person sees while in control: a line that is kept up to date, and messages above it.

use std::io::{self, IsTerminal, Write};

use handover_protocol::{ControlStatusResult, DesktopId};
use serde_json::Value;

use super::super::duration;
use super::super::text::{plain, shortened};

/// Where it goes: JSON and results to standard output, the rest to standard error.
#[derive(Debug)]
pub struct Screen {
    json: bool,
    /// Whether the line can be overwritten.
    live: bool,
    line: String,
}

impl Screen {
    /// A screen for people or for programs.
    pub fn new(json: bool) -> Self {
        Self {
            json,
            live: !json && io::stderr().is_terminal(),
            line: String::new(),
        }
    }

    /// What the command is for, on standard output, and what programs get instead, if anything.
    /// Like everything here it fails if nobody can read it any more, which must not get in the
    /// way of returning control.
    pub fn tell(&mut self, text: &str, json: Option<Value>) -> io::Result<()> {
        self.clear()?;
        let mut out = io::stdout().lock();
        match json {
            Some(json) if self.json => writeln!(out, "{json}")?,
            _ if self.json => {}
            _ => writeln!(out, "{}", text.trim_end())?,
        }
        out.flush()
    }

    /// A message about what goes on; programs get it on standard output.
    pub fn say(&mut self, message: &str, json: Value) -> io::Result<()> {
        if self.json {
            return self.tell(message, Some(json));
        }
        self.clear()?;
        let mut out = io::stderr().lock();
        writeln!(out, "{}", message.trim_end())?;
        out.flush()
    }

    /// Shows `line` in the place of the line before.
    pub fn show(&mut self, line: String) -> io::Result<()> {
        if !self.live {
            return Ok(());
        }
        let mut out = io::stderr().lock();
        let width = rustix::termios::tcgetwinsize(io::stderr()).map_or(0, |size| size.ws_col);
        let shown = shortened(&line, room(width));
        write!(out, "\r\x1b[K{shown}")?;
        self.line = line;
        out.flush()
    }

    /// Removes the line.
    pub fn clear(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.line).is_empty() {
            return Ok(());
        }
        let mut out = io::stderr().lock();
        write!(out, "\r\x1b[K")?;
        out.flush()
    }
}

/// How much of a line fits on a terminal of `width` columns. One that does not say has 0.
fn room(width: u16) -> usize {
    let width = if width == 0 { 80 } else { width.max(20) };
    // The last column stays free: some terminals wrap there.
    usize::from(width) - 1
}

/// The line that is kept up to date. `left_ms` is the time until the lease ends unless renewed.
pub fn line(status: &ControlStatusResult, left_ms: u64, held_ms: u64) -> String {
    let holder = status
        .lease
        .as_ref()
        .map_or("nobody", |lease| lease.holder.as_str());
    let waiting = match &status.requests[..] {
        [] => "no agent waiting".to_owned(),
        [only] => format!("1 agent waiting ({})", shortened(&only.reason, 40)),
        several => format!("{} agents waiting", several.len()),
    };
    let mut line = format!(
        "{}: {} has control, {} left, {waiting}, held {}",
        status.desktop,
        plain(holder),
        duration::show(left_ms),
        duration::show(held_ms)
    );
    if status
        .lease
        .as_ref()
        .is_some_and(|lease| !lease.viewer_connected)
    {
        line.push_str(", no viewer");
    }
    line
}

/// What is told when control was granted.
pub fn granted(desktop: &DesktopId, foreign: &[handover_protocol::ForeignClient]) -> String {
    let mut text = format!(
        "you have control of {desktop}. To give it back, close the viewer, or type a note for the \
         agents and press Enter; Ctrl-C cancels.\n"
    );
    for client in foreign {
        let pid = client
            .pid
            .map_or_else(|| "unknown pid".to_owned(), |pid| format!("pid {pid}"));
        let command = client
            .command
            .as_deref()
            .map_or_else(String::new, |c| shortened(c, 80));
        text.push_str(&format!("  can watch what you type: {pid} {command}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use handover_protocol::ForeignClient;
    use serde_json::json;

    use super::*;

    fn status(requests: Value) -> ControlStatusResult {
        serde_json::from_value(json!({
            "desktop": "d1", "control": "human", "phase": "steady", "epoch": 4,
            "lease": {"leaseId": "l-1", "holder": "ada (pid 7)",
                      "since": "2026-01-31T09:30:00.250Z", "expiresInMs": 27_500, "viewer": "v1"},
            "requests": requests
        }))
        .unwrap()
    }

    #[test]
    fn lines() {
        let request = json!({"requestId": "r1", "reason": "log in\u{1b}[2J", "state": "taken",
                             "since": "2026-01-31T09:30:00.250Z"});
        insta::assert_snapshot!(line(&status(json!([])), 27_500, 61_000), @"d1: ada (pid 7) has control, 27 s left, no agent waiting, held 1:01, no viewer");
        insta::assert_snapshot!(line(&status(json!([request])), 27_500, 61_000), @r"d1: ada (pid 7) has control, 27 s left, 1 agent waiting (log in\u{1b}[2J), held 1:01, no viewer");
        insta::assert_snapshot!(line(&status(json!([request, request])), 500, 100), @"d1: ada (pid 7) has control, 0.5 s left, 2 agents waiting, held 0.1 s, no viewer");
    }

    #[test]
    fn room_for_a_line() {
        assert_eq!([room(0), room(5), room(132)], [79, 19, 131]);
    }

    #[test]
    fn grant() {
        let foreign = [ForeignClient {
            pid: Some(9),
            command: Some("xev\u{1b}".to_owned()),
        }];
        insta::assert_snapshot!(granted(&"d1".into(), &foreign), @r"
        you have control of d1. To give it back, close the viewer, or type a note for the agents and press Enter; Ctrl-C cancels.
          can watch what you type: pid 9 xev\u{1b}
        ");
    }
}
