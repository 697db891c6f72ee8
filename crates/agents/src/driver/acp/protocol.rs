//! Messages of the agent client protocol, version 1: JSON-RPC, one object a line.

use crate::driver::json::line;
use serde_json::{Value, json};

use crate::driver::{Task, ToolServer};

/// The version spoken here.
pub const VERSION: u64 = 1;

/// `auth_required`.
const AUTH_REQUIRED: i64 = -32000;
const METHOD_NOT_FOUND: i64 = -32601;

/// What an agent writes.
#[derive(Debug)]
pub enum Said {
    /// An answer to a request of ours.
    Answer {
        /// Ours.
        id: u64,
        /// What came of it.
        result: Result<Value, Error>,
    },
    /// A request; it waits for an answer.
    Request {
        /// The agent's name for it.
        id: Value,
        /// What it wants.
        method: String,
        /// Of whom and what.
        params: Value,
    },
    /// News.
    Notice {
        /// Of which kind.
        method: String,
        /// The news.
        params: Value,
    },
}

/// Why a request was refused.
#[derive(Debug)]
pub struct Error {
    code: i64,
    message: String,
    data: Value,
}

impl Error {
    /// Whether the agent wants a login first.
    pub fn wants_login(&self) -> bool {
        self.code == AUTH_REQUIRED
    }

    /// Whether the agent knows no such request.
    pub fn is_unknown_method(&self) -> bool {
        self.code == METHOD_NOT_FOUND
    }

    /// For people.
    pub fn text(&self) -> String {
        let data = &self.data;
        let details = data
            .as_str()
            .or_else(|| data["details"].as_str())
            .or_else(|| data["message"].as_str());
        match details {
            Some(details) if details != self.message => format!("{}: {details}", self.message),
            _ => self.message.clone(),
        }
    }
}

/// Reads a line; none if it is not what an agent writes.
pub fn read(line: &[u8]) -> Option<Said> {
    let mut message: Value = serde_json::from_slice(line).ok()?;
    let mut take = |field: &str| message.get_mut(field).map(Value::take);
    let (id, method, params) = (take("id"), take("method"), take("params"));
    let (result, error) = (take("result"), take("error"));
    let id = id.filter(|id| !id.is_null());
    let params = params.unwrap_or_default();
    match (method, id) {
        (Some(Value::String(method)), Some(id)) => Some(Said::Request { id, method, params }),
        (Some(Value::String(method)), None) => Some(Said::Notice { method, params }),
        (None, Some(id)) => Some(Said::Answer {
            id: id.as_u64()?,
            result: match (result, error) {
                (_, Some(mut error)) if !error.is_null() => Err(Error {
                    code: error["code"].as_i64().unwrap_or_default(),
                    message: error["message"].as_str().unwrap_or("refused").to_owned(),
                    data: error.get_mut("data").map(Value::take).unwrap_or_default(),
                }),
                (result, _) => Ok(result.unwrap_or_default()),
            },
        }),
        _ => None,
    }
}

/// A request of ours.
pub fn request(id: u64, method: &str, params: &Value) -> Vec<u8> {
    line(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
}

/// A message of ours that wants no answer.
pub fn notice(method: &str, params: &Value) -> Vec<u8> {
    line(&json!({"jsonrpc": "2.0", "method": method, "params": params}))
}

/// Our answer to a request of the agent.
pub fn answer(id: &Value, result: &Value) -> Vec<u8> {
    line(&json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

/// Our answer to a request that we said we do not serve.
pub fn refuse(id: &Value, method: &str) -> Vec<u8> {
    let message = format!("this client does not serve {method}");
    let error = json!({"code": METHOD_NOT_FOUND, "message": message});
    line(&json!({"jsonrpc": "2.0", "id": id, "error": error}))
}

/// The parameters of `initialize`: files and terminals are the agent's own.
pub fn initialize() -> Value {
    json!({
        "protocolVersion": VERSION,
        "clientCapabilities": {
            "fs": {"readTextFile": false, "writeTextFile": false},
            "terminal": false,
        },
        "clientInfo": {"name": "handover", "version": env!("CARGO_PKG_VERSION")},
    })
}

/// The parameters of `session/new`.
pub fn new_session(task: &Task) -> Value {
    json!({
        "cwd": task.cwd.to_string_lossy(),
        "mcpServers": task.tools.iter().filter_map(server).collect::<Vec<_>>(),
    })
}

fn server(tools: &ToolServer) -> Option<Value> {
    let (command, args) = tools.command.split_first()?;
    let env: Vec<Value> = tools
        .env
        .iter()
        .map(|(name, value)| json!({"name": name, "value": value}))
        .collect();
    Some(json!({"name": "handover", "command": command, "args": args, "env": env}))
}

/// The parameters of `session/prompt` and of `_session/steering`.
pub fn prompt(session: &str, text: &str) -> Value {
    json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]})
}
