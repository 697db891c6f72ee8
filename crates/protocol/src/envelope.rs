//! JSON-RPC 2.0 messages: reading and writing their lines.
//!
//! What is wrong with a message is said without repeating any of it: it may hold typed text.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::{ErrorCode, ErrorObject, Refusal};
use crate::method::Method;
use crate::params::explain;

/// What ties an answer to its request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Id {
    /// A number.
    Number(serde_json::Number),
    /// A text.
    Text(String),
    /// The id of an answer to something whose id could not be read.
    Null,
}

impl From<u64> for Id {
    fn from(number: u64) -> Self {
        Self::Number(number.into())
    }
}

/// A request, or a notification if it has no id.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// What the answer carries; a notification gets none.
    pub id: Option<Id>,
    /// The method's name.
    pub method: String,
    /// The parameters, to be read with [`read_params`].
    pub params: Option<Value>,
}

/// A line that is no request, and what to answer.
#[derive(Clone, Debug, PartialEq)]
pub struct BadRequest {
    /// The id, where it could be read.
    pub id: Id,
    /// The answer.
    pub error: ErrorObject,
}

impl BadRequest {
    /// The answer to a request line over the limit.
    pub fn too_long() -> Self {
        let message = format!(
            "the line is longer than {} bytes and was skipped; send less at once",
            crate::MAX_REQUEST
        );
        Self {
            id: Id::Null,
            error: Refusal::new(ErrorCode::LineTooLong, message).into(),
        }
    }

    fn invalid(id: Id, message: &str) -> Self {
        let refusal = Refusal::new(ErrorCode::Malformed, message);
        Self {
            id,
            error: ErrorObject::numbered(-32600, refusal),
        }
    }
}

impl Request {
    /// Reads one line.
    pub fn parse(line: &[u8]) -> Result<Self, BadRequest> {
        let mut members = match serde_json::from_slice(line) {
            Ok(Value::Object(members)) => members,
            Ok(Value::Array(_)) => {
                let message = "batches are not supported; send one request a line";
                return Err(BadRequest::invalid(Id::Null, message));
            }
            Ok(_) => {
                let message = "a request is a JSON object with jsonrpc, id, method and params";
                return Err(BadRequest::invalid(Id::Null, message));
            }
            // Only the place: the text of the error could repeat the line.
            Err(error) => {
                let message = format!("the line is not JSON (column {})", error.column());
                let error = Refusal::new(ErrorCode::Malformed, message).into();
                return Err(BadRequest {
                    id: Id::Null,
                    error,
                });
            }
        };
        let id = match members.remove("id") {
            None => None,
            Some(Value::Null) => Some(Id::Null),
            Some(Value::Number(number)) => Some(Id::Number(number)),
            Some(Value::String(text)) => Some(Id::Text(text)),
            Some(_) => {
                let message = "`id` must be a number, a string or null";
                return Err(BadRequest::invalid(Id::Null, message));
            }
        };
        let invalid = |message| {
            let id = id.clone().unwrap_or(Id::Null);
            Err(BadRequest::invalid(id, message))
        };
        if members.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
            return invalid("`jsonrpc` must be \"2.0\"");
        }
        let Some(Value::String(method)) = members.remove("method") else {
            return invalid("`method` must be a string");
        };
        let params = members.remove("params").filter(|params| !params.is_null());
        Ok(Self { id, method, params })
    }

    /// Which method it is, or `method_unknown` with the list of those there are.
    pub fn method(&self) -> Result<Method, Refusal> {
        self.method.parse().map_err(|_| {
            let message = "there is no such method; `data.supported` lists those there are";
            Refusal::new(ErrorCode::MethodUnknown, message).with("supported", Method::names())
        })
    }
}

