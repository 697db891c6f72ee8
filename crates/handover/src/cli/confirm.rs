//! Asking a person before something is destroyed.

use std::io::{self, BufRead, IsTerminal, Write};
use std::process;
use std::thread;

use handover_protocol::ErrorCode;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use super::failure::{Failure, INTERRUPTED};

/// Whether there is a person to ask; `way_around` is the option that answers beforehand.
///
/// # Errors
/// `caller_refused` without a terminal.
pub fn can_ask(way_around: &str) -> Result<(), Failure> {
    if io::stdin().is_terminal() && io::stderr().is_terminal() {
        return Ok(());
    }
    let message = format!("there is no terminal to ask at; give {way_around} to go ahead");
    Err(Failure::new(ErrorCode::CallerRefused, message))
}

/// Asks `question` at the terminal; without one, or without a clear yes, it refuses. `way_around`
/// is the option that answers beforehand.
///
/// # Errors
/// `caller_refused`; an interrupt at the question.
pub async fn ask(question: &str, way_around: &str) -> Result<(), Failure> {
    can_ask(way_around)?;
    // Before the question, which a person may interrupt as soon as it is there.
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut stderr = io::stderr();
    write!(stderr, "{question} [y/N] ")?;
    stderr.flush()?;
    let (tell, told) = oneshot::channel();
    // It cannot be called back from the terminal; if nobody waits any more, it ends with the process.
    thread::spawn(move || {
        let mut line = String::new();
        let read = io::stdin().lock().read_line(&mut line);
        let _ = tell.send(read.map(|_| line));
    });
    let line = tokio::select! {
        line = told => line.map_err(io::Error::other)??,
        _ = interrupt.recv() => {
            writeln!(stderr)?;
            return Err(Failure::interrupted());
        }
    };
    // What follows the answer may be interrupted as any command.
    tokio::spawn(async move {
        interrupt.recv().await;
        process::exit(INTERRUPTED.into());
    });
    if matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes") {
        Ok(())
    } else {
        Err(Failure::new(ErrorCode::CallerRefused, "nothing was done"))
    }
}
