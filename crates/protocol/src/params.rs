//! What is wrong with parameters, told by their names and by what they must be.
//!
//! serde's own messages quote what they found, which may be secret: only the part that says what was
//! expected is taken from them, which is text of this crate and of serde.

use serde_path_to_error::{Error, Segment};

use crate::method::Method;

/// Longest unknown name that is repeated, in bytes: beyond, it is hardly a name.
const MAX_NAME: usize = 40;

/// What is wrong, and with which parameter, if that can be said.
pub(crate) struct Problem {
    pub(crate) text: String,
    pub(crate) parameter: Option<String>,
}

/// Puts the failure to read the parameters of `method` into words that repeat no value.
pub(crate) fn explain(method: Method, error: &Error<serde_json::Error>) -> Problem {
    let message = error.inner().to_string();
    let mut path = error.path().iter();
    let parameter = match path.next() {
        Some(Segment::Map { key }) => Some(key),
        _ => None,
    };
    // Names below a parameter may be the caller's own, such as those of environment variables.
    let is_nested = path.next().is_some();
    let Some(name) = parameter else {
        return Problem {
            text: plain(&message).to_owned(),
            parameter: missing(&message).map(str::to_owned),
        };
    };
    let text = if message.starts_with("unknown field") {
        if !is_nested {
            return unknown(method, name);
        }
        format!("`{name}` has a member that is not known")
    } else if let Some(member) = missing(&message) {
        format!("`{name}` lacks `{member}`")
    } else if let Some((_, expected)) = message.rsplit_once(", expected ") {
        let what = if is_nested { "what is in " } else { "" };
        format!("{what}`{name}` must be {}", must_be(expected))
    } else {
        format!("`{name}`: {}", plain(&message))
    };
    Problem {
        text,
        parameter: Some(name.to_owned()),
    }
}

fn unknown(method: Method, name: &str) -> Problem {
    // A secret in the wrong place may stand where a name should.
    let may_repeat = !method.carries_secrets()
        && name.len() <= MAX_NAME
        && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    if may_repeat {
        Problem {
            text: format!("there is no parameter `{name}`"),
            parameter: Some(name.to_owned()),
        }
    } else {
        Problem {
            text: "a parameter is not known".to_owned(),
            parameter: None,
        }
    }
}

fn missing(message: &str) -> Option<&str> {
    message
        .strip_prefix("missing field `")?
        .split('`')
        .next()
        .filter(|name| !name.is_empty())
}

/// Messages of this crate's own types, and of fields that are missing, quote nothing; of those of
/// serde that do, what they quote is left out.
fn plain(message: &str) -> &str {
    let quotes = message.starts_with("unknown ") || message.starts_with("invalid ");
    if quotes {
        "a parameter is unknown or of the wrong type"
    } else {
        message
    }
}

/// What serde expected, in words of the wire.
fn must_be(expected: &str) -> &str {
    match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number that is not negative",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        "a sequence" => "a list",
        "a map" => "an object",
        shape if shape.starts_with("struct ") => "an object",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde::de::DeserializeOwned;
    use serde_json::{Value, json};

    use super::*;
    use crate::envelope::read_params;
    use crate::*;

    fn told<T: DeserializeOwned>(method: Method, params: Value) -> String {
        let refusal = read_params::<T>(method, Some(params)).err().unwrap();
        assert_eq!(refusal.code, ErrorCode::BadParams);
        let (text, _) = refusal.message.split_once("; it takes {").unwrap();
        let name = refusal
            .data
            .get("parameter")
            .map_or("-", |name| name.as_str().unwrap());
        format!("{text} [{name}]")
    }

    #[test]
    fn the_parameter_and_the_remedy_are_named() {
        use Method::*;
        let all = [
            told::<ControlReturnParams>(ControlReturn, json!({"reason": "timeout"})),
            told::<DesktopTypeParams>(DesktopType, json!({"text": "a", "method": "zz"})),
            told::<DesktopTypeParams>(DesktopType, json!({"text": 5})),
            told::<DesktopTypeParams>(DesktopType, json!({})),
            told::<DesktopTypeParams>(DesktopType, json!({"text": "a", "zz": 1})),
            told::<DesktopClickParams>(DesktopClick, json!({"x": "1", "y": 1})),
            told::<DesktopClickParams>(DesktopClick, json!({"x": 1, "y": 1, "zz": 1})),
            told::<DesktopClickParams>(DesktopClick, json!({"x": 1, "y": 1, "z z": 1})),
            told::<DesktopClickParams>(DesktopClick, json!({"x": 1, "y": 1, "button": 4})),
            told::<DesktopDragParams>(DesktopDrag, json!({"from": [1], "to": [1, 2]})),
            told::<DesktopLaunchParams>(DesktopLaunch, json!({"command": "ls"})),
            told::<DesktopLaunchParams>(DesktopLaunch, json!({"command": [1]})),
            told::<DesktopLaunchParams>(DesktopLaunch, json!({"command": ["a"], "env": {"K": 1}})),
            told::<DesktopNewParams>(DesktopNew, json!({"size": "big"})),
            told::<RequestStatusParams>(RequestStatus, json!({"requestId": "r1", "waitMs": -1})),
            told::<ControlAcquireParams>(ControlAcquire, json!({"private": "yes"})),
        ];
        insta::assert_snapshot!(all.join("\n"), @"
        control.return: `reason` must be `return` or `cancelled` [reason]
        desktop.type: `method` must be one of `auto`, `keys`, `paste` [method]
        desktop.type: `text` must be a string [text]
        desktop.type: missing field `text` [text]
        desktop.type: a parameter is not known [-]
        desktop.click: `x` must be a whole number [x]
        desktop.click: there is no parameter `zz` [zz]
        desktop.click: a parameter is not known [-]
        desktop.click: `button`: a button must be 1 (left), 2 (middle) or 3 (right) [button]
        desktop.drag: `from` must be an array of length 2 [from]
        desktop.launch: `command` must be a list [command]
        desktop.launch: what is in `command` must be a string [command]
        desktop.launch: what is in `env` must be a string [env]
        desktop.new: `size`: a size must look like 1280x800, each side from 64 to 8192 pixels [size]
        request_status: `waitMs` must be a whole number that is not negative [waitMs]
        control.acquire: `private` must be a boolean [private]
        ");
    }

    #[test]
    fn no_message_repeats_a_value() {
        let secret = "hunter2, expected `hunter2`, expected ";
        for params in [
            json!({"leaseId": {secret: 1}}),
            json!({"leaseId": [secret]}),
            json!({"leaseId": "l", "token": [secret]}),
            json!({"reason": secret}),
            json!({"reason": {secret: secret}}),
            json!({secret: secret}),
        ] {
            let refusal = read_params::<ControlReturnParams>(Method::ControlReturn, Some(params))
                .unwrap_err();
            assert!(!format!("{refusal:?}").contains("hunter2"), "{refusal:?}");
        }
        let env = json!({"command": ["a"], "env": {"hunter2": ["hunter2"]}});
        let refusal =
            read_params::<DesktopLaunchParams>(Method::DesktopLaunch, Some(env)).unwrap_err();
        assert!(!format!("{refusal:?}").contains("hunter2"), "{refusal:?}");
    }
}
