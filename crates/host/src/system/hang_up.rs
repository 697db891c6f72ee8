//! Whether anybody is at the other end of a socket.

use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Whether the other side has closed altogether, and not only stopped writing.
pub fn is_gone(stream: impl AsFd) -> bool {
    let mut fds = [PollFd::new(&stream, PollFlags::empty())];
    let polled = poll(&mut fds, Some(&Timespec::default()));
    polled.is_err() || fds[0].revents().intersects(PollFlags::HUP | PollFlags::ERR)
}

#[cfg(test)]
mod tests {
    use std::net::Shutdown;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn who_only_stops_writing_is_not_gone() {
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        theirs.shutdown(Shutdown::Write).expect("it is open");
        assert!(!is_gone(&ours));
        drop(theirs);
        assert!(is_gone(&ours));
    }
}
