//! Background, pointer and selections of a display.

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
