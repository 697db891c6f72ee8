//! Refusals: the stable codes, and the one error value that hosts and clients share.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// The stable code of a refusal (`error.data.code` on the wire).
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
            JsonSchema,
        )]
        pub enum ErrorCode {
            $($(#[$doc])* #[serde(rename = $name)] $variant,)*
        }

        impl ErrorCode {
            /// Every code.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The code as it stands on the wire.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }

        impl FromStr for ErrorCode {
            type Err = UnknownCode;

            fn from_str(name: &str) -> Result<Self, UnknownCode> {
                match name { $($name => Ok(Self::$variant),)* _ => Err(UnknownCode) }
            }
        }
    };
}

codes! {
    /// The line is not a JSON object.
    Malformed = "malformed",
    /// The line, or the answer to it, is longer than the protocol allows.
    LineTooLong = "line_too_long",
    /// There is no such method; `data.supported` lists those there are.
    MethodUnknown = "method_unknown",
    /// The parameters do not fit the method.
    BadParams = "bad_params",
    /// The other side speaks another version of the protocol.
    ProtocolMismatch = "protocol_mismatch",
    /// A fault of our own.
    Internal = "internal",
    /// Nothing happened within the time given.
    Timeout = "timeout",
    /// The record cannot be written, so nothing that grants power is done.
    StorageFailed = "storage_failed",
    /// The caller may not do this.
    CallerRefused = "caller_refused",
    /// A person is in control of the desktop; `data.lease` says who.
    HumanControlActive = "human_control_active",
    /// Another person holds the lease; `data.lease` says who.
    HumanLeaseHeld = "human_lease_held",
    /// The lease is no longer live, or never was.
    LeaseStale = "lease_stale",
    /// The agents' actions did not end in time, so control was not taken.
    DrainTimeout = "drain_timeout",
    /// The desktop is paused; `data.pauseReason` says why.
    Paused = "paused",
    /// A person took control during the action; `data` says how far it got.
    InterruptedByHuman = "interrupted_by_human",
    /// A person acted since the caller's last screenshot.
    StaleObservation = "stale_observation",
    /// The person in control asked not to be watched.
    Private = "private",
    /// There is no such agent.
    AgentUnknown = "agent_unknown",
    /// The agent has ended or not begun; `data.status` says which.
    AgentNotRunning = "agent_not_running",
    /// The agent's program takes no messages while it runs.
    NotSteerable = "not_steerable",
    /// There are too many of them already.
    QueueFull = "queue_full",
    /// There is no such desktop.
    DesktopUnknown = "desktop_unknown",
    /// The desktop has ended.
    DesktopGone = "desktop_gone",
    /// The display does not answer.
    DisplayUnavailable = "display_unavailable",
    /// A program connected to the display past the gate.
    ForeignConnection = "foreign_connection",
    /// The point lies outside the desktop; `data.width` and `data.height` give its size.
    OutOfBounds = "out_of_bounds",
    /// There is no key of that name.
    UnknownKey = "unknown_key",
    /// The text holds something that cannot be typed.
    TextUntypable = "text_untypable",
    /// There is no such session, or no host serves it.
    SessionUnknown = "session_unknown",
    /// Several sessions fit; name one.
    SessionAmbiguous = "session_ambiguous",
    /// The project already has a live session.
    AlreadyRunning = "already_running",
}

impl ErrorCode {
    /// The JSON-RPC error number that carries this code.
    pub const fn rpc_code(self) -> i64 {
        match self {
            Self::Malformed => -32700,
            Self::LineTooLong => -32600,
            Self::MethodUnknown => -32601,
            Self::BadParams => -32602,
            _ => -32000,
        }
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A name that is no [`ErrorCode`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown error code")]
pub struct UnknownCode;

/// Why something was not done: a stable code, what to do about it, and facts by name.
///
/// The message never repeats text that was being typed, nor a token.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// The stable code.
    pub code: ErrorCode,
    /// One sentence for a person, which says what to do.
    pub message: String,
    /// Facts that a program can use, such as `lease`, `status` or `supported`.
    pub data: Map<String, Value>,
}

impl Refusal {
    /// A refusal without further facts.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: Map::new(),
        }
    }

    /// `bad_params`, with the name of the parameter that is wrong.
    pub fn bad_param(parameter: &str, message: impl Into<String>) -> Self {
        Self::new(ErrorCode::BadParams, message).with("parameter", parameter)
    }

    /// Adds one fact. A value that cannot be written as JSON is left out.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Serialize) -> Self {
        if let Ok(value) = serde_json::to_value(value) {
            self.data.insert(name.to_owned(), value);
        }
        self
    }

    /// A fact by name, read as `T`; `None` if it is missing or of another shape.
    pub fn fact<T: serde::de::DeserializeOwned>(&self, name: &str) -> Option<T> {
        self.data
            .get(name)
            .and_then(|value| T::deserialize(value).ok())
    }
}

