//! Keys by name: single keys such as `Enter`, `é` or `KP_0`, and chords such as `ctrl+shift+t`.

mod chord;
mod media;
mod names;
mod symbols;

pub use chord::parse_chord;

use crate::input::InputMessage;

/// A key as X names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Keysym(pub u32);

impl Keysym {
    /// Backspace.
    pub const BACKSPACE: Self = Self(0xff08);
    /// Tab.
    pub const TAB: Self = Self(0xff09);
    /// Return, the Enter key of the main block.
    pub const RETURN: Self = Self(0xff0d);
    /// Escape.
    pub const ESCAPE: Self = Self(0xff1b);
    /// Insert.
    pub const INSERT: Self = Self(0xff63);
    /// The left Shift key.
    pub const SHIFT: Self = Self(0xffe1);

    /// The message that presses or releases this key.
    #[must_use]
    pub fn message(self, down: bool) -> InputMessage {
        InputMessage::Key {
            down,
            keysym: self.0,
        }
    }

    /// The character that this keysym stands for, if it is one of Latin-1, of the Unicode range
    /// or the Euro sign. The other old keysyms of X are not translated.
    #[must_use]
    pub fn character(self) -> Option<char> {
        match self.0 {
            code @ (0x20..=0x7e | 0xa0..=0xff) => char::from_u32(code),
            0x20ac => Some('€'),
            code @ 0x0100_0100..=0x0110_ffff => char::from_u32(code - UNICODE_BASE),
            _ => None,
        }
    }

    /// Whether this key changes what others mean while it is held (or locked).
    #[must_use]
    pub fn is_modifier(self) -> bool {
        matches!(self.0, 0xffe1..=0xffee | 0xfe01..=0xfe13 | 0xff7e | 0xff7f)
    }
}

/// Where the keysyms of Unicode characters outside Latin-1 begin.
const UNICODE_BASE: u32 = 0x0100_0000;

/// A key name that is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown key \"{name}\": use a character, a name such as Enter, Escape, F5, PageUp, Left or \
     KP_0, or U+XXXX, joined with + to modifiers such as ctrl, shift, alt or super"
)]
pub struct UnknownKey {
    /// The name, shortened to [`NAME_LIMIT`] characters; empty where a chord lacks one.
    pub name: String,
}

/// Most characters of a wrong name that are repeated in an error.
pub const NAME_LIMIT: usize = 40;

impl UnknownKey {
    fn new(name: &str) -> Self {
        Self {
            name: name.chars().take(NAME_LIMIT).collect(),
        }
    }
}

/// The keysym of a character, by X's rule: Latin-1 as it is, the rest from `0x0100_0000`.
///
/// Line feed and carriage return are Return, tab and backspace, escape and delete the keys of
/// that name. `None` for the other control characters, which no key produces.
#[must_use]
pub fn keysym_for_char(character: char) -> Option<Keysym> {
    match character {
        '\n' | '\r' => Some(Keysym::RETURN),
        '\t' => Some(Keysym::TAB),
        '\u{8}' => Some(Keysym::BACKSPACE),
        '\u{1b}' => Some(Keysym::ESCAPE),
        '\u{7f}' => Some(Keysym(0xffff)),
        ' '..='~' | '\u{a0}'..='\u{ff}' => Some(Keysym(character.into())),
        _ if character.is_control() => None,
        _ => Some(Keysym(UNICODE_BASE + u32::from(character))),
    }
}

/// The keysym of a single key by its name or character.
///
/// A single character is that character, in its case. Names are those of X and the usual other
/// ones, in any case; `F1` to `F35`; `Numpad…` for `KP_…`; `U+20AC` or `U20AC` for a character by
/// its number.
///
/// # Errors
/// [`UnknownKey`] names what is not known.
pub fn parse_key(name: &str) -> Result<Keysym, UnknownKey> {
    let unknown = || UnknownKey::new(name);
    let mut characters = name.chars();
    if let (Some(only), None) = (characters.next(), characters.next()) {
        return keysym_for_char(only).ok_or_else(unknown);
    }
    let lower = name.to_lowercase();
    named(&lower)
        .map(|keysym| in_case_of(name, keysym))
        .or_else(|| function_key(&lower))
        .or_else(|| named(&format!("kp_{}", lower.strip_prefix("numpad")?)))
        .or_else(|| by_number(&lower))
        .ok_or_else(unknown)
}

fn named(lower: &str) -> Option<Keysym> {
    [names::KEYS, symbols::SYMBOLS, media::MEDIA]
        .iter()
        .find_map(|table| {
            let place = table.binary_search_by_key(&lower, |&(name, _)| name).ok()?;
            Some(Keysym(table[place].1))
        })
}

/// X tells `Eacute` from `eacute`; so it is the first letter of a letter's name that decides.
fn in_case_of(name: &str, keysym: Keysym) -> Keysym {
    match keysym.0 {
        code @ (0xe0..=0xf6 | 0xf8..=0xfe) if name.starts_with(|c: char| c.is_uppercase()) => {
            Keysym(code - 0x20)
        }
        _ => keysym,
    }
}

