//! The hash chain: each row is bound to everything before it.

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// The head of an empty chain, in hexadecimal: what the first row's hash is computed over.
pub const GENESIS: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// A link of the chain.
pub(crate) type Hash = [u8; 32];

/// The link before the first row.
pub(crate) const START: Hash = [0; 32];

/// SHA-256 over the previous link and the row's canonical JSON.
pub(crate) fn link(previous: &Hash, canonical: &str) -> Hash {
    let mut hasher = Sha256::new();
    hasher.update(previous);
    hasher.update(canonical.as_bytes());
    hasher.finalize().into()
}

/// JSON without spaces and with the keys of every object in byte order, so that one content has one
/// text; and where in it a further `key` would stand.
///
/// Written out here rather than left to `serde_json`, whose key order depends on a feature that any
/// crate of the build can switch on.
pub(crate) fn canonical_before(map: &Map<String, Value>, key: &str) -> (String, usize) {
    let mut out = String::new();
    let place = object(map, Some(key), &mut out);
    (out, place)
}

/// The text alone.
#[cfg(test)]
pub(crate) fn canonical(map: &Map<String, Value>) -> String {
    canonical_before(map, "").0
}

/// Answers where the first key stands that does not come before `further`.
fn object(map: &Map<String, Value>, further: Option<&str>, out: &mut String) -> usize {
    let mut entries: Vec<_> = map.iter().collect();
    entries.sort_unstable_by(|a, b| a.0.cmp(b.0));
    let mut place = None;
    out.push('{');
    for (index, (key, value)) in entries.into_iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        if further.is_some_and(|further| key.as_str() >= further) {
            place.get_or_insert(out.len());
        }
        out.push_str(&Value::from(key.as_str()).to_string());
        out.push(':');
        write(value, out);
    }
    let end = out.len();
    out.push('}');
    place.unwrap_or(end)
}

fn write(value: &Value, out: &mut String) {
    match value {
        Value::Object(map) => {
            object(map, None, out);
        }
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write(item, out);
            }
            out.push(']');
        }
        scalar => out.push_str(&scalar.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn keys_are_sorted_at_every_depth() {
        let value = json!({"b": [{"z": 1, "a": "x\ny"}], "a": {"d": null, "c": 1.5}});
        let Value::Object(map) = value else {
            unreachable!("built as an object above")
        };
        assert_eq!(
            canonical(&map),
            r#"{"a":{"c":1.5,"d":null},"b":[{"a":"x\ny","z":1}]}"#
        );
    }

    #[test]
    fn a_link_depends_on_what_came_before() {
        let first = link(&START, "{}");
        assert_ne!(first, link(&first, "{}"));
        assert_eq!(hex::encode(START), GENESIS);
    }
}