/// The `error` member of a JSON-RPC answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ErrorObject {
    /// The JSON-RPC number.
    pub code: i64,
    /// One sentence for a person.
    pub message: String,
    /// Facts, among them `code`, the stable code.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub data: Map<String, Value>,
}

impl ErrorObject {
    /// A refusal under another number than its code's own, for requests that are no requests.
    pub fn numbered(code: i64, refusal: Refusal) -> Self {
        let mut data = refusal.data;
        data.insert("code".to_owned(), refusal.code.as_str().into());
        Self {
            code,
            message: refusal.message,
            data,
        }
    }
}

impl From<Refusal> for ErrorObject {
    fn from(refusal: Refusal) -> Self {
        Self::numbered(refusal.code.rpc_code(), refusal)
    }
}

impl From<ErrorObject> for Refusal {
    /// Codes that this version does not know become `internal`; the message stays.
    fn from(mut error: ErrorObject) -> Self {
        let code = match error.data.remove("code").as_ref().and_then(Value::as_str) {
            Some(name) => name.parse().unwrap_or(ErrorCode::Internal),
            None => match error.code {
                -32700 | -32600 => ErrorCode::Malformed,
                -32601 => ErrorCode::MethodUnknown,
                -32602 => ErrorCode::BadParams,
                _ => ErrorCode::Internal,
            },
        };
        Self {
            code,
            message: error.message,
            data: error.data,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_of_codes() {
        let table: Vec<_> = ErrorCode::ALL
            .iter()
            .map(|code| format!("{} {code}", code.rpc_code()))
            .collect();
        insta::assert_snapshot!(table.join("\n"), @"
        -32700 malformed
        -32600 line_too_long
        -32601 method_unknown
        -32602 bad_params
        -32000 protocol_mismatch
        -32000 internal
        -32000 timeout
        -32000 storage_failed
        -32000 caller_refused
        -32000 human_control_active
        -32000 human_lease_held
        -32000 lease_stale
        -32000 drain_timeout
        -32000 paused
        -32000 interrupted_by_human
        -32000 stale_observation
        -32000 private
        -32000 agent_unknown
        -32000 agent_not_running
        -32000 not_steerable
        -32000 queue_full
        -32000 desktop_unknown
        -32000 desktop_gone
        -32000 display_unavailable
        -32000 foreign_connection
        -32000 out_of_bounds
        -32000 unknown_key
        -32000 text_untypable
        -32000 session_unknown
        -32000 session_ambiguous
        -32000 already_running
        ");
    }

    #[test]
    fn names_read_back() {
        for &code in ErrorCode::ALL {
            assert_eq!(code.as_str().parse(), Ok(code));
            assert_eq!(serde_json::to_value(code).unwrap(), code.as_str());
        }
    }

    #[test]
    fn a_refusal_survives_the_wire() {
        let refusal = Refusal::new(ErrorCode::AgentNotRunning, "it has ended; see `result`")
            .with("status", "done");
        let wire = serde_json::to_value(ErrorObject::from(refusal.clone())).unwrap();
        assert_eq!(wire["code"], -32000);
        assert_eq!(wire["data"]["code"], "agent_not_running");
        assert_eq!(wire["data"]["status"], "done");
        let back: ErrorObject = serde_json::from_value(wire).unwrap();
        assert_eq!(Refusal::from(back), refusal);
    }

    #[test]
    fn foreign_errors_are_understood() {
        let error = ErrorObject {
            code: -32601,
            message: "no".into(),
            data: Map::new(),
        };
        assert_eq!(Refusal::from(error).code, ErrorCode::MethodUnknown);
    }
}
