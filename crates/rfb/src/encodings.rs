//! The encodings and pseudo-encodings that may pass between a viewer and a display server.
//!
//! A viewer's list is rewritten to a whitelist, because each encoding left in it is a promise that its messages can be
//! framed. Above all left out are those that change the shape of other messages or open a second path for input:
//! extended mouse buttons (-316), xvp (-309), gii (-305), audio (-259), and everything of VMware, UltraVNC and
//! TightVNC's file transfer.

pub use crate::clipboard::EXTENDED_CLIPBOARD;

/// Pixels as they are.
pub const RAW: i32 = 0;
/// A move of pixels that the viewer already has.
pub const COPY_RECT: i32 = 1;
/// Zlib, palettes, fills, gradients and JPEG.
pub const TIGHT: i32 = 7;
/// Zlib over run-length encoded tiles.
pub const ZRLE: i32 = 16;
/// The quality that tight's JPEG shall have, lowest to highest.
pub const QUALITY_LEVELS: std::ops::RangeInclusive<i32> = -32..=-23;
/// The effort that tight's and ZRLE's compression shall take, lowest to highest.
pub const COMPRESS_LEVELS: std::ops::RangeInclusive<i32> = -256..=-247;
/// The framebuffer's size changes.
pub const DESKTOP_SIZE: i32 = -223;
/// An update may end before its announced number of rectangles.
pub const LAST_RECT: i32 = -224;
/// The pointer's shape with a mask.
pub const CURSOR: i32 = -239;
/// The pointer's shape in two colours.
pub const X_CURSOR: i32 = -240;
/// The server understands keys by their place on the keyboard.
pub const QEMU_KEYS: i32 = -258;
/// The state of Caps Lock and its kind.
pub const LED_STATE: i32 = -261;
/// The desktop's name changes.
pub const DESKTOP_NAME: i32 = -307;
/// The framebuffer's size changes, with screens and reasons.
pub const EXTENDED_DESKTOP_SIZE: i32 = -308;
/// Requests that are answered once what came before them has been handled.
pub const FENCE: i32 = -312;
/// Updates without a request for each.
pub const CONTINUOUS_UPDATES: i32 = -313;
/// The pointer's shape with transparency.
pub const CURSOR_WITH_ALPHA: i32 = -314;

/// VMware's form of a pointer's shape. Servers are never offered it, but recordings made without a gate have it.
pub const VMWARE_CURSOR: i32 = 0x574d_5664;

/// What a viewer can do, from the newest list that it sent, and what of it the server is told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Negotiated {
    /// The list for the server, in the viewer's order.
    pub upstream: Vec<i32>,
    /// The viewer understands fences itself.
    pub fence: bool,
    /// The viewer understands changes of the desktop's name. The gate makes them; the server's never arrive.
    pub desktop_name: bool,
    /// The viewer understands the extended clipboard, which it speaks with the gate alone.
    pub extended_clipboard: bool,
}

impl Negotiated {
    /// Reads a viewer's list. With `fences` the server is offered fences whether or not the viewer knows them.
    pub fn from_viewer(list: &[i32], fences: bool) -> Negotiated {
        let mut upstream: Vec<i32> = Vec::new();
        for encoding in list.iter().copied().filter(|encoding| passes(*encoding)) {
            // Later mentions of an encoding add nothing, and without them the list cannot be long.
            if !upstream.contains(&encoding) {
                upstream.push(encoding);
            }
        }
        if fences {
            upstream.push(FENCE);
        }
        Negotiated {
            upstream,
            fence: list.contains(&FENCE),
            desktop_name: list.contains(&DESKTOP_NAME),
            extended_clipboard: list.contains(&EXTENDED_CLIPBOARD),
        }
    }
}

/// Whether the server may be told that the viewer knows `encoding`.
fn passes(encoding: i32) -> bool {
    matches!(
        encoding,
        RAW | COPY_RECT
            | TIGHT
            | ZRLE
            | DESKTOP_SIZE
            | LAST_RECT
            | CURSOR
            | X_CURSOR
            | QEMU_KEYS
            | LED_STATE
            | EXTENDED_DESKTOP_SIZE
            | CONTINUOUS_UPDATES
            | CURSOR_WITH_ALPHA
    ) || QUALITY_LEVELS.contains(&encoding)
        || COMPRESS_LEVELS.contains(&encoding)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_viewers_order_is_kept_and_fences_are_added() {
        let negotiated = Negotiated::from_viewer(&[ZRLE, -26, TIGHT, ZRLE, CURSOR, RAW], true);
        assert_eq!(negotiated.upstream, [ZRLE, -26, TIGHT, CURSOR, RAW, FENCE]);
        assert!(!negotiated.fence);
    }

    #[test]
    fn the_gate_keeps_names_and_clipboards_for_itself() {
        let list = [FENCE, DESKTOP_NAME, EXTENDED_CLIPBOARD];
        let negotiated = Negotiated::from_viewer(&list, false);
        assert_eq!(negotiated.upstream, []);
        assert!(negotiated.fence && negotiated.desktop_name && negotiated.extended_clipboard);
    }

    #[test]
    fn whatever_could_change_the_framing_is_dropped() {
        let mut list: Vec<i32> = vec![-316, -309, -305, -259, -260, -257, -317, 50, 21, 5, 6, 2];
        list.extend([
            0x574d_5664,
            0x574d_5665,
            0xFFFE_0000_u32.cast_signed(),
            i32::MIN,
            i32::MAX,
        ]);
        list.extend(-767..=-513);
        list.extend(-528..=-512);
        assert_eq!(Negotiated::from_viewer(&list, false), Negotiated::default());
    }
}
