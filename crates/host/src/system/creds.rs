//! Who wrote which bytes: the kernel's word for every message on a unix socket.
//!
//! The credentials of whoever connected are not enough, since a connected socket can be inherited
//! or passed on. With `SO_PASSCRED` the kernel notes the writer's pid, uid and gid beside every
//! message and never joins messages of two writers in one read.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;

use rustix::net::sockopt::set_socket_passcred;
use tokio::io::Interest;
use tokio::net::UnixStream;

/// The process that wrote a message, as the kernel saw it when it wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sender {
    /// Its pid in our namespace; 0 if it is outside of it or the kernel did not say.
    pub pid: u32,
    /// Its real user id, unless it is privileged and chose another.
    pub uid: u32,
    /// Its real group id.
    pub gid: u32,
}

/// Asks the kernel for the sender's credentials with every message. Set it on the listener: accepted
/// sockets inherit it, so that nothing can be written before it holds.
pub fn request_credentials(socket: impl AsFd) -> io::Result<()> {
    Ok(set_socket_passcred(socket, true)?)
}

/// Who connected, or made the socket pair. Only what it was then: the socket may have been passed on.
pub fn peer(socket: impl AsFd) -> io::Result<Sender> {
    let mut credentials = libc::ucred {
        pid: 0,
        uid: u32::MAX,
        gid: u32::MAX,
    };
    let mut length = size_of_val(&credentials) as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes into `credentials`, for which any bytes are
    // valid, and the descriptor is borrowed for the call.
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut credentials).cast(),
            &raw mut length,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(Sender {
        pid: u32::try_from(credentials.pid).unwrap_or(0),
        uid: credentials.uid,
        gid: credentials.gid,
    })
}

/// The buffer of a connection that sends little, and of one that sends much, in bytes.
const SMALL: usize = 1024;
const LARGE: usize = 16 * 1024;

/// Reads a stream in pieces that each have one sender.
#[derive(Debug)]
pub struct CredentialReader {
    stream: Arc<UnixStream>,
    buffer: Vec<u8>,
    /// The last read has filled the buffer.
    filled: bool,
}

impl CredentialReader {
    /// A reader over `stream`, which may be written to elsewhere meanwhile. Turns credentials on, in
    /// case that the listener did not.
    pub fn new(stream: Arc<UnixStream>) -> io::Result<Self> {
        request_credentials(&*stream)?;
        Ok(Self {
            stream,
            buffer: vec![0; SMALL],
            filled: false,
        })
    }

    /// The next bytes and who wrote them; `None` when the other side has closed. Descriptors that
    /// came along are closed. Dropping the future loses nothing.
    pub async fn read(&mut self) -> io::Result<Option<(&[u8], Sender)>> {
        if self.filled && self.buffer.len() < LARGE {
            self.buffer = vec![0; LARGE];
        }
        let (count, sender) = loop {
            self.stream.readable().await?;
            let buffer = &mut self.buffer;
            let fd = self.stream.as_raw_fd();
            match self
                .stream
                .try_io(Interest::READABLE, || receive(fd, buffer))
            {
                Ok(received) => break received,
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                    ) => {}
                Err(error) => return Err(error),
            }
        };
        self.filled = count == self.buffer.len();
        Ok((count > 0).then(|| (&self.buffer[..count], sender)))
    }
}

/// Room for the credentials and for a few descriptors, so that these are seen and closed; the kernel
/// discards what has no room. `u64` for the alignment that a control header needs.
const CONTROL_WORDS: usize = 32;

