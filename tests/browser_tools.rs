//! The tools that agents drive browsers with work through the gate unchanged, and go on after a takeover
//! with the objects they had before.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{
    LONG, Place, Running, Session, clicks_until, eventually, holds_for, is_painted, shows, wall_ms,
};

/// A page with something to fill in and to press.
const PAGE: &str = "data:text/html,<title>form</title><input id=name><button id=go onclick='document.title=document.getElementById(\"name\").value'>go</button>";

/// Where `scripts/install-deps test` puts what the tests run.
fn clients() -> PathBuf {
    let clients = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/clients");
    let installed = clients.join("browser/installed");
    assert!(installed.exists(), "run `scripts/install-deps test` first");
    clients
}

fn with_browser(place: Place, address: &str, title: &str) -> Session {
    let session = Session::with(place, &[]);
    let desktop = ["desktop", "new", "--size", "800x600", "--browser", address];
    session.cli(&desktop).done();
    is_painted(&session, title);
    session
}

/// A tool that is told what to do one JSON object a line, and answers so.
struct Tool {
    running: Running,
    input: ChildStdin,
    last: u64,
}

impl Tool {
    fn start(command: &mut Command) -> Self {
        let (running, input) = Running::start_with_input(command);
        Self {
            running,
            input,
            last: 0,
        }
    }

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

/// Playwright, connected by the bridge. Its answer 0 is the title of the page that it has.
fn playwright(session: &Session, bridge: &Bridge) -> Tool {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut command = session.place.command("node");
    command
        .arg(root.join("tests/tools/playwright_hands.mjs"))
        .arg(clients().join("browser"))
        .arg(bridge.said["httpUrl"].as_str().expect("an address"));
    Tool::start(&mut command)
}

/// `handover browser mcp`, which has said hello.
fn devtools_mcp(session: &Session) -> Tool {
    greeted(session.place.handover().args(["browser", "mcp"]))
}

/// An MCP server that has said hello.
fn greeted(command: &mut Command) -> Tool {
    let mut tool = Tool::start(command);
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
    tool
}

/// A call of one of its tools.
fn call(name: &str, arguments: Value) -> Value {
    json!({"jsonrpc": "2.0", "method": "tools/call", "params": {"name": name, "arguments": arguments}})
}

#[test]
fn playwright_keeps_its_page_through_a_takeover() {
    let session = with_browser(Place::new(), PAGE, "form");
    let bridge = Bridge::open(&session);
    let mut tool = playwright(&session, &bridge);
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
        started.elapsed() < Duration::from_secs(10),
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
    assert_eq!(tool.does(json!({"do": "pages"})), json!([""]));
}

/// Pages for a person who opens a tab, closes it, goes to another page and opens a tab that stays, by
/// clicks alone.
fn pages(place: &Place) -> String {
    let pages = [
        (
            "one",
            "onclick=\"window.clicked?location='two.html':(window.clicked=1,window.open('brief.html'))\"",
        ),
        ("brief", "onclick=\"window.close()\""),
        (
            "two",
            "onclick=\"window.open('kept.html')\"><iframe src=three.html></iframe><input id=name><p",
        ),
        ("three", ""),
        ("kept", ""),
    ];
    for (name, body) in pages {
        let page = format!(
            "<title>page {name}</title><body style='height:500px;pointer-events:auto' {body}>{name}"
        );
        std::fs::write(place.path().join(format!("{name}.html")), page).expect("a page");
    }
    format!("file://{}/one.html", place.path().display())
}

/// What the person does with them.
fn walk(session: &Session) {
    let mut holder = session.take(json!({}));
    for shown in ["page brief", "page one", "page two", "page kept"] {
        clicks_until(session, &holder, (400, 400), shown);
    }
    holder.give_back();
}

#[test]
fn playwright_knows_what_a_person_has_left() {
    let place = Place::new();
    let address = pages(&place);
    let session = with_browser(place, &address, "page one");
    let bridge = Bridge::open(&session);
    let mut tool = playwright(&session, &bridge);
    assert_eq!(tool.answer(0)["result"], "page one");
    walk(&session);
    assert_eq!(
        tool.does(json!({"do": "evaluate", "script": "document.title"})),
        "page two"
    );
    assert_eq!(
        tool.does(json!({"do": "pages"})),
        json!(["page two", "page kept"])
    );
    assert_eq!(
        tool.does(json!({"do": "frames"})),
        json!(["page two", "page three"])
    );
    tool.does(json!({"do": "fill", "selector": "#name", "text": "after"}));
    assert_eq!(tool.does(json!({"do": "back"})), address);
    assert_eq!(
        tool.does(json!({"do": "goto", "address": "about:blank"})),
        "about:blank"
    );
}

#[test]
fn playwrights_script_that_waits_takes_no_further_step_in_human_time() {
    let session = with_browser(Place::new(), PAGE, "form");
    let bridge = Bridge::open(&session);
    let mut tool = playwright(&session, &bridge);
    tool.answer(0);
    let acts = "(async () => { globalThis.steps = []; for (;;) { steps.push(Date.now()); document.title = 'acts'; await new Promise(go => setTimeout(go, 20)) } })()";
    let acting = tool.begin(json!({"do": "evaluate", "script": acts}));
    shows(&session, "acts");
    let mut holder = session.take(json!({}));
    let granted = wall_ms();
    assert!(!tool.answer(acting)["error"].is_null(), "it was cut off");
    holds_for(
        "control is the person's",
        Duration::from_millis(500),
        || session.status()["control"] == "human",
    );
    holder.give_back();
    let late = format!("steps.filter(at => at > {granted}).length");
    assert_eq!(tool.does(json!({"do": "evaluate", "script": late})), 0);
}

#[test]
fn chrome_devtools_mcp_works_through_a_takeover() {
    let mut place = Place::new();
    place.set("XDG_DATA_HOME", clients().join("data"));
    let session = with_browser(place, PAGE, "form");
    let mut tool = devtools_mcp(&session);
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
        assert!(said.contains("[human_control_active]"), "{said}");
    }
    holder.give_back();

