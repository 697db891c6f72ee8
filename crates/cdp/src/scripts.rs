//! What the scripts that clients send say, to know them again among the scripts of a page.

use std::collections::VecDeque;

use serde_json::Value;

/// Scripts of one session that are remembered, in case a later one calls what they have defined.
const MAX_RECENT: usize = 32;
/// The longest of them, in bytes of its parameters.
const MAX_RECENT_BYTES: usize = 16 << 10;
/// The longest script that can be known again, in bytes of its parameters.
pub(crate) const MAX_SCRIPT_BYTES: usize = 1 << 20;
/// The shortest text by which a script is known again. Shorter ones are in every script.
const MIN_TEXT: usize = 8;
/// How much longer than a text a script may be that was made of it: a wrapping.
const MAX_WRAPPING: usize = 1024;
/// Texts by which one guard knows scripts.
const MAX_TEXTS: usize = 256;

/// The latest scripts of a session, by their parameters.
#[derive(Debug, Default)]
pub(crate) struct Recent(VecDeque<String>);

impl Recent {
    /// Keeps a script in mind.
    pub(crate) fn note(&mut self, params: &str) {
        if params.len() > MAX_RECENT_BYTES || self.0.iter().any(|known| known == params) {
            return;
        }
        if self.0.len() >= MAX_RECENT {
            self.0.pop_front();
        }
        self.0.push_back(params.to_owned());
    }

    /// Their parameters.
    pub(crate) fn all(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

/// Texts by which scripts are known again.
#[derive(Debug, Default)]
pub(crate) struct Texts(Vec<String>);

impl Texts {
    /// Adds all texts in the parameters of a command that runs a script: the script itself, and its
    /// arguments, since some tools send the script as one.
    pub(crate) fn add(&mut self, params: &str) {
        let Ok(params) = serde_json::from_str::<Value>(params) else {
            return;
        };
        for key in ["expression", "functionDeclaration", "arguments"] {
            self.collect(&params[key]);
        }
    }

    fn collect(&mut self, value: &Value) {
        match value {
            Value::String(text) => {
                let text = text.trim();
                let known = text.len() < MIN_TEXT || self.0.iter().any(|known| known == text);
                if !known && self.0.len() < MAX_TEXTS {
                    self.0.push(text.to_owned());
                }
            }
            Value::Array(values) => values.iter().for_each(|value| self.collect(value)),
            Value::Object(values) => values.values().for_each(|value| self.collect(value)),
            _ => {}
        }
    }

    /// Whether a script of that length in UTF-16 units may be one of them.
    pub(crate) fn may_hold(&self, length: usize) -> bool {
        // A unit is one to three bytes.
        length >= MIN_TEXT
            && self
                .0
                .iter()
                .any(|text| length <= text.len() + MAX_WRAPPING)
    }

    /// Whether the script was sent: as a part of a text, or with a text as nearly all of it.
    pub(crate) fn hold(&self, source: &str) -> bool {
        let source = source.trim();
        source.len() >= MIN_TEXT
            && self.0.iter().any(|text| {
                text.contains(source)
                    || (source.len() <= text.len() + MAX_WRAPPING && source.contains(text.as_str()))
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_known_again_however_they_were_sent() {
        let mut texts = Texts::default();
        texts.add(r#"{"expression":"const loop = 1; eval(\"go(loop)\")"}"#);
        texts.add(r#"{"functionDeclaration":"() => later()"}"#);
        texts.add(r#"{"functionDeclaration":"f","arguments":[{"value":{"o":["async () => 5"]}}]}"#);
        texts.add("no JSON");
        for source in [
            "const loop = 1; eval(\"go(loop)\")",
            "go(loop)",
            "(() => later())",
            "(async () => 5)\n//# sourceURL=x",
        ] {
            assert!(
                texts.may_hold(source.len()) && texts.hold(source),
                "{source}"
            );
        }
        for source in ["go", "() => another()", ""] {
            assert!(!texts.hold(source), "{source}");
        }
        let page = format!("() => later();{}", " page();".repeat(200));
        assert!(!texts.hold(&page), "a page's script that has it in it");
    }

    #[test]
    fn only_so_much_is_remembered() {
        let mut recent = Recent::default();
        for number in 0..=MAX_RECENT {
            recent.note(&number.to_string());
        }
        recent.note(&"x".repeat(MAX_RECENT_BYTES + 1));
        assert_eq!(recent.all().count(), MAX_RECENT);
        assert!(recent.all().all(|params| params != "0"));
    }
}
