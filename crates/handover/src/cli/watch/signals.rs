//! Signals that end a person's control.

use std::io;

use rustix::process::Signal;
use tokio::signal::unix::{SignalKind, signal};

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// To stop: Ctrl-C, a closed terminal, or a polite kill.
    Stop,
    /// To pause: Ctrl-Z.
    Suspend,
}

/// Catches the signals from when it is made.
#[derive(Debug)]
pub struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    hang_up: tokio::signal::unix::Signal,
    suspend: tokio::signal::unix::Signal,
}

impl Signals {
    /// Starts to catch them.
    pub fn catch() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
            suspend: signal(SignalKind::from_raw(Signal::TSTP.as_raw()))?,
        })
    }

    /// The next one.
    pub async fn next(&mut self) -> Asked {
        tokio::select! {
            _ = self.interrupt.recv() => Asked::Stop,
            _ = self.terminate.recv() => Asked::Stop,
            _ = self.hang_up.recv() => Asked::Stop,
            _ = self.suspend.recv() => Asked::Suspend,
        }
    }
}

/// Stops this process as Ctrl-Z would have, until the shell continues it.
pub fn suspend() -> io::Result<()> {
    Ok(rustix::process::kill_process(
        rustix::process::getpid(),
        Signal::STOP,
    )?)
}
