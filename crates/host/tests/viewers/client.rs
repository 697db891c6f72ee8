//! A plain RFB client of a viewer's socket.

use std::path::Path;
use std::time::Duration;

use handover_host::display::{Address, Stream, Upstream, connect};
use handover_rfb::PixelFormat;
use handover_rfb::framing::server::Rectangle;
use handover_rfb::framing::{ServerEvent, ServerMessage, ServerParser};
use handover_rfb::handshake::{Credentials, ServerInit};
use handover_rfb::input::{self, InputMessage};
use tokio::time::timeout;

/// Nothing that is waited for here takes this long on any machine.
pub const SOON: Duration = Duration::from_secs(20);

/// What a client was sent.
#[derive(Debug, PartialEq, Eq)]
pub enum Seen {
    Rectangle(Rectangle),
    /// An update ended; so many bytes of pixels were in it.
    Update(usize),
    Message(ServerMessage),
}

pub struct Client {
    pub stream: Stream,
    pub init: ServerInit,
    parser: ServerParser,
    buffer: Vec<u8>,
    at: usize,
    pixels: usize,
    /// The last update's pixels, if anybody wants them.
    pub content: Vec<u8>,
}

impl Client {
    pub async fn connect(path: &Path) -> Client {
        Self::connect_with(path, Credentials::None).await
    }

    pub async fn connect_with(path: &Path, credentials: Credentials) -> Client {
        let upstream = Upstream::new(Address::Unix(path.to_owned()));
        let connected = connect(&upstream, credentials).await.expect("connected");
        Client {
            parser: ServerParser::new(connected.init.format),
            stream: connected.stream,
            init: connected.init,
            buffer: connected.rest,
            at: 0,
            pixels: 0,
            content: Vec::new(),
        }
    }

    /// The next thing that comes, within [`SOON`].
    pub async fn next(&mut self) -> Seen {
        timeout(SOON, self.next_or_end())
            .await
            .expect("something comes")
            .expect("still connected")
    }

    /// The next thing that comes; `None` if the connection ends.
    pub async fn next_or_end(&mut self) -> Option<Seen> {
        loop {
            let event = self
                .parser
                .next_event(&self.buffer, &mut self.at)
                .expect("a valid stream");
            match event {
                Some(ServerEvent::Rectangle(rectangle)) => {
                    return Some(Seen::Rectangle(rectangle));
                }
                Some(ServerEvent::Payload(range)) => {
                    self.pixels += range.len();
                    self.content.extend(&self.buffer[range]);
                }
                Some(ServerEvent::Header(_)) => {}
                Some(ServerEvent::End) => {
                    return Some(Seen::Update(std::mem::take(&mut self.pixels)));
                }
                Some(ServerEvent::Message(message)) => return Some(Seen::Message(message)),
                None => {
                    self.buffer.resize(64 * 1024, 0);
                    self.at = 0;
                    let read = self.stream.read(&mut self.buffer).await.unwrap_or(0);
                    self.buffer.truncate(read);
                    if read == 0 {
                        return None;
                    }
                }
            }
        }
    }

    /// Skips to the end of the next update with pixels and returns how many bytes of them it had.
    pub async fn update(&mut self) -> usize {
        self.content.clear();
        loop {
            if let Seen::Update(pixels) = self.next().await
                && pixels > 0
            {
                return pixels;
            }
        }
    }

    pub fn set_format(&mut self, format: PixelFormat) {
        self.parser.set_format(format);
    }

    pub async fn send(&self, write: impl FnOnce(&mut Vec<u8>)) {
        let mut out = Vec::new();
        write(&mut out);
        self.stream.write_all(&out).await.expect("written");
    }

    pub async fn encodings(&self, list: &[i32]) {
        self.send(|out| input::set_encodings(list, out)).await;
    }

    pub async fn request(&self, incremental: bool) {
        self.send(|out| input::update_request(incremental, 0, 0, 1280, 800, out))
            .await;
    }

    pub async fn input(&self, message: InputMessage) {
        self.send(|out| message.encode(out)).await;
    }
}
