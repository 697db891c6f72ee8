//! What a record says, as far as the gate has to know: one JSON-RPC message a line, or a batch of them.
//!
//! A record is read without being taken apart: of a megabyte of arguments only its end is found. What two
//! readers could understand differently (a member twice, a member that differs in case alone, a carriage
//! return that some take for the end of a line) is no record, since a server could find a call in it that
//! was not seen here.

use std::fmt;

use handover_protocol::ErrorCode;

use super::scan::{self, Cursor, Fault, Members};

/// The longest record in bytes, its newline not counted.
pub(super) const MAX_RECORD: usize = 16 << 20;

/// What a record that waits takes beside its own bytes, about: empty ones must not pile up for nothing.
const BESIDE: usize = 128;

/// Most messages in a batch.
const MAX_BATCH: usize = 10_000;

/// The longest id as it is written, and the longest name of a tool, in bytes. They are kept while a call goes on.
const MAX_NAME: usize = 1024;

/// The method that acts.
const CALL: &str = "tools/call";

/// The method that gives a request up.
const CANCELLED: &str = "notifications/cancelled";

/// An id that a response repeats. Numbers that are equal are one id, however they are written.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Id {
    /// A number.
    Number(String),
    /// A text.
    Text(String),
}

/// Why something is no record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    /// JSON-RPC's number for it.
    pub(super) number: i64,
    /// Ours.
    pub(super) code: ErrorCode,
    /// The id to answer under, as JSON, if it could be read.
    pub(super) id: Option<String>,
    /// For people.
    pub(super) message: String,
}

impl Problem {
    fn malformed(message: impl fmt::Display) -> Self {
        Self {
            number: -32700,
            code: ErrorCode::Malformed,
            id: None,
            message: format!("the record cannot be read: {message}"),
        }
    }

    /// The record is JSON, but no message.
    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self {
            number: -32600,
            code: ErrorCode::BadParams,
            id: None,
            message: message.into(),
        }
    }

    /// The call of a tool cannot be passed on as it is.
    fn bad_call(id: &str, message: impl Into<String>) -> Self {
        Self {
            number: -32602,
            code: ErrorCode::BadParams,
            id: Some(id.to_owned()),
            message: message.into(),
        }
    }

    /// The record is over the limit.
    pub(super) fn too_long() -> Self {
        Self {
            code: ErrorCode::LineTooLong,
            ..Self::invalid(format!(
                "the record is longer than {MAX_RECORD} bytes; send less at once"
            ))
        }
    }
}

/// One message.
#[derive(Debug)]
pub(super) enum Message<'a> {
    /// A request to run a tool.
    Call {
        id: Id,
        raw_id: &'a str,
        tool: String,
    },
    /// Another request.
    Request {
        id: Id,
        raw_id: &'a str,
        method: String,
        params: Option<&'a str>,
    },
    /// A notification, or a request under the id null, which nothing can be answered to.
    Notification {
        method: String,
        /// The request that it cancels.
        cancels: Option<Id>,
    },
    /// A response; without an id when the request could not be read.
    Response {
        id: Option<Id>,
        result: Option<&'a str>,
        error: Option<&'a str>,
    },
}

/// What a record is.
#[derive(Debug)]
pub(super) enum Record<'a> {
    /// Nothing but white space.
    Blank,
    /// One message.
    One(Message<'a>),
    /// Several.
    Batch(Vec<Message<'a>>),
}

/// Reads a record of the client, without its newline.
///
/// # Errors
/// If it is none, or one that a server could read differently.
pub(super) fn from_client(record: &[u8]) -> Result<Record<'_>, Problem> {
    let line = record.strip_suffix(b"\r").unwrap_or(record);
    if memchr::memchr(b'\r', line).is_some() {
        return Err(Problem::malformed("there is a carriage return in it"));
    }
    read(record)
}

/// Reads a record, without its newline.
///
/// # Errors
/// If it is none.
pub(super) fn read(record: &[u8]) -> Result<Record<'_>, Problem> {
    let text = std::str::from_utf8(record).map_err(Problem::malformed)?;
    match text.trim_ascii_start().as_bytes().first() {
        None => Ok(Record::Blank),
        Some(b'[') => {
            let items = scan::elements(text, MAX_BATCH).map_err(Problem::malformed)?;
            let items = items.into_iter().map(message);
            Ok(Record::Batch(items.collect::<Result<_, _>>()?))
        }
        Some(_) => Ok(Record::One(message(text)?)),
    }
}

/// How many bytes a record counts for while it waits.
pub(super) fn weight(record: &[u8]) -> usize {
    record.len() + BESIDE
}

/// The texts of the messages in a batch.
pub(super) fn items(record: &[u8]) -> Vec<&str> {
    let text = std::str::from_utf8(record).unwrap_or_default();
    scan::elements(text, MAX_BATCH).unwrap_or_default()
}

