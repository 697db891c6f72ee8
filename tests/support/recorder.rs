//! The X client that records every input event its display received, with the time: the witness in the
//! promises about who could act when.

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::{ClockId, Timespec, clock_gettime};
use x11rb::connection::Connection;
use x11rb::protocol::Event;
use x11rb::protocol::xinput::{self, ConnectionExt as _, XIEventMask};
use x11rb::protocol::xproto::{
    ConnectionExt as _, CreateWindowAux, EventMask, GetKeyboardMappingReply, InputFocus,
};
use x11rb::rust_connection::RustConnection;

use super::clock::wall_ms;
use super::display::{Display, cover};

/// One input event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// A key by its unshifted keysym.
    Key { down: bool, keysym: u32 },
    /// A button by its number; the wheel is 4 to 7.
    Button { down: bool, number: u32 },
    /// The pointer moved.
    Motion,
}

/// One event as it was seen.
#[derive(Debug, Clone, Copy)]
pub struct Seen {
    /// What happened.
    pub what: What,
    /// Where, when the recorder has a window; else (0, 0).
    pub at: (i16, i16),
    /// Not before: the display's own time of the event, as wall time in milliseconds. Up to 4 ms early,
    /// since the display reads a coarse clock.
    pub after: f64,
    /// Not after: when the recorder had it, as wall time in milliseconds.
    pub before: f64,
}

/// A recording that runs until it is dropped.
pub struct Recorder {
    seen: Arc<Mutex<Vec<Seen>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Recorder {
    /// Records all device events of the display, whichever window has the focus or a grab.
    pub fn everything(display: &Display) -> Self {
        let x = display.connect();
        let root = x.setup().roots[0].root;
        x.xinput_xi_query_version(2, 2)
            .expect("XInput")
            .reply()
            .expect("XInput 2.2");
        let raw = XIEventMask::RAW_KEY_PRESS
            | XIEventMask::RAW_KEY_RELEASE
            | XIEventMask::RAW_BUTTON_PRESS
            | XIEventMask::RAW_BUTTON_RELEASE
            | XIEventMask::RAW_MOTION;
        let masters = 1;
        let mask = xinput::EventMask {
            deviceid: masters,
            mask: vec![raw],
        };
        x.xinput_xi_select_events(root, &[mask])
            .expect("sent")
            .check()
            .expect("raw events selected");
        Self::start(x)
    }

    /// Covers the screen with a window that has the focus and records what it gets, with coordinates.
    pub fn window(display: &Display) -> Self {
        let x = display.connect();
        let events = EventMask::KEY_PRESS
            | EventMask::KEY_RELEASE
            | EventMask::BUTTON_PRESS
            | EventMask::BUTTON_RELEASE
            | EventMask::POINTER_MOTION;
        let look = CreateWindowAux::new()
            .background_pixel(0x0033_6699)
            .event_mask(events);
        let window = cover(&x, look);
        x.set_input_focus(InputFocus::PARENT, window, x11rb::CURRENT_TIME)
            .expect("sent")
            .check()
            .expect("focused");
        Self::start(x)
    }

    /// All events so far.
    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().expect("no panic while recording").clone()
    }

    /// How often the key of `keysym` went down so far.
    pub fn presses(&self, keysym: u32) -> usize {
        self.count(What::Key { down: true, keysym })
    }

    /// How often exactly this happened so far.
    pub fn count(&self, what: What) -> usize {
        self.seen().iter().filter(|seen| seen.what == what).count()
    }

    /// What the display received after `from`, in wall milliseconds: by its own time, since a busy machine brings
    /// the recorder's news late.
    pub fn since(&self, from: f64) -> Vec<Seen> {
        let seen = self.seen().into_iter();
        seen.filter(|seen| seen.after > from).collect()
    }

    /// How often the key of `keysym` went down after `from`, likewise.
    pub fn presses_since(&self, from: f64, keysym: u32) -> usize {
        let press = What::Key { down: true, keysym };
        let seen = self.since(from).into_iter();
        seen.filter(|seen| seen.what == press).count()
    }

    /// The keys and buttons that went down and have not come up again.
    pub fn held(&self) -> Vec<What> {
        let mut held = Vec::new();
        for seen in self.seen() {
            match seen.what {
                What::Key { down: true, .. } | What::Button { down: true, .. }
                    if held.contains(&seen.what) => {}
                What::Key { down: true, .. } | What::Button { down: true, .. } => {
                    held.push(seen.what)
                }
                What::Key {
                    down: false,
                    keysym,
                } => held.retain(|&what| what != What::Key { down: true, keysym }),
                What::Button {
                    down: false,
                    number,
                } => {
                    held.retain(|&what| what != What::Button { down: true, number });
                }
                What::Motion => {}
            }
        }
        held
    }

