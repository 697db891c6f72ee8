//! What a person at the web console waits for, beside noVNC's own page by way of websockify on the same
//! display server; and what the console holds in memory.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    thread,
    time::Duration,
};

use handover_protocol::Method;
use serde_json::{Value, json};

use crate::{
    Outcome,
    figures::{Row, Samples, median},
    place::{Place, eventually, finish, text},
    processor::resident,
    screen::Screen,
    server::Server,
    session::Session,
};

/// How long a program may take to come up.
const UP: Duration = Duration::from_secs(30);
/// How long a series in the browser may take.
const SERIES: Duration = Duration::from_secs(180);
/// What a terminal scrolls: 250 lines a second.
const LINES: &str = r#"$| = 1; for (;;) { printf "%08d the quick brown fox jumps over the lazy dog\n", $n++; select undef, undef, undef, 0.004 }"#;

/// Clicks, frames, the first words and the size of the app.
pub fn measure() -> Outcome<Vec<Row>> {
    let server = Server::start("800x600", 60)?;
    let session = Session::up("320x240")?;
    let wire = session.wire()?;
    let attach = format!("unix:{}", text(&server.socket)?);
    let made = wire.call(Method::DesktopNew, json!({"attach": attach}))?;
    let desktop = made["id"].as_str().ok_or("a desktop without an id")?;
    let name = session.id()?;
    let _seen = Screen::cover(&server.display())?.watch()?;

    let console = Console::start(session.place())?;
    let reference = Websockify::start(session.place(), &server.socket)?;
    let arguments = ["compare", &console.link, name, desktop, &reference.address];
    let mut browser = Browser::start(session.place(), &arguments)?;
    let first = browser.says()?;
    let display = server.display();
    let mut terminal = Command::new("xterm")
        .args(["-geometry", "130x45+0+0", "-e", "perl", "-e", LINES])
        .env("DISPLAY", &display.name)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let frames = browser.goes_on().and_then(|()| browser.says());
    let _ = terminal.kill();
    let _ = terminal.wait();
    let frames = frames?;

    let clicks = |way: &str| samples(&first["clicks"][way]);
    let (own, other) = (clicks("console")?, clicks("reference")?);
    let added = own.median().as_secs_f64() - other.median().as_secs_f64();
    let rates = |way: &str| numbers(&frames["frames"][way]).map(median);
    let (shown, expected) = (rates("console")?, rates("reference")?);
    let bytes = first["bytes"].as_f64().ok_or("no size")?;
    Ok(vec![
        Row::times(
            "click to pixel in a browser, websockify and noVNC's page",
            other,
        ),
        Row::times("click to pixel in a browser, the web console", own),
        Row::number("  added by the console, median", 1000.0 * added, "ms"),
        Row::number(
            "frames of a scrolling terminal, websockify and noVNC's page",
            expected,
            "/s",
        ),
        Row::number(
            "frames of a scrolling terminal, the web console",
            shown,
            "/s",
        ),
        Row::times(
            "the console's first words in an empty browser",
            samples(&first["paints"])?,
        )
        .below(Duration::from_millis(300)),
        Row::number("the whole app over the wire", bytes / 1000.0, "kB").less_than(300.0),
    ])
}

/// Of the console alone, with 20 sessions, of which four have a desktop that a browser watches.
pub fn memory() -> Outcome<Vec<Row>> {
    let place = Place::new()?;
    let mut watched = Vec::new();
    for number in 0..20 {
        let desktop: &[&str] = if number < 4 {
            &["--desktop", "--size", "1280x800"]
        } else {
            &[]
        };
        let mut command = place.handover()?;
        let output = finish(command.args(["up", "--json", "--new"]).args(desktop), UP)?;
        let said: Value = serde_json::from_slice(&output.stdout)?;
        if number < 4 {
            let session = said["sessionId"].as_str().ok_or("no session's id")?;
            watched.push(format!("{session}/d1"));
        }
    }
    let console = Console::start(&place)?;
    let idle = resident(console.pid)?;
    let arguments: Vec<&str> = ["watch", &console.link]
        .into_iter()
        .chain(watched.iter().map(String::as_str))
        .collect();
    let browser = Browser::start(&place, &arguments)?;
    browser.says()?;
    let busy = resident(console.pid)?;
    Ok(vec![
        Row::number(
            "web console, 20 sessions and nobody looks",
            idle / 1e6,
            "MB",
        ),
        Row::number(
            "web console, 20 sessions, four watched desktops",
            busy / 1e6,
            "MB",
        ),
    ])
}

