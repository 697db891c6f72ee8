//! Where a desktop's RFB server listens, and connections to it.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::net::sockopt;
use tokio::net::{TcpStream, UnixStream};

/// How long a connection to a display may take.
pub const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// Where an RFB server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// A unix socket, such as that of an Xvnc started by the host.
    Unix(PathBuf),
    /// `HOST:PORT`, only of servers that a desktop is attached to.
    Tcp(String),
}

/// An RFB server and the count of the connections that the host made to it.
///
/// The count is what makes a connection that the host did not make visible: the
/// server logs every connection that it accepts.
#[derive(Debug, Clone)]
pub struct Upstream {
    address: Address,
    made: Arc<AtomicU64>,
}

impl Upstream {
    /// An RFB server to which the host has made no connection yet.
    pub fn new(address: Address) -> Self {
        Self {
            address,
            made: Arc::new(AtomicU64::new(0)),
        }
    }

    /// Where the server listens.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Connections that the host has made or is about to make. It is counted
    /// before the server can log it, so that the log is never ahead of it.
    pub fn connections_made(&self) -> u64 {
        self.made.load(Ordering::SeqCst)
    }

    /// Connects within [`CONNECT_WITHIN`].
    ///
    /// # Errors
    /// The system's error, or `TimedOut`.
    pub async fn connect(&self) -> io::Result<Stream> {
        let attempt = Attempt::begin(&self.made);
        let connecting = async {
            match &self.address {
                Address::Unix(path) => UnixStream::connect(path).await.map(Stream::Unix),
                Address::Tcp(address) => {
                    let stream = TcpStream::connect(address).await?;
                    stream.set_nodelay(true)?;
                    Ok(Stream::Tcp(stream))
                }
            }
        };
        let connected = tokio::time::timeout(CONNECT_WITHIN, connecting)
            .await
            .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))?;
        attempt.succeed();
        Ok(connected)
    }
}

/// A counted connection, no longer counted if it fails or whoever wants it
/// gives up.
struct Attempt<'a>(Option<&'a AtomicU64>);

impl<'a> Attempt<'a> {
    fn begin(made: &'a AtomicU64) -> Self {
        made.fetch_add(1, Ordering::SeqCst);
        Self(Some(made))
    }

    fn succeed(mut self) {
        self.0 = None;
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        if let Some(made) = self.0 {
            made.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// A connection to an RFB server.
#[derive(Debug)]
pub enum Stream {
    /// Over a unix socket.
    Unix(UnixStream),
    /// Over TCP.
    Tcp(TcpStream),
}

impl Stream {
    /// Makes the kernel hold as little unread data for the server as it can, so
    /// that a server that stops reading is noticed after a few messages.
    ///
    /// # Errors
    /// The system's error.
    pub fn minimise_send_buffer(&self) -> io::Result<()> {
        match self {
            Self::Unix(stream) => sockopt::set_socket_send_buffer_size(stream, 1),
            Self::Tcp(stream) => sockopt::set_socket_send_buffer_size(stream, 1),
        }
        .map_err(io::Error::from)
    }

    /// Waits until something can be read.
    ///
    /// # Errors
    /// The system's error.
    pub async fn readable(&self) -> io::Result<()> {
        match self {
            Self::Unix(stream) => stream.readable().await,
            Self::Tcp(stream) => stream.readable().await,
        }
    }

    /// Waits until something can be written.
    ///
    /// # Errors
    /// The system's error.
    pub async fn writable(&self) -> io::Result<()> {
        match self {
            Self::Unix(stream) => stream.writable().await,
            Self::Tcp(stream) => stream.writable().await,
        }
    }

    /// Reads what is there; 0 at the end of the stream.
    ///
    /// # Errors
    /// `WouldBlock` if there is nothing, or the system's error.
    pub fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.try_read(buffer),
            Self::Tcp(stream) => stream.try_read(buffer),
        }
    }

    /// Writes what the kernel takes now.
    ///
    /// # Errors
    /// `WouldBlock` if it takes nothing, or the system's error.
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.try_write(bytes),
            Self::Tcp(stream) => stream.try_write(bytes),
        }
    }

    /// Writes what the kernel takes now of several buffers, in one call.
    ///
    /// # Errors
    /// `WouldBlock` if it takes nothing, or the system's error.
    pub fn try_write_vectored(&self, buffers: &[io::IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.try_write_vectored(buffers),
            Self::Tcp(stream) => stream.try_write_vectored(buffers),
        }
    }

    /// Writes all of `bytes`, waiting as needed.
    ///
    /// # Errors
    /// The system's error.
    pub async fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.try_write(bytes) {
                Ok(written) => bytes = &bytes[written..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.writable().await?,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Reads what comes next, waiting for it; 0 at the end of the stream.
    ///
    /// # Errors
    /// The system's error.
    pub async fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.try_read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.readable().await?,
                outcome => return outcome,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::{TcpListener, UnixListener};

    #[tokio::test]
    async fn both_kinds_of_server_are_reached() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("s");
        let unix = UnixListener::bind(&path).expect("bound");
        let upstream = Upstream::new(Address::Unix(path));
        let ours = upstream.connect().await.expect("connected");
        ours.write_all(b"hello").await.expect("written");
        let (theirs, _) = unix.accept().await.expect("accepted");
        let theirs = Stream::Unix(theirs);
        let mut buffer = [0; 16];
        assert_eq!(theirs.read(&mut buffer).await.expect("read"), 5);

        let tcp = TcpListener::bind("127.0.0.1:0").await.expect("bound");
        let address = tcp.local_addr().expect("bound").to_string();
        let upstream = Upstream::new(Address::Tcp(address));
        let ours = upstream.clone().connect().await.expect("connected");
        let (theirs, _) = tcp.accept().await.expect("accepted");
        let theirs = Stream::Tcp(theirs);
        theirs.write_all(b"there").await.expect("written");
        assert_eq!(ours.read(&mut buffer).await.expect("read"), 5);
        assert_eq!(upstream.connections_made(), 1);
    }

    #[tokio::test]
    async fn a_failed_connection_is_not_counted() {
        let upstream = Upstream::new(Address::Unix("/nonexistent/socket".into()));
        upstream.connect().await.expect_err("no such socket");
        assert_eq!(upstream.connections_made(), 0);
    }

    #[tokio::test]
    async fn a_minimal_buffer_takes_little() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("s");
        let _listener = UnixListener::bind(&path).expect("bound");
        let stream = Upstream::new(Address::Unix(path.clone()))
            .connect()
            .await
            .expect("connected");
        stream.minimise_send_buffer().expect("a socket");
        stream.writable().await.expect("open");
        let mut taken = 0;
        while let Ok(written) = stream.try_write(&[0; 64]) {
            taken += written;
        }
        assert!((64..16 * 1024).contains(&taken), "took {taken} bytes");
    }
}
