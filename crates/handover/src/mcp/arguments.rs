//! What an agent may pass to each tool: the types behind the JSON schemas.
//!
//! The doc comments of the fields are the descriptions that agents read. Field names are those of
//! the attach protocol, so that arguments that fit a type here go to the host unchanged; the host
//! checks what depends on its state (whether a point lies on the desktop, whether a key exists).

use std::collections::BTreeMap;

use handover_protocol::{AgentId, Hidden};
use rmcp::model::JsonObject;
use rmcp::schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Arguments of the tools that only name a desktop.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
#[serde(deny_unknown_fields)]
pub(super) struct OnDesktop {
    /// Id of the desktop, like `d1`. May be left out when the session has only one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) desktop: Option<String>,
}

/// Arguments of `desktop_launch`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
#[serde(deny_unknown_fields)]
pub(super) struct Launch {
    /// The program and its arguments, one string each, like `["xterm", "-e", "top"]`. It is not
    /// passed through a shell.
    #[schemars(length(min = 1))]
    pub(super) command: Vec<String>,
    /// Directory to start in. Without it: the session's project directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cwd: Option<String>,
    /// Environment variables to add.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) env: Option<BTreeMap<String, String>>,
    /// Start it as an untrusted X client: it then cannot watch the keys or read the windows of
    /// other programs. Some programs do not work this way (Chromium garbles keys).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) untrusted: Option<bool>,
    /// Id of the desktop, like `d1`. May be left out when the session has only one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) desktop: Option<String>,
}

/// Arguments of `desktop_move`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
#[serde(deny_unknown_fields)]
pub(super) struct Point {
    /// Pixels from the left edge of the screenshot.
    pub(super) x: i64,
    /// Pixels from the top edge of the screenshot.
    pub(super) y: i64,
    /// Id of the desktop, like `d1`. May be left out when the session has only one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) desktop: Option<String>,
}

/// Arguments of `desktop_click` and `desktop_double_click`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
#[serde(deny_unknown_fields)]
pub(super) struct Click {
    /// Pixels from the left edge of the screenshot.
    pub(super) x: i64,
    /// Pixels from the top edge of the screenshot.
    pub(super) y: i64,
    /// Mouse button: 1 left (the default), 2 middle, 3 right.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 3))]
    pub(super) button: Option<u8>,
    /// Id of the desktop, like `d1`. May be left out when the session has only one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) desktop: Option<String>,
}

/// Arguments of `desktop_scroll`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
#[serde(deny_unknown_fields)]
pub(super) struct Scroll {
    /// Where to scroll, in pixels from the left edge; with `y`. Without both: where the pointer is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) x: Option<i64>,
    /// Where to scroll, in pixels from the top edge; with `x`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) y: Option<i64>,
    /// Wheel steps sideways; positive scrolls right.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) dx: Option<i32>,
    /// Wheel steps up or down; positive scrolls down, towards the end of the page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) dy: Option<i32>,
    /// Id of the desktop, like `d1`. May be left out when the session has only one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) desktop: Option<String>,
}

/// Arguments of `desktop_drag`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
#[serde(deny_unknown_fields)]
pub(super) struct Drag {
    /// Where to press the button: `[x, y]` in pixels of the screenshot.
    pub(super) from: [i64; 2],
    /// Where to release it: `[x, y]` in pixels of the screenshot.
    pub(super) to: [i64; 2],
    /// Mouse button: 1 left (the default), 2 middle, 3 right.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 3))]
    pub(super) button: Option<u8>,
    /// Id of the desktop, like `d1`. May be left out when the session has only one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) desktop: Option<String>,
}

/// Arguments of `desktop_type`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
#[serde(deny_unknown_fields)]
pub(super) struct Type {
    /// The text, typed into the focused window exactly as given; any script, line breaks included.
    #[schemars(with = "String")]
    pub(super) text: Hidden,
    /// How: `auto` (the default) chooses by the text, `keys` presses one key after the other, `paste`
    /// hands it over as a whole. Try `keys` where a program does not take a paste.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) method: Option<Method>,
    /// Id of the desktop, like `d1`. May be left out when the session has only one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) desktop: Option<String>,
}

