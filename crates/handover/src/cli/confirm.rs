//! Asking a person before something is destroyed.

use std::io::{self, BufRead, IsTerminal, Write};

use handover_protocol::ErrorCode;

use super::failure::Failure;

/// Asks `question` at the terminal; without one, or without a clear yes, it refuses. `way_around`
/// is the option that answers beforehand.
pub fn ask(question: &str, way_around: &str) -> Result<(), Failure> {
    let (stdin, mut stderr) = (io::stdin(), io::stderr());
    if !stdin.is_terminal() || !stderr.is_terminal() {
        let message = format!("there is no terminal to ask at; give {way_around} to go ahead");
        return Err(Failure::new(ErrorCode::CallerRefused, message));
    }
    write!(stderr, "{question} [y/N] ")?;
    stderr.flush()?;
    let mut line = String::new();
    stdin.lock().read_line(&mut line)?;
    if matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes") {
        Ok(())
    } else {
        Err(Failure::new(ErrorCode::CallerRefused, "nothing was done"))
    }
}
