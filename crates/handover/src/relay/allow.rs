//! The tools that may be called while a person is in control, because they only look.

use std::collections::HashSet;

use serde_json::value::RawValue;

use super::scan;

/// Most names of tools that are kept; a server with more has none beyond.
const MAX_KNOWN: usize = 10_000;

/// What the name of a tool that shows the screen has in it, whatever stands between the letters: what a
/// person enters may be seen there, so its server's word for it is not enough.
const PICTURES: [&str; 5] = [
    "screenshot",
    "screencap",
    "screengrab",
    "screenimage",
    "snapshot",
];

/// Which tools only look.
#[derive(Debug, Default)]
pub(super) struct Allow {
    /// Names, in which `*` stands for any text.
    patterns: Vec<String>,
    /// Whether the server is believed which of its tools only look.
    readonly: bool,
    /// Those tools.
    known: HashSet<String>,
}

/// A tool as a server lists it.
#[derive(serde::Deserialize)]
struct Tool {
    name: String,
    #[serde(default)]
    annotations: Option<Annotations>,
}

#[derive(Default, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Annotations {
    read_only_hint: Option<bool>,
}

impl Allow {
    /// Those whose names fit one of `patterns`, and with `readonly` those that the server calls
    /// read-only, but for pictures of the screen.
    pub(super) fn new(patterns: Vec<String>, readonly: bool) -> Self {
        Self {
            patterns,
            readonly,
            known: HashSet::new(),
        }
    }

    /// Whether lists of tools are of interest.
    pub(super) fn learns(&self) -> bool {
        self.readonly
    }

    /// Takes note of the tools in the result of `tools/list`. The latest list that names a tool counts.
    pub(super) fn learn(&mut self, result: &str) {
        let Ok([Some(tools)]) = scan::members(result, &["tools"]) else {
            return;
        };
        let tools: Vec<&RawValue> = serde_json::from_str(tools).unwrap_or_default();
        for tool in tools {
            let Ok(tool) = serde_json::from_str::<Tool>(tool.get()) else {
                continue;
            };
            let annotations = tool.annotations.unwrap_or_default();
            if annotations.read_only_hint != Some(true) || shows_the_screen(&tool.name) {
                self.known.remove(&tool.name);
            } else if self.known.len() < MAX_KNOWN {
                self.known.insert(tool.name);
            }
        }
    }

    /// Whether this tool only looks.
    pub(super) fn allows(&self, tool: &str) -> bool {
        let named = self.patterns.iter().any(|pattern| fits(pattern, tool));
        named || self.readonly && self.known.contains(tool)
    }
}

fn shows_the_screen(tool: &str) -> bool {
    let letters = tool.chars().filter(|letter| letter.is_alphanumeric());
    let letters: String = letters.flat_map(char::to_lowercase).collect();
    PICTURES.iter().any(|picture| letters.contains(picture))
}

/// Whether `name` is what `pattern` says, in which `*` stands for any text.
fn fits(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else {
        return false;
    };
    let Some(last) = parts.next_back() else {
        // There is no `*`.
        return rest.is_empty();
    };
    for part in parts {
        let Some(at) = rest.find(part) else {
            return false;
        };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (pattern, name, is) in [
            ("take_screenshot", "take_screenshot", true),
            ("take_screenshot", "take_screenshots", false),
            ("list_*", "list_pages", true),
            ("list_*", "relist_pages", false),
            ("*", "anything", true),
            ("*_x", "a_x_x", true),
            ("a*b*c", "axxbxxc", true),
            ("a*b*c", "acb", false),
            ("a*a", "a", false),
            ("", "", true),
            ("", "x", false),
        ] {
            assert_eq!(fits(pattern, name), is, "{pattern} {name}");
        }
    }

    #[test]
    fn a_server_is_believed_only_if_asked_to_and_never_about_pictures() {
        let list = r#"{"tools":[
            {"name":"list_pages","annotations":{"readOnlyHint":true}},
            {"name":"take_screenshot","annotations":{"readOnlyHint":true}},
            {"name":"Screen-Shot","annotations":{"readOnlyHint":true}},
            {"name":"click","annotations":{"readOnlyHint":false}},
            {"name":"type"}, 7]}"#;
        let mut none = Allow::new(Vec::new(), false);
        none.learn(list);
        assert!(!none.allows("list_pages"));
        let mut some = Allow::new(vec!["take_screenshot".into()], true);
        some.learn(list);
        assert!(some.allows("list_pages") && some.allows("take_screenshot"));
        for tool in ["Screen-Shot", "click", "type", "unheard_of"] {
            assert!(!some.allows(tool), "{tool}");
        }
        let later = r#"{"tools":[{"name":"list_pages"}]}"#;
        some.learn(later);
        assert!(!some.allows("list_pages"));
    }
}
