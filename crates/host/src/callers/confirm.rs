//! Asking the person at a caller's terminal.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::time::Duration;

use rustix::fs::{major, minor};
use rustix::termios::{QueueSelector, tcflush};
use tokio::io::unix::AsyncFd;
use tokio::time::timeout;

use super::Caller;
use crate::system::process::{Stat, Terminal};

/// Asks whether `act` is wanted and waits for `yes`; `Err` says why it is refused.
pub(super) async fn ask(
    caller: &Caller,
    act: &str,
    mark: &str,
    wait: Duration,
) -> Result<(), String> {
    let stat = Stat::of(caller.pid)
        .ok()
        .filter(|stat| stat.start_ticks == caller.start_ticks)
        .ok_or("the caller has ended")?;
    let terminal = stat.terminal.ok_or_else(|| {
        format!(
            "an agent program ({mark}) stands above the caller, which has no terminal to ask a person at; run the command in a terminal of your own"
        )
    })?;
    let mut file = open(terminal, caller.uid).map_err(|error| {
        format!("an agent program ({mark}) stands above the caller, and its terminal cannot be used to ask a person: {error}")
    })?;
    // What was typed before the question is no answer to it.
    let _ = tcflush(&file, QueueSelector::IFlush);
    write!(
        file,
        "\r\nhandover: a program below an agent ({mark}, pid {}) asks to {}.\r\nType yes and Enter within {} s to allow it: ",
        caller.pid,
        printable(act),
        wait.as_secs()
    )
    .map_err(|error| format!("the caller's terminal cannot be written to: {error}"))?;
    let answer = timeout(wait, read_line(&file)).await;
    let (outcome, said) = match answer {
        Ok(Ok(line)) if line.trim().eq_ignore_ascii_case("yes") => (Ok(()), "allowed"),
        Ok(Ok(_)) => (
            Err("the person at the terminal said no".to_owned()),
            "refused",
        ),
        Ok(Err(error)) => (
            Err(format!("the caller's terminal cannot be read: {error}")),
            "refused",
        ),
        Err(_) => (
            Err(format!(
                "nobody answered at the caller's terminal within {} s",
                wait.as_secs()
            )),
            "refused: no answer",
        ),
    };
    // A courtesy; the terminal may be gone.
    let _ = write!(file, "\r\nhandover: {said}\r\n");
    outcome
}

/// Opens the terminal itself, if it is the caller's user's: not as our controlling terminal, and
/// without waiting on it.
fn open(terminal: Terminal, uid: u32) -> io::Result<File> {
    let path = terminal
        .path()
        .ok_or_else(|| io::Error::other("it is of an unknown kind"))?;
    let file = File::options()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NOCTTY | libc::O_NONBLOCK | libc::O_NOFOLLOW)
        .open(&path)?;
    let metadata = file.metadata()?;
    let number = (major(metadata.rdev()), minor(metadata.rdev()));
    // In a container the same path may be another terminal.
    if !metadata.file_type().is_char_device() || number != (terminal.major, terminal.minor) {
        return Err(io::Error::other(format!(
            "{} is not the caller's",
            path.display()
        )));
    }
    if metadata.uid() != uid {
        return Err(io::Error::other(format!(
            "{} belongs to uid {}",
            path.display(),
            metadata.uid()
        )));
    }
    Ok(file)
}

/// Reads up to Enter; the terminal may be in any mode, so a carriage return counts too.
async fn read_line(file: &File) -> io::Result<String> {
    const LONGEST: usize = 64;
    // SAFETY: `File` always answers the same descriptor and closes it only when it is dropped; the
    // clone is owned by the `AsyncFd`, which removes it from the reactor first.
    let ready = unsafe { AsyncFd::register(file.try_clone()?) }?;
    let mut line = Vec::new();
    loop {
        let mut guard = ready.readable().await?;
        let mut byte = [0u8; 1];
        match guard.try_io(|file| Ok(rustix::io::read(file.get_ref(), &mut byte)?)) {
            Err(_would_block) => continue,
            Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => continue,
            Ok(Err(error)) => return Err(error),
            Ok(Ok(0)) => return Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
            Ok(Ok(_)) => {}
        }
        if matches!(byte[0], b'\n' | b'\r') || line.len() >= LONGEST {
            return Ok(String::from_utf8_lossy(&line).into_owned());
        }
        line.push(byte[0]);
    }
}

/// A question must not be able to move the cursor or to write over itself.
fn printable(text: &str) -> String {
    text.chars()
        .map(|char| if char.is_control() { '?' } else { char })
        .take(200)
        .collect()
}
