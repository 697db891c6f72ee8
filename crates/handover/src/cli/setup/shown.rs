//! A change as people are shown it: a diff in which nothing is seen but what is ours.
//!
//! Configuration files hold keys and tokens, and what this prints is pasted into reports. So there are no lines
//! around a change, and in a changed line `…` stands for whatever is not made of our own words.

use std::path::Path;

use similar::{DiffTag, TextDiff};

use super::edit::SERVERS;

/// What stands for what is not shown.
const INSTEAD: &str = "…";
/// Words of an entry besides the names and arguments of our servers.
const WORDS: [&str; 7] = [
    "command",
    "args",
    "type",
    "local",
    "mcp",
    "mcpServers",
    "mcp_servers",
];

/// What in a file is ours.
#[derive(Clone, Copy, Debug)]
pub enum Ours<'a> {
    /// Entries among others, which start this command.
    Entries {
        /// The command.
        command: &'a str,
    },
    /// All of it, if it is this text.
    File(&'a str),
}

impl Ours<'_> {
    /// Whether nothing in a piece of a line can be of anyone else.
    fn has(self, piece: &str) -> bool {
        match self {
            Self::File(text) => piece.is_empty() || text.lines().any(|line| line == piece),
            Self::Entries { command } => words(piece).all(|word| {
                let is_program = |word: &str| word.rsplit('/').next() == Some("handover");
                let of_a_server = SERVERS
                    .iter()
                    .any(|server| server.name == word || server.args.contains(&word));
                of_a_server
                    || WORDS.contains(&word)
                    || is_program(word)
                    || words(command).any(|known| known == word)
            }),
        }
    }

    /// A piece of a line, if it may be seen.
    fn shown(self, piece: &str) -> String {
        if self.has(piece) {
            return piece.to_owned();
        }
        let blank = piece.len() - piece.trim_start().len();
        format!("{}{INSTEAD}", &piece[..blank])
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    let between = |c: char| c.is_whitespace() || "\"'{}[]:=,.\\".contains(c);
    text.split(between).filter(|word| !word.is_empty())
}

/// The change of the file at `path`; empty if there is none. `None` stands for no file.
pub fn diff(path: &Path, before: Option<&str>, after: Option<&str>, ours: Ours<'_>) -> String {
    if before == after {
        return String::new();
    }
    let path = path.to_string_lossy();
    let name = |text: Option<&str>| text.map_or("/dev/null", |_| &*path).to_owned();
    let mut shown = format!("--- {}\n+++ {}\n", name(before), name(after));
    let (before, after) = (before.unwrap_or_default(), after.unwrap_or_default());
    let lines = TextDiff::from_lines(before, after);
    for change in lines.ops() {
        let (tag, old, new) = change.as_tag_tuple();
        if tag == DiffTag::Equal {
            continue;
        }
        shown.push_str(&format!(
            "@@ -{},{} +{},{} @@\n",
            old.start + 1,
            old.len(),
            new.start + 1,
            new.len()
        ));
        let old = lines.old_slices()[old].concat();
        let new = lines.new_slices()[new].concat();
        let (start, end) = alike(&old, &new);
        for (sign, text) in [('-', old), ('+', new)] {
            let text = if text.lines().all(|line| ours.has(line)) {
                text
            } else {
                // What stands in both texts is seen apart from what differs.
                let (before, after) = (&text[..start], &text[text.len() - end..]);
                let middle = text[start..text.len() - end].split('\n');
                let middle: Vec<String> = middle.map(|line| ours.shown(line)).collect();
                let before = ours.shown(before.rsplit('\n').next().unwrap_or_default());
                let after = ours.shown(after.lines().next().unwrap_or_default());
                [before, middle.join("\n"), after].concat()
            };
            for line in text.lines() {
                shown.push_str(&format!("{sign}{line}\n"));
            }
        }
    }
    shown
}

/// How many bytes two texts have in common at their start, and how many at their end.
fn alike(old: &str, new: &str) -> (usize, usize) {
    let pairs = old.chars().zip(new.chars());
    let start: usize = pairs
        .take_while(|(a, b)| a == b)
        .map(|(a, _)| a.len_utf8())
        .sum();
    let pairs = old[start..].chars().rev().zip(new[start..].chars().rev());
    let end = pairs
        .take_while(|(a, b)| a == b)
        .map(|(a, _)| a.len_utf8())
        .sum();
    (start, end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(before: &str, after: &str) -> String {
        let ours = Ours::Entries {
            command: "/a b/handover",
        };
        let text = diff(Path::new("f"), Some(before), Some(after), ours);
        assert!(!text.contains("SECRET"), "{text}");
        text.lines()
            .skip(2)
            .map(|line| format!("{line}\n"))
            .collect()
    }

    #[test]
    fn what_is_put_in_is_shown_and_nothing_around_it() {
        let before = "{\n  \"key\": \"SECRET\"\n}\n";
        let after =
            "{\n  \"mcpServers\": {\n    \"handover\": {}\n  },\n  \"key\": \"SECRET\"\n}\n";
        assert_eq!(
            shown(before, after),
            "@@ -2,0 +2,3 @@\n+  \"mcpServers\": {\n+    \"handover\": {}\n+  },\n"
        );
    }

    #[test]
    fn in_one_line_the_rest_of_it_is_not_shown() {
        let before = r#"{"key":"SECRET"}"#;
        let after = r#"{"mcpServers":{"handover":{"command":"/a b/handover"}},"key":"SECRET"}"#;
        let shown = shown(before, after);
        assert!(
            shown.contains(r#""handover":{"command":"/a b/handover"}"#),
            "{shown}"
        );
    }

    #[test]
    fn a_renewed_path_is_shown_with_its_key() {
        let before = "  \"command\": \"/old/handover\",\n";
        let after = "  \"command\": \"handover\",\n";
        assert_eq!(
            shown(before, after),
            "@@ -1,1 +1,1 @@\n-  \"command\": \"/old/handover\",\n+  \"command\": \"handover\",\n"
        );
    }

    #[test]
    fn what_others_wrote_into_our_entry_is_not_shown_when_it_goes() {
        let before = "[mcp_servers.handover]\ncommand = \"handover\"\nenv = { KEY = \"SECRET\" }\nSECRET==\n";
        assert_eq!(
            shown(before, ""),
            "@@ -1,4 +1,0 @@\n-[mcp_servers.handover]\n-command = \"handover\"\n-…\n-…\n"
        );
    }

    #[test]
    fn a_file_of_our_own_is_shown() {
        let text = diff(
            Path::new("f"),
            Some("SECRET\nb\n"),
            Some("a\nb\n"),
            Ours::File("a\nb\n"),
        );
        assert_eq!(text, "--- f\n+++ f\n@@ -1,1 +1,1 @@\n-…\n+a\n");
    }
}