/// Reads the parameters of `method`; nothing given is the same as `{}`.
///
/// # Errors
/// `bad_params`, which names the parameter, also as `data.parameter`, and what it must be. It repeats
/// no value.
pub fn read_params<T: DeserializeOwned>(
    method: Method,
    params: Option<Value>,
) -> Result<T, Refusal> {
    let params = params.unwrap_or_else(|| Value::Object(Map::new()));
    if !params.is_object() {
        return Err(bad_params(method, "parameters must be an object"));
    }
    serde_path_to_error::deserialize(params).map_err(|error| {
        let problem = explain(method, &error);
        let refusal = bad_params(method, &problem.text);
        match problem.parameter {
            Some(name) => refusal.with("parameter", name),
            None => refusal,
        }
    })
}

/// `bad_params` for `method`, with what is wrong and the parameters there are.
pub fn bad_params(method: Method, problem: &str) -> Refusal {
    let message = format!("{method}: {problem}; it takes {}", method.shape());
    Refusal::new(ErrorCode::BadParams, message)
}

#[derive(Serialize)]
struct Outgoing<'a, R> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a Id>,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<&'a R>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a R>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a ErrorObject>,
}

impl<R> Outgoing<'_, R> {
    const EMPTY: Self = Self {
        jsonrpc: "2.0",
        id: None,
        method: None,
        params: None,
        result: None,
        error: None,
    };
}

fn line(message: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    Ok(line)
}

/// The line of a request, newline included.
///
/// # Errors
/// If `params` cannot be written as JSON, such as a map whose keys are not text.
pub fn request_line(id: &Id, method: &str, params: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    line(&Outgoing {
        id: Some(id),
        method: Some(method),
        params: Some(params),
        ..Outgoing::EMPTY
    })
}

/// The line of a notification, newline included.
///
/// # Errors
/// If `params` cannot be written as JSON.
pub fn notification_line(method: &str, params: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    line(&Outgoing {
        method: Some(method),
        params: Some(params),
        ..Outgoing::EMPTY
    })
}

