//! The smallest HTTP client: one request a connection, the answer read to its end.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use handover_model::ModelServer;
use serde_json::Value;

/// An answer that has begun.
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    reader: BufReader<TcpStream>,
}

/// Sends one request and reads the head of its answer.
pub fn send(server: &ModelServer, method: &str, path: &str, body: &Value) -> Answer {
    let mut stream = TcpStream::connect(("127.0.0.1", server.port())).expect("the server listens");
    stream
        .set_read_timeout(Some(Duration::from_secs(10)))
        .expect("a timeout");
    let body = body.to_string();
    // Version 1.0, so that the answer ends with the connection and comes without framing.
    let head = format!(
        "{method} {path} HTTP/1.0\r\nHost: model\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    stream
        .write_all((head + &body).as_bytes())
        .expect("the server reads");
    let mut reader = BufReader::new(stream);
    let status = line(&mut reader);
    let status = status.split(' ').nth(1).and_then(|code| code.parse().ok());
    while !line(&mut reader).is_empty() {}
    Answer {
        status: status.expect("a status"),
        reader,
    }
}

/// Posts a question and reads the whole answer.
pub fn ask(server: &ModelServer, path: &str, body: &Value) -> Answer {
    send(server, "POST", path, body)
}

impl Answer {
    /// The rest of the answer as one JSON object.
    pub fn json(mut self) -> Value {
        let mut text = String::new();
        self.reader.read_to_string(&mut text).expect("an answer");
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// The data of the next server-sent event, `None` at the end.
    pub fn next_event(&mut self) -> Option<Value> {
        let mut data = None;
        loop {
            let line = line(&mut self.reader);
            if line.is_empty() {
                return data;
            }
            if let Some(text) = line.strip_prefix("data: ") {
                // The one that is no JSON is the mark of the end.
                data = Some(serde_json::from_str(text).unwrap_or_else(|_| Value::from(text)));
            }
        }
    }

    /// All events to the end.
    pub fn events(mut self) -> Vec<Value> {
        std::iter::from_fn(|| self.next_event()).collect()
    }
}

/// The next line without its end; empty at the end of the answer.
fn line(reader: &mut impl BufRead) -> String {
    let mut line = String::new();
    reader.read_line(&mut line).expect("a line");
    line.trim_end().to_owned()
}
