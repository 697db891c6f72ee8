//! The tools that agents drive browsers with work through the gate unchanged, and go on after a takeover
//! with the objects they had before.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Place, Running, Session};

/// A page with something to fill in and to press.
const PAGE: &str = "data:text/html,<title>form</title><input id=name><button id=go onclick='document.title=document.getElementById(\"name\").value'>go</button>";

/// Where `scripts/install-deps test` puts what the tests run.
fn clients() -> PathBuf {
    let clients = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/clients");
    let installed = clients.join("browser/installed");
    assert!(installed.exists(), "run `scripts/install-deps test` first");
    clients
}

fn with_browser(place: Place) -> Session {
    let session = Session::with(place, &[]);
    let desktop = ["desktop", "new", "--size", "800x600", "--browser", PAGE];
    session.cli(&desktop).done();
    session
}

/// A tool that is told what to do one JSON object a line, and answers so.
struct Tool {
    running: Running,
    input: ChildStdin,
    last: u64,
}

impl Tool {
    fn begin(&mut self, mut command: Value) -> u64 {
        self.last += 1;
        command["id"] = json!(self.last);
        writeln!(self.input, "{command}").expect("the tool reads");
        self.last
    }

    fn answer(&self, id: u64) -> Value {
        self.running.line("an answer", |line| {
            line["id"] == id && line.get("method").is_none()
        })
    }

    fn does(&mut self, command: Value) -> Value {
        let id = self.begin(command.clone());
        let answer = self.answer(id);
        assert!(answer["error"].is_null(), "{command}: {answer}");
        answer["result"].clone()
    }

    fn fails(&mut self, command: Value) -> String {
        let id = self.begin(command.clone());
        let answer = self.answer(id);
        assert!(!answer["error"].is_null(), "{command}: {answer}");
        answer["error"].to_string()
    }
}

/// The process that stands between a tool and the gate. Ended when dropped.
struct Bridge {
    process: Child,
    said: Value,
}

impl Bridge {
    fn open(session: &Session) -> Self {
        let mut command = session.place.handover();
        let mut process = command
            .args(["--json", "browser", "cdp", "--ws"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut line = String::new();
        let out = process.stdout.as_mut().expect("piped");
        std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut line).expect("a line");
        let said = serde_json::from_str(&line).expect("JSON");
        Self { process, said }
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn playwright_keeps_its_page_through_a_takeover() {
    let session = with_browser(Place::new());
    let bridge = Bridge::open(&session);
    let clients = clients();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let hands = root.join("tests/tools/playwright_hands.mjs");
    let mut command = session.place.command("node");
    command
        .arg(hands)
        .arg(clients.join("browser"))
        .arg(bridge.said["httpUrl"].as_str().expect("an address"));
    let (running, input) = Running::start_with_input(&mut command);
    let mut tool = Tool {
        running,
        input,
        last: 0,
    };
    assert_eq!(tool.answer(0)["result"], "form");
    tool.does(json!({"do": "fill", "selector": "#name", "text": "before"}));
    tool.does(json!({"do": "click", "selector": "#go"}));
    assert_eq!(
        tool.does(json!({"do": "evaluate", "script": "document.title"})),
        "before"
    );
    assert!(tool.does(json!({"do": "picture"})).as_u64() > Some(1000));

    let long = tool.begin(json!({"do": "evaluate", "script": "(() => { for (;;) {} })()"}));
    let started = Instant::now();
    let mut holder = session.take(json!({}));
    assert!(
        started.elapsed() < Duration::from_secs(4),
        "{:?}",
        started.elapsed()
    );
    assert!(!tool.answer(long)["error"].is_null(), "it was cut off");
    // Whatever an evaluation is refused with, Playwright says that its context was destroyed; what it
    // builds on evaluations it tries again until its own timeout.
    tool.fails(json!({"do": "evaluate", "script": "document.title = 'not now'"}));
    let error = tool.fails(json!({"do": "goto", "address": "about:blank"}));
    assert!(error.contains("wait for the hand-back"), "{error}");
    holder.give_back();

    assert_eq!(
        tool.does(json!({"do": "evaluate", "script": "document.title"})),
        "before"
    );
    tool.does(json!({"do": "fill", "selector": "#name", "text": "after"}));
    tool.does(json!({"do": "click", "selector": "#go"}));
    assert_eq!(
        tool.does(json!({"do": "evaluate", "script": "document.title"})),
        "after"
    );
    assert_eq!(
        tool.does(json!({"do": "goto", "address": "about:blank"})),
        "about:blank"
    );
    assert!(tool.does(json!({"do": "picture"})).as_u64() > Some(1000));
    assert_eq!(tool.does(json!({"do": "pages"})), 1);
}

#[test]
fn chrome_devtools_mcp_works_through_a_takeover() {
    let mut place = Place::new();
    place.set("XDG_DATA_HOME", clients().join("data"));
    let session = with_browser(place);
    let mut command = session.place.handover();
    command.args(["browser", "mcp"]);
    let (running, input) = Running::start_with_input(&mut command);
    let mut tool = Tool {
        running,
        input,
        last: 0,
    };
    let hello = json!({
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "tests", "version": "1"},
    });
    tool.does(json!({"jsonrpc": "2.0", "method": "initialize", "params": hello}));
    writeln!(
        tool.input,
        r#"{{"jsonrpc":"2.0","method":"notifications/initialized"}}"#
    )
    .expect("it reads");
    let call = |name: &str, arguments: Value| json!({"jsonrpc": "2.0", "method": "tools/call", "params": {"name": name, "arguments": arguments}});
    let title = || {
        call(
            "evaluate_script",
            json!({"pageId": 1, "function": "() => document.title"}),
        )
    };
    let pages = tool.does(call("list_pages", json!({})));
    assert!(pages.to_string().contains("data:text/html"), "{pages}");
    let said = tool.does(title()).to_string();
    assert!(said.contains("form"), "{said}");

    let mut holder = session.take(json!({}));
    for refused in [title(), call("take_screenshot", json!({"pageId": 1}))] {
        let said = tool.does(refused).to_string();
        assert!(said.contains("wait for the hand-back"), "{said}");
    }
    holder.give_back();

    let after = json!({"pageId": 1, "function": "() => { document.title = 'after'; return document.title }"});
    let said = tool.does(call("evaluate_script", after)).to_string();
    assert!(said.contains("after"), "{said}");
}
