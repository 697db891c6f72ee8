//! The messages of the live connection: those of the attach socket, each with its session.

use std::borrow::Cow;

use handover_protocol::Refusal;
use handover_protocol::envelope::Id;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// What a browser asks.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request<'a> {
    /// Of which session.
    #[serde(borrow)]
    pub session: Cow<'a, str>,
    /// What the answer carries.
    pub id: Id,
    /// The method.
    #[serde(borrow)]
    pub method: Cow<'a, str>,
    /// Its parameters, as they are.
    #[serde(borrow, default)]
    pub params: Option<&'a RawValue>,
}

/// What a host says, as much of it as must be understood.
#[derive(Debug, Deserialize)]
pub struct Said<'a> {
    /// The number of the call that it answers; the id of an answer to no call is `null`.
    #[serde(default)]
    pub id: Option<u64>,
    /// What it tells unasked.
    #[serde(borrow, default)]
    pub method: Option<Cow<'a, str>>,
    /// The parameters of that.
    #[serde(borrow, default)]
    pub params: Option<&'a RawValue>,
    /// What came of the call, be it `null`.
    #[serde(borrow, default, deserialize_with = "there")]
    pub result: Option<&'a RawValue>,
    /// Or why nothing came of it.
    #[serde(borrow, default)]
    pub error: Option<&'a RawValue>,
}

/// Something that is there, `null` among it.
fn there<'de: 'a, 'a, D: Deserializer<'de>>(from: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

/// What a browser is told.
#[derive(Debug, Default, Serialize)]
pub struct Told<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a Id>,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a RawValue>,
}

impl<'a> Told<'a> {
    /// The answer of a host.
    pub fn answer(session: &'a str, id: &'a Id, said: &Said<'a>) -> Self {
        Self {
            session: Some(session),
            id: Some(id),
            result: said.result,
            error: said.error,
            ..Self::default()
        }
    }

    /// News.
    pub fn news(session: Option<&'a str>, method: &'a str, params: &'a RawValue) -> Self {
        Self {
            session,
            method: Some(method),
            params: Some(params),
            ..Self::default()
        }
    }

    /// Its text.
    pub fn text(&self) -> String {
        // Texts, numbers and JSON can always be written.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// The text of an answer whose result the console has changed.
pub fn result(session: &str, id: &Id, result: &Value) -> String {
    let result = raw(result);
    Told {
        session: Some(session),
        id: Some(id),
        result: Some(&result),
        ..Told::default()
    }
    .text()
}

/// The text of a refusal by the console itself.
pub fn refused(session: &str, id: &Id, refusal: Refusal) -> String {
    let error = handover_protocol::ErrorObject::from(refusal);
    let error = raw(&error);
    Told {
        session: Some(session),
        id: Some(id),
        error: Some(&error),
        ..Told::default()
    }
    .text()
}

/// The text of news of the console's own.
pub fn news(session: Option<&str>, method: &str, params: &Value) -> String {
    Told::news(session, method, &raw(params)).text()
}

fn raw(value: &impl Serialize) -> Box<RawValue> {
    serde_json::value::to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

#[cfg(test)]
mod tests {
    use handover_protocol::ErrorCode;
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_passes_as_it_was_written() {
        let line = r#"{"jsonrpc":"2.0","id":7,"result":{ "a" : 1e2 , "b":[ ] }}"#;
        let said: Said<'_> = serde_json::from_str(line).unwrap();
        assert_eq!(said.id, Some(7));
        let told = Told::answer("s1", &Id::Text("x".into()), &said).text();
        assert_eq!(
            told,
            r#"{"session":"s1","id":"x","result":{ "a" : 1e2 , "b":[ ] }}"#
        );
        let said: Said<'_> = serde_json::from_str(r#"{"id":7,"result":null}"#).unwrap();
        let told = Told::answer("s1", &7.into(), &said).text();
        assert_eq!(told, r#"{"session":"s1","id":7,"result":null}"#);
        let line = r#"{"jsonrpc":"2.0","id":8,"error":{"code":-32000,"message":"m","data":{}}}"#;
        let said: Said<'_> = serde_json::from_str(line).unwrap();
        let told = Told::answer("s1", &8.into(), &said).text();
        assert_eq!(
            told,
            r#"{"session":"s1","id":8,"error":{"code":-32000,"message":"m","data":{}}}"#
        );
    }

    #[test]
    fn requests() {
        let read = |text| serde_json::from_str::<Request<'_>>(text);
        let request = read(r#"{"session":"s1","id":1,"method":"li\u0073t"}"#).unwrap();
        assert_eq!((&*request.session, &*request.method), ("s1", "list"));
        assert!(request.params.is_none());
        for wrong in [
            "",
            "7",
            "{}",
            r#"{"session":"s1","id":1}"#,
            r#"{"session":"s1","id":{},"method":"list"}"#,
            r#"{"session":"s1","session":"s2","id":1,"method":"list"}"#,
            r#"{"session":"s1","id":1,"method":"list","method":"stop"}"#,
            r#"{"session":"s1","id":1,"method":"list","params":{},"params":{}}"#,
            r#"{"session":"s1","id":1,"method":"list","more":1}"#,
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_consoles_own_words() {
        let refusal = Refusal::new(ErrorCode::QueueFull, "wait");
        let told: Value = serde_json::from_str(&refused("s1", &1.into(), refusal)).unwrap();
        assert_eq!(told["error"]["code"], -32000);
        assert_eq!(told["error"]["data"]["code"], "queue_full");
        assert_eq!(
            news(None, "sessions", &json!({"a": 1})),
            r#"{"method":"sessions","params":{"a":1}}"#
        );
    }
}
