//! A program that speaks the DevTools protocol to a browser desktop, one message a line.

use std::path::Path;

use serde_json::{Value, json};

use super::clock::LONG;
use super::wire::{Answer, Refused, Wire};

/// One connection through the gate. Without a session, commands are the browser's own.
pub struct DevTools {
    wire: Wire,
    session: Option<String>,
    next: u64,
}

impl DevTools {
    /// Connects to the socket that `cdp.open` has made.
    pub fn connect(socket: &Path) -> Self {
        Self {
            wire: Wire::connect(socket),
            session: None,
            next: 1,
        }
    }

    /// Attaches to the first page, to which commands go from now on.
    pub fn attach(&mut self) {
        let targets = self.done("Target.getTargets", json!({}));
        let targets = targets["targetInfos"].as_array().expect("targets").clone();
        let page = targets.iter().find(|target| target["type"] == "page");
        let page = page.expect("a page")["targetId"].clone();
        let params = json!({"targetId": page, "flatten": true});
        let attached = self.done("Target.attachToTarget", params);
        self.session = attached["sessionId"].as_str().map(str::to_owned);
    }

    /// The session to which commands go.
    pub fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    /// Has commands go to this session.
    pub fn speak_for(&mut self, session: Option<String>) {
        self.session = session;
    }

    /// Sends a command and returns its number, to be given to [`Self::answer`].
    pub fn send(&mut self, method: &str, params: Value) -> u64 {
        let id = self.next;
        self.next += 1;
        let mut command = json!({"id": id, "method": method, "params": params});
        if let Some(session) = &self.session {
            command["sessionId"] = json!(session);
        }
        self.wire.raw(format!("{command}\n").as_bytes());
        id
    }

    /// Waits for the answer to a command.
    pub fn answer(&mut self, id: u64) -> Answer {
        self.wire.answer(id)
    }

    /// A command that must succeed.
    pub fn done(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        self.answer(id)
            .unwrap_or_else(|refused| panic!("{method} was refused: {refused:?}"))
    }

    /// A command that must be refused.
    pub fn refused(&mut self, method: &str, params: Value) -> Refused {
        let id = self.send(method, params);
        match self.answer(id) {
            Ok(result) => panic!("{method} was not refused: {result}"),
            Err(refused) => refused,
        }
    }

    /// The value of an expression on the page.
    pub fn value(&mut self, expression: &str) -> Value {
        let params = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let answer = self.done("Runtime.evaluate", params);
        assert!(answer["exceptionDetails"].is_null(), "{answer}");
        answer["result"]["value"].clone()
    }

    /// The parameters of the first event of `method` that satisfies `wanted`.
    pub fn event(&mut self, method: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        self.wire.notified(method, wanted)
    }

    /// Whether the host has closed the connection.
    pub fn closed(&mut self) -> bool {
        self.wire.closed(LONG)
    }
}
