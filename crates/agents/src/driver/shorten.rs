//! Texts made short enough for a list or a line.

use serde_json::Value;

use super::MAX_SUMMARY;

/// The text itself, or as much of its beginning as fits in `bytes` with a mark that more was there.
pub fn shorten(text: &str, bytes: usize) -> String {
    const MARK: &str = "…";
    if text.len() <= bytes {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(bytes.saturating_sub(MARK.len()));
    format!("{}{MARK}", &text[..end])
}

/// What a tool is called with, for people: the command or path if there is one, else all of it.
pub fn summary(arguments: &Value) -> Option<String> {
    let text = match arguments {
        Value::Null => return None,
        Value::String(text) => text.clone(),
        Value::Object(fields) if fields.is_empty() => return None,
        Value::Object(fields) => ["command", "path", "file_path", "url", "query"]
            .iter()
            .find_map(|name| fields.get(*name)?.as_str())
            .map_or_else(|| arguments.to_string(), str::to_owned),
        _ => arguments.to_string(),
    };
    Some(shorten(&text, MAX_SUMMARY))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_text_is_cut_between_characters_and_says_so() {
        assert_eq!(shorten("short", 5), "short");
        assert_eq!(shorten("longer", 5), "lo…");
        assert_eq!(shorten("ääää", 6), "ä…");
        assert!(shorten(&"ö".repeat(4000), MAX_SUMMARY).len() <= MAX_SUMMARY);
    }

    #[test]
    fn a_summary_is_the_command_or_everything() {
        let command = json!({"timeout": 5, "command": "make test"});
        assert_eq!(summary(&command).as_deref(), Some("make test"));
        assert_eq!(summary(&json!({"a": 1})).as_deref(), Some(r#"{"a":1}"#));
        assert_eq!(summary(&json!({})), None);
        assert_eq!(summary(&Value::Null), None);
    }
}