/// What is looked for in `params`: what a call has, and what a cancellation.
const IN_PARAMS: [&str; 3] = ["name", "task", "requestId"];

type Params<'a> = Members<'a, { IN_PARAMS.len() }>;

/// The members of a message, and those of its `params` if that is an object. Both are found in one pass.
fn parts(text: &str) -> Result<([Option<&str>; 5], Option<Params<'_>>), Fault> {
    const NAMES: [&str; 5] = ["id", "method", "params", "result", "error"];
    const PARAMS: usize = 2;
    let mut inner = None;
    let mut cursor = Cursor::new(text);
    let members = cursor.members(&NAMES, |cursor, index| {
        if index != PARAMS || !cursor.is_at_object() {
            return cursor.value();
        }
        let (written, members) =
            cursor.passed(|cursor| cursor.members(&IN_PARAMS, |cursor, _| cursor.value()))?;
        inner = Some(members);
        Ok(written)
    })?;
    cursor.end()?;
    Ok((members.clear()?, inner))
}

fn message(text: &str) -> Result<Message<'_>, Problem> {
    let ([raw_id, method, params, result, error], inner) =
        parts(text).map_err(Problem::malformed)?;
    let id = raw_id.map(identify).transpose()?.flatten();
    let Some(method) = method else {
        return Ok(Message::Response { id, result, error });
    };
    let method: String =
        serde_json::from_str(method).map_err(|_| Problem::invalid("`method` is no text"))?;
    if method.contains('\0') {
        return Err(Problem::invalid("there is a null character in `method`"));
    }
    let (Some(id), Some(raw_id)) = (id, raw_id) else {
        return if method == CALL {
            Err(Problem::invalid(
                "a tool cannot be called without an id, under which the end of the call is told",
            ))
        } else {
            let cancels = (method == CANCELLED).then(|| inner.and_then(cancelled));
            Ok(Message::Notification {
                method,
                cancels: cancels.flatten(),
            })
        };
    };
    if method != CALL {
        return Ok(Message::Request {
            id,
            raw_id,
            method,
            params,
        });
    }
    let bad = |message: &str| Problem::bad_call(raw_id, message);
    let inner = inner.ok_or_else(|| bad("the call names no tool"))?;
    let [tool, task, _] = inner
        .clear()
        .map_err(|fault| bad(&format!("the call cannot be read: {fault}")))?;
    if task.is_some_and(|task| task != "null") {
        return Err(bad(
            "a call as a task goes on after its answer, so no person could take over safely; \
             call the tool without `task`",
        ));
    }
    let tool = tool.and_then(|tool| serde_json::from_str::<String>(tool).ok());
    let tool = tool.ok_or_else(|| bad("the call names no tool"))?;
    if tool.len() > MAX_NAME || tool.contains('\0') {
        return Err(bad(&format!(
            "the tool's name is longer than {MAX_NAME} bytes, or has a null character in it"
        )));
    }
    Ok(Message::Call { id, raw_id, tool })
}

/// `None` for null.
fn identify(text: &str) -> Result<Option<Id>, Problem> {
    if text.len() > MAX_NAME {
        let message = format!("`id` is longer than {MAX_NAME} bytes");
        return Err(Problem::invalid(message));
    }
    match text.as_bytes().first() {
        Some(b'n') => Ok(None),
        Some(b'"') => Ok(serde_json::from_str(text).map(Id::Text).ok()),
        Some(b'-' | b'0'..=b'9') => Ok(Some(Id::Number(number(text)))),
        _ => Err(Problem::invalid("`id` is neither a text nor a number")),
    }
}

/// One way to write each number.
fn number(text: &str) -> String {
    /// Up to here every integer is a number of its own to programs that have only floating point.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if let Ok(integer) = text.parse::<i128>() {
        return integer.to_string();
    }
    match text.parse::<f64>() {
        Ok(float) if float.fract() == 0.0 && float.abs() < EXACT => {
            // Exact, as just checked.
            (float as i64).to_string()
        }
        Ok(float) => float.to_string(),
        Err(_) => text.to_owned(),
    }
}

