//! The server against a stand-in for the host, for what a real host does not do on command:
//! falling silent, dying in the middle of a call, coming back.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rmcp::ServiceExt;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinHandle;

use super::Link;
use super::server::Server;

/// Longest time for anything in these tests.
const BOUND: Duration = Duration::from_secs(30);

/// What the stand-in does with a request.
pub(super) enum Reply {
    Result(Value),
    Error(Value),
    /// Keeps the caller waiting.
    Silence,
    /// Closes the connection.
    Death,
}

type Script = dyn Fn(&str, &Value) -> Reply + Send + Sync;

/// A stand-in for the host; it ends when dropped, like a host that is killed.
pub(super) struct Host {
    accepting: JoinHandle<()>,
}

impl Host {
    pub(super) fn start(
        path: &Path,
        script: impl Fn(&str, &Value) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let _ = std::fs::remove_file(path);
        let listener = UnixListener::bind(path).expect("a socket");
        let script: Arc<Script> = Arc::new(script);
        let accepting = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(converse(stream, Arc::clone(&script)));
            }
        });
        Self { accepting }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn converse(stream: UnixStream, script: Arc<Script>) {
    let (read, mut write) = stream.into_split();
    let mut lines = BufReader::new(read).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let request: Value = serde_json::from_str(&line).expect("a request");
        let method = request["method"].as_str().expect("a method");
        let reply = match method {
            "hello" => {
                assert_eq!(request["params"]["as"], "agent");
                assert_eq!(request["params"]["client"], "mcp");
                Reply::Result(json!({
                    "protocol": 1, "sessionId": "s1", "version": "0", "callerToken": "t",
                    "caller": {"kind": "agent", "agent": "me", "pid": 1, "uid": 1},
                }))
            }
            _ => script(method, &request["params"]),
        };
        let mut answer = json!({"jsonrpc": "2.0", "id": request["id"]});
        match reply {
            Reply::Result(result) => answer["result"] = result,
            Reply::Error(error) => answer["error"] = error,
            Reply::Silence => continue,
            Reply::Death => return,
        }
        if write
            .write_all(format!("{answer}\n").as_bytes())
            .await
            .is_err()
        {
            return;
        }
    }
}

/// An MCP client that shows every message, one at a time.
pub(super) struct Agent {
    input: tokio::io::WriteHalf<DuplexStream>,
    output: Lines<BufReader<tokio::io::ReadHalf<DuplexStream>>>,
    server: JoinHandle<()>,
}

impl Agent {
    pub(super) async fn start(socket: &Path, capabilities: Value) -> Self {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let path = socket.to_owned();
        let server = Server::new(
            Link::new(move |_| Ok(path.clone())),
            Some("d1".to_owned()),
            None,
        );
        let server = tokio::spawn(async move {
            let running = server.serve(theirs).await.expect("an initialized server");
            running.waiting().await.expect("a server that ends");
        });
        let (read, input) = tokio::io::split(ours);
        let mut agent = Self {
            input,
            output: BufReader::new(read).lines(),
            server,
        };
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": capabilities,
            "clientInfo": {"name": "test", "version": "0"},
        });
        agent
            .send(json!({"id": 0, "method": "initialize", "params": params}))
            .await;
        assert_eq!(
            agent.receive().await["result"]["serverInfo"]["name"],
            "handover"
        );
        agent
            .send(json!({"method": "notifications/initialized"}))
            .await;
        agent
    }

    pub(super) async fn send(&mut self, mut message: Value) {
        message["jsonrpc"] = "2.0".into();
        self.input
            .write_all(format!("{message}\n").as_bytes())
            .await
            .expect("a server that reads");
    }

    pub(super) async fn receive(&mut self) -> Value {
        let line = tokio::time::timeout(BOUND, self.output.next_line()).await;
        let line = line
            .expect("a message in time")
            .expect("a stream")
            .expect("a message");
        serde_json::from_str(&line).expect("JSON")
    }

    pub(super) async fn begin(&mut self, id: u64, tool: &str, arguments: Value) {
        let params = json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": id}});
        self.send(json!({"id": id, "method": "tools/call", "params": params}))
            .await;
    }

    pub(super) async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.begin(7, tool, arguments).await;
        loop {
            let mut message = self.receive().await;
            if message["id"] == 7 {
                return message["result"].take();
            }
        }
    }
}

pub(super) fn socket() -> (tempfile::TempDir, std::path::PathBuf) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("attach.sock");
    (directory, path)
}

