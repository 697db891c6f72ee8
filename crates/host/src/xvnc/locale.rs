//! The locale of programs on a desktop.

use std::collections::BTreeMap;

/// The locale that programs get where none is set. It is in every C library, and changes nothing but how
/// characters are encoded.
pub(super) const UTF8: &str = "C.UTF-8";

/// What decides how a program reads and writes characters: the first of these that is not empty.
const DECIDING: [&str; 3] = ["LC_ALL", "LC_CTYPE", "LANG"];

/// Lets programs with this environment use UTF-8 if their locale would be that of C, in which they take
/// text beyond ASCII as Latin-1 or drop it. A locale that the user has set is kept, and so is any that
/// comes from a variable that `is_given` says was given on purpose.
pub fn utf8_unless_set(env: &mut BTreeMap<String, String>, is_given: impl Fn(&str) -> bool) {
    let deciding = DECIDING
        .into_iter()
        .find_map(|name| Some((name, env.get(name).filter(|value| !value.is_empty())?)));
    let name = match deciding {
        None => "LC_CTYPE",
        Some((name, value)) => {
            if is_given(name) || !matches!(value.as_str(), "C" | "POSIX") {
                return;
            }
            // It outweighs all others.
            if name == "LC_ALL" { name } else { "LC_CTYPE" }
        }
    };
    env.insert(name.to_owned(), UTF8.to_owned());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(pairs: &[(&str, &str)], given: &[&str]) -> Vec<(String, String)> {
        let owned = |(name, value): &(&str, &str)| (name.to_string(), value.to_string());
        let mut env = pairs.iter().map(owned).collect();
        utf8_unless_set(&mut env, |name| given.contains(&name));
        env.into_iter().collect()
    }

    #[track_caller]
    fn becomes(pairs: &[(&str, &str)], given: &[&str], expected: &[(&str, &str)]) {
        assert_eq!(after(pairs, given), after(expected, &DECIDING), "{pairs:?}");
    }

    #[test]
    fn where_none_is_set_it_is_utf8() {
        becomes(&[], &[], &[("LC_CTYPE", UTF8)]);
        becomes(&[("LANG", "C")], &[], &[("LANG", "C"), ("LC_CTYPE", UTF8)]);
        becomes(
            &[("LC_CTYPE", "POSIX"), ("LANG", "de_DE.UTF-8")],
            &[],
            &[("LC_CTYPE", UTF8), ("LANG", "de_DE.UTF-8")],
        );
        becomes(&[("LC_ALL", "C")], &[], &[("LC_ALL", UTF8)]);
        becomes(
            &[("LC_ALL", ""), ("LANG", "C")],
            &[],
            &[("LC_ALL", ""), ("LANG", "C"), ("LC_CTYPE", UTF8)],
        );
    }

    #[test]
    fn what_the_user_has_set_is_kept() {
        for set in [
            ("LC_ALL", "de_DE.ISO-8859-1"),
            ("LC_CTYPE", "de_DE.UTF-8"),
            ("LANG", "de_DE.UTF-8"),
        ] {
            becomes(&[set], &[], &[set]);
        }
    }

    #[test]
    fn what_is_given_wins() {
        becomes(&[("LC_ALL", "C")], &["LC_ALL"], &[("LC_ALL", "C")]);
        becomes(&[("LANG", "C")], &["LANG"], &[("LANG", "C")]);
        // It would have been outweighed without us too.
        becomes(
            &[("LC_ALL", "C"), ("LANG", "de_DE.UTF-8")],
            &["LANG"],
            &[("LC_ALL", UTF8), ("LANG", "de_DE.UTF-8")],
        );
    }
}
