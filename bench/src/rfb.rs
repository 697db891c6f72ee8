//! A small RFB client that asks for raw pixels.

use std::{
    io::{ErrorKind, Read, Write},
    os::unix::net::UnixStream,
    path::Path,
    time::Duration,
};

use handover_rfb::{
    InputMessage, PixelFormat,
    handshake::{ClientHandshake, Credentials, Progress},
    input::{set_encodings, set_pixel_format, update_request},
};

use crate::{Outcome, place::eventually};

/// How long the server may be silent.
const SILENCE: Duration = Duration::from_secs(5);

/// The only encoding asked for.
const RAW: i32 = 0;

/// One connection to a viewer's socket, or to a server that asks for no password.
pub struct Viewer {
    stream: UnixStream,
    width: u16,
    height: u16,
    pixels: Vec<u8>,
}

impl Viewer {
    /// Connects and asks for raw pixels of 32 bits.
    pub fn connect(socket: &Path) -> Outcome<Self> {
        // A socket is there a little before anybody listens on it.
        let mut stream = eventually("a connection", SILENCE, || {
            match UnixStream::connect(socket) {
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => None,
                outcome => Some(outcome),
            }
        })??;
        stream.set_read_timeout(Some(SILENCE))?;
        let mut handshake = ClientHandshake::new(Credentials::None);
        let (mut input, mut output) = ([0; 1], Vec::new());
        // Byte by byte, so that nothing beyond the handshake is taken.
        let init = loop {
            stream.read_exact(&mut input)?;
            let progress = handshake.advance(&input, &mut output)?;
            stream.write_all(&output)?;
            output.clear();
            if let Progress::Done { result, .. } = progress {
                break result;
            }
        };
        set_pixel_format(&PixelFormat::BGRX, &mut output);
        set_encodings(&[RAW], &mut output);
        stream.write_all(&output)?;
        let (width, height) = (init.width, init.height);
        Ok(Self {
            stream,
            width,
            height,
            pixels: Vec::new(),
        })
    }

    /// Asks for the whole picture and reads it; tells its bytes.
    pub fn frame(&mut self) -> Outcome<usize> {
        self.ask(false)?;
        let mut bytes = 0;
        self.update(|_, pixels| bytes += pixels.len())?;
        Ok(bytes)
    }

    /// Reads changes until the pixel at this place, which the next changes must cover, has `colour`.
    pub fn until(&mut self, (x, y): (u16, u16), colour: u32) -> Outcome<()> {
        loop {
            let mut found = false;
            self.update(|area, pixels| {
                let at = area.offset(x, y);
                let pixel = at.and_then(|at| pixels.get(at..at + 3));
                found |= pixel.is_some_and(|bgr| *bgr == colour.to_le_bytes()[..3]);
            })?;
            if found {
                return Ok(());
            }
            self.ask(true)?;
        }
    }

    /// Moves the pointer with the buttons of `mask` down.
    pub fn pointer(&mut self, mask: u8, x: u16, y: u16) -> Outcome<()> {
        let mut message = Vec::new();
        InputMessage::Pointer { mask, x, y }.encode(&mut message);
        Ok(self.stream.write_all(&message)?)
    }

    /// Asks for the picture, or for what will have changed.
    pub fn ask(&mut self, changes: bool) -> Outcome<()> {
        let mut message = Vec::new();
        update_request(changes, 0, 0, self.width, self.height, &mut message);
        Ok(self.stream.write_all(&message)?)
    }

    /// Reads messages up to the end of an update and passes on each rectangle of it.
    fn update(&mut self, mut see: impl FnMut(Area, &[u8])) -> Outcome<()> {
        loop {
            match self.take::<1>()?[0] {
                0 => break,
                // The bell.
                2 => {}
                // Cut text, which says its length.
                3 => {
                    let [.., a, b, c, d] = self.take::<7>()?;
                    let length = i32::from_be_bytes([a, b, c, d]).unsigned_abs();
                    std::io::copy(
                        &mut (&self.stream).take(length.into()),
                        &mut std::io::sink(),
                    )?;
                }
                kind => return Err(format!("a message of type {kind} out of turn").into()),
            }
        }
        let [_, high, low] = self.take::<3>()?;
        for _ in 0..u16::from_be_bytes([high, low]) {
            let head = self.take::<12>()?;
            let number = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
            let area = Area {
                x: number(0),
                y: number(2),
                width: number(4),
                height: number(6),
            };
            if head[8..] != RAW.to_be_bytes() {
                return Err("an encoding that was not asked for".into());
            }
            let length = usize::from(area.width) * usize::from(area.height) * 4;
            // Grown once; a fresh buffer of four megabytes a frame would be measured too.
            if self.pixels.len() < length {
                self.pixels.resize(length, 0);
            }
            self.stream.read_exact(&mut self.pixels[..length])?;
            see(area, &self.pixels[..length]);
        }
        Ok(())
    }

    fn take<const N: usize>(&mut self) -> Outcome<[u8; N]> {
        let mut bytes = [0; N];
        self.stream.read_exact(&mut bytes)?;
        Ok(bytes)
    }
}

/// Where a rectangle lies.
#[derive(Clone, Copy)]
struct Area {
    x: u16,
    y: u16,
    width: u16,
    height: u16,
}

impl Area {
    /// Where in the rectangle's bytes a point of the screen is, if it is there.
    fn offset(self, x: u16, y: u16) -> Option<usize> {
        let (x, y) = (x.checked_sub(self.x)?, y.checked_sub(self.y)?);
        let inside = x < self.width && y < self.height;
        inside.then(|| 4 * (usize::from(y) * usize::from(self.width) + usize::from(x)))
    }
}
