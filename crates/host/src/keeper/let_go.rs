//! Letting go of the mouse buttons that a dead host held.
//!
//! An X server releases the keys of an RFB connection that closes, but not its buttons: a drag under
//! way when the host is killed would go on until the next host comes. So the keeper looks where the
//! pointer is, and if a button is pressed there, connects as the host would and releases it at that
//! very place, since anywhere else would drop what is dragged.
//!
//! All waiting has a bound and is done on a thread that lives no longer: a stopped server must not
//! hold the keeper up. The X side is asked first, so that a stopped server gets no RFB connection from
//! us, which it would report later, in the next host's time.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use handover_rfb::framing::{ServerEvent, ServerMessage, ServerParser};
use handover_rfb::handshake::{ClientHandshake, Credentials, Progress};
use handover_rfb::input::{self, InputMessage};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use rustix::pipe::{PipeFlags, pipe_with};

use super::wire::ServerAccess;
use crate::display::x11;
use crate::xvnc::{Passwords, read_cookie};

/// When to look, after a host has gone: not at once, since the next host does it better; and more
/// than once, since a busy server may still have to read what the dead host wrote.
const LOOKS: [Duration; 3] = [
    Duration::from_millis(100),
    Duration::from_secs(1),
    Duration::from_secs(5),
];

/// How long the X side may take to answer, and then the RFB side.
const ANSWER_WITHIN: Duration = Duration::from_secs(1);

/// The encoding by which a client says that it knows fences.
const FENCE: i32 = -312;

/// The payload of our fence.
const MARK: &[u8] = b"keeper";

/// Needs little: no recursion and small buffers.
const STACK: usize = 256 << 10;

/// The looks at one display server.
#[derive(Debug, Default)]
pub(super) struct LettingGo {
    access: Option<ServerAccess>,
    /// What is left of [`LOOKS`]; nothing before the first host has gone.
    ahead: &'static [Duration],
    /// Open at the other end while a look is under way.
    running: Option<OwnedFd>,
}

impl LettingGo {
    /// Those at a server that is reached so, if it can be.
    pub(super) fn of(access: Option<ServerAccess>) -> Self {
        Self {
            access,
            ..Self::default()
        }
    }

    /// A host has gone: look as soon as it is time.
    pub(super) fn begin(&mut self) {
        self.ahead = &LOOKS;
    }

    /// Looks if it is time, `gone` after the last host has left, and answers in how long it is time
    /// for the next look.
    pub(super) fn look(&mut self, gone: Duration, has_server: bool) -> Option<Duration> {
        if self.running.is_some() {
            return None;
        }
        let (access, (&at, later)) = (self.access.as_ref()?, self.ahead.split_first()?);
        if !has_server {
            return None;
        }
        if gone < at {
            return Some(at - gone);
        }
        self.ahead = later;
        match start(access.clone()) {
            Ok(running) => self.running = Some(running),
            Err(error) => eprintln!("handover keeper: cannot look for pressed buttons: {error}"),
        }
        None
    }

    /// What becomes readable when the look that is under way has ended.
    pub(super) fn running(&self) -> Option<BorrowedFd<'_>> {
        self.running.as_ref().map(AsFd::as_fd)
    }

    /// The look that was under way has ended.
    pub(super) fn ended(&mut self) {
        self.running = None;
    }
}

/// Starts a look. The descriptor becomes readable, at its end, when the look has ended in any way.
fn start(access: ServerAccess) -> io::Result<OwnedFd> {
    let (end, held) = pipe_with(PipeFlags::CLOEXEC)?;
    std::thread::Builder::new()
        .stack_size(STACK)
        .spawn(move || {
            match let_go(&access) {
                Ok(None) => {}
                Ok(Some((x, y))) => {
                    eprintln!("handover keeper: released the buttons of a dead host at {x},{y}");
                }
                Err(error) => {
                    eprintln!(
                        "handover keeper: cannot release the buttons of a dead host: {error}"
                    );
                }
            }
            drop(held);
        })?;
    Ok(end)
}

/// Releases what is pressed and answers where; `None` if nothing is.
fn let_go(access: &ServerAccess) -> io::Result<Option<(u16, u16)>> {
    let cookie = read_cookie(&access.xauthority)?;
    let pointer = x11::pointer_now(access.display, cookie, Instant::now() + ANSWER_WITHIN)
        .map_err(io::Error::other)?;
    if pointer.buttons == 0 {
        return Ok(None);
    }
    let passwords = Passwords::read(&access.passwords)?;
    let mut connection = Connection::open(&access.rfb_socket)?;
    connection.release(passwords.full, (pointer.x, pointer.y))?;
    Ok(Some((pointer.x, pointer.y)))
}

/// A connection to an RFB server on which nothing waits beyond a deadline.
struct Connection {
    stream: UnixStream,
    deadline: Instant,
}

impl Connection {
    fn open(path: &Path) -> io::Result<Self> {
        // A blocking connect would wait for a server that is stopped and whose queue is full.
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        connect(&socket, &SocketAddrUnix::new(path)?)?;
        let stream = UnixStream::from(socket);
        stream.set_nonblocking(false)?;
        // What we write fits into the socket's buffer, whether it is read or not.
        stream.set_write_timeout(Some(ANSWER_WITHIN))?;
        Ok(Self {
            stream,
            deadline: Instant::now() + ANSWER_WITHIN,
        })
    }

    fn read<'a>(&mut self, buffer: &'a mut [u8]) -> io::Result<&'a [u8]> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        match self.stream.read(buffer)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            read => Ok(&buffer[..read]),
        }
    }

    /// Says that no button is pressed, and waits until the server has taken it in.
    fn release(&mut self, password: String, (x, y): (u16, u16)) -> io::Result<()> {
        let mut buffer = [0; 1024];
        let mut handshake = ClientHandshake::new(Credentials::Password(password));
        let (format, mut rest) = loop {
            let mut out = Vec::new();
            let input = self.read(&mut buffer)?;
            let progress = handshake
                .advance(input, &mut out)
                .map_err(io::Error::other)?;
            let rest = match progress {
                Progress::More => None,
                Progress::Done { consumed, result } => {
                    Some((result.format, input[consumed..].to_vec()))
                }
            };
            self.stream.write_all(&out)?;
            if let Some(done) = rest {
                break done;
            }
        };
        let mut out = Vec::new();
        input::set_encodings(&[FENCE], &mut out);
        InputMessage::Pointer { mask: 0, x, y }.encode(&mut out);
        input::fence(
            input::FENCE_REQUEST | input::FENCE_BLOCK_BEFORE,
            MARK,
            &mut out,
        );
        self.stream.write_all(&out)?;
        let mut parser = ServerParser::new(format);
        loop {
            let mut at = 0;
            while let Some(event) = parser
                .next_event(&rest, &mut at)
                .map_err(io::Error::other)?
            {
                if let ServerEvent::Message(ServerMessage::Fence(fence)) = event
                    && !fence.is_request()
                    && fence.payload == MARK
                {
                    return Ok(());
                }
            }
            rest = self.read(&mut buffer)?.to_vec();
        }
    }
}
