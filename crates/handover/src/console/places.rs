//! Where files lie on this machine: a browser of one desktop is told their names alone.

use std::borrow::Cow;
use std::path::Path;

use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::scope::Scope;

/// Members of answers and of events that may name a file by its whole path.
const PATHS: &[&str] = &["screenshot", "path", "log", "program", "outputFile"];

/// Leaves of every path in `told` the name of the file.
pub fn hide(told: &mut Value) {
    match told {
        Value::Array(items) => items.iter_mut().for_each(hide),
        Value::Object(members) => {
            for (name, value) in members {
                match value {
                    Value::String(path) if PATHS.contains(&name.as_str()) => {
                        if path.starts_with('/') {
                            *path = name_of(path);
                        }
                    }
                    other => hide(other),
                }
            }
        }
        _ => {}
    }
}

fn name_of(path: &str) -> String {
    let name = Path::new(path).file_name();
    name.map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

/// The parameters of news as a browser with `scope` sees them.
pub fn news<'a>(scope: &Scope, params: &'a RawValue) -> Cow<'a, RawValue> {
    let Scope::Desktop { .. } = scope else {
        return Cow::Borrowed(params);
    };
    // What the host said is JSON, and what was read can be written.
    let mut told = serde_json::from_str(params.get()).unwrap_or_default();
    hide(&mut told);
    to_raw_value(&told).map_or(Cow::Borrowed(RawValue::NULL), Cow::Owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn of_a_path_the_name_is_left() {
        let mut told = json!({
            "lastHandBack": {"screenshot": "/home/me/.local/state/d1-7.png", "note": "see /etc/x"},
            "events": [{"program": "/usr/bin/xterm", "log": "/home/me/x.log"}, {"program": "xterm"}],
            "path": "/", "screenshot": null, "outputFile": 7,
        });
        hide(&mut told);
        let expected = json!({
            "lastHandBack": {"screenshot": "d1-7.png", "note": "see /etc/x"},
            "events": [{"program": "xterm", "log": "x.log"}, {"program": "xterm"}],
            "path": "", "screenshot": null, "outputFile": 7,
        });
        assert_eq!(told, expected);
    }

    #[test]
    fn only_who_knows_one_desktop_is_told_less() {
        let params = RawValue::from_string(r#"{"screenshot": "/a/b.png"}"#.to_owned()).unwrap();
        let one = Scope::Desktop {
            session: "s1".into(),
            desktop: "d1".into(),
        };
        assert_eq!(news(&Scope::All, &params).get(), params.get());
        assert_eq!(news(&one, &params).get(), r#"{"screenshot":"b.png"}"#);
    }
}