/// The same for parameters that are JSON text on one line already.
pub fn notification_line_of(method: &str, params: &str) -> Vec<u8> {
    let mut line = Vec::with_capacity(params.len() + method.len() + 40);
    line.extend_from_slice(br#"{"jsonrpc":"2.0","method":""#);
    line.extend_from_slice(method.as_bytes());
    line.extend_from_slice(br#"","params":"#);
    line.extend_from_slice(params.as_bytes());
    line.extend_from_slice(b"}\n");
    line
}

/// The line of a result, newline included. A result over the limit, or one that cannot be
/// written as JSON, becomes an error.
pub fn result_line(id: &Id, result: &impl Serialize) -> Vec<u8> {
    let refusal = match line(&Outgoing {
        id: Some(id),
        result: Some(result),
        ..Outgoing::EMPTY
    }) {
        Ok(line) if line.len() <= crate::MAX_ANSWER + 1 => return line,
        Ok(_) => Refusal::new(
            ErrorCode::LineTooLong,
            format!(
                "the answer is longer than {} bytes; ask for less",
                crate::MAX_ANSWER
            ),
        ),
        Err(_) => Refusal::new(
            ErrorCode::Internal,
            "the answer could not be written as JSON",
        ),
    };
    error_line(id, refusal.into())
}

/// The line of an error, newline included.
pub fn error_line(id: &Id, error: ErrorObject) -> Vec<u8> {
    let message = Outgoing::<Value> {
        id: Some(id),
        error: Some(&error),
        ..Outgoing::EMPTY
    };
    // Text, numbers and JSON values with text keys can always be written.
    line(&message).unwrap_or_default()
}

/// What a host sends.
#[derive(Clone, Debug, PartialEq)]
pub enum Incoming {
    /// The answer to a request.
    Answer {
        /// The request's id.
        id: Id,
        /// What came of it.
        outcome: Result<Value, Refusal>,
    },
    /// News.
    Notification {
        /// Of what kind.
        method: String,
        /// What is new.
        params: Value,
    },
}

/// A line that no host sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the host sent something that is no answer")]
pub struct BadAnswer;

impl Incoming {
    /// Reads one line from a host.
    pub fn parse(line: &[u8]) -> Result<Self, BadAnswer> {
        let mut members: Map<String, Value> =
            serde_json::from_slice(line).map_err(|_| BadAnswer)?;
        if let Some(method) = members.remove("method") {
            let Value::String(method) = method else {
                return Err(BadAnswer);
            };
            let params = members.remove("params").unwrap_or(Value::Null);
            return Ok(Self::Notification { method, params });
        }
        let id = match members.remove("id") {
            Some(Value::Number(number)) => Id::Number(number),
            Some(Value::String(text)) => Id::Text(text),
            Some(Value::Null) => Id::Null,
            _ => return Err(BadAnswer),
        };
        let outcome = match (members.remove("result"), members.remove("error")) {
            (Some(result), None) => Ok(result),
            (None, Some(error)) => Err(ErrorObject::deserialize(error)
                .map_err(|_| BadAnswer)?
                .into()),
            _ => return Err(BadAnswer),
        };
        Ok(Self::Answer { id, outcome })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::{DesktopClickParams, DesktopTypeParams, ListParams};

    fn refused(line: &str) -> (Value, i64) {
        let bad = Request::parse(line.as_bytes()).unwrap_err();
        (serde_json::to_value(bad.id).unwrap(), bad.error.code)
    }

    #[test]
    fn requests_and_notifications() {
        let request = Request::parse(br#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#).unwrap();
        assert_eq!(request.id, Some(7.into()));
        assert_eq!(request.method(), Ok(Method::Ping));
        assert_eq!(request.params, None);
        let request =
            Request::parse(br#"{"jsonrpc":"2.0","method":"x","params":{"a":1}}"#).unwrap();
        assert_eq!(request.id, None);
        assert_eq!(request.params, Some(json!({"a": 1})));
        let refusal = request.method().unwrap_err();
        assert_eq!(refusal.code, ErrorCode::MethodUnknown);
        assert_eq!(
            refusal.data["supported"].as_array().unwrap().len(),
            Method::ALL.len()
        );
    }

    #[test]
    fn what_is_no_request() {
        assert_eq!(refused("{"), (Value::Null, -32700));
        assert_eq!(refused(""), (Value::Null, -32700));
        assert_eq!(refused("[]"), (Value::Null, -32600));
        assert_eq!(
            refused(r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#),
            (json!(null), -32600)
        );
        assert_eq!(refused("5"), (Value::Null, -32600));
        assert_eq!(refused(r#"{"id":1,"method":"ping"}"#), (json!(1), -32600));
        assert_eq!(
            refused(r#"{"jsonrpc":"2.0","id":"a"}"#),
            (json!("a"), -32600)
        );
        assert_eq!(
            refused(r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#),
            (json!(null), -32600)
        );
        assert_eq!(
            refused(r#"{"jsonrpc":"2.0","id":1,"method":5}"#),
            (json!(1), -32600)
        );
        let deep = "[".repeat(100_000);
        assert_eq!(refused(&deep), (Value::Null, -32700));
        assert_eq!(
            Request::parse(b"{\"a\":\"\xff\"}").unwrap_err().error.code,
            -32700
        );
    }

    #[test]
    fn parameters() {
        let click = read_params::<DesktopClickParams>(
            Method::DesktopClick,
            Some(json!({"x": 5, "y": -1, "button": 3})),
        );
        assert_eq!(click.unwrap().y, -1);
        assert!(read_params::<ListParams>(Method::List, None).is_ok());

        let error = |params| {
            read_params::<DesktopClickParams>(Method::DesktopClick, Some(params))
                .unwrap_err()
                .message
        };
        insta::assert_snapshot!(error(json!([1, 2])), @"desktop.click: parameters must be an object; it takes {desktop?, x, y, button?}");
        insta::assert_snapshot!(error(json!({"x": 1})), @"desktop.click: missing field `y`; it takes {desktop?, x, y, button?}");
        insta::assert_snapshot!(error(json!({"x": 1, "y": 1, "button": 4})), @"desktop.click: `button`: a button must be 1 (left), 2 (middle) or 3 (right); it takes {desktop?, x, y, button?}");
    }

    #[test]
    fn errors_never_repeat_typed_text() {
        for params in [
            json!({"text": "a", "method": "hunter2"}),
            json!({"text": ["hunter2"]}),
            json!({"text": "a", "hunter2": 1}),
            json!({"text": "a", "desktop": {"hunter2": 1}}),
            json!("hunter2"),
        ] {
            let refusal =
                read_params::<DesktopTypeParams>(Method::DesktopType, Some(params)).unwrap_err();
            assert!(!refusal.to_string().contains("hunter2"), "{refusal}");
            assert!(!format!("{refusal:?}").contains("hunter2"));
        }
        for line in [
            r#"{"jsonrpc":"2.0","id":1,"method":"desktop.type","params":{"text":"hunter2}}"#,
            r#"{"jsonrpc":"2.0","id":["hunter2"],"method":"desktop.type"}"#,
            r#"hunter2"#,
        ] {
            let bad = Request::parse(line.as_bytes()).unwrap_err();
            assert!(!format!("{bad:?}").contains("hunter2"), "{bad:?}");
        }
        let typed: DesktopTypeParams =
            read_params(Method::DesktopType, Some(json!({"text": "hunter2"}))).unwrap();
        assert!(!format!("{typed:?}").contains("hunter2"));
    }

    #[test]
    fn answers_read_back() {
        let line = result_line(&5.into(), &json!({"a": 1}));
        assert_eq!(
            line,
            b"{\"jsonrpc\":\"2.0\",\"id\":5,\"result\":{\"a\":1}}\n"
        );
        let read = Incoming::parse(&line).unwrap();
        assert_eq!(
            read,
            Incoming::Answer {
                id: 5.into(),
                outcome: Ok(json!({"a": 1}))
            }
        );

        let refusal = Refusal::new(ErrorCode::Paused, "wait").with("pauseReason", "requested");
        let line = error_line(&Id::Null, refusal.clone().into());
        let read = Incoming::parse(&line).unwrap();
        assert_eq!(
            read,
            Incoming::Answer {
                id: Id::Null,
                outcome: Err(refusal)
            }
        );

        // A null result is a result.
        assert!(matches!(
            Incoming::parse(&result_line(&5.into(), &())),
            Ok(Incoming::Answer {
                outcome: Ok(Value::Null),
                ..
            })
        ));
    }

    #[test]
    fn an_answer_over_the_limit_becomes_an_error() {
        let line = result_line(&1.into(), &"x".repeat(crate::MAX_ANSWER));
        let Ok(Incoming::Answer {
            outcome: Err(refusal),
            ..
        }) = Incoming::parse(&line)
        else {
            panic!("not an error");
        };
        assert_eq!(refusal.code, ErrorCode::LineTooLong);
    }

    proptest! {
        #[test]
        fn no_line_panics(line in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = Request::parse(&line);
            let _ = Incoming::parse(&line);
        }

        #[test]
        fn requests_read_back(id in any::<u64>(), method in ".{0,20}", text in ".{0,20}") {
            let line = request_line(&id.into(), &method, &json!({"text": text})).unwrap();
            let request = Request::parse(line.strip_suffix(b"\n").unwrap()).unwrap();
            prop_assert_eq!(request.id, Some(id.into()));
            prop_assert_eq!(request.method, method);
            prop_assert_eq!(request.params, Some(json!({"text": text})));
            prop_assert!(!line[..line.len() - 1].contains(&b'\n'));
        }
    }
}
