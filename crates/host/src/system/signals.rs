//! Signals that ask a process to end, and the news that a child has ended.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, IntoRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use rustix::pipe::{PipeFlags, pipe_with};
use tokio::signal::unix::{Signal as TokioSignal, SignalKind, signal};

/// Why the host was asked to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopSignal {
    /// `SIGTERM`.
    Terminate,
    /// `SIGINT`, Ctrl-C in the foreground.
    Interrupt,
    /// `SIGHUP`, the terminal is gone.
    HangUp,
}

/// The stop signals of an async process.
#[derive(Debug)]
pub struct StopSignals {
    terminate: TokioSignal,
    interrupt: TokioSignal,
    hang_up: TokioSignal,
}

impl StopSignals {
    /// Starts catching. From here on these signals no longer end the process by themselves.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    /// The next stop signal. Signals of one kind that come together count once.
    pub async fn recv(&mut self) -> StopSignal {
        tokio::select! {
            _ = self.terminate.recv() => StopSignal::Terminate,
            _ = self.interrupt.recv() => StopSignal::Interrupt,
            _ = self.hang_up.recv() => StopSignal::HangUp,
        }
    }
}

/// Where the handler writes to wake the loop; -1 until a [`SignalPipe`] exists.
static WAKE: AtomicI32 = AtomicI32::new(-1);
static CHILD_ENDED: AtomicBool = AtomicBool::new(false);
static STOP_ASKED: AtomicBool = AtomicBool::new(false);

/// A pipe that becomes readable when a signal arrives: for the keeper, which has no async runtime
/// and must not use `signalfd`, since the mask that it needs would be inherited by every program it
/// starts.
#[derive(Debug)]
pub struct SignalPipe {
    read: OwnedFd,
}

impl SignalPipe {
    /// Catches `SIGCHLD`, `SIGTERM` and `SIGINT`. Once per process.
    pub fn install() -> io::Result<Self> {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let raw = write.into_raw_fd();
        if WAKE
            .compare_exchange(-1, raw, Ordering::SeqCst, Ordering::SeqCst)
            .is_err()
        {
            return Err(io::Error::other("signals are already caught"));
        }
        for number in [libc::SIGCHLD, libc::SIGTERM, libc::SIGINT] {
            // SAFETY: `action` is a fully initialised `sigaction` (zero is valid for every field,
            // among them an empty mask), its handler has the signature of a plain handler and calls
            // only async-signal-safe functions, and the old action is not asked for.
            let result = unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = note_signal as extern "C" fn(libc::c_int) as usize;
                action.sa_flags = libc::SA_RESTART;
                libc::sigaction(number, &action, std::ptr::null_mut())
            };
            if result != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(Self { read })
    }

    /// Takes what has arrived since the last call.
    pub fn drain(&self) -> Arrived {
        let mut buffer = [0u8; 64];
        while rustix::io::read(&self.read, &mut buffer).is_ok_and(|count| count > 0) {}
        // After the pipe is empty: a signal from here on writes to it again.
        Arrived {
            child: CHILD_ENDED.swap(false, Ordering::SeqCst),
            stop: STOP_ASKED.swap(false, Ordering::SeqCst),
        }
    }
}

impl AsFd for SignalPipe {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.read.as_fd()
    }
}

/// What a [`SignalPipe`] has seen.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Arrived {
    /// At least one child has ended or stopped.
    pub child: bool,
    /// `SIGTERM` or `SIGINT` came.
    pub stop: bool,
}

extern "C" fn note_signal(number: libc::c_int) {
    let flag = if number == libc::SIGCHLD {
        &CHILD_ENDED
    } else {
        &STOP_ASKED
    };
    flag.store(true, Ordering::SeqCst);
    // SAFETY: `write` is async-signal-safe and reads one byte of a live static; the descriptor is a
    // pipe that is never closed, and a full pipe is as good a wake-up. `errno` is restored, since
    // the interrupted code may be about to read it.
    unsafe {
        let errno = *libc::__errno_location();
        libc::write(WAKE.load(Ordering::SeqCst), c"x".as_ptr().cast(), 1);
        *libc::__errno_location() = errno;
    }
}
