//! Chords: keys held together, written with `+` between them.

use super::{Keysym, UnknownKey, parse_key};

/// The keys of a chord such as `ctrl+shift+t`, in the order in which they are pressed; they are
/// released in the opposite order. A chord may be a single key, or modifiers only.
///
/// `+` itself is written `plus` or where a key is expected: `+`, `ctrl++`.
///
/// Beside a modifier a letter is a label on the keyboard, so its case is not taken literally:
/// `Ctrl+C` holds no Shift. With Shift in the chord the result holds the shifted character
/// (`shift+t` is Shift and `T`, `shift+1` is Shift and `!`, by the layout of the United States),
/// since that is what a keyboard reports then and what an RFB server looks up.
///
/// # Errors
/// [`UnknownKey`] with the first name that is not known; an empty one where a key is missing, as
/// in `ctrl+`.
pub fn parse_chord(chord: &str) -> Result<Vec<Keysym>, UnknownKey> {
    let mut keys = Vec::new();
    let mut rest = chord;
    loop {
        let (name, after) = split(rest);
        keys.push(parse_key(name)?);
        match after {
            Some(after) => rest = after,
            None => break,
        }
    }
    let held = |keysym| keys.contains(&Keysym(keysym));
    let shift = held(0xffe1) || held(0xffe2);
    if shift || keys.iter().any(|key| key.is_modifier()) {
        for key in &mut keys {
            *key = beside_modifiers(*key, shift);
        }
    }
    Ok(keys)
}

/// The first name of `chord` and what follows its `+`, if one does.
fn split(chord: &str) -> (&str, Option<&str>) {
    let start = chord.trim_start();
    // A plus sign where a name is expected is the key.
    if let Some(after) = start.strip_prefix('+') {
        let after = after.trim_start();
        return match after.strip_prefix('+') {
            Some(next) => ("+", Some(next)),
            None if after.is_empty() => ("+", None),
            None => ("", None),
        };
    }
    let (name, after) = match chord.split_once('+') {
        Some((name, after)) => (name, Some(after)),
        None => (chord, None),
    };
    match name.trim() {
        // Only a single blank is the space bar, so that `ctrl+` still lacks a key.
        "" if name == " " => (name, after),
        trimmed => (trimmed, after),
    }
}

fn beside_modifiers(key: Keysym, shift: bool) -> Keysym {
    let Some(character) = key.character() else {
        return key;
    };
    let character = if shift {
        shifted(character)
    } else {
        single(character, character.to_lowercase())
    };
    super::keysym_for_char(character).unwrap_or(key)
}

/// The character that Shift gives with the key of `character`.
fn shifted(character: char) -> char {
    const PAIRS: &[u8] = b"`~1!2@3#4$5%6^7&8*9(0)-_=+[{]}\\|;:'\",<.>/?";
    PAIRS
        .as_chunks::<2>()
        .0
        .iter()
        .find(|pair| char::from(pair[0]) == character)
        .map_or_else(
            || single(character, character.to_uppercase()),
            |pair| char::from(pair[1]),
        )
}

/// The other case of a character where it is a single one; `ß` has none.
fn single(character: char, mut other: impl Iterator<Item = char>) -> char {
    match (other.next(), other.next()) {
        (Some(only), None) => only,
        _ => character,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn chord(text: &str) -> Vec<u32> {
        let keys = parse_chord(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        keys.into_iter().map(|key| key.0).collect()
    }

    const CTRL: u32 = 0xffe3;
    const SHIFT: u32 = 0xffe1;

    #[test]
    fn chords_keep_their_order() {
        assert_eq!(chord("ctrl+alt+Delete"), [CTRL, 0xffe9, 0xffff]);
        assert_eq!(chord("Return"), [0xff0d]);
        assert_eq!(chord("ctrl+shift"), [CTRL, SHIFT]);
        assert_eq!(chord(" ctrl + a "), [CTRL, 0x61]);
    }

    #[test]
    fn plus_is_a_key_where_one_is_expected() {
        assert_eq!(chord("+"), [0x2b]);
        assert_eq!(chord("ctrl++"), [CTRL, 0x2b]);
        assert_eq!(chord("ctrl+plus"), [CTRL, 0x2b]);
        assert_eq!(chord("+++"), [0x2b, 0x2b]);
        assert_eq!(chord("ctrl+ "), [CTRL, 0x20]);
    }

    #[test]
    fn letters_beside_modifiers_are_labels() {
        assert_eq!(chord("Ctrl+C"), [CTRL, 0x63]);
        assert_eq!(chord("A"), [0x41]);
        assert_eq!(chord("ctrl+shift+t"), [CTRL, SHIFT, 0x54]);
        assert_eq!(chord("shift+1"), [SHIFT, 0x21]);
        assert_eq!(chord("shift+é"), [SHIFT, 0xc9]);
        assert_eq!(chord("shift+ß"), [SHIFT, 0xdf]);
        assert_eq!(chord("shift+Tab"), [SHIFT, 0xff09]);
        assert_eq!(chord("ctrl+?"), [CTRL, 0x3f]);
    }

    #[test]
    fn what_is_missing_or_unknown_is_named() {
        for (text, name) in [
            ("", ""),
            ("ctrl+", ""),
            ("ctrl+foo", "foo"),
            ("+a", ""),
            ("ctrll+a", "ctrll"),
            ("a,b", "a,b"),
        ] {
            assert_eq!(parse_chord(text).expect_err(text).name, name, "{text}");
        }
    }

    proptest! {
        #[test]
        fn joined_names_come_back(
            names in prop::collection::vec(
                prop::sample::select(vec!["ctrl", "Enter", "+", "é", "F12", "KP_Add"]), 1..6)
        ) {
            let keys = parse_chord(&names.join("+"));
            prop_assert_eq!(keys.map(|keys| keys.len()), Ok(names.len()));
        }

        #[test]
        fn any_text_is_answered(text in "[a-z+ ]{0,20}") {
            let _ = parse_chord(&text);
        }
    }
}
