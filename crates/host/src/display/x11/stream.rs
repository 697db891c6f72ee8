//! A byte stream to an X server on which nothing waits longer than a deadline.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use x11rb::rust_connection::{DefaultStream, PollMode, Stream};
use x11rb::utils::RawFdContainer;

/// A stream whose waiting ends with [`io::ErrorKind::TimedOut`] at a deadline. What was under way
/// then is lost, so the connection is of no further use.
#[derive(Debug)]
pub(super) struct TimedStream {
    stream: DefaultStream,
    deadline: Mutex<Instant>,
}

impl TimedStream {
    /// Connects to the unix socket at `path`.
    pub(super) fn connect(path: &Path, deadline: Instant) -> io::Result<Self> {
        // A server that is stopped fills its queue of connections, and then a blocking connect
        // would wait for it; a non-blocking one fails instead.
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        connect(&socket, &SocketAddrUnix::new(path)?)?;
        let (stream, _) = DefaultStream::from_unix_stream(UnixStream::from(socket))?;
        Ok(Self {
            stream,
            deadline: Mutex::new(deadline),
        })
    }

    /// Sets until when the next operations may wait.
    pub(super) fn set_deadline(&self, deadline: Instant) {
        *self.lock() = deadline;
    }

    fn left(&self) -> Duration {
        self.lock().saturating_duration_since(Instant::now())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Instant> {
        self.deadline
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Stream for TimedStream {
    fn poll(&self, mode: PollMode) -> io::Result<()> {
        let mut events = PollFlags::empty();
        events.set(PollFlags::IN, mode.readable());
        events.set(PollFlags::OUT, mode.writable());
        loop {
            let left = Timespec::try_from(self.left()).map_err(io::Error::other)?;
            let mut fds = [PollFd::new(&self.stream, events)];
            match poll(&mut fds, Some(&left)) {
                Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
                Ok(_) => return Ok(()),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn read(&self, buffer: &mut [u8], fds: &mut Vec<RawFdContainer>) -> io::Result<usize> {
        self.stream.read(buffer, fds)
    }

    fn write(&self, bytes: &[u8], fds: &mut Vec<RawFdContainer>) -> io::Result<usize> {
        self.stream.write(bytes, fds)
    }

    fn write_vectored(
        &self,
        buffers: &[io::IoSlice<'_>],
        fds: &mut Vec<RawFdContainer>,
    ) -> io::Result<usize> {
        self.stream.write_vectored(buffers, fds)
    }
}
