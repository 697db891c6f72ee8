//! Background, pointer, locks and selections of a display.

use handover_rfb::keys::Keysym;
use x11rb::connection::Connection;
use x11rb::protocol::xproto::{
    AtomEnum, ChangeWindowAttributesAux, ConnectionExt as _, KeyButMask,
};

use super::{Session, X11Error};

/// The pointer of a display.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pointer {
    /// Pixels from the left edge of the desktop.
    pub x: u16,
    /// Pixels from the top edge of the desktop.
    pub y: u16,
    /// Pressed buttons as in an RFB pointer event: bit 0 left, 1 middle, 2 right, 3 and 4 wheel.
    pub buttons: u8,
}

/// The keys of a display that stay in effect until they are pressed again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Locks {
    /// Caps Lock is on.
    pub caps: bool,
    /// Num Lock is on.
    pub num: bool,
}

impl Locks {
    /// The keys whose pressing makes `self` of `other`, or `other` of `self`.
    pub fn differing(self, other: Self) -> Vec<Keysym> {
        let keys = [
            (self.caps != other.caps, CAPS_LOCK),
            (self.num != other.num, NUM_LOCK),
        ];
        keys.into_iter()
            .filter_map(|(differs, key)| differs.then_some(key))
            .collect()
    }
}

const CAPS_LOCK: Keysym = Keysym(0xffe5);
const NUM_LOCK: Keysym = Keysym(0xff7f);

/// The modifier of Num Lock in the keyboard mappings of Xvnc.
const NUM_LOCK_MODIFIER: KeyButMask = KeyButMask::MOD2;

pub(super) fn locks(session: &Session) -> Result<Locks, X11Error> {
    let root = session.root.root;
    let mask = session.connection.query_pointer(root)?.reply()?.mask;
    Ok(Locks {
        caps: mask.contains(KeyButMask::LOCK),
        num: mask.contains(NUM_LOCK_MODIFIER),
    })
}

pub(super) fn pointer(session: &Session) -> Result<Pointer, X11Error> {
    let reply = session
        .connection
        .query_pointer(session.root.root)?
        .reply()?;
    let buttons = [
        KeyButMask::BUTTON1,
        KeyButMask::BUTTON2,
        KeyButMask::BUTTON3,
        KeyButMask::BUTTON4,
        KeyButMask::BUTTON5,
    ];
    let pressed = buttons
        .iter()
        .enumerate()
        .filter(|(_, button)| reply.mask.contains(**button))
        .fold(0, |mask, (bit, _)| mask | 1 << bit);
    Ok(Pointer {
        x: u16::try_from(reply.root_x).unwrap_or(0),
        y: u16::try_from(reply.root_y).unwrap_or(0),
        buttons: pressed,
    })
}

pub(super) fn set_background(session: &Session, [r, g, b]: [u8; 3]) -> Result<(), X11Error> {
    let root = session.root.root;
    // Displays of this kind have a root of 24 bits, whose pixels are the colour itself.
    let pixel = u32::from_be_bytes([0, r, g, b]);
    let fill = ChangeWindowAttributesAux::new().background_pixel(pixel);
    let connection = &session.connection;
    connection.change_window_attributes(root, &fill)?;
    connection.clear_area(false, root, 0, 0, 0, 0)?.check()?;
    Ok(())
}

pub(super) fn clear_clipboard(session: &Session) -> Result<(), X11Error> {
    let connection = &session.connection;
    let clipboard = connection.intern_atom(false, b"CLIPBOARD")?.reply()?.atom;
    for selection in [
        AtomEnum::PRIMARY.into(),
        AtomEnum::SECONDARY.into(),
        clipboard,
    ] {
        connection.set_selection_owner(x11rb::NONE, selection, x11rb::CURRENT_TIME)?;
    }
    let [first, last] = [AtomEnum::CUT_BUFFER0, AtomEnum::CUT_BUFFER7].map(u32::from);
    for buffer in first..=last {
        connection.delete_property(session.root.root, buffer)?;
    }
    sync(session)
}

/// Waits until the display has handled everything that was sent before.
pub(super) fn sync(session: &Session) -> Result<(), X11Error> {
    session.connection.flush()?;
    session.connection.get_input_focus()?.reply()?;
    Ok(())
}