/// How a text is typed.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars", inline)]
#[serde(rename_all = "snake_case")]
pub(super) enum Method {
    Auto,
    Keys,
    Paste,
}

/// Arguments of `desktop_key`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
#[serde(deny_unknown_fields)]
pub(super) struct Key {
    /// A key or a chord: `Return`, `Tab`, `ctrl+l`, `ctrl+shift+t`, `Page_Down`, `F5`.
    pub(super) keys: String,
    /// Id of the desktop, like `d1`. May be left out when the session has only one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) desktop: Option<String>,
}

/// Arguments of `request_human`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
#[serde(deny_unknown_fields)]
pub(super) struct RequestHuman {
    /// What the person should do and why you cannot, in a sentence or two. They read this.
    pub(super) reason: String,
    /// A question the person may answer in text instead of taking over. Never ask for a password,
    /// a code, a key or any other secret here: such a question is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) question: Option<String>,
    /// Id of the desktop to take over, like `d1`. May be left out when the session has only one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) desktop: Option<String>,
}

/// Arguments of `request_status`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct RequestStatus {
    /// The id that `request_human` gave.
    pub(super) request_id: String,
    /// Wait up to this many milliseconds for the person (0 to 60000). Without it: answer at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 60_000))]
    pub(super) wait_ms: Option<u64>,
}

/// Arguments of `agent_spawn`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
#[serde(deny_unknown_fields)]
pub(super) struct AgentSpawn {
    /// The agent program: `pi`, `codex`, `claude`, `acp` (any ACP agent) or `command` (any program).
    pub(super) driver: String,
    /// The task, complete in itself: the new agent knows nothing of your conversation. For `command`:
    /// the program's standard input, which may be empty.
    #[schemars(with = "String")]
    pub(super) prompt: Hidden,
    /// A short name by which a person recognises it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<String>,
    /// Directory to work in. Without it: the session's project directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cwd: Option<String>,
    /// Id of the desktop that it is to use, like `d1`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) desktop: Option<String>,
    /// Let its programs open windows on that desktop: gives it DISPLAY and XAUTHORITY.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) display: Option<bool>,
    /// Further arguments of the agent program, one string each. For `command` and `acp`: the program
    /// and all its arguments. They are not passed through a shell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) args: Option<Vec<String>>,
    /// Environment variables to add.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) env: Option<BTreeMap<String, String>>,
}

/// Arguments of `agent_list`, which has none.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
#[serde(deny_unknown_fields)]
pub(super) struct Nothing {}

/// Arguments of the tools that only name an agent.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
#[serde(deny_unknown_fields)]
pub(super) struct OneAgent {
    /// Id of the agent, as `agent_spawn` or `agent_list` gave it.
    #[schemars(with = "String")]
    pub(super) id: AgentId,
}

/// Arguments of `agent_steer`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct AgentSteer {
    /// Id of the agent, as `agent_spawn` or `agent_list` gave it.
    #[schemars(with = "String")]
    pub(super) id: AgentId,
    /// The message.
    #[schemars(with = "String")]
    pub(super) text: Hidden,
    /// When it is put to the agent: `next_step` (the default) before its next step, `now` cuts short
    /// what it does, `turn_end` waits for the end of its turn. Not every program can do each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) when: Option<When>,
    /// Answer only when this is known of the message: `handed` to the program, `inserted` into the
    /// agent's history, `sent` to its model, `answered` by it. Without it: answers at `accepted`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) wait: Option<Known>,
    /// Longest such wait in milliseconds (at most 60000, which is also the default).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 60_000))]
    pub(super) timeout_ms: Option<u64>,
    /// An id of your own for the message: the same id again is the same message, not a second one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) steer_id: Option<String>,
}

/// When a message is put to an agent.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars", inline)]
#[serde(rename_all = "snake_case")]
pub(super) enum When {
    Now,
    NextStep,
    TurnEnd,
}

/// What may be known of a message.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars", inline)]
#[serde(rename_all = "snake_case")]
pub(super) enum Known {
    Accepted,
    Handed,
    Queued,
    Inserted,
    Sent,
    Answered,
}

/// Arguments of `agent_wait`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct AgentWait {
    /// Id of the agent, as `agent_spawn` or `agent_list` gave it.
    #[schemars(with = "String")]
    pub(super) id: AgentId,
    /// Wait up to this many milliseconds (at most 60000). Without it: 30000.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 60_000))]
    pub(super) timeout_ms: Option<u64>,
}

