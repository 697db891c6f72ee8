//! Text from outside as it may be shown: nothing in it acts on a terminal, turns the reading direction,
//! or takes more or less room than it seems to.

use unicode_width::UnicodeWidthChar;

use crate::cli::text::{plain, plain_lines};

/// How many marks may be put on one letter; more of them climb over the lines above.
const MOST_MARKS: usize = 2;

/// How wide a tab is drawn.
const TAB: &str = "    ";

/// `text` on one line, as it may be shown.
pub fn clean(text: &str) -> String {
    without_tricks(&plain(text))
}

/// The same, but lines stay lines, and tabs become spaces.
pub fn clean_lines(text: &str) -> String {
    without_tricks(&plain_lines(text).replace('\t', TAB))
}

/// Writes out what is invisible, and leaves out what only joins or styles its neighbours, since
/// terminals disagree on how wide that makes them.
fn without_tricks(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut marks = MOST_MARKS;
    for c in text.chars() {
        match c {
            '\n' => {
                marks = MOST_MARKS;
                shown.push(c);
            }
            // Joiners and variation selectors.
            '\u{200d}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}' => {}
            c if is_invisible(c) => shown.extend(c.escape_default()),
            c if c.width().unwrap_or(0) > 0 => {
                marks = 0;
                shown.push(c);
            }
            // A mark without a letter before it would be put on what stands beside the text.
            c if marks < MOST_MARKS => {
                marks += 1;
                shown.push(c);
            }
            _ => {}
        }
    }
    shown
}

fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{00ad}' | '\u{034f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}' | '\u{200c}' | '\u{2060}'..='\u{206f}'
            | '\u{3164}' | '\u{ffa0}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_written_out_and_what_is_left_out() {
        assert_eq!(clean("a\u{1b}[31mb\tc\n"), r"a\u{1b}[31mb\tc\n");
        assert_eq!(clean_lines("a\tb\nc"), "a    b\nc");
        assert_eq!(clean("pass\u{200b}word"), r"pass\u{200b}word");
        assert_eq!(
            clean("\u{1f469}\u{200d}\u{1f467} \u{2764}\u{fe0f}"),
            "\u{1f469}\u{1f467} \u{2764}"
        );
        // A letter with its accent, and one that carries a tower of them.
        assert_eq!(clean("e\u{301}"), "e\u{301}");
        assert_eq!(
            clean(&format!("z{}", "\u{301}".repeat(50))),
            "z\u{301}\u{301}"
        );
        assert_eq!(clean("\u{301}a"), "a");
        assert_eq!(clean("grüße 漢字 😀"), "grüße 漢字 😀");
    }

    proptest! {
        #[test]
        fn nothing_harmful_is_left(bytes in proptest::collection::vec(any::<u8>(), 0..200), text in any::<String>()) {
            for text in [String::from_utf8_lossy(&bytes).into_owned(), text] {
                let shown = clean(&text);
                prop_assert!(!shown.chars().any(char::is_control));
                prop_assert!(!shown.chars().any(is_invisible));
                prop_assert_eq!(&clean(&shown), &shown);
                prop_assert!(clean_lines(&text).chars().all(|c| c == '\n' || !c.is_control()));
            }
        }
    }
}
