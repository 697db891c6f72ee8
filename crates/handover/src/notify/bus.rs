//! A connection to the session bus.

use std::fmt;
use std::io::{self, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::wire::{Call, Head, Heard};

/// The largest message that is read, in bytes.
const LARGEST: usize = 1 << 20;
/// The longest line of the greeting, in bytes.
const LONGEST_LINE: usize = 1024;

/// The bus, or who was called there, said no.
#[derive(Debug)]
pub struct Refused(String);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the session bus answered {}", self.0)
    }
}

impl std::error::Error for Refused {}

/// A connection that has said hello.
#[derive(Debug)]
pub struct Bus {
    stream: UnixStream,
    serial: u32,
    patience: Duration,
}

impl Bus {
    /// Connects to this user's session bus; `None` if there is none. Nothing takes longer than `patience`.
    pub fn connect(patience: Duration) -> io::Result<Option<Self>> {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let named = variable("DBUS_SESSION_BUS_ADDRESS").map(OsStringExt::into_vec);
        let stream = match named {
            Some(address) => Some(dial(&address)?),
            // Where it is for everybody who has logged in. A host that was started over ssh is not told.
            None => {
                let of_user = || format!("/run/user/{}", rustix::process::getuid().as_raw()).into();
                let directory = variable("XDG_RUNTIME_DIR").map_or_else(of_user, PathBuf::from);
                UnixStream::connect(directory.join("bus")).ok()
            }
        };
        let Some(stream) = stream else {
            return Ok(None);
        };
        let mut bus = Self {
            stream,
            serial: 0,
            patience,
        };
        bus.greet()?;
        bus.call(&Call {
            destination: "org.freedesktop.DBus",
            path: "/org/freedesktop/DBus",
            interface: "org.freedesktop.DBus",
            member: "Hello",
            signature: "",
            body: Vec::new(),
        })?;
        Ok(Some(bus))
    }

    /// Calls a method and waits until it is answered.
    pub fn call(&mut self, call: &Call<'_>) -> io::Result<()> {
        let until = Instant::now() + self.patience;
        self.serial += 1;
        self.write(&call.message(self.serial), until)?;
        loop {
            let mut first = [0; 16];
            self.read(&mut first, until)?;
            let head = Head::read(&first).filter(|head| head.rest <= LARGEST);
            let head = head.ok_or_else(not_understood)?;
            let mut rest = vec![0; head.rest];
            self.read(&mut rest, until)?;
            match head.heard(&rest).ok_or_else(not_understood)? {
                Heard::Answer(serial) if serial == self.serial => return Ok(()),
                Heard::Refusal(serial, name) if serial == self.serial => {
                    return Err(io::Error::other(Refused(name)));
                }
                Heard::Answer(_) | Heard::Refusal(..) | Heard::Other => {}
            }
        }
    }

    /// Says who we are; the kernel vouches for it.
    fn greet(&mut self) -> io::Result<()> {
        let until = Instant::now() + self.patience;
        let uid = rustix::process::getuid().as_raw().to_string();
        self.write(
            format!("\0AUTH EXTERNAL {}\r\n", hex::encode(uid)).as_bytes(),
            until,
        )?;
        let mut line = Vec::new();
        while !line.ends_with(b"\r\n") {
            let mut byte = [0];
            self.read(&mut byte, until)?;
            line.push(byte[0]);
            if line.len() > LONGEST_LINE {
                return Err(not_understood());
            }
        }
        if !line.starts_with(b"OK ") {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "the session bus does not let us in",
            ));
        }
        self.write(b"BEGIN\r\n", until)
    }

    fn write(&mut self, bytes: &[u8], until: Instant) -> io::Result<()> {
        self.stream.set_write_timeout(Some(left(until)?))?;
        self.stream.write_all(bytes)
    }

    fn read(&mut self, mut bytes: &mut [u8], until: Instant) -> io::Result<()> {
        while !bytes.is_empty() {
            self.stream.set_read_timeout(Some(left(until)?))?;
            match self.stream.read(bytes) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => bytes = &mut bytes[count..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

fn not_understood() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "the session bus is not understood",
    )
}

fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "the session bus does not answer",
        ));
    }
    Ok(left)
}

/// Connects to the first of the addresses that works: `unix:path=…;unix:abstract=…,guid=…`.
fn dial(addresses: &[u8]) -> io::Result<UnixStream> {
    let mut last = io::Error::new(
        io::ErrorKind::Unsupported,
        "DBUS_SESSION_BUS_ADDRESS names no socket",
    );
    for socket in addresses.split(|byte| *byte == b';').filter_map(socket) {
        match socket.and_then(|socket| UnixStream::connect_addr(&socket)) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn socket(address: &[u8]) -> Option<io::Result<SocketAddr>> {
    let settings = address.strip_prefix(b"unix:")?;
    settings.split(|byte| *byte == b',').find_map(|setting| {
        if let Some(path) = setting.strip_prefix(b"path=") {
            let path = std::ffi::OsString::from_vec(unescaped(path));
            return Some(SocketAddr::from_pathname(path));
        }
        let name = setting.strip_prefix(b"abstract=")?;
        Some(SocketAddr::from_abstract_name(unescaped(name)))
    })
}

/// `%20` and the like, as bytes.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|hex| hex::decode(hex).ok());
        match hex {
            Some(decoded) if byte == b'%' => {
                bytes.extend(decoded);
                rest = &after[2..];
            }
            _ => {
                bytes.push(byte);
                rest = after;
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let path = |address: &str| {
            let socket = socket(address.as_bytes())?.ok()?;
            socket.as_pathname().map(PathBuf::from)
        };
        assert_eq!(
            path("unix:path=/run/a%20b/bus,guid=7"),
            Some("/run/a b/bus".into())
        );
        assert_eq!(path("unix:guid=7,path=/a%2"), Some("/a%2".into()));
        assert_eq!(path("tcp:host=localhost"), None);
        let hidden = socket(b"unix:abstract=/tmp/x").unwrap().unwrap();
        assert_eq!(hidden.as_abstract_name(), Some(&b"/tmp/x"[..]));
        assert!(dial(b"tcp:host=localhost;unixexec:path=/bin/sh").is_err());
    }
}