/// Arguments that do not fit their tool, told without repeating a value: it may be text that was
/// meant to be typed.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Misfit(String);

/// Reads a call's arguments.
///
/// # Errors
/// [`Misfit`] names the fields that are missing, unknown, or of the wrong type.
pub(super) fn parse<T: DeserializeOwned>(
    arguments: JsonObject,
    schema: &JsonObject,
) -> Result<T, Misfit> {
    let complaint = complaint(&arguments, schema);
    // The deserialiser's own message can quote the value, so only ours is shown.
    serde_json::from_value(Value::Object(arguments)).map_err(|_| Misfit(complaint))
}

/// Says which fields of `arguments` do not fit `schema`.
fn complaint(arguments: &JsonObject, schema: &JsonObject) -> String {
    let empty = JsonObject::new();
    let properties = schema
        .get("properties")
        .and_then(Value::as_object)
        .unwrap_or(&empty);
    let required = schema.get("required").and_then(Value::as_array);
    let missing = required.into_iter().flatten().filter_map(Value::as_str);
    let missing: Vec<&str> = missing
        .filter(|name| !arguments.contains_key(*name))
        .collect();
    let unknown = arguments
        .keys()
        .filter(|name| !properties.contains_key(*name))
        .count();
    let known: Vec<&str> = properties.keys().map(String::as_str).collect();

    let mut parts = Vec::new();
    if !missing.is_empty() {
        parts.push(format!("missing: {}", missing.join(", ")));
    }
    if unknown > 0 {
        parts.push(format!(
            "{unknown} unknown field(s); this tool takes {}",
            known.join(", ")
        ));
    }
    for (name, property) in properties {
        let wrong = arguments
            .get(name)
            .is_some_and(|value| !fits(value, property));
        if wrong {
            parts.push(format!(
                "{name} must be of type {}",
                type_names(property).join(" or ")
            ));
        }
    }
    if parts.is_empty() {
        parts.push("a value is out of its range; see the tool's schema".to_owned());
    }
    parts.join("; ")
}

/// The JSON types that a property's schema allows.
fn type_names(property: &Value) -> Vec<&str> {
    match property.get("type") {
        Some(Value::String(one)) => vec![one.as_str()],
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn fits(value: &Value, property: &Value) -> bool {
    let allowed = type_names(property);
    allowed.is_empty()
        || allowed.iter().any(|name| match *name {
            "string" => value.is_string(),
            "integer" => value.is_i64() || value.is_u64(),
            "number" => value.is_number(),
            "boolean" => value.is_boolean(),
            "array" => value.is_array(),
            "object" => value.is_object(),
            "null" => value.is_null(),
            _ => true,
        })
}

#[cfg(test)]
mod tests {
    use rmcp::handler::server::tool::schema_for_type;
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> JsonObject {
        match value {
            Value::Object(object) => object,
            other => panic!("not an object: {other}"),
        }
    }

    fn refusal<T: DeserializeOwned + JsonSchema + std::fmt::Debug + 'static>(
        value: Value,
    ) -> String {
        parse::<T>(object(value), &schema_for_type::<T>())
            .expect_err("the arguments must be refused")
            .to_string()
    }

    #[test]
    fn a_misfit_names_the_fields() {
        assert_eq!(refusal::<Click>(json!({"x": 1})), "missing: y");
        assert_eq!(
            refusal::<Click>(json!({"x": 1, "y": "2"})),
            "y must be of type integer"
        );
        assert_eq!(
            refusal::<Key>(json!({"keys": "a", "repeat": 2})),
            "1 unknown field(s); this tool takes desktop, keys"
        );
        assert_eq!(
            refusal::<Drag>(json!({"from": [1, 2, 3], "to": [1, 2]})),
            "a value is out of its range; see the tool's schema"
        );
    }

    #[test]
    fn a_misfit_never_repeats_what_was_passed() {
        let cases = [
            json!({"text": 12, "txt": "hunter2"}),
            json!({"hunter2": true}),
        ];
        for case in cases {
            assert!(!refusal::<Type>(case).contains("hunter2"));
        }
    }
}
