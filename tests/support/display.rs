//! Connecting to a desktop's X display as an application of it would.

use std::fs;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use x11rb::connection::Connection;
use x11rb::protocol::xproto::{ConnectionExt as _, CreateWindowAux, WindowClass};
use x11rb::rust_connection::{DefaultStream, RustConnection};

/// A display number for a server that a test starts itself: far above those of desktops, and no other
/// test's, whether tests are processes or threads. A server that was killed, by a test of an earlier run perhaps,
/// has left its lock; with the number of a process that runs it would be in the way.
pub fn own_number() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let ours = 2000 + std::process::id() % 7000 * 8;
    let mut numbers = (0..8).map(|_| ours + NEXT.fetch_add(1, Ordering::Relaxed) % 8);
    let free = numbers.find(|number| !Path::new(&format!("/tmp/.X{number}-lock")).exists());
    free.expect("a display number that is free")
}

/// How an application reaches its display.
#[derive(Debug, Clone)]
pub struct Display {
    /// The value of `DISPLAY`, such as `:3`.
    pub name: String,
    /// The value of `XAUTHORITY`.
    pub authority: PathBuf,
}

impl Display {
    /// Where the pointer is, and the buttons and modifiers that are on.
    pub fn pointer(&self) -> ((i16, i16), u16) {
        let x = self.connect();
        let root = x.setup().roots[0].root;
        let pointer = x.query_pointer(root).expect("sent").reply().expect("reply");
        ((pointer.root_x, pointer.root_y), pointer.mask.into())
    }

    /// Connects as a trusted client.
    pub fn connect(&self) -> RustConnection {
        let number = self
            .name
            .trim_start_matches(':')
            .split('.')
            .next()
            .expect("a number");
        let stream =
            UnixStream::connect(format!("/tmp/.X11-unix/X{number}")).expect("the display's socket");
        let (stream, _) = DefaultStream::from_unix_stream(stream).expect("a stream for X");
        let cookie = cookie(&self.authority).expect("a cookie in the authority file");
        RustConnection::connect_to_stream_with_auth_info(
            stream,
            0,
            b"MIT-MAGIC-COOKIE-1".to_vec(),
            cookie,
        )
        .expect("the display accepts the cookie")
    }
}

/// The first magic cookie of an authority file.
fn cookie(path: &Path) -> Option<Vec<u8>> {
    let bytes = fs::read(path).ok()?;
    let mut rest = bytes.get(2..)?;
    loop {
        // Address, display number, name, data: each with a length of two bytes before it.
        let mut parts = Vec::new();
        for _ in 0..4 {
            let (length, after) = rest.split_at_checked(2)?;
            let length = usize::from(u16::from_be_bytes([length[0], length[1]]));
            let (part, after) = after.split_at_checked(length)?;
            parts.push(part);
            rest = after;
        }
        if parts[2] == b"MIT-MAGIC-COOKIE-1" {
            return Some(parts[3].to_vec());
        }
        rest = rest.get(2..)?;
    }
}

/// Covers the whole screen with a window that looks like this, without asking a window manager.
pub fn cover(x: &RustConnection, look: CreateWindowAux) -> u32 {
    let screen = &x.setup().roots[0];
    let window = x.generate_id().expect("an id");
    let (width, height) = (screen.width_in_pixels, screen.height_in_pixels);
    x.create_window(
        0,
        window,
        screen.root,
        0,
        0,
        width,
        height,
        0,
        WindowClass::INPUT_OUTPUT,
        0,
        &look.override_redirect(1),
    )
    .expect("sent")
    .check()
    .expect("a window");
    x.map_window(window).expect("sent").check().expect("mapped");
    window
}
