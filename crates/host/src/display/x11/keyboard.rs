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
    let connection = &session.connection;
    let setup = connection.setup();
    let (first, last) = (setup.min_keycode, setup.max_keycode);
    let mapping = connection.get_keyboard_mapping(first, last - first + 1)?;
    let state = connection.query_pointer(session.root.root)?.reply()?.mask;
    let mapping = mapping.reply()?;
    // The server looks for a key in the active layout only; bits 13 and 14 tell which it is.
    let columns = columns(u16::from(state) >> 13 & 3);
    let mapped: HashSet<u32> = mapping
        .keysyms
        .chunks(usize::from(mapping.keysyms_per_keycode).max(1))
        .flat_map(|key| columns.iter().filter_map(|&column| key.get(column)))
        .copied()
        .collect();
    Ok(text
        .chars()
        .enumerate()
        .find(|&(_, character)| {
            keysym_for_char(character).is_none_or(|keysym| !mapped.contains(&keysym.0))
        })
        .map(|(index, character)| Untyped { index, character }))
}

/// Where the old form of a mapping, which lists a key's symbols in a row, holds those of a
/// layout: two of the first and two of the second, then the first's with AltGr. What a layout
/// has beyond is not told apart there, so it counts as missing.
fn columns(layout: u16) -> &'static [usize] {
    match layout {
        0 => &[0, 1, 4, 5],
        1 => &[2, 3],
        _ => &[],
    }
}
