//! `docs/protocol.schema.json` and `docs/protocol.md` say what the types say.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use handover_protocol::{ErrorCode, Method, schema};
use serde_json::Value;

/// Set to write the schema anew instead of checking it.
const WRITE: &str = "HANDOVER_WRITE_SCHEMA";

fn document(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs")
        .join(name)
}

fn read(name: &str) -> String {
    let path = document(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn the_schema_is_that_of_the_types() {
    let generated = schema::document();
    if std::env::var_os(WRITE).is_some() {
        let text = serde_json::to_string_pretty(&generated).unwrap();
        std::fs::write(document("protocol.schema.json"), text + "\n").unwrap();
        return;
    }
    let written: Value = serde_json::from_str(&read("protocol.schema.json")).unwrap();
    assert!(
        written == generated,
        "the types have changed: run\n\n  {WRITE}=1 cargo test -p handover-protocol --test documents\n\nand look at the difference"
    );
}

/// Every `$ref` leads to a definition.
#[test]
fn the_schema_hangs_together() {
    fn references<'a>(value: &'a Value, found: &mut BTreeSet<&'a str>) {
        match value {
            Value::Object(members) => {
                if let Some(Value::String(reference)) = members.get("$ref") {
                    found.insert(reference);
                }
                members.values().for_each(|value| references(value, found));
            }
            Value::Array(values) => values.iter().for_each(|value| references(value, found)),
            _ => {}
        }
    }
    let document = schema::document();
    let mut found = BTreeSet::new();
    references(&document, &mut found);
    assert!(found.len() > 50);
    for reference in found {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
}

/// The rows of the tables whose first cell is a name in code.
fn rows(text: &str) -> Vec<(String, String)> {
    text.lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once("` |"))
        .map(|(name, rest)| (name.to_owned(), rest.to_owned()))
        .collect()
}

#[test]
fn the_description_has_every_method_with_its_parameters_and_every_code() {
    let text = read("protocol.md");
    let rows = rows(&text);
    for &method in Method::ALL {
        let described = rows.iter().find(|(name, _)| name == method.name());
        let (_, described) = described.unwrap_or_else(|| panic!("{method} is not described"));
        let shape = method.shape();
        assert!(
            described.contains(&format!("`{shape}`")),
            "{method}: {shape}"
        );
    }
    for &code in ErrorCode::ALL {
        assert!(
            text.contains(&format!("| `{code}` |")),
            "{code} is not described"
        );
    }
    for (name, _) in schema::document()["notifications"].as_object().unwrap() {
        assert!(
            text.contains(&format!("| `{name}` |")),
            "{name} is not described"
        );
    }
}
