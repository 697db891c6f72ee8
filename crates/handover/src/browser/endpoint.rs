//! The DevTools connection as a WebSocket on the loopback interface, for tools that insist on one.
//!
//! Its address holds a secret, which is good for one connection: other users of the machine can connect to
//! the port, and so can web pages. What does not know the secret, comes from a web page (`Origin`), or
//! calls the port by another name than the loopback's (`Host`) gets nothing. For a server that we run, which
//! may have to connect again, the address is good for longer, and for processes of this user alone.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use handover_cdp::Records;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Message, Role, WebSocketConfig};

use super::ended;

/// The longest message either way, in bytes.
const MAX_MESSAGE: usize = 256 << 20;
/// The longest head of a request, in bytes.
const MAX_HEAD: usize = 16 << 10;
/// How long a client may take for its head.
const HEAD_WITHIN: Duration = Duration::from_secs(10);
/// Most clients whose heads are being read at once.
const MAX_KNOCKING: usize = 16;
/// Bytes read from the host at once.
const READ_BYTES: usize = 64 << 10;
/// Bytes of the secret.
const SECRET_BYTES: usize = 32;

/// A port that waits for its client.
pub struct Endpoint {
    listener: TcpListener,
    port: u16,
    secret: String,
}

impl Endpoint {
    /// Listens on a free port of the loopback interface.
    ///
    /// # Errors
    /// There is none, or no randomness.
    pub async fn open() -> io::Result<Self> {
        let mut secret = [0u8; SECRET_BYTES];
        getrandom::fill(&mut secret).map_err(io::Error::other)?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let port = listener.local_addr()?.port();
        Ok(Self {
            listener,
            port,
            secret: secret.iter().map(|byte| format!("{byte:02x}")).collect(),
        })
    }

    /// The WebSocket's address, secret included.
    pub fn websocket(&self) -> String {
        format!("ws://127.0.0.1:{}/{}", self.port, self.secret)
    }

    /// The address below which `json/version` names the WebSocket.
    pub fn http(&self) -> String {
        format!("http://127.0.0.1:{}/{}", self.port, self.secret)
    }

    /// Waits for the client and moves messages between it and the host, until either side ends.
    ///
    /// # Errors
    /// The port failed, a side did, or the host ended first.
    pub async fn serve(self, host: UnixStream) -> io::Result<()> {
        let stream = tokio::select! {
            stream = self.client() => stream?,
            // It says nothing unasked.
            _ = host.readable() => return Err(ended()),
        };
        drop(self);
        relay(stream, host).await
    }

    /// Serves one client of this user after the other, each by a connection to the host of its own. The
    /// latest takes the place of the one before.
    ///
    /// # Errors
    /// The port failed.
    pub async fn serve_each(
        self,
        mut connect: impl AsyncFnMut() -> io::Result<UnixStream>,
    ) -> io::Result<()> {
        let mut serving = JoinSet::new();
        loop {
            tokio::select! {
                stream = self.client() => {
                    let stream = stream?;
                    if !is_of_this_user(&stream) {
                        continue;
                    }
                    serving.shutdown().await;
                    match connect().await {
                        Ok(host) => drop(serving.spawn(relay(stream, host))),
                        Err(error) => tracing::warn!(%error, "the browser cannot be reached"),
                    }
                }
                Some(ended) = serving.join_next() => {
                    if let Ok(Err(error)) = ended {
                        tracing::warn!(%error, "the connection to the browser is lost");
                    }
                }
            }
        }
    }

    /// Waits for a client that knows the secret.
    async fn client(&self) -> io::Result<TcpStream> {
        let (taken, mut client) = mpsc::channel(1);
        let mut knocking = JoinSet::new();
        loop {
            tokio::select! {
                Some(stream) = client.recv() => return Ok(stream),
                accepted = self.listener.accept(), if knocking.len() < MAX_KNOCKING => {
                    let (stream, _) = accepted?;
                    let door = Door {
                        port: self.port,
                        secret: self.secret.clone(),
                        websocket: self.websocket(),
                    };
                    let taken = taken.clone();
                    knocking.spawn(async move {
                        let answered = tokio::time::timeout(HEAD_WITHIN, door.answer(stream)).await;
                        if let Ok(Ok(Some(stream))) = answered {
                            // The first counts.
                            let _ = taken.try_send(stream);
                        }
                    });
                }
                Some(_) = knocking.join_next() => {}
            }
        }
    }
}

