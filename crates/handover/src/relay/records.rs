//! What a record says, as far as the gate has to know: one JSON-RPC message a line, or a batch of them.
//!
//! A record is read without being taken apart: of a megabyte of arguments only its end is found. What two
//! readers could understand differently (a member twice, a member that differs in case alone, a carriage
//! return that some take for the end of a line) is no record, since a server could find a call in it that
//! was not seen here.

use std::fmt;

use handover_protocol::ErrorCode;
use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The longest record in bytes, its newline not counted.
pub(super) const MAX_RECORD: usize = 16 << 20;

/// The method that acts.
const CALL: &str = "tools/call";

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
    fn bad_call(id: &RawValue, message: impl Into<String>) -> Self {
        Self {
            number: -32602,
            code: ErrorCode::BadParams,
            id: Some(id.get().to_owned()),
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
        raw_id: &'a RawValue,
        tool: String,
    },
    /// Another request.
    Request {
        id: Id,
        raw_id: &'a RawValue,
        method: String,
    },
    /// A notification, or a request under the id null, which nothing can be answered to.
    Notification {
        method: String,
        params: Option<&'a RawValue>,
    },
    /// A response; without an id when the request could not be read.
    Response {
        id: Option<Id>,
        result: Option<&'a RawValue>,
        error: Option<&'a RawValue>,
    },
}

/// What a record is.
#[derive(Debug)]
pub(super) enum Record<'a> {
    /// Nothing but white space.
    Blank,
    /// One message.
    One(Message<'a>),
    /// Several, with the text of each.
    Batch(Vec<(&'a RawValue, Message<'a>)>),
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
            let items: Vec<&RawValue> = serde_json::from_str(text).map_err(Problem::malformed)?;
            let items = items
                .into_iter()
                .map(|item| Ok((item, message(item.get())?)));
            Ok(Record::Batch(items.collect::<Result<_, _>>()?))
        }
        Some(_) => Ok(Record::One(message(text)?)),
    }
}

/// The texts of the messages in a batch.
pub(super) fn items(record: &[u8]) -> Vec<&RawValue> {
    serde_json::from_slice(record).unwrap_or_default()
}

fn message(text: &str) -> Result<Message<'_>, Problem> {
    let names = ["id", "method", "params", "result", "error"];
    let [raw_id, method, params, result, error] =
        members(text, &names).map_err(Problem::malformed)?;
    let id = raw_id.map(identify).transpose()?.flatten();
    let Some(method) = method else {
        return Ok(Message::Response { id, result, error });
    };
    let method: String =
        serde_json::from_str(method.get()).map_err(|_| Problem::invalid("`method` is no text"))?;
    let (Some(id), Some(raw_id)) = (id, raw_id) else {
        return if method == CALL {
            Err(Problem::invalid(
                "a tool cannot be called without an id, under which the end of the call is told",
            ))
        } else {
            Ok(Message::Notification { method, params })
        };
    };
    if method != CALL {
        return Ok(Message::Request { id, raw_id, method });
    }
    let bad = |message: &str| Problem::bad_call(raw_id, message);
    let params = params.ok_or_else(|| bad("the call names no tool"))?;
    let [tool, task] = members(params.get(), &["name", "task"])
        .map_err(|error| bad(&format!("the call cannot be read: {error}")))?;
    if task.is_some_and(|task| task.get() != "null") {
        return Err(bad(
            "a call as a task goes on after its answer, so no person could take over safely; \
             call the tool without `task`",
        ));
    }
    let tool = tool.and_then(|tool| serde_json::from_str(tool.get()).ok());
    let tool = tool.ok_or_else(|| bad("the call names no tool"))?;
    Ok(Message::Call { id, raw_id, tool })
}

/// `None` for null.
fn identify(raw: &RawValue) -> Result<Option<Id>, Problem> {
    let text = raw.get();
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

/// The request that a `notifications/cancelled` is about.
pub(super) fn cancelled(params: Option<&RawValue>) -> Option<Id> {
    let [id] = members(params?.get(), &["requestId"]).ok()?;
    identify(id?).ok()?
}

/// Some members of an object, as they are written.
pub(super) fn members<'a, const N: usize>(
    text: &'a str,
    names: &[&str; N],
) -> serde_json::Result<[Option<&'a RawValue>; N]> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let found = Members(names).deserialize(&mut reader)?;
    reader.end()?;
    Ok(found)
}

struct Members<'n, const N: usize>(&'n [&'n str; N]);

impl<'de, const N: usize> DeserializeSeed<'de> for Members<'_, N> {
    type Value = [Option<&'de RawValue>; N];

    fn deserialize<D: serde::Deserializer<'de>>(self, reader: D) -> Result<Self::Value, D::Error> {
        reader.deserialize_map(self)
    }
}

impl<'de, const N: usize> Visitor<'de> for Members<'_, N> {
    type Value = [Option<&'de RawValue>; N];

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = [None; N];
        while let Some(name) = map.next_key_seed(Name(self.0))? {
            let Some(index) = name else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            if found[index].replace(map.next_value()?).is_some() {
                let name = self.0[index];
                return Err(Error::custom(format_args!("`{name}` is there twice")));
            }
        }
        Ok(found)
    }
}

/// Which of the names a member has.
struct Name<'n>(&'n [&'n str]);

impl<'de> DeserializeSeed<'de> for Name<'_> {
    type Value = Option<usize>;

    fn deserialize<D: serde::Deserializer<'de>>(self, reader: D) -> Result<Self::Value, D::Error> {
        reader.deserialize_str(self)
    }
}

impl Visitor<'_> for Name<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
        let index = self.0.iter().position(|known| resembles(name, known));
        match index {
            Some(index) if self.0[index] != name => Err(E::custom(format_args!(
                "`{}` is written `{}`",
                self.0[index],
                name.escape_debug()
            ))),
            index => Ok(index),
        }
    }
}

/// Whether a reader that does not look at case takes `name` for `known`, which is in ASCII.
fn resembles(name: &str, known: &str) -> bool {
    let folded = name.chars().map(|letter| match letter {
        'ſ' => 's',
        '\u{212a}' => 'k',
        letter => letter.to_ascii_lowercase(),
    });
    folded.eq(known.chars().map(|letter| letter.to_ascii_lowercase()))
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
        let id = |text: &str| identify(serde_json::from_str(text).unwrap()).unwrap();
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
            "7",
        ] {
            problem(text);
        }
        assert!(from_client(b"{\"method\":\"\xff\"}").is_err());
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
        let params: &RawValue = serde_json::from_str(r#"{"requestId":"a"}"#).unwrap();
        assert_eq!(cancelled(Some(params)), Some(Id::Text("a".into())));
    }
}
