//! The host's own connection to a desktop's X display: what RFB does not tell or do.
//!
//! X calls block, and a stopped server never answers. So they are made on a thread of their own,
//! each within a deadline, and callers wait for them asynchronously. Nothing here injects input.

mod clients;
mod cookie;
mod desk;
mod keyboard;
mod stream;
mod windows;

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};

use handover_protocol::Window;
use handover_rfb::keys::Keysym;
use tokio::sync::oneshot;
use x11rb::connection::Connection;
use x11rb::errors::{ConnectError, ConnectionError, ReplyError, ReplyOrIdError};
use x11rb::protocol::xproto::Screen as Root;
use x11rb::rust_connection::RustConnection;

pub use clients::XClient;
pub use cookie::UntrustedCookie;
pub use desk::{Locks, Pointer};
pub use keyboard::{Additions, Untyped};
use stream::TimedStream;
pub use windows::Managed;

/// How long a call may take, waiting for others included.
pub const CALL_WITHIN: Duration = Duration::from_secs(2);
/// Calls that may wait for the thread.
const QUEUE: usize = 32;

/// The length of an `MIT-MAGIC-COOKIE-1` in bytes.
pub const COOKIE_LENGTH: usize = 16;

/// Why a call to an X display failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum X11Error {
    /// The display did not answer within [`CALL_WITHIN`], as one that is stopped.
    #[error("the X display did not answer within {} s", CALL_WITHIN.as_secs())]
    Timeout,
    /// Too many calls wait already.
    #[error("{QUEUE} calls to the X display are waiting already")]
    Busy,
    /// There is no connection to be had.
    #[error("failed to connect to the X display: {0}")]
    Connect(String),
    /// The connection broke.
    #[error("lost the connection to the X display: {0}")]
    Lost(String),
    /// The display lacks an extension that the call needs.
    #[error("the X display lacks an extension that this needs")]
    Unsupported,
    /// The display refused the request.
    #[error("the X display refused the request: {0}")]
    Refused(String),
}

impl X11Error {
    /// Whether the connection can be used further.
    fn keeps_connection(&self) -> bool {
        matches!(self, Self::Unsupported | Self::Refused(_))
    }
}

impl From<ConnectionError> for X11Error {
    fn from(error: ConnectionError) -> Self {
        match error {
            ConnectionError::IoError(error) if error.kind() == std::io::ErrorKind::TimedOut => {
                Self::Timeout
            }
            ConnectionError::UnsupportedExtension => Self::Unsupported,
            error => Self::Lost(error.to_string()),
        }
    }
}

impl From<ReplyError> for X11Error {
    fn from(error: ReplyError) -> Self {
        match error {
            ReplyError::ConnectionError(error) => error.into(),
            ReplyError::X11Error(error) => Self::Refused(format!("{:?}", error.error_kind)),
        }
    }
}

impl From<ReplyOrIdError> for X11Error {
    fn from(error: ReplyOrIdError) -> Self {
        match error {
            ReplyOrIdError::ConnectionError(error) => error.into(),
            ReplyOrIdError::X11Error(error) => ReplyError::X11Error(error).into(),
            ReplyOrIdError::IdsExhausted => Self::Lost("no resource ids are left".into()),
        }
    }
}

impl From<ConnectError> for X11Error {
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::IoError(error) if error.kind() == std::io::ErrorKind::TimedOut => {
                Self::Timeout
            }
            error => Self::Connect(error.to_string()),
        }
    }
}

/// A connection to one X display. Clones share it; the thread ends with the last of them.
#[derive(Clone, Debug)]
pub struct X11 {
    calls: SyncSender<Call>,
}

/// What is done with a connection or the reason why there is none. It sends its outcome to the
/// caller, and answers whether it failed, which decides whether the connection is kept.
type Work = dyn FnOnce(Result<&Session, X11Error>) -> Result<(), X11Error> + Send;

/// A call under way.
struct Call {
    deadline: Instant,
    work: Box<Work>,
}

/// A connection that was set up.
struct Session {
    connection: RustConnection<TimedStream>,
    root: Root,
}

