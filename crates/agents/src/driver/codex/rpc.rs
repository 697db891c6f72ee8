//! The messages of `codex app-server`: JSON-RPC without its version, one message a line.

use serde_json::{Value, json};

use crate::driver::json::{line, text};

/// What the program said.
#[derive(Debug, PartialEq)]
pub(super) enum Incoming {
    /// The answer to our request.
    Reply {
        /// Our number.
        id: u64,
        /// The result, or the error's code and message.
        result: Result<Value, Failure>,
    },
    /// The program asks us.
    Request {
        /// Its name for the question, a number or a string.
        id: Value,
        /// What it asks.
        method: String,
        /// The particulars.
        params: Value,
    },
    /// The program tells us.
    Notice {
        /// What happened.
        method: String,
        /// The particulars.
        params: Value,
    },
}

/// An error of the program.
#[derive(Debug, PartialEq)]
pub(super) struct Failure {
    /// In the program's words; the only thing that tells its errors apart.
    pub(super) message: String,
}

/// Reads one line. What is no message is passed over.
pub(super) fn parse(line: &[u8]) -> Option<Incoming> {
    let Value::Object(mut message) = serde_json::from_slice(line).ok()? else {
        return None;
    };
    let params = message.remove("params").unwrap_or(Value::Null);
    let id = message.remove("id").filter(|id| !id.is_null());
    match (message.remove("method"), id) {
        (Some(Value::String(method)), Some(id)) => Some(Incoming::Request { id, method, params }),
        (Some(Value::String(method)), None) => Some(Incoming::Notice { method, params }),
        (None, Some(id)) => {
            let result = match (message.remove("result"), message.remove("error")) {
                (_, Some(error)) => Err(Failure {
                    message: text(&error, "/message").unwrap_or("error").to_owned(),
                }),
                (Some(result), None) => Ok(result),
                (None, None) => return None,
            };
            Some(Incoming::Reply {
                id: id.as_u64()?,
                result,
            })
        }
        _ => None,
    }
}

/// A request of ours, with its newline.
pub(super) fn request(id: u64, method: &str, params: Value) -> Vec<u8> {
    line(&json!({"id": id, "method": method, "params": params}))
}

/// A notice of ours, with its newline.
pub(super) fn notice(method: &str) -> Vec<u8> {
    line(&json!({"method": method}))
}

/// Our answer to the program's question, with its newline.
pub(super) fn answer(id: &Value, result: Value) -> Vec<u8> {
    line(&json!({"id": id, "result": result}))
}

/// Our refusal of the program's question, with its newline.
pub(super) fn refuse(id: &Value, message: &str) -> Vec<u8> {
    // -32601 is JSON-RPC's "method not found".
    line(&json!({"id": id, "error": {"code": -32601, "message": message}}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_replies_requests_and_notices_apart() {
        assert_eq!(
            parse(br#"{"id":5,"result":{"turnId":"t"}}"#),
            Some(Incoming::Reply {
                id: 5,
                result: Ok(json!({"turnId": "t"}))
            })
        );
        assert_eq!(
            parse(br#"{"error":{"code":-32600,"message":"no"},"id":6}"#),
            Some(Incoming::Reply {
                id: 6,
                result: Err(Failure {
                    message: "no".to_owned()
                })
            })
        );
        assert!(matches!(
            parse(br#"{"id":"q","method":"m","params":{}}"#),
            Some(Incoming::Request { .. })
        ));
        assert!(matches!(
            parse(br#"{"method":"m"}"#),
            Some(Incoming::Notice { .. })
        ));
        for odd in [
            &b"warning: x"[..],
            b"",
            b"[]",
            b"{}",
            br#"{"id":-1,"result":1}"#,
        ] {
            assert_eq!(parse(odd), None);
        }
    }
}
