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
        self.made.fetch_add(1, Ordering::SeqCst);
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
        let connected = match tokio::time::timeout(CONNECT_WITHIN, connecting).await {
            Ok(connected) => connected,
            Err(_) => Err(io::ErrorKind::TimedOut.into()),
        };
        if connected.is_err() {
            self.made.fetch_sub(1, Ordering::SeqCst);
        }
        connected
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