/// Whether a process of this user is at the other end, as the kernel says. What cannot be told is not.
fn is_of_this_user(stream: &TcpStream) -> bool {
    let (Ok(SocketAddr::V4(theirs)), Ok(SocketAddr::V4(ours))) =
        (stream.peer_addr(), stream.local_addr())
    else {
        return false;
    };
    let connections = std::fs::read_to_string("/proc/net/tcp").unwrap_or_default();
    owner(&connections, theirs, ours) == Some(rustix::process::geteuid().as_raw())
}

/// The uid of the socket at `from` that is connected to `to`, in the kernel's list of connections.
fn owner(connections: &str, from: SocketAddrV4, to: SocketAddrV4) -> Option<u32> {
    let written = |address: SocketAddrV4| {
        let ip = u32::from_ne_bytes(address.ip().octets());
        format!("{ip:08X}:{:04X}", address.port())
    };
    let (from, to) = (written(from), written(to));
    connections.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let named = fields.get(1) == Some(&from.as_str()) && fields.get(2) == Some(&to.as_str());
        named.then(|| fields.get(7)?.parse().ok())?
    })
}

/// What decides over one connection.
struct Door {
    port: u16,
    secret: String,
    websocket: String,
}

impl Door {
    /// Reads a request and answers it. The connection if it is the client's WebSocket.
    async fn answer(&self, mut stream: TcpStream) -> io::Result<Option<TcpStream>> {
        let mut head = Vec::new();
        let end = loop {
            if let Some(end) = head.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                break end;
            }
            if head.len() > MAX_HEAD || stream.read_buf(&mut head).await? == 0 {
                return Ok(None);
            }
        };
        let reply = self.reply(&String::from_utf8_lossy(&head[..end]));
        // Nothing may follow a request for a WebSocket before it is answered.
        let is_client = matches!(reply, Reply::WebSocket(_)) && head.len() == end + 4;
        let (status, more, body) = match reply {
            Reply::WebSocket(key) if is_client => {
                let more = format!(
                    "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {key}\r\n"
                );
                ("101 Switching Protocols", more, String::new())
            }
            Reply::Version => (
                "200 OK",
                "Content-Type: application/json\r\n".to_owned(),
                json!({
                    "Browser": "Chrome",
                    "Protocol-Version": "1.3",
                    "webSocketDebuggerUrl": self.websocket,
                })
                .to_string(),
            ),
            Reply::WebSocket(_) | Reply::No => ("404 Not Found", String::new(), String::new()),
        };
        let length = if is_client {
            String::new()
        } else {
            format!("Content-Length: {}\r\nConnection: close\r\n", body.len())
        };
        let reply = format!("HTTP/1.1 {status}\r\n{more}{length}\r\n{body}");
        stream.write_all(reply.as_bytes()).await?;
        Ok(is_client.then_some(stream))
    }

    fn reply(&self, head: &str) -> Reply {
        let mut lines = head.split("\r\n");
        let mut words = lines.next().unwrap_or_default().split(' ');
        let (method, path) = (words.next(), words.next().unwrap_or_default());
        let mut key = None;
        let mut host = None;
        for line in lines {
            let Some((name, value)) = line.split_once(':') else {
                return Reply::No;
            };
            match name.to_ascii_lowercase().as_str() {
                "origin" => return Reply::No,
                "host" => host = Some(value.trim()),
                "sec-websocket-key" => key = Some(value.trim()),
                _ => {}
            }
        }
        let ours = [
            format!("127.0.0.1:{}", self.port),
            format!("localhost:{}", self.port),
        ];
        let named = host.is_some_and(|host| ours.iter().any(|name| name == host));
        let rest = path.strip_prefix('/').and_then(|path| {
            let (secret, rest) = path.split_at_checked(self.secret.len())?;
            same(secret, &self.secret).then_some(rest)
        });
        match (method, named, rest, key) {
            (Some("GET"), true, Some("" | "/"), Some(key)) => {
                Reply::WebSocket(derive_accept_key(key.as_bytes()))
            }
            (Some("GET"), true, Some("/json/version" | "/json/version/"), None) => Reply::Version,
            _ => Reply::No,
        }
    }
}

/// What a request gets.
#[derive(Debug, PartialEq, Eq)]
enum Reply {
    /// It becomes the WebSocket; its `Sec-WebSocket-Accept`.
    WebSocket(String),
    /// Where the WebSocket is.
    Version,
    /// Nothing.
    No,
}

