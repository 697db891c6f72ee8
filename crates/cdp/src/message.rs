//! Reading and writing messages of the DevTools Protocol.
//!
//! Parameters and results are passed on as the bytes they came as. The envelope is always written anew, so
//! that the browser reads no other message than the gate has read.

use std::borrow::Cow;
use std::io::Write;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// The protocol's own number for a session that there is not.
pub const UNKNOWN_SESSION: i64 = -32001;
/// The number of refusals by the gate.
pub const REFUSED: i64 = -32050;
/// JSON-RPC's number for a message that is no JSON.
pub const NOT_JSON: i64 = -32700;
/// JSON-RPC's number for a message that is no command.
pub const NOT_A_COMMAND: i64 = -32600;
/// JSON-RPC's number for parameters that cannot be.
pub const BAD_PARAMS: i64 = -32602;
/// The protocol's own number for what failed.
pub const FAILED: i64 = -32000;

/// A command from a client. Each field at most once: serde refuses duplicates.
#[derive(Debug, Deserialize)]
pub(crate) struct Command<'a> {
    pub(crate) id: i64,
    #[serde(borrow)]
    pub(crate) method: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(crate) params: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "sessionId")]
    pub(crate) session: Option<Cow<'a, str>>,
}

/// What the browser sends: an answer if it has an id, else an event.
#[derive(Debug, Deserialize)]
pub(crate) struct FromBrowser<'a> {
    #[serde(default)]
    pub(crate) id: Option<i64>,
    #[serde(borrow, default)]
    pub(crate) method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(crate) params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) error: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "sessionId")]
    pub(crate) session: Option<Cow<'a, str>>,
}

/// Why a command was not passed on, in the words of the arbiter.
#[derive(Debug, Clone, PartialEq)]
pub struct Refused {
    /// The stable code, such as `human_control_active`.
    pub code: String,
    /// What is in the way, and what to do.
    pub message: String,
    /// What else there is to say, such as the lease.
    pub data: Map<String, Value>,
}

/// A session, as `sessionId`.
#[derive(Debug, Deserialize)]
pub(crate) struct OfSession<'a> {
    #[serde(borrow, rename = "sessionId")]
    pub(crate) session: Cow<'a, str>,
    #[serde(default, rename = "waitingForDebugger")]
    pub(crate) waiting: bool,
}

/// A request that the browser has stopped for a client, as `requestId`.
#[derive(Debug, Deserialize)]
pub(crate) struct OfRequest<'a> {
    #[serde(borrow, rename = "requestId")]
    pub(crate) request: Cow<'a, str>,
}

/// Whether sessions are to be flat.
#[derive(Debug, Deserialize)]
pub(crate) struct Flatten {
    #[serde(default)]
    pub(crate) flatten: Option<bool>,
    #[serde(default, rename = "autoAttach")]
    pub(crate) auto_attach: Option<bool>,
}

/// Whether input is to be ignored.
#[derive(Debug, Deserialize)]
pub(crate) struct Ignore {
    pub(crate) ignore: bool,
}

pub(crate) fn read<'a, T: Deserialize<'a>>(params: Option<&'a RawValue>) -> Option<T> {
    serde_json::from_str(params.map_or("{}", RawValue::get)).ok()
}

/// Writes a JSON string. Writing to memory does not fail.
fn quoted(out: &mut Vec<u8>, text: &str) {
    let _ = serde_json::to_writer(out, text);
}

fn end(mut out: Vec<u8>, session: Option<&str>) -> Vec<u8> {
    if let Some(session) = session {
        out.extend_from_slice(b",\"sessionId\":");
        quoted(&mut out, session);
    }
    out.push(b'}');
    out
}

/// A command for the browser.
pub(crate) fn command(
    id: u32,
    method: &str,
    params: Option<&RawValue>,
    session: Option<&str>,
) -> Vec<u8> {
    let params = params.map_or("{}", RawValue::get);
    let mut out = Vec::with_capacity(params.len() + method.len() + 96);
    let _ = write!(out, "{{\"id\":{id},\"method\":");
    quoted(&mut out, method);
    out.extend_from_slice(b",\"params\":");
    out.extend_from_slice(params.as_bytes());
    end(out, session)
}

/// An answer for a client; `member` is `result` or `error`.
pub(crate) fn answer(id: i64, member: &str, value: &RawValue, session: Option<&str>) -> Vec<u8> {
    let mut out = Vec::with_capacity(value.get().len() + 96);
    let _ = write!(out, "{{\"id\":{id},\"{member}\":{value}");
    end(out, session)
}

/// An event for a client.
pub(crate) fn event(method: &str, params: &str, session: Option<&str>) -> Vec<u8> {
    let mut out = Vec::with_capacity(params.len() + method.len() + 96);
    out.extend_from_slice(b"{\"method\":");
    quoted(&mut out, method);
    out.extend_from_slice(b",\"params\":");
    out.extend_from_slice(params.as_bytes());
    end(out, session)
}

#[derive(Serialize)]
struct Failure<'a> {
    id: Option<i64>,
    error: Value,
    #[serde(rename = "sessionId", skip_serializing_if = "Option::is_none")]
    session: Option<&'a str>,
}

/// An error of the gate's own, for a client.
pub(crate) fn error(
    id: Option<i64>,
    number: i64,
    message: &str,
    data: Option<Value>,
    session: Option<&str>,
) -> Vec<u8> {
    let mut error = json!({"code": number, "message": message});
    if let Some(data) = data {
        error["data"] = data;
    }
    serde_json::to_vec(&Failure { id, error, session }).unwrap_or_default()
}

/// A refusal, for a client.
pub(crate) fn refusal(id: i64, refused: &Refused, session: Option<&str>) -> Vec<u8> {
    let mut data = refused.data.clone();
    data.insert("code".into(), refused.code.clone().into());
    error(
        Some(id),
        REFUSED,
        &refused.message,
        Some(data.into()),
        session,
    )
}
