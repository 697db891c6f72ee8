//! A running web console, and a browser of it that does what it is told and nothing else.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::{self, Error, Message, WebSocket};

use super::clock::{LONG, SHORT};
use super::command::Running;
use super::place::Place;

/// A console. Killed when dropped.
pub struct Console {
    /// The program.
    pub running: Running,
    /// What it printed at its start.
    pub said: Value,
}

/// What a request came to.
#[derive(Debug, Clone)]
pub struct Reply {
    /// The status.
    pub status: u16,
    /// The fields of the head, names in lower case.
    pub fields: Vec<(String, String)>,
    /// What follows the head.
    pub body: Vec<u8>,
}

impl Reply {
    /// The value of a field that may be there once.
    pub fn field(&self, name: &str) -> Option<&str> {
        let mut found = self.fields.iter().filter(|(field, _)| field == name);
        let value = found.next().map(|(_, value)| value.as_str());
        assert!(found.next().is_none(), "{name} is there twice: {self:?}");
        value
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Reads a whole answer, to the end of the connection.
    fn read(bytes: &[u8]) -> Option<Self> {
        let end = bytes.windows(4).position(|bytes| bytes == b"\r\n\r\n")?;
        let head = std::str::from_utf8(&bytes[..end]).ok()?;
        let mut lines = head.split("\r\n");
        let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
        let fields = lines.filter_map(|line| line.split_once(':'));
        let fields = fields.map(|(name, value)| (name.to_lowercase(), value.trim().to_owned()));
        Some(Self {
            status,
            fields: fields.collect(),
            body: bytes[end + 4..].to_vec(),
        })
    }
}

impl Console {
    /// Starts one in `place` on any free port, with further options.
    pub fn start(place: &Place, options: &[&str]) -> Self {
        let mut command = place.handover();
        let running = Running::start(
            command
                .args(["console", "--json", "--port", "0"])
                .args(options),
        );
        let said = running.line("the console's address", |said| said["url"].is_string());
        Self { running, said }
    }

    /// The one-time link.
    pub fn url(&self) -> String {
        self.said["url"].as_str().expect("a link").to_owned()
    }

    /// Where it listens, such as `127.0.0.1:7468`.
    pub fn address(&self) -> String {
        self.said["address"]
            .as_str()
            .expect("an address")
            .to_owned()
    }

    /// What a page of it sends as its origin.
    pub fn origin(&self) -> String {
        format!("http://{}", self.address())
    }

    /// A connection on which nothing has been said.
    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address()).expect("the console listens");
        stream.set_read_timeout(Some(SHORT)).expect("a timeout");
        stream
    }

    /// Sends `bytes` and reads all that comes until the connection ends; none if nothing does.
    pub fn raw(&self, bytes: &[u8]) -> Option<Reply> {
        let mut stream = self.connect();
        // It may have been refused before its end.
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        Reply::read(&answer)
    }

    /// A request with exactly these fields.
    pub fn request(&self, method: &str, path: &str, fields: &[(&str, &str)]) -> Reply {
        let fields: String = fields
            .iter()
            .map(|(name, value)| format!("{name}: {value}\r\n"))
            .collect();
        let head = format!("{method} {path} HTTP/1.1\r\n{fields}Connection: close\r\n\r\n");
        self.raw(head.as_bytes())
            .unwrap_or_else(|| panic!("no answer to {method} {path}"))
    }

    /// `GET`, as a browser with `cookie` sends it.
    pub fn get(&self, path: &str, cookie: Option<&str>) -> Reply {
        let address = self.address();
        let mut fields = vec![("Host", address.as_str())];
        fields.extend(cookie.map(|cookie| ("Cookie", cookie)));
        self.request("GET", path, &fields)
    }

    /// Opens the link `url` and returns the cookie.
    pub fn enter(&self, url: &str) -> String {
        let path = url
            .strip_prefix(&self.origin())
            .expect("a link of this console");
        let reply = self.get(path, None);
        assert_eq!(reply.status, 200, "{reply:?}");
        let cookie = reply.field("set-cookie").expect("a cookie");
        cookie.split(';').next().expect("a value").to_owned()
    }

    /// A browser that has opened the first link.
    pub fn browser(&self) -> Tab {
        Tab::connect(self, &self.enter(&self.url()))
    }

    /// The head of a request for a WebSocket at `path`, with these fields besides.
    pub fn knock(&self, path: &str, fields: &[(&str, &str)]) -> Reply {
        let mut all = vec![
            ("Upgrade", "websocket"),
            ("Sec-WebSocket-Version", "13"),
            ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ];
        all.extend(fields);
        let fields: String = all
            .iter()
            .map(|(name, value)| format!("{name}: {value}\r\n"))
            .collect();
        let head = format!("GET {path} HTTP/1.1\r\nConnection: Upgrade\r\n{fields}\r\n");
        let mut stream = self.connect();
        stream.write_all(head.as_bytes()).expect("sent");
        // Where it is let in, nothing more need come.
        let mut answer = Vec::new();
        let mut byte = [0; 1];
        while !answer.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read == 1) {
            answer.push(byte[0]);
        }
        Reply::read(&answer).unwrap_or_else(|| panic!("no answer to {path}"))
    }

    /// A WebSocket at `path`.
    pub fn socket(&self, path: &str, cookie: &str) -> WebSocket<TcpStream> {
        let mut request = format!("ws://{}{path}", self.address())
            .into_client_request()
            .expect("an address");
        let headers = request.headers_mut();
        let value = |text: &str| HeaderValue::from_str(text).expect("a value");
        headers.insert("cookie", value(cookie));
        headers.insert("origin", value(&self.origin()));
        let (socket, _) = tungstenite::client(request, self.connect())
            .unwrap_or_else(|error| panic!("{path}: {error}"));
        socket
    }
}

