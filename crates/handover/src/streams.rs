//! The standard streams of programs that serve others by them. Whatever they are, and whoever shares them, they are
//! left as they were found: threads read and write them, and no flag is set.

use std::io::{self, IsTerminal};
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use tokio::sync::oneshot;
use tracing_subscriber::util::SubscriberInitExt;

/// Waits until a stream is ready for `events`, has an error, or its other end is gone; the latter two are told
/// though nothing is asked for.
pub fn wait(stream: impl AsFd, events: PollFlags) {
    loop {
        let mut fds = [PollFd::new(&stream, events)];
        if poll(&mut fds, None) != Err(Errno::INTR) {
            return;
        }
    }
}

/// Reads or writes by `attempt`: again if that was interrupted, or once a stream that is not to be waited for is
/// ready for `events`.
///
/// # Errors
/// It failed otherwise.
pub fn patiently<T>(
    stream: impl AsFd,
    events: PollFlags,
    mut attempt: impl FnMut() -> rustix::io::Result<T>,
) -> io::Result<T> {
    loop {
        match attempt() {
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => wait(&stream, events),
            done => return Ok(done?),
        }
    }
}

/// Told once nobody reads standard output any more, also while there is nothing to write. A file has no reader
/// that could go.
///
/// # Errors
/// There is no thread to be had.
pub fn hang_up() -> io::Result<oneshot::Receiver<()>> {
    let (say, gone) = oneshot::channel();
    // It cannot be called back; if nobody waits any more, it ends with the process.
    thread("hang-up", move || {
        wait(rustix::stdio::stdout(), PollFlags::empty());
        let _ = say.send(());
    })?;
    Ok(gone)
}

/// Starts a thread that nobody waits for.
///
/// # Errors
/// There is none to be had.
pub fn thread(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let builder = std::thread::Builder::new().name(name.to_owned());
    builder.spawn(work).map(drop)
}

/// Logs to standard error, for programs whose standard output belongs to a protocol: what `filter` lets through,
/// in colours if a terminal shows it.
pub fn log_to_stderr(filter: &str) {
    let subscriber = tracing_subscriber::fmt()
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .with_env_filter(filter)
        .without_time()
        .finish();
    // A process that logs somewhere already keeps doing so.
    let _ = subscriber.try_init();
}
