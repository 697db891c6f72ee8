//! How a text gets into an application: key by key or pasted, never both.
//!
//! What was tried on Xvnc, with xterm, GTK and Chromium: a key event by keysym alone gives the
//! right character wherever the display's keyboard mapping has it, and the server presses Shift
//! and AltGr by itself. A keysym that the mapping lacks is added to it, 19 times in a server's
//! life; afterwards such keys are dropped in silence. Applications need milliseconds for a key, so
//! a long text would leave a backlog. A paste, by contrast, carries any text of any script at
//! once and exactly.

use crate::clipboard::{TEXT_LIMIT, wire_length};
use crate::keys::{Keysym, keysym_for_char};

/// Most characters that [`Method::Auto`] types key by key.
pub const KEYS_LIMIT: usize = 100;

/// The keys that paste in nearly every application, terminals included; pressed in this order.
pub const PASTE_CHORD: [Keysym; 2] = [Keysym::SHIFT, Keysym::INSERT];

/// How a text is to be typed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// Key by key if it is short and all ASCII, else pasted.
    #[default]
    Auto,
    /// Key by key, whatever its length.
    Keys,
    /// Pasted.
    Paste,
}

/// One key to press and release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyStroke {
    /// The key.
    pub keysym: Keysym,
    /// How many characters of the text have been typed after it.
    pub typed: usize,
}

/// What to do for a text.
#[derive(Clone, PartialEq, Eq)]
pub enum TypingPlan {
    /// Press and release these keys, one after the other.
    Keys(Vec<KeyStroke>),
    /// Offer this text as the clipboard and press [`PASTE_CHORD`].
    Paste(String),
}

/// Tells sizes only: what is typed may be secret.
impl std::fmt::Debug for TypingPlan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Keys(keys) => write!(f, "Keys({})", keys.len()),
            Self::Paste(text) => write!(f, "Paste({} bytes)", text.len()),
        }
    }
}

/// Why a text cannot be typed. It never repeats the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TypingError {
    /// A character that no key and no paste gives.
    #[error(
        "character {index} (U+{:04X}) cannot be typed; send control characters as keys",
        u32::from(*.character)
    )]
    Untypable {
        /// Its place in the text, counted in characters from 0.
        index: usize,
        /// The character.
        character: char,
    },
    /// A text of more than [`TEXT_LIMIT`] bytes.
    #[error("the text takes {bytes} bytes on the clipboard, more than {TEXT_LIMIT}; split it")]
    TooLong {
        /// Its size in bytes with the line ends and the end of a clipboard text.
        bytes: usize,
    },
}

/// Plans the typing of `text`. Each of `\r\n`, `\n` and `\r` is one line end.
///
/// Whether the keyboard mapping of the display has the keys is not known here: with
/// [`Method::Auto`] a plan of keys that it lacks should be exchanged for one of
/// [`Method::Paste`].
///
/// # Errors
/// [`TypingError`]; nothing of such a text is to be typed.
pub fn plan(text: &str, method: Method) -> Result<TypingPlan, TypingError> {
    let control = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t');
    if let Some((index, character)) = text.chars().enumerate().find(|&(_, c)| control(c)) {
        return Err(TypingError::Untypable { index, character });
    }
    let keys = match method {
        Method::Auto => text.is_ascii() && text.len() <= KEYS_LIMIT,
        Method::Keys => true,
        Method::Paste => text.is_empty(),
    };
    if keys {
        return strokes(text).map(TypingPlan::Keys);
    }
    let bytes = wire_length(text);
    if bytes > TEXT_LIMIT {
        return Err(TypingError::TooLong { bytes });
    }
    Ok(TypingPlan::Paste(text.to_owned()))
}