/// The live connection of one tab.
pub struct Tab {
    socket: WebSocket<TcpStream>,
    next: u64,
    heard: Vec<Value>,
}

impl Tab {
    /// A tab with `cookie`.
    pub fn connect(console: &Console, cookie: &str) -> Self {
        let socket = console.socket("/api/live", cookie);
        // On a busy machine an answer may have much before it.
        let patient = socket.get_ref().set_read_timeout(Some(LONG));
        patient.expect("a timeout");
        Self {
            socket,
            next: 1,
            heard: Vec::new(),
        }
    }

    /// Sends a call and returns its id.
    pub fn send(&mut self, session: &str, method: &str, params: Value) -> u64 {
        let id = self.next;
        self.next += 1;
        let call = json!({"session": session, "id": id, "method": method, "params": params});
        self.say(&call.to_string());
        id
    }

    /// Sends any text.
    pub fn say(&mut self, text: &str) {
        self.socket
            .send(Message::text(text.to_owned()))
            .expect("sent");
    }

    /// Calls, and gives the whole answer.
    pub fn call(&mut self, session: &str, method: &str, params: Value) -> Value {
        let id = self.send(session, method, params);
        self.hear(&format!("an answer to {method}"), |said| said["id"] == id)
    }

    /// Calls what must succeed, and gives the result.
    pub fn done(&mut self, session: &str, method: &str, params: Value) -> Value {
        let answer = self.call(session, method, params);
        assert!(answer["error"].is_null(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// Calls what must be refused, and gives the code.
    pub fn refused(&mut self, session: &str, method: &str, params: Value) -> String {
        let answer = self.call(session, method, params);
        let code = answer["error"]["data"]["code"].as_str();
        code.unwrap_or_else(|| panic!("{method} was not refused: {answer}"))
            .to_owned()
    }

    /// The next message that is `wanted`, among those heard already first; others are kept.
    pub fn hear(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.heard.iter().position(&wanted) {
            return self.heard.remove(at);
        }
        let until = Instant::now() + LONG;
        while Instant::now() < until {
            match self.socket.read() {
                Ok(Message::Text(text)) => {
                    let said: Value = serde_json::from_str(&text).expect("JSON");
                    if wanted(&said) {
                        return said;
                    }
                    self.heard.push(said);
                }
                Ok(Message::Close(frame)) => panic!("closed ({frame:?}) before {what}"),
                Ok(_) => {}
                Err(error) => panic!("{error} before {what}; heard {:?}", self.heard),
            }
        }
        panic!("not within {LONG:?}: {what}; heard {:?}", self.heard)
    }

    /// News called `method`.
    pub fn news(&mut self, method: &str) -> Value {
        self.hear(method, |said| said["method"] == method)["params"].clone()
    }

    /// Waits for the goodbye.
    pub fn goodbye(&mut self, bound: Duration) -> Option<CloseFrame> {
        farewell(&mut self.socket, bound)
    }

    /// Ends the connection without a word, as a crash does.
    pub fn vanish(self) {
        drop(self.socket);
    }
}

/// Reads a WebSocket to its end; its goodbye, if it said one.
pub fn farewell(socket: &mut WebSocket<TcpStream>, bound: Duration) -> Option<CloseFrame> {
    let until = Instant::now() + bound;
    socket
        .get_ref()
        .set_read_timeout(Some(bound))
        .expect("a timeout");
    let mut said = None;
    while Instant::now() < until {
        match socket.read() {
            Ok(Message::Close(frame)) => said = frame,
            Ok(_) => {}
            Err(Error::Io(error)) if error.kind() == std::io::ErrorKind::WouldBlock => break,
            Err(_) => return said,
        }
    }
    panic!("still open after {bound:?}")
}