/// One `recvmsg`. Not rustix's: its type for the credentials cannot hold the pid 0 that the kernel
/// gives for a sender outside of our pid namespace.
fn receive(fd: i32, buffer: &mut [u8]) -> io::Result<(usize, Sender)> {
    let mut control = [0u64; CONTROL_WORDS];
    let mut part = libc::iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: buffer.len(),
    };
    // SAFETY: every field of `msghdr` may be zero.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    header.msg_iov = &raw mut part;
    header.msg_iovlen = 1;
    header.msg_control = control.as_mut_ptr().cast();
    header.msg_controllen = size_of_val(&control) as _;
    // SAFETY: the header points at one buffer and one control area, both alive and exclusively ours
    // until the call returns, with their true lengths.
    let count = unsafe {
        libc::recvmsg(
            fd,
            &raw mut header,
            libc::MSG_CMSG_CLOEXEC | libc::MSG_DONTWAIT,
        )
    };
    if count < 0 {
        return Err(io::Error::last_os_error());
    }
    let mut sender = Sender {
        pid: 0,
        uid: u32::MAX,
        gid: u32::MAX,
    };
    // SAFETY: the header is as the kernel left it, and these macros walk only within
    // `msg_controllen` bytes of `control`. Payloads are read unaligned and only as far as
    // `cmsg_len` says they reach. Each descriptor was made for us by this call and is closed once.
    unsafe {
        let mut message = libc::CMSG_FIRSTHDR(&raw const header);
        while !message.is_null() {
            let length = (*message).cmsg_len - libc::CMSG_LEN(0) as usize;
            let data = libc::CMSG_DATA(message);
            match ((*message).cmsg_level, (*message).cmsg_type) {
                (libc::SOL_SOCKET, libc::SCM_CREDENTIALS) if length >= size_of::<libc::ucred>() => {
                    let credentials = data.cast::<libc::ucred>().read_unaligned();
                    sender = Sender {
                        pid: u32::try_from(credentials.pid).unwrap_or(0),
                        uid: credentials.uid,
                        gid: credentials.gid,
                    };
                }
                (libc::SOL_SOCKET, libc::SCM_RIGHTS) => {
                    for index in 0..length / size_of::<libc::c_int>() {
                        libc::close(data.cast::<libc::c_int>().add(index).read_unaligned());
                    }
                }
                _ => {}
            }
            message = libc::CMSG_NXTHDR(&raw const header, message);
        }
    }
    // A negative count was handled above.
    Ok((count as usize, sender))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::OwnedFd;
    use std::process::{Command, Stdio};

    #[tokio::test]
    async fn tells_writers_of_one_socket_apart() {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        request_credentials(&ours).unwrap();
        ours.set_nonblocking(true).unwrap();
        let mut reader =
            CredentialReader::new(Arc::new(UnixStream::from_std(ours).unwrap())).unwrap();
        (&theirs).write_all(b"mine").unwrap();
        // The child inherits the connected socket as its standard output.
        let child = Command::new("sh")
            .args(["-c", "printf inherited"])
            .stdout(Stdio::from(OwnedFd::from(theirs.try_clone().unwrap())))
            .spawn()
            .unwrap();
        let child_pid = child.id();
        child.wait_with_output().unwrap();
        drop(theirs);

        let (bytes, sender) = reader.read().await.unwrap().unwrap();
        assert_eq!((bytes, sender.pid), (&b"mine"[..], std::process::id()));
        let (bytes, sender) = reader.read().await.unwrap().unwrap();
        assert_eq!((bytes, sender.pid), (&b"inherited"[..], child_pid));
        assert_eq!(sender.uid, rustix::process::getuid().as_raw());
        assert!(reader.read().await.unwrap().is_none());
    }

    #[tokio::test]
    async fn descriptors_sent_along_do_not_stay_open() {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        request_credentials(&ours).unwrap();
        ours.set_nonblocking(true).unwrap();
        let mut reader =
            CredentialReader::new(Arc::new(UnixStream::from_std(ours).unwrap())).unwrap();
        let (mut read_end, write_end) = std::io::pipe().unwrap();
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = rustix::net::SendAncillaryBuffer::new(&mut space);
        let fds = [write_end.as_fd()];
        assert!(control.push(rustix::net::SendAncillaryMessage::ScmRights(&fds)));
        rustix::net::sendmsg(
            &theirs,
            &[io::IoSlice::new(b"x")],
            &mut control,
            rustix::net::SendFlags::empty(),
        )
        .unwrap();
        drop(write_end);
        let (bytes, sender) = reader.read().await.unwrap().unwrap();
        assert_eq!((bytes, sender.pid), (&b"x"[..], std::process::id()));
        // End of file proves that no copy of the write end is left.
        let mut rest = Vec::new();
        io::Read::read_to_end(&mut read_end, &mut rest).unwrap();
        assert!(rest.is_empty());
    }
}