#[tokio::test]
async fn every_tool_is_listed_with_a_schema_and_hints() {
    let (_directory, path) = socket();
    let mut agent = Agent::start(&path, json!({})).await;
    agent.send(json!({"id": 1, "method": "tools/list"})).await;
    let listed = agent.receive().await;
    let tools = listed["result"]["tools"].as_array().expect("tools").clone();
    let mut lines = Vec::new();
    for tool in &tools {
        assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
        assert!(tool["inputSchema"]["$defs"].is_null(), "{tool}");
        assert!(
            tool["description"]
                .as_str()
                .is_some_and(|text| text.len() > 20),
            "{tool}"
        );
        let properties = tool["inputSchema"]["properties"]
            .as_object()
            .expect("properties");
        for (name, property) in properties {
            assert!(property["description"].is_string(), "{name} of {tool}");
            assert!(property["type"].is_string(), "{name} of {tool}");
        }
        let fields: Vec<&str> = properties.keys().map(String::as_str).collect();
        let hints = &tool["annotations"];
        lines.push(format!(
            "{} ({}) readOnly={} destructive={}",
            tool["name"].as_str().expect("a name"),
            fields.join(", "),
            hints["readOnlyHint"],
            hints["destructiveHint"],
        ));
    }
    insta::assert_snapshot!(lines.join("\n"));
}

#[tokio::test]
async fn calls_go_to_the_servers_desktop_unless_they_name_one() {
    let (_directory, path) = socket();
    let _host = Host::start(&path, |method, params| {
        Reply::Result(json!({"method": method, "params": params}))
    });
    let mut agent = Agent::start(&path, json!({})).await;
    let clicked = agent.call("desktop_click", json!({"x": 3, "y": -4})).await;
    assert_eq!(clicked["structuredContent"]["method"], "desktop.click");
    let expected = json!({"x": 3, "y": -4, "desktop": "d1"});
    assert_eq!(clicked["structuredContent"]["params"], expected);
    let named = agent
        .call(
            "desktop_double_click",
            json!({"x": 3, "y": 4, "desktop": "d2"}),
        )
        .await;
    assert_eq!(named["structuredContent"]["method"], "desktop.double_click");
    assert_eq!(named["structuredContent"]["params"]["desktop"], "d2");
}

#[tokio::test]
async fn a_host_that_dies_is_reported_and_found_again() {
    let (_directory, path) = socket();
    let mut agent = Agent::start(&path, json!({})).await;
    let early = agent.call("desktop_windows", json!({})).await;
    assert_eq!(early["structuredContent"]["code"], "session_unknown");

    let host = Host::start(&path, |_, _| Reply::Death);
    let died = agent.call("desktop_click", json!({"x": 1, "y": 1})).await;
    assert_eq!(died["isError"], true);
    assert_eq!(died["structuredContent"]["code"], "desktop_gone");

    drop(host);
    std::fs::remove_file(&path).expect("the socket is there");
    let gone = agent.call("desktop_click", json!({"x": 1, "y": 1})).await;
    assert_eq!(gone["structuredContent"]["code"], "desktop_gone");

    let _host = Host::start(&path, |_, _| Reply::Result(json!({"epoch": 5})));
    let again = agent.call("desktop_click", json!({"x": 1, "y": 1})).await;
    assert_eq!(again["structuredContent"], json!({"epoch": 5}));
}

#[tokio::test]
async fn a_cancelled_call_is_not_answered_and_harms_no_other() {
    let (_directory, path) = socket();
    let _host = Host::start(&path, |method, _| match method {
        "desktop.type" => Reply::Silence,
        _ => Reply::Result(json!({"windows": []})),
    });
    let mut agent = Agent::start(&path, json!({})).await;
    agent.begin(1, "desktop_type", json!({"text": "a"})).await;
    agent
        .send(json!({"method": "notifications/cancelled", "params": {"requestId": 1}}))
        .await;
    agent.begin(2, "desktop_windows", json!({})).await;
    assert_eq!(agent.receive().await["id"], 2);
}

#[tokio::test]
async fn waiting_reports_progress() {
    let (_directory, path) = socket();
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let host = Host::start(&path, move |_, params| {
        counted.store(
            params["waitMs"].as_u64().expect("a wait") as usize,
            Ordering::SeqCst,
        );
        Reply::Silence
    });
    let mut agent = Agent::start(&path, json!({})).await;
    agent
        .begin(
            1,
            "request_status",
            json!({"requestId": "r1", "waitMs": 90_000}),
        )
        .await;
    let mut last = -1.0;
    for _ in 0..2 {
        let progress = agent.receive().await;
        assert_eq!(progress["method"], "notifications/progress");
        assert_eq!(progress["params"]["progressToken"], 1);
        let now = progress["params"]["progress"].as_f64().expect("a number");
        assert!(now > last, "progress must grow");
        last = now;
    }
    assert_eq!(
        asked.load(Ordering::SeqCst),
        60_000,
        "a longer wait is cut short"
    );
    drop(host);
    let answer = loop {
        let message = agent.receive().await;
        if message["id"] == 1 {
            break message;
        }
    };
    assert_eq!(
        answer["result"]["structuredContent"]["code"],
        "desktop_gone"
    );
}

