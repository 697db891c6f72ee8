//! Text in a given number of columns.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// How many columns `text` takes.
pub fn width(text: &str) -> usize {
    text.width()
}

/// `text` in at most `columns`, with a mark where it was cut.
pub fn cut(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let room = columns.saturating_sub(1);
    let (mut shown, mut used) = (String::new(), 0);
    for c in text.chars() {
        let more = c.width().unwrap_or(0);
        if used + more > room {
            break;
        }
        used += more;
        shown.push(c);
    }
    if columns > 0 {
        shown.push('…');
    }
    shown
}

/// `text` in exactly `columns`: cut, or with spaces behind it.
pub fn fit(text: &str, columns: usize) -> String {
    let mut shown = cut(text, columns);
    let used = width(&shown);
    shown.extend(std::iter::repeat_n(' ', columns.saturating_sub(used)));
    shown
}

/// The rows that `text` takes when none may be wider than `columns`: broken at spaces where there are
/// any, and anywhere else.
pub fn wrap(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(1);
    let mut rows = Vec::new();
    for line in text.split('\n') {
        wrap_line(line, columns, &mut rows);
    }
    rows
}

fn wrap_line(line: &str, columns: usize, rows: &mut Vec<String>) {
    let (mut row, mut used) = (String::new(), 0);
    let before = rows.len();
    // Where the row may be broken: behind its last space.
    let mut space = None;
    for c in line.chars() {
        let more = c.width().unwrap_or(0);
        while used + more > columns && !row.is_empty() {
            let rest = match space.take().filter(|at| *at < row.len()) {
                Some(at) => row.split_off(at),
                None => String::new(),
            };
            let full = std::mem::replace(&mut row, rest);
            rows.push(full.trim_end().to_owned());
            used = width(&row);
        }
        // A space that falls between two rows is not shown.
        if row.is_empty() && c == ' ' && rows.len() > before {
            continue;
        }
        row.push(c);
        used += more;
        if c == ' ' && !row.trim_start().is_empty() {
            space = Some(row.len());
        }
    }
    rows.push(row.trim_end().to_owned());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn cut_and_fit() {
        assert_eq!(cut("abcdef", 4), "abc…");
        assert_eq!(cut("漢字漢字", 5), "漢字…");
        assert_eq!(cut("abc", 0), "");
        assert_eq!(fit("漢", 4), "漢  ");
        assert_eq!(fit("漢字", 3), "漢…");
    }

    #[test]
    fn wrapped_at_spaces() {
        assert_eq!(wrap("the quick brown fox", 10), ["the quick", "brown fox"]);
        assert_eq!(wrap("abcdefghij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrap("a\n\n  b", 4), ["a", "", "  b"]);
        assert_eq!(wrap("", 4), [""]);
        assert_eq!(wrap("漢字漢字", 3), ["漢", "字", "漢", "字"]);
    }

    proptest! {
        #[test]
        fn no_row_is_too_wide_and_nothing_is_lost(text in "[a-z漢é \n]{0,80}", columns in 2usize..20) {
            let rows = wrap(&text, columns);
            for row in &rows {
                prop_assert!(width(row) <= columns, "{row:?}");
            }
            let letters = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
            prop_assert_eq!(letters(&rows.concat()), letters(&text));
            prop_assert!(width(&fit(&text.replace('\n', " "), columns)) == columns);
        }
    }
}