/// The request that a cancellation with these parameters is about.
fn cancelled(params: Params<'_>) -> Option<Id> {
    let [.., id] = params.clear().ok()?;
    identify(id?).ok()?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Message<'_> {
        match from_client(text.as_bytes()) {
            Ok(Record::One(message)) => message,
            other => panic!("{text}: {other:?}"),
        }
    }

    fn problem(text: &str) -> Problem {
        match from_client(text.as_bytes()) {
            Err(problem) => problem,
            Ok(record) => panic!("{text}: {record:?}"),
        }
    }

    #[test]
    fn a_call_is_found_however_it_is_written() {
        for text in [
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"click","arguments":{"name":"x"}}}"#,
            r#"{"params":{"arguments":{},"name":"click"},"method":"tools\/call","id":7.0}"#,
            r#" {"m\u0065thod":"tools/c\u0061ll","id":7e0,"params":{"n\u0061me":"cl\u0069ck"}} "#,
        ] {
            let Message::Call { id, tool, .. } = one(text) else {
                panic!("{text}");
            };
            assert_eq!((id, &*tool), (Id::Number("7".into()), "click"));
        }
    }

    #[test]
    fn ids_of_different_types_differ() {
        let id = |text: &str| identify(text).unwrap();
        assert_eq!(id("1"), id("1.0"));
        assert_eq!(id("0"), id("-0"));
        assert_ne!(id("1"), id("\"1\""));
        assert_ne!(id("9007199254740992"), id("9007199254740993"));
        assert_eq!(id("null"), None);
        assert_eq!(id(r#""a""#), id(r#""\u0061""#));
    }

    #[test]
    fn what_can_be_read_in_two_ways_is_no_record() {
        for text in [
            r#"{"id":1,"method":"ping","method":"tools/call","params":{"name":"x"}}"#,
            r#"{"id":1,"method":"ping","Method":"tools/call","params":{"name":"x"}}"#,
            r#"{"id":1,"method":"tools/call","params":{"name":"x"},"paramſ":{"name":"y"}}"#,
            r#"{"id":1,"method":"tools/call","params":{"name":"x","Name":"y"}}"#,
            r#"{"id":1,"id":2,"method":"tools/call","params":{"name":"x"}}"#,
            "{\"method\":\"a\",\"params\":\r{\"id\":1,\"method\":\"tools/call\"}\r}",
            r#"{"id":1,"method":"ping"}{"id":2,"method":"tools/call"}"#,
            r#"{"id":1,"method":["tools/call"]}"#,
            r#"{"id":[1],"method":"tools/call","params":{"name":"x"}}"#,
            r#"{"id":1,"method":"tools/call","params":{"name":["x"]}}"#,
            r#"{"id":1,"method":"tools/call","params":["x"]}"#,
            r#"{"method":"tools/call","params":{"name":"x"}}"#,
            r#"{"id":null,"method":"tools/call","params":{"name":"x"}}"#,
            r#"{"id":1,"method":"tools/call","params":{"name":"x","task":{}}}"#,
            r#"[[{"id":1,"method":"tools/call","params":{"name":"x"}}]]"#,
            r#"{"id":NaN,"method":"ping"}"#,
            r#"{"id":1,"method":"ping","method\u0000":"tools/call","params":{"name":"x"}}"#,
            r#"{"id":1,"method":"tools/call\u0000","params":{"name":"x"}}"#,
            r#"{"id":1,"method":"tools/call","params":{"name":"x\u0000_screenshot"}}"#,
            r#"{"id":"\ud800","method":"tools/call","params":{"name":"x"}}"#,
            "\u{feff}{\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"x\"}}",
            "7",
        ] {
            problem(text);
        }
        assert!(from_client(b"{\"method\":\"\xff\"}").is_err());
    }

    #[test]
    fn what_is_kept_is_short() {
        let long = "x".repeat(MAX_NAME);
        problem(&format!(r#"{{"id":"{long}","method":"ping"}}"#));
        problem(&format!(
            r#"{{"id":1{},"method":"ping"}}"#,
            "0".repeat(MAX_NAME)
        ));
        let call = |tool: &str| {
            format!(r#"{{"id":1,"method":"tools/call","params":{{"name":"{tool}"}}}}"#)
        };
        assert_eq!(problem(&call(&format!("{long}x"))).id.as_deref(), Some("1"));
        assert!(matches!(one(&call(&long)), Message::Call { .. }));
        let batch = |length: usize| format!("[{}]", vec!["{}"; length].join(","));
        problem(&batch(MAX_BATCH + 1));
        let full = batch(MAX_BATCH);
        assert!(matches!(from_client(full.as_bytes()), Ok(Record::Batch(_))));
    }

    #[test]
    fn what_else_there_is() {
        assert!(matches!(from_client(b" \r"), Ok(Record::Blank)));
        assert!(matches!(
            one("{\"method\":\"x\"}\r"),
            Message::Notification { .. }
        ));
        assert!(matches!(
            one(r#"{"id":1,"method":"x"}"#),
            Message::Request { .. }
        ));
        assert!(matches!(
            one(r#"{"id":1,"result":{"method":"tools/call"}}"#),
            Message::Response {
                id: Some(_),
                error: None,
                ..
            }
        ));
        let batch = from_client(br#"[{"id":1,"method":"x"},{"id":null,"error":{}}]"#);
        assert!(matches!(batch, Ok(Record::Batch(items)) if items.len() == 2));
        assert_eq!(problem("{").number, -32700);
        let cancel = one(r#"{"method":"notifications/cancelled","params":{"requestId":"a"}}"#);
        let a = Id::Text("a".into());
        assert!(matches!(cancel, Message::Notification { cancels: Some(id), .. } if id == a));
    }
}
