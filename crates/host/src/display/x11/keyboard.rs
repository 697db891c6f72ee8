//! What the keyboard mapping of a display can produce.

use std::collections::HashSet;

use handover_rfb::keys::keysym_for_char;
use x11rb::connection::Connection;
use x11rb::protocol::xproto::ConnectionExt as _;

use super::{Session, X11Error};

/// A character that the keyboard mapping cannot produce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Untyped {
    /// Its place in the text, counted in characters from 0.
    pub index: usize,
    /// The character.
    pub character: char,
}

pub(super) fn untypable(session: &Session, text: &str) -> Result<Option<Untyped>, X11Error> {
    let setup = session.connection.setup();
    let (first, last) = (setup.min_keycode, setup.max_keycode);
    let mapping = session
        .connection
        .get_keyboard_mapping(first, last - first + 1)?
        .reply()?;
    let mapped: HashSet<u32> = mapping.keysyms.into_iter().collect();
    Ok(text
        .chars()
        .enumerate()
        .find(|&(_, character)| {
            keysym_for_char(character).is_none_or(|keysym| !mapped.contains(&keysym.0))
        })
        .map(|(index, character)| Untyped { index, character }))
}