fn function_key(lower: &str) -> Option<Keysym> {
    let number: u32 = digits(lower.strip_prefix('f')?, 10)?;
    (1..=35).contains(&number).then(|| Keysym(0xffbd + number))
}

/// `u+20ac` or `u20ac`; the latter needs four digits at least, as in X.
fn by_number(lower: &str) -> Option<Keysym> {
    let rest = lower.strip_prefix('u')?;
    let hexadecimal = match rest.strip_prefix('+') {
        Some(hexadecimal) => hexadecimal,
        None if rest.len() >= 4 => rest,
        None => return None,
    };
    keysym_for_char(char::from_u32(digits(hexadecimal, 16)?)?)
}

/// A number without the sign that the standard parser would allow.
fn digits(text: &str, radix: u32) -> Option<u32> {
    let plain = text.chars().all(|c| c.is_digit(radix));
    u32::from_str_radix(text, radix).ok().filter(|_| plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn tables_can_be_searched() {
        for table in [names::KEYS, symbols::SYMBOLS, media::MEDIA] {
            assert!(table.is_sorted_by(|a, b| a.0 < b.0));
            assert!(table.iter().all(|(name, _)| *name == name.to_lowercase()));
        }
        let mut every: Vec<_> = [names::KEYS, symbols::SYMBOLS, media::MEDIA]
            .concat()
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        every.sort_unstable();
        assert!(every.is_sorted_by(|a, b| a < b), "a name in two tables");
    }

    #[test]
    fn usual_names_and_aliases_are_known() {
        for (names, keysym) in [
            (&["Return", "enter", "ENTER"][..], 0xff0d),
            (&["Escape", "esc"], 0xff1b),
            (&["BackSpace", "backspace"], 0xff08),
            (&["Delete", "del"], 0xffff),
            (&["Insert", "INS"], 0xff63),
            (&["space", "Spacebar", " "], 0x20),
            (&["Prior", "PgUp", "PageUp", "Page_Up"], 0xff55),
            (&["Next", "PgDn", "PageDown", "Page_Down"], 0xff56),
            (&["Up", "ArrowUp"], 0xff52),
            (&["Home"], 0xff50),
            (&["End"], 0xff57),
            (&["Print", "PrintScreen"], 0xff61),
            (&["Menu", "ContextMenu"], 0xff67),
            (&["Caps_Lock", "CapsLock"], 0xffe5),
            (&["ctrl", "Control", "Control_L"], 0xffe3),
            (&["shift"], 0xffe1),
            (&["alt", "Option"], 0xffe9),
            (&["meta"], 0xffe7),
            (&["super", "win", "Windows", "cmd", "Command"], 0xffeb),
            (&["altgr", "ISO_Level3_Shift"], 0xfe03),
            (&["hyper"], 0xffed),
            (&["KP_0", "Numpad0"], 0xffb0),
            (&["KP_Enter", "NumpadEnter"], 0xff8d),
            (&["F1"], 0xffbe),
            (&["f35"], 0xffe0),
            (&["XF86AudioMute", "AudioMute", "mute"], 0x1008_ff12),
            (&["XF86Back", "BrowserBack"], 0x1008_ff26),
            (&["plus", "+"], 0x2b),
            (&["a"], 0x61),
            (&["A"], 0x41),
            (&["eacute", "é", "U+00E9"], 0xe9),
            (&["Eacute", "É"], 0xc9),
            (&["U+0416", "u0416", "Ж"], 0x0100_0416),
            (&["U+1F600", "😀"], 0x0101_f600),
        ] {
            for name in names {
                assert_eq!(parse_key(name), Ok(Keysym(keysym)), "{name}");
            }
        }
    }

    #[test]
    fn unknown_names_are_named() {
        for name in [
            "Entr", "F0", "F36", "F+1", "U+", "U+D800", "U+110000", "u41", "", "\u{1}",
        ] {
            let error = parse_key(name).expect_err(name);
            assert_eq!(error.name, name);
            assert!(error.to_string().contains(&format!("\"{name}\"")));
        }
        let long = parse_key(&"x".repeat(500)).expect_err("no such key");
        assert_eq!(long.name.len(), NAME_LIMIT);
    }

    #[test]
    fn locks_and_levels_are_modifiers() {
        for name in [
            "shift",
            "Control_R",
            "altgr",
            "super",
            "hyper",
            "Caps_Lock",
            "Num_Lock",
        ] {
            assert!(parse_key(name).expect(name).is_modifier(), "{name}");
        }
        for name in ["a", "Enter", "F1", "KP_0", "ISO_Left_Tab"] {
            assert!(!parse_key(name).expect(name).is_modifier(), "{name}");
        }
    }

    proptest! {
        #[test]
        fn characters_and_keysyms_agree(character: char) {
            match keysym_for_char(character) {
                Some(keysym) if !character.is_control() => {
                    prop_assert_eq!(keysym.character(), Some(character));
                }
                Some(keysym) => prop_assert!(keysym.0 >= 0xff08, "a key without a character"),
                None => prop_assert!(character.is_control()),
            }
        }

        #[test]
        fn no_name_makes_the_parser_fail_otherwise(name in "\\PC{0,12}") {
            let _ = parse_key(&name);
        }
    }
}
