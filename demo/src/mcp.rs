//! A small MCP client over the standard streams of a server process.
//!
//! The agent of the demo speaks to `handover mcp` as any agent program does: one JSON-RPC message
//! a line, `initialize` first, then `tools/call`.

use std::process::Stdio;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};
use thiserror::Error;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// Protocol revision that the client asks for.
const REVISION: &str = "2025-11-25";
/// Longest time a call may take: above the 60 s that `request_status` may wait.
const CALL_TIME: Duration = Duration::from_secs(90);

/// Why a call gave no answer.
#[derive(Debug, Error)]
pub enum McpError {
    /// The server could not be started or its streams broke.
    #[error("the MCP server's streams failed: {0}")]
    Io(#[from] std::io::Error),
    /// The server ended.
    #[error("the MCP server ended before it answered")]
    Ended,
    /// A line was no JSON.
    #[error("the MCP server sent a line that is no JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// The protocol answered with an error.
    #[error("the MCP server refused the request: {0}")]
    Protocol(String),
    /// No answer in time.
    #[error("the MCP server did not answer within {CALL_TIME:?}")]
    Timeout,
}

/// The answer of a tool.
#[derive(Debug)]
pub struct Answer {
    /// Whether the tool says that it failed.
    pub is_error: bool,
    /// The structured part.
    pub structured: Value,
    /// The text parts, one a line.
    pub text: String,
    /// The first picture, decoded from base64.
    pub image: Option<Vec<u8>>,
}

impl Answer {
    /// The stable code of a refusal.
    pub fn code(&self) -> Option<&str> {
        self.is_error
            .then(|| self.structured["code"].as_str())
            .flatten()
    }
}

/// A running MCP server and the connection to it.
pub struct McpClient {
    server: Child,
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
    last_id: u64,
}

impl McpClient {
    /// Starts the server and greets it.
    ///
    /// # Errors
    /// When it does not start or does not answer the greeting.
    pub async fn start(command: &mut Command) -> Result<Self, McpError> {
        let mut server = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let input = server.stdin.take();
        let output = server.stdout.take().ok_or(McpError::Ended)?;
        let output = BufReader::new(output).lines();
        let mut client = Self {
            server,
            input,
            output,
            last_id: 0,
        };
        let hello = json!({
            "protocolVersion": REVISION,
            "capabilities": {},
            "clientInfo": {"name": "handover-demo", "version": env!("CARGO_PKG_VERSION")},
        });
        client.request("initialize", hello).await?;
        client
            .send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
            .await?;
        Ok(client)
    }

    /// Calls a tool.
    ///
    /// # Errors
    /// When there is no answer; a refusal is an answer.
    pub async fn call(&mut self, tool: &str, arguments: Value) -> Result<Answer, McpError> {
        let params = json!({"name": tool, "arguments": arguments});
        let result = self.request("tools/call", params).await?;
        let empty = Vec::new();
        let content = result["content"].as_array().unwrap_or(&empty);
        let texts: Vec<&str> = content
            .iter()
            .filter_map(|part| part["text"].as_str())
            .collect();
        let image = content.iter().find(|part| part["type"] == "image");
        let image = image
            .and_then(|part| part["data"].as_str())
            .and_then(|data| BASE64.decode(data).ok());
        Ok(Answer {
            is_error: result["isError"] == json!(true),
            structured: result["structuredContent"].clone(),
            text: texts.join("\n"),
            image,
        })
    }

    /// Closes the server's input, upon which it ends, and waits for that.
    ///
    /// # Errors
    /// When it does not end in time; it is then killed on drop.
    pub async fn close(mut self) -> Result<(), McpError> {
        self.input = None;
        let ended = tokio::time::timeout(Duration::from_secs(10), self.server.wait()).await;
        ended.map_err(|_| McpError::Timeout)??;
        Ok(())
    }

    async fn request(&mut self, method: &str, params: Value) -> Result<Value, McpError> {
        self.last_id += 1;
        let id = self.last_id;
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.send(&request).await?;
        let answer = tokio::time::timeout(CALL_TIME, self.answer_to(id)).await;
        answer.map_err(|_| McpError::Timeout)?
    }

    async fn send(&mut self, message: &Value) -> Result<(), McpError> {
        let input = self.input.as_mut().ok_or(McpError::Ended)?;
        input.write_all(format!("{message}\n").as_bytes()).await?;
        Ok(input.flush().await?)
    }

    /// Reads until the answer to request `id`; notifications are of no interest to this client.
    async fn answer_to(&mut self, id: u64) -> Result<Value, McpError> {
        while let Some(line) = self.output.next_line().await? {
            let mut message: Value = serde_json::from_str(&line)?;
            if message["id"] != json!(id) {
                continue;
            }
            return match message.get("error") {
                Some(error) => Err(McpError::Protocol(error["message"].to_string())),
                None => Ok(message["result"].take()),
            };
        }
        Err(McpError::Ended)
    }
}
