//! What the keyboard mapping of a display can produce.

use std::collections::HashSet;

use handover_rfb::keys::{Keysym, keysym_for_char};
use x11rb::connection::Connection;
use x11rb::protocol::xinput::{
    ConnectionExt as _, Device, DeviceClassData, DeviceType, XIDeviceInfo,
};
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

/// The keyboard mapping of a display as its server uses it for key events.
struct Mapping {
    /// The keysyms of the active layout.
    keysyms: HashSet<u32>,
    /// Keys without any meaning, to which the server gives the keysyms that it lacks.
    free: usize,
}

impl Mapping {
    fn read(session: &Session) -> Result<Self, X11Error> {
        let connection = &session.connection;
        let setup = connection.setup();
        let (first, last) = (setup.min_keycode, setup.max_keycode);
        let mapping = connection.get_keyboard_mapping(first, last - first + 1)?;
        let state = connection.query_pointer(session.root.root)?.reply()?.mask;
        let mapping = mapping.reply()?;
        // The server looks for a key in the active layout only; bits 13 and 14 tell which it is.
        let columns = columns(u16::from(state) >> 13 & 3);
        let width = usize::from(mapping.keysyms_per_keycode).max(1);
        let keys = || mapping.keysyms.chunks(width);
        Ok(Self {
            keysyms: keys()
                .flat_map(|key| columns.iter().filter_map(|&column| key.get(column)))
                .copied()
                .collect(),
            free: keys()
                .filter(|key| key.iter().all(|&keysym| keysym == x11rb::NO_SYMBOL))
                .count(),
        })
    }
}

/// Whether keys count that the server would have to add to the mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Additions {
    /// They do not: applications may take such a key for another one while they learn of it.
    Refused,
    /// They do, as far as there is room.
    Allowed,
}

pub(super) fn untypable(
    session: &Session,
    text: &str,
    additions: Additions,
) -> Result<Option<Untyped>, X11Error> {
    let mapping = Mapping::read(session)?;
    let lacking = mapping.lacking(text.chars().map(keysym_for_char), additions);
    Ok(lacking.and_then(|index| {
        let character = text.chars().nth(index)?;
        Some(Untyped { index, character })
    }))
}

pub(super) fn unpressable(session: &Session, keys: &[Keysym]) -> Result<Option<Keysym>, X11Error> {
    let mapping = Mapping::read(session)?;
    let lacking = mapping.lacking(keys.iter().copied().map(Some), Additions::Allowed);
    Ok(lacking.and_then(|index| keys.get(index).copied()))
}

pub(super) fn is_of_rfb(session: &Session) -> Result<bool, X11Error> {
    let connection = &session.connection;
    connection.xinput_xi_query_version(2, 0)?.reply()?;
    let devices = connection.xinput_xi_query_device(Device::ALL)?.reply()?;
    let source = devices
        .infos
        .iter()
        .filter(|device| device.type_ == DeviceType::MASTER_KEYBOARD)
        .find_map(key_source);
    // At first it is no keyboard's or, as after a key sent by XTEST, that of the server's own one for that.
    Ok(devices.infos.iter().any(|device| {
        Some(device.deviceid) == source
            && device.type_ == DeviceType::SLAVE_KEYBOARD
            && !contains(&device.name, b"XTEST")
    }))
}

/// The device of which `device` has its keys.
fn key_source(device: &XIDeviceInfo) -> Option<u16> {
    let keys = |data: &DeviceClassData| matches!(data, DeviceClassData::Key(_));
    let class = device.classes.iter().find(|class| keys(&class.data))?;
    Some(class.sourceid)
}

fn contains(name: &[u8], part: &[u8]) -> bool {
    name.windows(part.len()).any(|window| window == part)
}

impl Mapping {
    /// The place of the first of `keys` that cannot be pressed; `None` among them is no key.
    fn lacking(
        &self,
        keys: impl Iterator<Item = Option<Keysym>>,
        additions: Additions,
    ) -> Option<usize> {
        let room = match additions {
            Additions::Refused => 0,
            Additions::Allowed => self.free,
        };
        let mut added = HashSet::new();
        for (index, key) in keys.enumerate() {
            let Some(Keysym(keysym)) = key else {
                return Some(index);
            };
            if self.keysyms.contains(&keysym) || added.contains(&keysym) {
                continue;
            }
            if added.len() == room {
                return Some(index);
            }
            added.insert(keysym);
        }
        None
    }
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