impl X11 {
    /// Starts the thread for the display of this number. It connects with `cookie` when the first
    /// call is made, and anew after a call has failed.
    ///
    /// # Errors
    /// What the system says if it grants no thread.
    pub fn spawn(display: u32, cookie: [u8; COOKIE_LENGTH]) -> std::io::Result<Self> {
        let path = socket_path(display);
        let (calls, received) = sync_channel(QUEUE);
        std::thread::Builder::new()
            .name(format!("x11-{display}"))
            .spawn(move || serve(&path, cookie, &received))?;
        Ok(Self { calls })
    }

    /// The windows of applications, in the order in which they were mapped where a window manager
    /// keeps it, with their places in pixels from the desktop's top left.
    ///
    /// # Errors
    /// [`X11Error`], as for every call.
    pub async fn windows(&self) -> Result<Vec<Window>, X11Error> {
        self.call(windows::list).await
    }

    /// Who looks after the windows: those that are opened before a window manager begins are not given the keyboard.
    ///
    /// # Errors
    /// [`X11Error`].
    pub async fn managed(&self) -> Result<Managed, X11Error> {
        self.call(windows::managed).await
    }

    /// Gives the keyboard to a window, by way of the window manager where there is one.
    ///
    /// # Errors
    /// [`X11Error`]; `Refused` if there is no such window or it is not shown.
    pub async fn focus(&self, window: u32) -> Result<(), X11Error> {
        self.call(move |session| windows::focus(session, window))
            .await
    }

    /// The programs that are connected to the display, but for this process.
    ///
    /// # Errors
    /// [`X11Error`].
    pub async fn clients(&self) -> Result<Vec<XClient>, X11Error> {
        self.call(clients::list).await
    }

    /// Fills the root window with a colour, red, green and blue.
    ///
    /// # Errors
    /// [`X11Error`].
    pub async fn set_background(&self, rgb: [u8; 3]) -> Result<(), X11Error> {
        self.call(move |session| desk::set_background(session, rgb))
            .await
    }

    /// Takes PRIMARY, SECONDARY and CLIPBOARD from whoever owns them and empties the cut buffers.
    ///
    /// # Errors
    /// [`X11Error`].
    pub async fn clear_clipboard(&self) -> Result<(), X11Error> {
        self.call(desk::clear_clipboard).await
    }

    /// Where the pointer is and which of its buttons are pressed.
    ///
    /// # Errors
    /// [`X11Error`].
    pub async fn pointer(&self) -> Result<Pointer, X11Error> {
        self.call(desk::pointer).await
    }

    /// Which lock keys are on.
    ///
    /// # Errors
    /// [`X11Error`].
    pub async fn locks(&self) -> Result<Locks, X11Error> {
        self.call(desk::locks).await
    }

    /// The first character of `text` that the keyboard mapping of the display cannot produce as
    /// it is now or, with [`Additions::Allowed`], with the keys that the server can still add;
    /// `None` if it can produce all.
    ///
    /// # Errors
    /// [`X11Error`].
    pub async fn untypable(
        &self,
        text: &str,
        additions: Additions,
    ) -> Result<Option<Untyped>, X11Error> {
        let text = text.to_owned();
        self.call(move |session| keyboard::untypable(session, &text, additions))
            .await
    }

    /// The first of `keys` that would be dropped in silence: the keyboard mapping lacks it, and
    /// the server has no key left to give that meaning to; `None` if all can be pressed.
    ///
    /// # Errors
    /// [`X11Error`].
    pub async fn unpressable(&self, keys: Vec<Keysym>) -> Result<Option<Keysym>, X11Error> {
        self.call(move |session| keyboard::unpressable(session, &keys))
            .await
    }

    /// Whether the keyboard mapping is that of the keyboard by which RFB clients type. It is from
    /// that keyboard's first key on, and on a display without XTEST for good. The first key
    /// replaces the mapping, and what the server has added to it for that very key is lost.
    ///
    /// # Errors
    /// [`X11Error`].
    pub async fn mapping_is_of_rfb(&self) -> Result<bool, X11Error> {
        self.call(keyboard::is_of_rfb).await
    }