    let after = json!({"pageId": 1, "function": "() => { document.title = 'after'; return document.title }"});
    let said = tool.does(call("evaluate_script", after)).to_string();
    assert!(said.contains("after"), "{said}");
}

/// Two gates one behind the other: that of the relay sees tools, that of the browser what they do.
#[test]
fn chrome_devtools_mcp_works_behind_the_relay_too() {
    let mut place = Place::new();
    place.set("XDG_DATA_HOME", clients().join("data"));
    let session = with_browser(place, PAGE, "form");
    let mut command = session.place.handover();
    command
        .args(["relay", "--"])
        .arg(env!("CARGO_BIN_EXE_handover"));
    let mut tool = greeted(command.args(["browser", "mcp"]));
    let script = |script: &str| call("evaluate_script", json!({"pageId": 1, "function": script}));
    let said = tool.does(script("() => document.title")).to_string();
    assert!(said.contains("form"), "{said}");

    // What is under way ends before a person has control.
    let acts = "async () => { window.steps = []; for (;;) { steps.push(Date.now()); document.title = 'acts'; await new Promise(go => setTimeout(go, 20)) } }";
    let acting = tool.begin(script(acts));
    shows(&session, "acts");
    let mut holder = session.take(json!({}));
    let granted = wall_ms();
    let ended = tool.answer(acting);
    assert!(
        !ended["error"].is_null() || ended["result"]["isError"] == true,
        "{ended}"
    );
    let id = tool.begin(script("() => document.title"));
    let refused = tool.answer(id);
    assert_eq!(refused["error"]["code"], -32050, "{refused}");
    let data = &refused["error"]["data"];
    assert_eq!(data["code"], "human_control_active", "{refused}");
    assert!(data["lease"]["leaseId"].is_string(), "{refused}");
    let on_record = |tool: &str| {
        eventually("the refusal is on record", LONG, || {
            let refused = session.events("relay_refused");
            refused.into_iter().find(|event| event["tool"] == tool)
        })
    };
    assert_eq!(on_record("evaluate_script")["code"], "human_control_active");
    let returned = wall_ms();
    holder.give_back();

    let late =
        format!("() => steps.filter(at => at > {granted} && at < {returned}).length + ' late'");
    let said = eventually("the tools are back", LONG, || {
        let id = tool.begin(script(&late));
        let answer = tool.answer(id);
        (answer["result"]["isError"] != true && answer["error"].is_null())
            .then(|| answer["result"].to_string())
    });
    assert!(said.contains("0 late"), "{said}");
}

#[test]
fn chrome_devtools_mcp_that_is_first_used_in_human_time_works_after_it() {
    let mut place = Place::new();
    place.set("XDG_DATA_HOME", clients().join("data"));
    let session = with_browser(place, PAGE, "form");
    let mut holder = session.take(json!({}));
    let mut tool = devtools_mcp(&session);
    for _ in 0..2 {
        let refused = tool.does(call("list_pages", json!({})));
        assert_eq!(refused["isError"], true, "{refused}");
    }
    holder.give_back();
    let pages = tool.does(call("list_pages", json!({}))).to_string();
    assert!(pages.contains("data:text/html"), "{pages}");
}

#[test]
fn chrome_devtools_mcp_knows_what_a_person_has_left() {
    let mut place = Place::new();
    place.set("XDG_DATA_HOME", clients().join("data"));
    let address = pages(&place);
    let session = with_browser(place, &address, "page one");
    let mut tool = devtools_mcp(&session);
    let seen = |tool: &mut Tool, page: u64| {
        let script = json!({"pageId": page, "function": "() => document.title"});
        tool.does(call("evaluate_script", script)).to_string()
    };
    let said = seen(&mut tool, 1);
    assert!(said.contains("page one"), "{said}");
    walk(&session);
    let said = seen(&mut tool, 1);
    assert!(said.contains("page two"), "{said}");
    let pages = eventually("it has both pages", LONG, || {
        let pages = tool.does(call("list_pages", json!({}))).to_string();
        (pages.contains("two.html") && pages.contains("kept.html")).then_some(pages)
    });
    assert!(!pages.contains("brief.html"), "{pages}");
    let said = seen(&mut tool, 2);
    assert!(said.contains("page kept"), "{said}");
    let said = tool.does(call("take_snapshot", json!({"pageId": 1})));
    assert!(
        said.to_string().contains("page three") || said.to_string().contains("page two"),
        "{said}"
    );
}