fn strokes(text: &str) -> Result<Vec<KeyStroke>, TypingError> {
    let mut strokes: Vec<KeyStroke> = Vec::with_capacity(text.len());
    let mut previous = None;
    for (index, character) in text.chars().enumerate() {
        let typed = index + 1;
        match strokes.last_mut() {
            // The second half of a line end that was typed already.
            Some(last) if (previous, character) == (Some('\r'), '\n') => last.typed = typed,
            _ => {
                let keysym = keysym_for_char(character)
                    .ok_or(TypingError::Untypable { index, character })?;
                strokes.push(KeyStroke { keysym, typed });
            }
        }
        previous = Some(character);
    }
    Ok(strokes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn keys(text: &str, method: Method) -> Vec<(u32, usize)> {
        match plan(text, method) {
            Ok(TypingPlan::Keys(strokes)) => strokes
                .iter()
                .map(|stroke| (stroke.keysym.0, stroke.typed))
                .collect(),
            other => panic!("not keys: {other:?}"),
        }
    }

    #[test]
    fn short_ascii_is_typed_key_by_key() {
        assert_eq!(
            keys("aB\t!\n", Method::Auto),
            [(0x61, 1), (0x42, 2), (0xff09, 3), (0x21, 4), (0xff0d, 5)]
        );
        assert_eq!(keys("", Method::Auto), []);
        assert_eq!(keys("", Method::Paste), []);
        assert_eq!(
            keys(&"x".repeat(KEYS_LIMIT), Method::Auto).len(),
            KEYS_LIMIT
        );
    }

    #[test]
    fn a_line_end_is_one_key_however_it_is_written() {
        assert_eq!(
            keys("\r\n\n\r\r\n", Method::Auto),
            [(0xff0d, 2), (0xff0d, 3), (0xff0d, 4), (0xff0d, 6)]
        );
    }

    #[test]
    fn long_and_foreign_texts_are_pasted_as_a_whole() {
        let long = "x".repeat(KEYS_LIMIT + 1);
        for text in [long.as_str(), "é", "abc漢", "😀\n", "naïve"] {
            assert_eq!(
                plan(text, Method::Auto),
                Ok(TypingPlan::Paste(text.to_owned()))
            );
        }
        assert_eq!(
            plan("abc", Method::Paste),
            Ok(TypingPlan::Paste("abc".into()))
        );
        assert_eq!(keys("é漢", Method::Keys), [(0xe9, 1), (0x0100_6f22, 2)]);
    }

    #[test]
    fn control_characters_are_named_by_place_and_number() {
        for method in [Method::Auto, Method::Keys, Method::Paste] {
            for character in ['\0', '\u{1b}', '\u{8}', '\u{7f}', '\u{85}'] {
                let error = plan(&format!("é{character}z"), method).expect_err("untypable");
                assert_eq!(
                    error,
                    TypingError::Untypable {
                        index: 1,
                        character
                    }
                );
            }
        }
        let error = plan("secret\u{1b}", Method::Auto).expect_err("untypable");
        assert!(error.to_string().contains("U+001B"));
        assert!(!error.to_string().contains("secret"));
    }

    #[test]
    fn a_text_over_the_clipboards_limit_is_refused() {
        let fits = "é".repeat((TEXT_LIMIT - 1) / 2);
        assert!(plan(&fits, Method::Auto).is_ok());
        // Each line end takes two bytes there.
        let over = "\n".repeat(TEXT_LIMIT / 2);
        assert_eq!(
            plan(&over, Method::Auto),
            Err(TypingError::TooLong {
                bytes: TEXT_LIMIT + 1
            })
        );
    }

    #[test]
    fn a_plan_does_not_show_the_text() {
        for method in [Method::Keys, Method::Paste] {
            let shown = format!("{:?}", plan("hunter2", method).expect("typable"));
            assert!(
                !shown.contains("hunter2") && !shown.contains("104"),
                "{shown}"
            );
        }
    }

    proptest! {
        #[test]
        fn a_plan_covers_the_whole_text_in_order(text in "[ -~\n\r\t]{0,150}") {
            match plan(&text, Method::Auto).expect("typable") {
                TypingPlan::Paste(pasted) => {
                    prop_assert!(text.len() > KEYS_LIMIT);
                    prop_assert_eq!(pasted, text);
                }
                TypingPlan::Keys(strokes) => {
                    prop_assert!(text.len() <= KEYS_LIMIT);
                    prop_assert!(strokes.is_sorted_by(|a, b| a.typed < b.typed));
                    prop_assert_eq!(
                        strokes.last().map_or(0, |last| last.typed),
                        text.chars().count()
                    );
                }
            }
        }

        #[test]
        fn any_text_is_answered(text: String) {
            for method in [Method::Auto, Method::Keys, Method::Paste] {
                let _ = plan(&text, method);
            }
        }
    }
}
