//! A receiver of notices: an HTTP server on loopback that answers as the test says and keeps what it got.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

use base64::Engine;
use serde_json::Value;
use tokio_rustls::rustls;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use super::clock::{LONG, eventually};

/// What it does with one post.
#[derive(Clone, Copy, Debug)]
pub enum Reaction {
    /// Answers with this status.
    Status(u16),
    /// The same, and these lines as further headers.
    With(u16, &'static str),
    /// Closes the connection without an answer.
    Nothing,
    /// Keeps it open without an answer for as long as the other end does.
    Silence,
    /// Takes it and sends megabytes for as long as anybody reads.
    Flood,
}

/// A post as it came.
#[derive(Clone, Debug)]
pub struct Posted {
    /// The path with what follows it.
    pub path: String,
    /// Its headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// Its body.
    pub body: Value,
    /// When it was there.
    pub at: Instant,
}

impl Posted {
    /// A header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// The server, for as long as the test's process lives.
pub struct Receiver {
    scheme: &'static str,
    port: u16,
    book: Arc<Mutex<Book>>,
}

/// What it got, and what it does with the next.
struct Book {
    posts: Vec<Posted>,
    replies: VecDeque<Reaction>,
}

impl Receiver {
    /// One that answers the first posts with `replies` and all after them with 200.
    pub fn start(replies: &[Reaction]) -> Self {
        Self::serve(replies, None)
    }

    /// The same by TLS, and its certificate as PEM.
    pub fn secure(replies: &[Reaction]) -> (Self, String) {
        let names = vec!["127.0.0.1".to_owned()];
        let own = rcgen::generate_simple_self_signed(names).expect("a certificate");
        let key = PrivateKeyDer::try_from(own.signing_key.serialize_der()).expect("a key");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![own.cert.der().clone()], key)
            .expect("a certificate");
        (
            Self::serve(replies, Some(Arc::new(config))),
            pem(own.cert.der()),
        )
    }

    fn serve(replies: &[Reaction], tls: Option<Arc<rustls::ServerConfig>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let book = Arc::new(Mutex::new(Book {
            posts: Vec::new(),
            replies: replies.to_vec().into(),
        }));
        let scheme = if tls.is_some() { "https" } else { "http" };
        let kept = book.clone();
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let (tls, book) = (tls.clone(), kept.clone());
                // One that is slow, or of a notifier that is being replaced, holds up no other.
                thread::spawn(move || take(connection, tls, &book));
            }
        });
        Self { scheme, port, book }
    }

    /// Where it listens, such as `http://127.0.0.1:4711`.
    pub fn address(&self) -> String {
        format!("{}://127.0.0.1:{}", self.scheme, self.port)
    }

    /// What it got so far.
    pub fn posts(&self) -> Vec<Posted> {
        self.book.lock().expect("the posts").posts.clone()
    }

    /// Waits until it got that many.
    pub fn gets(&self, count: usize) -> Vec<Posted> {
        eventually(&format!("{count} posts"), LONG, || {
            let posts = self.posts();
            (posts.len() >= count).then_some(posts)
        })
    }
}

fn pem(certificate: &[u8]) -> String {
    let text = base64::engine::general_purpose::STANDARD.encode(certificate);
    let lines: Vec<&str> = (0..text.len())
        .step_by(64)
        .map(|start| &text[start..text.len().min(start + 64)])
        .collect();
    format!(
        "-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n",
        lines.join("\n")
    )
}

/// A connection, encrypted or not.
trait Connection: Read + Write + Send {}

impl<T: Read + Write + Send> Connection for T {}

/// Keeps what comes by one connection and answers it.
fn take(connection: TcpStream, tls: Option<Arc<rustls::ServerConfig>>, book: &Mutex<Book>) {
    let mut connection: Box<dyn Connection> = match tls {
        None => Box::new(connection),
        Some(config) => {
            let tls = rustls::ServerConnection::new(config).expect("TLS");
            Box::new(rustls::StreamOwned::new(tls, connection))
        }
    };
    let Some(posted) = read(&mut connection) else {
        return;
    };
    let reply = {
        let mut book = book.lock().expect("the posts");
        book.posts.push(posted);
        book.replies.pop_front()
    };
    answer(connection, reply.unwrap_or(Reaction::Status(200)));
}

fn read(connection: &mut impl Read) -> Option<Posted> {
    let mut lines = BufReader::new(connection);
    let mut line = || {
        let mut line = String::new();
        lines.read_line(&mut line).ok()?;
        Some(line.trim_end().to_owned())
    };
    let path = line()?.split(' ').nth(1)?.to_owned();
    let mut headers = Vec::new();
    loop {
        let line = line()?;
        let Some((name, value)) = line.split_once(':') else {
            break;
        };
        headers.push((name.to_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length")?;
    let mut body = vec![0; length.1.parse().ok()?];
    lines.read_exact(&mut body).ok()?;
    Some(Posted {
        path,
        headers,
        body: serde_json::from_slice(&body).ok()?,
        at: Instant::now(),
    })
}

/// If the other end has had enough, so have we.
fn answer(mut connection: Box<dyn Connection>, reply: Reaction) {
    let head =
        |status: u16, more: &str| format!("HTTP/1.1 {status} X\r\n{more}Connection: close\r\n");
    let _ = match reply {
        Reaction::Nothing => Ok(()),
        Reaction::Silence => io::copy(&mut connection, &mut io::sink()).map(drop),
        Reaction::Status(status) => connection
            .write_all(format!("{}Content-Length: 0\r\n\r\n", head(status, "")).as_bytes()),
        Reaction::With(status, more) => connection
            .write_all(format!("{}Content-Length: 0\r\n\r\n", head(status, more)).as_bytes()),
        Reaction::Flood => {
            let _ = connection.write_all(format!("{}\r\n", head(200, "")).as_bytes());
            let block = vec![b'x'; 1 << 16];
            // Much more than anybody should hold.
            (0..4096).try_for_each(|_| connection.write_all(&block))
        }
    };
}