    fn start(x: RustConnection) -> Self {
        let (seen, stop) = (Arc::default(), Arc::new(AtomicBool::new(false)));
        let (into, until) = (Arc::clone(&seen), Arc::clone(&stop));
        let thread = std::thread::spawn(move || record(&x, &into, &until));
        Self {
            seen,
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Records until told to stop or the display has gone.
fn record(x: &RustConnection, into: &Mutex<Vec<Seen>>, stop: &AtomicBool) {
    let Some(mut keys) = mapping(x) else { return };
    while !stop.load(Ordering::Relaxed) {
        match x.poll_for_event() {
            Ok(Some(Event::MappingNotify(_))) => match mapping(x) {
                Some(changed) => keys = changed,
                None => return,
            },
            Ok(Some(event)) => {
                let before = wall_ms();
                if let Some((what, at, time)) = read(&event, &keys) {
                    let seen = Seen {
                        what,
                        at,
                        after: wall_of(time, before),
                        before,
                    };
                    into.lock().expect("no panic while reading").push(seen);
                }
            }
            Ok(None) => {
                let wait = Timespec {
                    tv_sec: 0,
                    tv_nsec: 50_000_000,
                };
                let _ = poll(
                    &mut [PollFd::from_borrowed_fd(x.stream().as_fd(), PollFlags::IN)],
                    Some(&wait),
                );
            }
            Err(_) => return,
        }
    }
}

fn read(event: &Event, keys: &Keys) -> Option<(What, (i16, i16), u32)> {
    let key = |down, code: u32| What::Key {
        down,
        keysym: keys.keysym(code),
    };
    let button = |down, number| What::Button { down, number };
    Some(match event {
        Event::XinputRawKeyPress(e) => (key(true, e.detail), (0, 0), e.time),
        Event::XinputRawKeyRelease(e) => (key(false, e.detail), (0, 0), e.time),
        Event::XinputRawButtonPress(e) => (button(true, e.detail), (0, 0), e.time),
        Event::XinputRawButtonRelease(e) => (button(false, e.detail), (0, 0), e.time),
        Event::XinputRawMotion(e) => (What::Motion, (0, 0), e.time),
        Event::KeyPress(e) => (key(true, e.detail.into()), (e.root_x, e.root_y), e.time),
        Event::KeyRelease(e) => (key(false, e.detail.into()), (e.root_x, e.root_y), e.time),
        Event::ButtonPress(e) => (button(true, e.detail.into()), (e.root_x, e.root_y), e.time),
        Event::ButtonRelease(e) => (button(false, e.detail.into()), (e.root_x, e.root_y), e.time),
        Event::MotionNotify(e) => (What::Motion, (e.root_x, e.root_y), e.time),
        _ => return None,
    })
}

/// The display's time is the low half of the monotonic clock in milliseconds; `now` is the wall time.
fn wall_of(time: u32, now: f64) -> f64 {
    let monotonic = clock_gettime(ClockId::Monotonic);
    let low =
        u32::try_from((monotonic.tv_sec * 1000 + monotonic.tv_nsec / 1_000_000) & 0xFFFF_FFFF)
            .expect("masked");
    let part =
        f64::from(u32::try_from(monotonic.tv_nsec % 1_000_000).expect("below a million")) / 1e6;
    now - f64::from(low.wrapping_sub(time)) - part
}

/// The keyboard mapping, to tell keys by their names.
struct Keys {
    first: u32,
    mapping: GetKeyboardMappingReply,
}

impl Keys {
    fn keysym(&self, code: u32) -> u32 {
        let row = code.saturating_sub(self.first) as usize
            * usize::from(self.mapping.keysyms_per_keycode);
        self.mapping.keysyms.get(row).copied().unwrap_or_default()
    }
}

fn mapping(x: &RustConnection) -> Option<Keys> {
    let (first, last) = (x.setup().min_keycode, x.setup().max_keycode);
    let mapping = x
        .get_keyboard_mapping(first, last - first + 1)
        .ok()?
        .reply()
        .ok()?;
    Some(Keys {
        first: first.into(),
        mapping,
    })
}
