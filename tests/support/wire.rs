//! A small blocking client of the attach socket, written from the contract alone.

use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::clock::LONG;

/// An error answer.
#[derive(Debug, Clone)]
pub struct Refused {
    /// JSON-RPC's own number.
    pub number: i64,
    /// The stable code.
    pub code: String,
    /// For people.
    pub message: String,
    /// Everything in `error.data`.
    pub data: Value,
}

/// What a call came to.
pub type Answer = Result<Value, Refused>;

/// One connection to a host.
pub struct Wire {
    reader: BufReader<UnixStream>,
    next: u64,
    waiting: Vec<Value>,
}

impl Wire {
    /// Connects; sends nothing.
    pub fn connect(path: &Path) -> Self {
        let stream =
            UnixStream::connect(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Self {
            reader: BufReader::new(stream),
            next: 1,
            waiting: Vec::new(),
        }
    }

    /// Calls a method and waits for its answer.
    pub fn call(&mut self, method: &str, params: Value) -> Answer {
        let id = self.send(method, params);
        self.answer(id)
    }

    /// Calls a method that must succeed.
    pub fn done(&mut self, method: &str, params: Value) -> Value {
        self.call(method, params)
            .unwrap_or_else(|refused| panic!("{method} was refused: {refused:?}"))
    }

    /// Calls a method that must be refused.
    pub fn refused(&mut self, method: &str, params: Value) -> Refused {
        match self.call(method, params) {
            Ok(result) => panic!("{method} was not refused: {result}"),
            Err(refused) => refused,
        }
    }

    /// Sends a request and returns its id, to be given to [`Self::answer`].
    pub fn send(&mut self, method: &str, params: Value) -> u64 {
        let id = self.next;
        self.next += 1;
        self.raw(
            format!(
                "{}\n",
                json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
            )
            .as_bytes(),
        );
        id
    }

    /// Sends bytes as they are.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.reader
            .get_mut()
            .write_all(bytes)
            .expect("the host reads");
    }

    /// Hands this very connection to another process, over a socket to it.
    pub fn hand_to(&self, other: &UnixStream) {
        use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
        let handed = [self.reader.get_ref().as_fd()];
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        assert!(ancillary.push(SendAncillaryMessage::ScmRights(&handed)));
        let bytes = [std::io::IoSlice::new(b"x")];
        let sent = sendmsg(other, &bytes, &mut ancillary, SendFlags::empty());
        assert_eq!(sent, Ok(1), "handed over");
    }

    /// Waits for the answer to one request; what else arrives is kept.
    pub fn answer(&mut self, id: u64) -> Answer {
        let message = self.first(&format!("an answer to request {id}"), LONG, |message| {
            message["id"] == id
        });
        if message.get("error").is_none() {
            return Ok(message["result"].clone());
        }
        let error = &message["error"];
        Err(Refused {
            number: error["code"].as_i64().unwrap_or_default(),
            code: error["data"]["code"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
            message: error["message"].as_str().unwrap_or_default().to_owned(),
            data: error["data"].clone(),
        })
    }

    /// The parameters of the first notification of `method` that satisfies `wanted`.
    pub fn notified(&mut self, method: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let found = self.first(&format!("a notification {method}"), LONG, |message| {
            message["method"] == method && wanted(&message["params"])
        });
        found["params"].clone()
    }

    /// How many notifications of `method` have come and are kept.
    pub fn kept(&self, method: &str) -> usize {
        let kept = self.waiting.iter();
        kept.filter(|message| message["method"] == method).count()
    }

    /// The first message, kept or new, that satisfies `wanted`.
    pub fn first(&mut self, what: &str, bound: Duration, wanted: impl Fn(&Value) -> bool) -> Value {
        self.poll(bound, wanted)
            .unwrap_or_else(|| panic!("not within {bound:?}: {what}"))
    }

    /// Whether the host has closed the connection within `bound`; messages before that are kept.
    pub fn closed(&mut self, bound: Duration) -> bool {
        let started = Instant::now();
        while started.elapsed() < bound {
            match self.read(Duration::from_millis(50)) {
                Read::Message(message) => self.waiting.push(message),
                Read::Nothing => {}
                Read::Closed => return true,
            }
        }
        false
    }

    fn poll(&mut self, bound: Duration, wanted: impl Fn(&Value) -> bool) -> Option<Value> {
        if let Some(index) = self.waiting.iter().position(&wanted) {
            return Some(self.waiting.remove(index));
        }
        let started = Instant::now();
        loop {
            let left = bound
                .checked_sub(started.elapsed())
                .filter(|left| !left.is_zero())?;
            match self.read(left) {
                Read::Message(message) if wanted(&message) => return Some(message),
                Read::Message(message) => self.waiting.push(message),
                Read::Nothing => {}
                Read::Closed => panic!("the host closed the connection; kept: {:?}", self.waiting),
            }
        }
    }

    fn read(&mut self, bound: Duration) -> Read {
        self.reader
            .get_ref()
            .set_read_timeout(Some(bound.max(Duration::from_millis(1))))
            .expect("a timeout");
        let mut line = Vec::new();
        loop {
            match self.reader.read_until(b'\n', &mut line) {
                Ok(0) => return Read::Closed,
                Ok(_) if line.ends_with(b"\n") => {
                    return Read::Message(serde_json::from_slice(&line).expect("a line of JSON"));
                }
                Ok(_) => return Read::Closed,
                // Half a line has come: the rest is on its way.
                Err(error) if error.kind() == ErrorKind::WouldBlock && !line.is_empty() => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Read::Nothing,
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return Read::Closed,
                Err(error) => panic!("reading from the host: {error}"),
            }
        }
    }
}

enum Read {
    Message(Value),
    Nothing,
    Closed,
}