#[tokio::test]
async fn a_refused_question_is_put_to_nobody() {
    let (_directory, path) = socket();
    let _host = Host::start(&path, |_, _| {
        let data = json!({"code": "bad_params", "remedy": "takeover"});
        Reply::Error(json!({"code": -32602, "message": "no secrets in text", "data": data}))
    });
    let mut agent = Agent::start(&path, json!({"elicitation": {}})).await;
    let question = json!({"reason": "stuck", "question": "What is the password?"});
    agent.begin(1, "request_human", question).await;
    let answer = agent.receive().await;
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    let told = &answer["result"]["structuredContent"];
    assert_eq!(told["code"], "bad_params");
    assert!(
        told["todo"]
            .as_str()
            .is_some_and(|todo| todo.contains("takes over")),
        "{told}"
    );
}

#[tokio::test]
async fn a_question_is_put_to_the_clients_person() {
    let (_directory, path) = socket();
    let (told, mut answers) = tokio::sync::mpsc::unbounded_channel();
    let _host = Host::start(&path, move |method, params| match method {
        "request_human" => Reply::Result(json!({"requestId": "r1"})),
        "answer" => {
            told.send(params.clone()).expect("a test that listens");
            Reply::Result(json!({"requestId": "r1", "state": "answered"}))
        }
        _ => Reply::Silence,
    });
    let mut agent = Agent::start(&path, json!({"elicitation": {}})).await;
    let question = json!({"reason": "stuck", "question": "The red or the blue one?"});
    agent.begin(1, "request_human", question).await;
    let (mut answered, mut elicited) = (false, None);
    while !answered || elicited.is_none() {
        let message = agent.receive().await;
        match message["method"].as_str() {
            Some("elicitation/create") => elicited = Some(message),
            _ => answered |= message["id"] == 1,
        }
    }
    let elicited = elicited.expect("an elicitation");
    assert_eq!(
        elicited["params"]["message"],
        "stuck\n\nThe red or the blue one?"
    );
    let result = json!({"action": "accept", "content": {"answer": "blue"}});
    agent
        .send(json!({"id": elicited["id"], "result": result}))
        .await;
    let answer = tokio::time::timeout(BOUND, answers.recv())
        .await
        .expect("an answer in time");
    assert_eq!(answer, Some(json!({"requestId": "r1", "text": "blue"})));
}

#[tokio::test]
async fn a_question_that_was_settled_elsewhere_is_withdrawn() {
    let (_directory, path) = socket();
    let _host = Host::start(&path, |method, _| match method {
        "request_human" => Reply::Result(json!({"requestId": "r1"})),
        _ => Reply::Result(json!({"requestId": "r1", "state": "answered", "text": "red"})),
    });
    let mut agent = Agent::start(&path, json!({"elicitation": {}})).await;
    agent
        .begin(
            1,
            "request_human",
            json!({"reason": "stuck", "question": "Which?"}),
        )
        .await;
    let mut elicited = None;
    let withdrawn = loop {
        let message = agent.receive().await;
        match message["method"].as_str() {
            Some("elicitation/create") => elicited = Some(message["id"].clone()),
            Some("notifications/cancelled") => break message["params"]["requestId"].clone(),
            _ => {}
        }
    };
    assert_eq!(Some(withdrawn), elicited);
}

#[tokio::test]
async fn newer_clients_are_asked_by_way_of_the_status() {
    let (_directory, path) = socket();
    let (told, mut answers) = tokio::sync::mpsc::unbounded_channel();
    let _host = Host::start(&path, move |method, params| match method {
        "request_human" => Reply::Result(json!({"requestId": "r1"})),
        "answer" => {
            told.send(params.clone()).expect("a test that listens");
            Reply::Result(json!({"requestId": "r1", "state": "answered"}))
        }
        _ => Reply::Result(json!({"requestId": "r1", "state": "answered", "text": "blue"})),
    });
    let mut agent = Agent::start(&path, json!({})).await;
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "0"},
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
    });
    let mut call = async |id: u64, mut params: Value| {
        params["_meta"] = meta.clone();
        agent
            .send(json!({"id": id, "method": "tools/call", "params": params}))
            .await;
        agent.receive().await["result"].take()
    };
    let question = json!({"reason": "stuck", "question": "Red or blue?"});
    call(1, json!({"name": "request_human", "arguments": question})).await;
    let status = json!({"name": "request_status", "arguments": {"requestId": "r1"}});
    let asked = call(2, status.clone()).await;
    assert_eq!(asked["resultType"], "input_required");
    let form = &asked["inputRequests"]["answer"];
    assert_eq!(form["method"], "elicitation/create");
    assert_eq!(form["params"]["message"], "stuck\n\nRed or blue?");

    let mut again = status;
    again["inputResponses"] =
        json!({"answer": {"action": "accept", "content": {"answer": "blue"}}});
    let answered = call(3, again).await;
    assert_eq!(answered["structuredContent"]["text"], "blue");
    assert_eq!(
        answers.recv().await,
        Some(json!({"requestId": "r1", "text": "blue"}))
    );
}

#[tokio::test]
async fn the_server_ends_with_its_input() {
    let (_directory, path) = socket();
    let agent = Agent::start(&path, json!({})).await;
    let Agent {
        input,
        output,
        server,
    } = agent;
    drop((input, output));
    tokio::time::timeout(BOUND, server)
        .await
        .expect("an end in time")
        .expect("a clean end");
}
