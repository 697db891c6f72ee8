//! An X client that covers its desktop: it sees input arrive, and shows something.

use std::{
    fs,
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    sync::mpsc::{Receiver, Sender, channel},
    thread,
    time::Instant,
};

use x11rb::{
    connection::{Connection, RequestConnection},
    protocol::{
        Event,
        xproto::{
            ChangeGCAux, ConnectionExt, CreateGCAux, CreateWindowAux, EventMask, Gcontext,
            ImageFormat, InputFocus, Rectangle, Window, WindowClass,
        },
    },
    rust_connection::{DefaultStream, RustConnection},
};

use crate::Outcome;

/// The side of the square that changes its colour at each press, in pixels from the origin.
const SQUARE: u16 = 64;

/// How an application reaches its display.
pub struct Display {
    /// The value of `DISPLAY`, such as `:3`.
    pub name: String,
    /// The value of `XAUTHORITY`, if it takes a cookie.
    pub authority: Option<PathBuf>,
}

/// What arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// A button went down.
    Press,
    /// A button came up.
    Release,
    /// A key went down.
    Key,
    /// The pointer moved.
    Motion,
}

/// An event and the instant at which the client had it.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// What happened.
    pub what: What,
    /// When.
    pub at: Instant,
}

/// A window over the whole screen, with the focus when it is clicked into.
pub struct Screen {
    x: RustConnection,
    window: Window,
    pen: Gcontext,
    width: u16,
    height: u16,
}

impl Screen {
    /// Covers the display.
    pub fn cover(display: &Display) -> Outcome<Self> {
        let x = connect(display)?;
        let screen = &x.setup().roots[0];
        let (width, height) = (screen.width_in_pixels, screen.height_in_pixels);
        let (root, depth) = (screen.root, screen.root_depth);
        let (window, pen) = (x.generate_id()?, x.generate_id()?);
        let events = EventMask::KEY_PRESS
            | EventMask::BUTTON_PRESS
            | EventMask::BUTTON_RELEASE
            | EventMask::POINTER_MOTION;
        // Without a window manager's say, so that none can put anything over it.
        let look = CreateWindowAux::new()
            .override_redirect(1)
            .background_pixel(0)
            .event_mask(events);
        let class = WindowClass::INPUT_OUTPUT;
        x.create_window(depth, window, root, 0, 0, width, height, 0, class, 0, &look)?
            .check()?;
        x.create_gc(pen, window, &CreateGCAux::new())?.check()?;
        x.map_window(window)?.check()?;
        Ok(Self {
            x,
            window,
            pen,
            width,
            height,
        })
    }

    /// Shows what is about as hard to compress as a page of text beside a picture.
    pub fn paint(&self) -> Outcome<()> {
        let width = usize::from(self.width);
        let rows_at_once = (self.x.maximum_request_bytes() / 2 / (width * 4)).clamp(1, 16) as u16;
        for top in (0..self.height).step_by(rows_at_once.into()) {
            let rows = rows_at_once.min(self.height - top);
            let pixels = (top..top + rows).flat_map(|y| (0..self.width).map(move |x| (x, y)));
            let data: Vec<u8> = pixels
                .flat_map(|(x, y)| picture(x, y, self.width))
                .collect();
            let (x, format) = (&self.x, ImageFormat::Z_PIXMAP);
            let (window, pen, y) = (self.window, self.pen, top as i16);
            x.put_image(format, window, pen, self.width, rows, 0, y, 0, 24, &data)?
                .check()?;
        }
        Ok(())
    }

    /// Sees events from here on, and answers each press by a new colour of the square at the origin, as
    /// [`colour`] tells. Ends with the display.
    pub fn watch(self) -> Outcome<Receiver<Seen>> {
        let (sender, receiver) = channel();
        // One round trip: the window is there.
        self.x.get_input_focus()?.reply()?;
        thread::spawn(move || self.serve(&sender));
        Ok(receiver)
    }

