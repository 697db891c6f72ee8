//! An RFB client that a test drives: it can send any bytes, and notes what it is shown.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;

use super::clock::{SHORT, eventually};

/// Raw pixels and the desktop's name: all that this client understands.
const ENCODINGS: [i32; 2] = [0, -307];

/// What a viewer has been shown.
#[derive(Debug, Default)]
pub struct Shown {
    /// Framebuffer updates that held pixels.
    pub frames: u64,
    /// The desktop's name, at first and as changed since.
    pub title: String,
    /// Width and height in pixels.
    pub size: (u16, u16),
    /// Whole cut-text messages from the server, without their headers.
    pub cut: Vec<Vec<u8>>,
    /// Whether the server closed the connection.
    pub closed: bool,
}

/// One connected viewer.
pub struct Viewer {
    stream: UnixStream,
    shown: Arc<Mutex<Shown>>,
    /// Held while a message is sent: the viewer asks for frames by itself, which must not come
    /// between the pieces of another message.
    sending: Arc<Mutex<()>>,
}

impl Viewer {
    /// Connects to a viewer's socket, completes the handshake and keeps asking for frames.
    pub fn connect(path: &Path) -> Self {
        let mut stream =
            UnixStream::connect(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        stream.set_read_timeout(Some(SHORT)).expect("a timeout");
        assert_eq!(&take::<12>(&mut stream), b"RFB 003.008\n");
        stream.write_all(b"RFB 003.008\n").expect("version");
        let mut types = vec![0; take::<1>(&mut stream)[0].into()];
        stream.read_exact(&mut types).expect("security types");
        assert_eq!(types, [1], "a viewer's socket offers None and nothing else");
        stream.write_all(&[1]).expect("security type");
        assert_eq!(take::<4>(&mut stream), [0; 4], "security result");
        // Asks to be alone, as many viewers do: the gate must not pass that on.
        stream.write_all(&[0]).expect("ClientInit");
        let init = take::<24>(&mut stream);
        let word = |at: usize| u16::from_be_bytes([init[at], init[at + 1]]);
        let mut name =
            vec![0; u32::from_be_bytes([init[20], init[21], init[22], init[23]]) as usize];
        stream.read_exact(&mut name).expect("name");
        let size = (word(0), word(2));

        let mut hello = vec![
            0, 0, 0, 0, 32, 24, 0, 1, 0, 255, 0, 255, 0, 255, 16, 8, 0, 0, 0, 0,
        ];
        hello.extend([2, 0, 0, u8::try_from(ENCODINGS.len()).expect("few")]);
        hello.extend(ENCODINGS.iter().flat_map(|encoding| encoding.to_be_bytes()));
        hello.extend(request(size, false));
        stream.write_all(&hello).expect("setup");

        let title = String::from_utf8_lossy(&name).into_owned();
        let shown = Arc::new(Mutex::new(Shown {
            title,
            size,
            ..Shown::default()
        }));
        stream.set_read_timeout(None).expect("no timeout");
        let reader = stream.try_clone().expect("a second handle");
        let noted = Arc::clone(&shown);
        let sending = Arc::new(Mutex::new(()));
        let asking = Arc::clone(&sending);
        thread::spawn(move || {
            watch(reader, &noted, &asking);
            noted.lock().expect("no panic").closed = true;
        });
        Self {
            stream,
            shown,
            sending,
        }
    }

    /// What it has been shown so far.
    pub fn shown(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().expect("no panic while watching")
    }

    /// Waits for the first frame.
    pub fn first_frame(&self) {
        eventually("a first frame", SHORT, || {
            (self.shown().frames > 0).then_some(())
        });
    }

    /// Whether the connection still stands.
    pub fn open(&self) -> bool {
        !self.shown().closed
    }

    /// Sends bytes as they are; an error means that the server closed the connection.
    pub fn send(&self, bytes: &[u8]) -> std::io::Result<()> {
        self.send_in_pieces(bytes, bytes.len().max(1))
    }

    /// Sends bytes as they are, so many at once and nothing between them.
    pub fn send_in_pieces(&self, bytes: &[u8], size: usize) -> std::io::Result<()> {
        let _whole = self.sending.lock().expect("no panic while sending");
        bytes
            .chunks(size)
            .try_for_each(|piece| (&self.stream).write_all(piece))
    }

    /// Presses or releases a key by its keysym.
    pub fn key(&self, keysym: u32, down: bool) {
        let mut message = vec![4, u8::from(down), 0, 0];
        message.extend(keysym.to_be_bytes());
        self.send(&message).expect("the viewer's connection stands");
    }

    /// Presses and releases a key for each character of Latin-1 text.
    pub fn tap(&self, text: &str) {
        for character in text.chars() {
            self.key(u32::from(character), true);
            self.key(u32::from(character), false);
        }
    }

    /// Moves the pointer with the buttons of `mask` held.
    pub fn pointer(&self, mask: u8, x: u16, y: u16) {
        let [x, y] = [x.to_be_bytes(), y.to_be_bytes()];
        self.send(&[5, mask, x[0], x[1], y[0], y[1]])
            .expect("the viewer's connection stands");
    }

    /// Sets the clipboard the classic way, in Latin-1.
    pub fn cut_text(&self, text: &str) {
        let mut message = vec![6, 0, 0, 0];
        message.extend(u32::try_from(text.len()).expect("short").to_be_bytes());
        message.extend(text.bytes());
        self.send(&message).expect("the viewer's connection stands");
    }

    /// Closes the connection.
    pub fn close(self) {}
}

impl Drop for Viewer {
    fn drop(&mut self) {
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
    }
}

fn request((width, height): (u16, u16), incremental: bool) -> Vec<u8> {
    let mut message = vec![3, u8::from(incremental), 0, 0, 0, 0];
    message.extend(width.to_be_bytes());
    message.extend(height.to_be_bytes());
    message
}

fn take<const N: usize>(stream: &mut UnixStream) -> [u8; N] {
    let mut bytes = [0; N];
    stream
        .read_exact(&mut bytes)
        .expect("the server goes on with the handshake");
    bytes
}

/// Reads server messages until the connection ends.
fn watch(mut stream: UnixStream, shown: &Mutex<Shown>, sending: &Mutex<()>) {
    let note = || shown.lock().expect("no panic");
    let mut run = || -> std::io::Result<()> {
        loop {
            let mut kind = [0];
            stream.read_exact(&mut kind)?;
            match kind[0] {
                0 => {
                    let pixels = update(&mut stream, shown)?;
                    let size = note().size;
                    if pixels {
                        note().frames += 1;
                    }
                    let _whole = sending.lock().expect("no panic while sending");
                    stream.write_all(&request(size, true))?;
                }
                2 => {}
                3 => {
                    let mut head = [0; 7];
                    stream.read_exact(&mut head)?;
                    let length =
                        i32::from_be_bytes([head[3], head[4], head[5], head[6]]).unsigned_abs();
                    let mut text = vec![0; length as usize];
                    stream.read_exact(&mut text)?;
                    note().cut.push(text);
                }
                other => {
                    panic!("a server message of type {other} that this viewer never asked for")
                }
            }
        }
    };
    let _ = run();
}

/// Reads one framebuffer update; whether it held pixels.
fn update(stream: &mut UnixStream, shown: &Mutex<Shown>) -> std::io::Result<bool> {
    let mut pixels = false;
    let mut head = [0; 3];
    stream.read_exact(&mut head)?;
    for _ in 0..u16::from_be_bytes([head[1], head[2]]) {
        let mut rect = [0; 12];
        stream.read_exact(&mut rect)?;
        let word = |at: usize| usize::from(u16::from_be_bytes([rect[at], rect[at + 1]]));
        match i32::from_be_bytes([rect[8], rect[9], rect[10], rect[11]]) {
            0 => {
                let mut data = vec![0; word(4) * word(6) * 4];
                stream.read_exact(&mut data)?;
                pixels |= !data.is_empty();
            }
            -307 => {
                let mut length = [0; 4];
                stream.read_exact(&mut length)?;
                let mut name = vec![0; u32::from_be_bytes(length) as usize];
                stream.read_exact(&mut name)?;
                shown.lock().expect("no panic").title = String::from_utf8_lossy(&name).into_owned();
            }
            other => panic!("a rectangle of encoding {other} that this viewer never asked for"),
        }
    }
    Ok(pixels)
}