fn numbers(list: &Value) -> Outcome<Vec<f64>> {
    let list = list.as_array().ok_or("the browser measured nothing")?;
    Ok(list.iter().filter_map(Value::as_f64).collect())
}

fn samples(list: &Value) -> Outcome<Samples> {
    let mut samples = Samples::default();
    for milliseconds in numbers(list)? {
        samples.push(Duration::from_secs_f64(milliseconds / 1000.0));
    }
    Ok(samples)
}

/// A console. Ended when dropped.
struct Console {
    process: Child,
    link: String,
    pid: u64,
}

impl Console {
    fn start(place: &Place) -> Outcome<Self> {
        let mut command = place.handover()?;
        command.args(["console", "--json", "--port", "0"]);
        let (process, lines) = spawn(&mut command)?;
        // Ended whatever comes next.
        let mut console = Self {
            pid: process.id().into(),
            process,
            link: String::new(),
        };
        let said: Value = serde_json::from_str(&lines.recv_timeout(UP)?)?;
        said["url"]
            .as_str()
            .ok_or("the console said no link")?
            .clone_into(&mut console.link);
        Ok(console)
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What the console is compared with. Ended when dropped.
struct Websockify {
    process: Child,
    address: String,
}

impl Websockify {
    /// Serves noVNC's own page, and the display server at `socket` to it.
    fn start(place: &Place, socket: &Path) -> Outcome<Self> {
        let site = place.path().join("site");
        fs::create_dir(&site)?;
        let novnc = clients().join("browser/node_modules/@novnc/novnc");
        for part in ["core", "vendor"] {
            symlink(novnc.join(part), site.join(part))?;
        }
        let page = root().join("tests/tools/novnc_page.html");
        fs::copy(page, site.join("index.html"))?;
        // It is not told a port by the system; nobody takes it within this moment.
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let process = Command::new("python3")
            .args(["-m", "websockify", "--web", text(&site)?])
            .args(["--unix-target", text(socket)?, &format!("127.0.0.1:{port}")])
            .env("PYTHONPATH", clients().join("websockify"))
            .env("TMPDIR", place.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let websockify = Self {
            process,
            address: format!("http://127.0.0.1:{port}/"),
        };
        eventually("websockify listens", UP, || {
            TcpStream::connect(("127.0.0.1", port)).ok()
        })?;
        Ok(websockify)
    }
}

impl Drop for Websockify {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The browser, with what measures in it.
struct Browser {
    process: Child,
    input: ChildStdin,
    lines: Receiver<String>,
}

impl Browser {
    fn start(place: &Place, arguments: &[&str]) -> Outcome<Self> {
        let clients = clients().join("browser");
        if !clients.join("node_modules").exists() {
            return Err("no browser's tools: run `scripts/install-deps bench` first".into());
        }
        let mut command = Command::new("node");
        command
            .arg(root().join("bench/browser.mjs"))
            .arg(clients)
            .args(arguments)
            .env("HOME", place.path())
            .env("TMPDIR", place.path());
        let (mut process, lines) = spawn(command.stdin(Stdio::piped()))?;
        let input = process.stdin.take().ok_or("no pipe")?;
        Ok(Self {
            process,
            input,
            lines,
        })
    }

    /// What it says next.
    fn says(&self) -> Outcome<Value> {
        let line = self.lines.recv_timeout(SERIES)?;
        Ok(serde_json::from_str(&line)?)
    }

    fn goes_on(&mut self) -> Outcome<()> {
        Ok(writeln!(self.input)?)
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // What it started ends with its place.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Starts a program, and hands over its lines.
fn spawn(command: &mut Command) -> Outcome<(Child, Receiver<String>)> {
    let mut process = command.stdout(Stdio::piped()).spawn()?;
    let stdout = process.stdout.take().ok_or("no pipe")?;
    let (sender, lines) = channel();
    thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    Ok((process, lines))
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn clients() -> PathBuf {
    root().join("target/clients")
}
