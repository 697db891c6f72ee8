//! Making text from outside harmless for a terminal: window titles, notes, names and messages
//! may hold escape sequences, or characters that turn the reading direction.

/// `text` on one line, with whatever a terminal could act on written out.
pub fn plain(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_harmful(c) {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    shown
}

/// The same, but lines stay lines, also those that end as on Windows, and tabs stay tabs.
pub fn plain_lines(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\n' | '\t' => shown.push(c),
            '\r' if rest.peek() == Some(&'\n') => {}
            c if is_harmful(c) => shown.extend(c.escape_default()),
            c => shown.push(c),
        }
    }
    shown
}

/// `text` on one line and at most `width` characters long.
pub fn shortened(text: &str, width: usize) -> String {
    let shown = plain(text);
    if shown.chars().count() <= width {
        return shown;
    }
    let mut cut: String = shown.chars().take(width.saturating_sub(1)).collect();
    cut.push('…');
    cut
}

/// How many there are of what is called `one`, and `s` more where it is not one.
pub fn count(number: u64, one: &str) -> String {
    let more = if number == 1 { "" } else { "s" };
    format!("{number} {one}{more}")
}

fn is_harmful(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{200e}' | '\u{200f}' | '\u{061c}'     // direction marks
            | '\u{202a}'..='\u{202e}'                // direction embeddings and overrides
            | '\u{2066}'..='\u{2069}'                // direction isolates
            | '\u{2028}' | '\u{2029}'                // line and paragraph separators
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}'   // invisible, and interlinear annotations
            | '\u{e0000}'..='\u{e007f}'              // tags: a text that nobody sees
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_written_out() {
        assert_eq!(
            plain("a\u{1b}]0;x\u{7}b\u{9b}m\u{7f}\n\t"),
            r"a\u{1b}]0;x\u{7}b\u{9b}m\u{7f}\n\t"
        );
        assert_eq!(plain("a\u{202e}b"), r"a\u{202e}b");
        assert_eq!(plain("grüße 漢字 😀 \\"), "grüße 漢字 😀 \\");
        assert_eq!(plain_lines("a\nb\r"), "a\nb\\r");
        assert_eq!(plain_lines("a\r\n\tb\u{1b}c\n"), "a\n\tb\\u{1b}c\n");
    }

    #[test]
    fn nothing_that_a_terminal_acts_on_is_left() {
        let harmful = (0..0x20)
            .chain(0x7f..0xa0)
            .chain([0x61c, 0x200e, 0x200f, 0x2028, 0x2029, 0xfeff])
            .chain(0x202a..0x202f)
            .chain(0x2066..0x206a)
            .chain(0xe0001..0xe0080)
            .filter_map(char::from_u32);
        for c in harmful {
            let text = format!("a{c}b");
            assert!(!plain(&text).contains(c), "{c:?}");
            assert!(
                matches!(c, '\n' | '\t') || !plain_lines(&text).contains(c),
                "{c:?}"
            );
            assert!(!shortened(&text, 100).contains(c), "{c:?}");
        }
    }

    #[test]
    fn long_texts_are_cut() {
        assert_eq!(shortened("abcdef", 4), "abc…");
        assert_eq!(shortened("äöü", 3), "äöü");
    }
}