/// Compares in a time that says nothing of where two texts differ.
fn same(one: &str, other: &str) -> bool {
    let differing = one.bytes().zip(other.bytes()).map(|(a, b)| a ^ b);
    one.len() == other.len() && differing.fold(0, |all, bits| all | bits) == 0
}

/// Moves messages between the client and the host. An error if the host ends first.
async fn relay(stream: TcpStream, host: UnixStream) -> io::Result<()> {
    // Small messages, each waited for.
    stream.set_nodelay(true)?;
    let config = WebSocketConfig::default()
        .max_message_size(Some(MAX_MESSAGE))
        .max_frame_size(Some(MAX_MESSAGE));
    let socket = WebSocketStream::from_raw_socket(stream, Role::Server, Some(config)).await;
    let (mut to_client, mut from_client) = socket.split();
    let (mut from_host, mut to_host) = host.into_split();
    let commands = async {
        while let Some(message) = from_client.next().await {
            let mut bytes = match message.map_err(io::Error::other)? {
                Message::Text(text) => text.as_bytes().to_vec(),
                Message::Binary(bytes) => bytes.to_vec(),
                Message::Close(_) => return Ok(()),
                // Answered by the library.
                Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => continue,
            };
            // Between the words of a message, a newline means nothing; within them, there is none.
            for byte in &mut bytes {
                if matches!(*byte, b'\n' | 0) {
                    *byte = b' ';
                }
            }
            bytes.push(b'\n');
            to_host.write_all(&bytes).await?;
        }
        Ok(())
    };
    let answers = async {
        let mut records = Records::new(MAX_MESSAGE);
        let mut buffer = vec![0; READ_BYTES];
        loop {
            let read = from_host.read(&mut buffer).await?;
            if read == 0 {
                // Whoever is told that it is over need not be there any more.
                let _ = to_client.send(Message::Close(None)).await;
                return Err(ended());
            }
            records.push(&buffer[..read]);
            while let Some(record) = records.next_record().map_err(io::Error::other)? {
                let text = String::from_utf8(record).map_err(io::Error::other)?;
                let sent = to_client.send(Message::text(text)).await;
                sent.map_err(io::Error::other)?;
            }
        }
    };
    tokio::select! {
        ended = commands => ended,
        ended = answers => ended,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn door() -> Door {
        Door {
            port: 7,
            secret: "s3cret".into(),
            websocket: "ws://127.0.0.1:7/s3cret".into(),
        }
    }

    /// A connection over a new port.
    async fn connection() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
        let listener = listener.expect("a port");
        let to = listener.local_addr().expect("an address");
        let client = TcpStream::connect(to).await.expect("a connection");
        let (server, _) = listener.accept().await.expect("a client");
        (client, server)
    }

    #[tokio::test]
    async fn the_kernel_says_whose_a_connection_is() {
        let (client, server) = connection().await;
        assert!(is_of_this_user(&server));
        drop((client, server));
        let list = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n   0: 0100007F:1F90 0100007F:0007 01 00000000:00000000 00:00000000 00000000  1000        0 1 1";
        let at = |port| SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
        assert_eq!(owner(list, at(8080), at(7)), Some(1000));
        assert_eq!(owner(list, at(7), at(8080)), None);
    }

    #[test]
    fn only_whoever_knows_the_secret_is_answered() {
        let host = "Host: 127.0.0.1:7";
        let version = format!("GET /s3cret/json/version/ HTTP/1.1\r\n{host}");
        assert_eq!(door().reply(&version), Reply::Version);
        for other in [
            format!("GET /json/version HTTP/1.1\r\n{host}"),
            format!("GET /s3creT/json/version HTTP/1.1\r\n{host}"),
            format!("GET /s3cret/json/list HTTP/1.1\r\n{host}"),
            format!("POST /s3cret/json/version HTTP/1.1\r\n{host}"),
            "GET /s3cret/json/version HTTP/1.1\r\nHost: evil.example:7".to_owned(),
            "GET /s3cret/json/version HTTP/1.1".to_owned(),
            format!("{version}\r\nOrigin: http://evil.example"),
            String::new(),
        ] {
            assert_eq!(door().reply(&other), Reply::No, "{other}");
        }
    }

    #[test]
    fn a_web_page_gets_no_websocket() {
        let ask = "GET /s3cret HTTP/1.1\r\nHost: 127.0.0.1:7\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==";
        let accept = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=".to_owned();
        assert_eq!(door().reply(ask), Reply::WebSocket(accept));
        assert_eq!(door().reply(&format!("{ask}\r\norigin: null")), Reply::No);
    }
}