    /// Makes a cookie with which clients are untrusted: they see neither the windows nor the keys
    /// of the others. It is forgotten when no client has used it for `idle` seconds; 0 keeps it.
    ///
    /// # Errors
    /// [`X11Error`].
    pub async fn untrusted_cookie(&self, idle: u32) -> Result<UntrustedCookie, X11Error> {
        self.call(move |session| cookie::generate(session, idle))
            .await
    }

    async fn call<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Session) -> Result<T, X11Error> + Send + 'static,
    ) -> Result<T, X11Error> {
        let (answer, answered) = oneshot::channel();
        let call = Call {
            deadline: Instant::now() + CALL_WITHIN,
            work: Box::new(move |session| {
                let outcome = session.and_then(work);
                let kept = outcome.as_ref().map(drop).map_err(Clone::clone);
                // The caller may have gone.
                let _ = answer.send(outcome);
                kept
            }),
        };
        self.calls.try_send(call).map_err(|error| match error {
            TrySendError::Full(_) => X11Error::Busy,
            TrySendError::Disconnected(_) => thread_gone(),
        })?;
        // The thread keeps the deadline too, but the caller must not depend on it.
        match tokio::time::timeout(CALL_WITHIN, answered).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) => Err(thread_gone()),
            Err(_) => Err(X11Error::Timeout),
        }
    }
}

/// Where the pointer is and which of its buttons are pressed, asked on the caller's own thread over a
/// connection of its own.
///
/// # Errors
/// [`X11Error`]; `Timeout` if there is no answer until `deadline`.
pub fn pointer_now(
    display: u32,
    cookie: [u8; COOKIE_LENGTH],
    deadline: Instant,
) -> Result<Pointer, X11Error> {
    desk::pointer(&Session::open(&socket_path(display), cookie, deadline)?)
}

fn socket_path(display: u32) -> PathBuf {
    PathBuf::from(format!("/tmp/.X11-unix/X{display}"))
}

fn thread_gone() -> X11Error {
    X11Error::Lost("its thread has ended".into())
}

/// The thread: one call after the other, each with a connection that works or the reason why
/// there is none.
fn serve(path: &std::path::Path, cookie: [u8; COOKIE_LENGTH], calls: &Receiver<Call>) {
    let mut session = None;
    while let Ok(Call { deadline, work }) = calls.recv() {
        let ready = match session.take() {
            // Waiting for calls before it has used its time up; the connection is not to blame.
            ready if deadline <= Instant::now() => {
                session = ready;
                let _ = work(Err(X11Error::Timeout));
                continue;
            }
            Some(ready) => Ok(ready),
            None => Session::open(path, cookie, deadline),
        };
        match ready.and_then(|ready: Session| ready.prepare(deadline).map(|()| ready)) {
            Ok(ready) => match work(Ok(&ready)) {
                Err(error) if !error.keeps_connection() => {}
                _ => session = Some(ready),
            },
            Err(error) => {
                // There is no connection to keep.
                let _ = work(Err(error));
            }
        }
    }
}

impl Session {
    fn open(
        path: &std::path::Path,
        cookie: [u8; COOKIE_LENGTH],
        deadline: Instant,
    ) -> Result<Self, X11Error> {
        let stream = TimedStream::connect(path, deadline)
            .map_err(|error| X11Error::Connect(format!("{}: {error}", path.display())))?;
        let connection = RustConnection::connect_to_stream_with_auth_info(
            stream,
            0,
            b"MIT-MAGIC-COOKIE-1".to_vec(),
            cookie.to_vec(),
        )?;
        let root = connection.setup().roots[0].clone();
        Ok(Self { connection, root })
    }

    /// Makes an open connection ready for a call: sets its deadline, and drops the notices that
    /// every client is sent, such as that the keyboard mapping has changed.
    fn prepare(&self, deadline: Instant) -> Result<(), X11Error> {
        self.connection.stream().set_deadline(deadline);
        while self.connection.poll_for_event()?.is_some() {}
        Ok(())
    }
}
