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
    #[serde(borrow, default, rename = "targetInfo")]
    pub(crate) of: Option<OfTarget<'a>>,
}

/// What a session is attached to.
#[derive(Debug, Deserialize)]
pub(crate) struct OfTarget<'a> {
    #[serde(borrow, rename = "targetId")]
    pub(crate) target: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(crate) r#type: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(crate) url: Cow<'a, str>,
}

/// A request that the browser has stopped for a client, as `requestId`.
#[derive(Debug, Deserialize)]
pub(crate) struct OfRequest<'a> {
    #[serde(borrow, rename = "requestId")]
    pub(crate) request: Cow<'a, str>,
}

/// The request that a command is about, if it is about one.
#[derive(Debug, Deserialize)]
pub(crate) struct AboutRequest<'a> {
    #[serde(borrow, default, rename = "requestId")]
    pub(crate) request: Option<Cow<'a, str>>,
}

/// Code that the browser is to run by itself, at a time that nobody can tell.
#[derive(Debug, Deserialize)]
pub(crate) struct RunLater<'a> {
    /// Where a breakpoint is reached.
    #[serde(borrow, default)]
    condition: Option<Cow<'a, str>>,
    /// In a page that is loaded again, once it has come.
    #[serde(borrow, default, rename = "scriptToEvaluateOnLoad")]
    on_load: Option<Cow<'a, str>>,
}

impl RunLater<'_> {
    /// Says what is wrong if there is such code: it could begin while a person is in control.
    pub(crate) fn is_nothing(&self) -> Result<(), &'static str> {
        let is_there =
            |code: &Option<Cow<'_, str>>| code.as_deref().is_some_and(|code| !code.is_empty());
        if is_there(&self.condition) {
            return Err(
                "breakpoints have no conditions on a browser desktop, since those are code that would run while a person is in control",
            );
        }
        if is_there(&self.on_load) {
            return Err(
                "pages are loaded again without a script on a browser desktop, since it could begin while a person is in control; use Page.addScriptToEvaluateOnNewDocument",
            );
        }
        Ok(())
    }
}

/// Whether sessions are to be flat.
#[derive(Debug, Deserialize)]
pub(crate) struct Flatten {
    #[serde(default)]
    pub(crate) flatten: Option<bool>,
    #[serde(default, rename = "autoAttach")]
    pub(crate) auto_attach: Option<bool>,
}

/// Whether input is to be ignored, or drags, file choosers or clicks kept from the person.
#[derive(Debug, Deserialize)]
pub(crate) struct Toggle {
    #[serde(default, deserialize_with = "given")]
    ignore: bool,
    #[serde(default, deserialize_with = "given")]
    enabled: bool,
    /// Which elements a click picks instead of being one.
    #[serde(default, deserialize_with = "given")]
    mode: String,
}

impl Toggle {
    pub(crate) fn is_on(&self) -> bool {
        self.ignore || self.enabled || !matches!(self.mode.as_str(), "" | "none")
    }
}

/// A member that is null is as if it were not there.
pub(crate) fn given<'de, D, T>(value: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Option::<T>::deserialize(value).map(Option::unwrap_or_default)
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

/// The answer to a client's command that the gate has dealt with itself.
pub(crate) fn done(id: i64, session: Option<&str>) -> Vec<u8> {
    end(
        format!("{{\"id\":{id},\"result\":{{}}").into_bytes(),
        session,
    )
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

/// A refusal, for a client. The message has the code too: Puppeteer, for one, shows an error's message and no
/// members of its data.
pub(crate) fn refusal(
    id: i64,
    code: &str,
    text: &str,
    mut data: Map<String, Value>,
    session: Option<&str>,
) -> Vec<u8> {
    data.insert("code".into(), code.into());
    let message = format!("{text} [{code}]");
    error(Some(id), REFUSED, &message, Some(data.into()), session)
}