    fn serve(&self, sender: &Sender<Seen>) {
        let mut presses = 0;
        while let Ok(event) = self.x.wait_for_event() {
            let at = Instant::now();
            let what = match event {
                Event::ButtonPress(_) => What::Press,
                Event::ButtonRelease(_) => What::Release,
                Event::KeyPress(_) => What::Key,
                Event::MotionNotify(_) => What::Motion,
                _ => continue,
            };
            if what == What::Press {
                presses += 1;
                if self.pressed(colour(presses)).is_err() {
                    return;
                }
            }
            // Whoever does not look any more does not mind.
            let _ = sender.send(Seen { what, at });
        }
    }

    /// Shows a press, and takes the focus as an application does that is clicked into.
    fn pressed(&self, colour: u32) -> Outcome<()> {
        let (x, pen) = (&self.x, self.pen);
        x.change_gc(pen, &ChangeGCAux::new().foreground(colour))?;
        let square = Rectangle {
            x: 0,
            y: 0,
            width: SQUARE,
            height: SQUARE,
        };
        x.poly_fill_rectangle(self.window, pen, &[square])?;
        x.set_input_focus(InputFocus::PARENT, self.window, x11rb::CURRENT_TIME)?;
        x.flush()?;
        Ok(())
    }
}

/// The colour of the square after this many presses, blue in the lowest byte.
pub fn colour(presses: u32) -> u32 {
    if presses % 2 == 1 {
        0x00ff_8000
    } else {
        0x0000_80ff
    }
}

/// One pixel of the picture, blue first: glyphs on the left, a gradient with boxes on the right.
fn picture(x: u16, y: u16, width: u16) -> [u8; 4] {
    if x < width / 2 {
        let (column, line) = (u32::from(x / 8), u32::from(y / 16));
        let dots = (column * 31 + line * 17).wrapping_mul(0x9E37_79B9);
        let inside = x % 8 < 6 && (3..13).contains(&(y % 16)) && (column + line * 3) % 7 != 0;
        let ink = inside && dots.rotate_left(u32::from(x % 8 * 5 + y % 16 * 3)) & 5 == 1;
        if ink {
            [0x20, 0x20, 0x20, 0]
        } else {
            [0xff, 0xff, 0xff, 0]
        }
    } else if (x / 90).is_multiple_of(3) && (y / 70).is_multiple_of(3) {
        [0xc0, 0x70, 0x30, 0]
    } else {
        [(x / 8) as u8, (y / 4) as u8, ((x + y) / 9) as u8, 0]
    }
}

fn connect(display: &Display) -> Outcome<RustConnection> {
    let number = display
        .name
        .trim_start_matches(':')
        .split('.')
        .next()
        .unwrap_or_default();
    let stream = UnixStream::connect(format!("/tmp/.X11-unix/X{number}"))?;
    let (stream, _) = DefaultStream::from_unix_stream(stream)?;
    let (name, cookie) = match &display.authority {
        None => (Vec::new(), Vec::new()),
        Some(path) => (b"MIT-MAGIC-COOKIE-1".to_vec(), cookie(path)?),
    };
    Ok(RustConnection::connect_to_stream_with_auth_info(
        stream, 0, name, cookie,
    )?)
}

/// The cookie of an authority file's first entry.
fn cookie(path: &Path) -> Outcome<Vec<u8>> {
    let bytes = fs::read(path)?;
    // A family, then address, display number, name and data, each after its length.
    let mut rest = bytes.get(2..).unwrap_or_default();
    let mut part = Vec::new();
    for _ in 0..4 {
        let (length, after) = rest.split_at_checked(2).ok_or("a cut authority file")?;
        let length = usize::from(u16::from_be_bytes([length[0], length[1]]));
        let (data, after) = after
            .split_at_checked(length)
            .ok_or("a cut authority file")?;
        (part, rest) = (data.to_vec(), after);
    }
    Ok(part)
}
