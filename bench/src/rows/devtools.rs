//! What the gate of a browser desktop adds to each DevTools command, and what it leaves of the pictures a
//! second that the same browser gives on its own pipe.

use std::{
    fs::{File, OpenOptions},
    io::{BufRead, BufReader, Read, Write},
    os::unix::net::UnixStream,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use handover_protocol::Method;
use serde_json::{Value, json};

use crate::{
    Outcome,
    figures::{Row, Samples, median},
    place::{path, text},
    session::Session,
};

/// What both browsers show.
const PAGE: &str = "data:text/html,<h1>bench</h1>";
/// Rounds, in each of which both ways have their turn.
const ROUNDS: usize = 10;
/// Commands in one turn.
const COMMANDS: usize = 50;
/// Pictures in one turn.
const PICTURES: usize = 3;

/// One browser through the gate, one by its own pipe, in turns.
pub fn measure() -> Outcome<Vec<Row>> {
    let session = Session::up("1280x800")?;
    let wire = session.wire()?;
    let params = json!({"size": "1280x800", "browser": PAGE});
    let made = wire.call(Method::DesktopNew, params)?;
    let opened = wire.call(Method::CdpOpen, json!({"desktop": made["id"]}))?;
    let stream = UnixStream::connect(path(&opened["socketPath"])?)?;
    let mut gated = DevTools::new(stream.try_clone()?, stream, b'\n');
    let mut direct = direct(&session)?;
    for browser in [&mut gated, &mut direct] {
        browser.attach()?;
    }

    let (mut through, mut beside) = (Samples::default(), Samples::default());
    let mut shares = Vec::new();
    for _ in 0..ROUNDS {
        for (browser, samples) in [(&mut gated, &mut through), (&mut direct, &mut beside)] {
            for _ in 0..COMMANDS {
                let started = Instant::now();
                browser.call("Runtime.evaluate", json!({"expression": "1"}))?;
                samples.push(started.elapsed());
            }
        }
        let [gated, direct] = [&mut gated, &mut direct].map(pictures);
        shares.push(direct?.as_secs_f64() / gated?.as_secs_f64());
    }
    let added = through.median().saturating_sub(beside.median());
    Ok(vec![
        Row::times("DevTools command on the browser's own pipe", beside),
        Row::times("DevTools command through the gate", through),
        Row::number(
            "DevTools command, added by the gate",
            added.as_secs_f64() * 1000.0,
            "ms",
        )
        .less_than(0.3),
        Row::number(
            "DevTools pictures a second, share of direct",
            median(shares),
            "",
        ),
    ])
}

/// How long some pictures take.
fn pictures(browser: &mut DevTools) -> Outcome<Duration> {
    let started = Instant::now();
    for _ in 0..PICTURES {
        browser.call("Page.captureScreenshot", json!({}))?;
    }
    Ok(started.elapsed())
}

/// A browser on the other desktop, with its pipe in our hands.
fn direct(session: &Session) -> Outcome<DevTools> {
    let place = session.place().path();
    let pipes = ["commands", "answers"].map(|name| place.join(name));
    for pipe in &pipes {
        if !Command::new("mkfifo").arg(pipe).status()?.success() {
            return Err("mkfifo failed".into());
        }
    }
    let [commands, answers] = &pipes;
    let root = if rustix::process::geteuid().is_root() {
        "--no-sandbox"
    } else {
        ""
    };
    let script = format!(
        "exec chromium --remote-debugging-pipe --no-first-run --disable-background-networking \
         --disable-sync --disable-dev-shm-usage --ozone-platform=x11 --window-position=0,0 \
         --window-size=1280,800 --user-data-dir={} {root} '{PAGE}' 3<{} 4>{}",
        text(&place.join("profile"))?,
        text(commands)?,
        text(answers)?,
    );
    let launch = json!({"desktop": "d1", "command": ["sh", "-c", script]});
    session.wire()?.call(Method::DesktopLaunch, launch)?;
    let open = |path: &Path, write: bool| -> std::io::Result<File> {
        OpenOptions::new().read(!write).write(write).open(path)
    };
    // In the order in which the shell opens its ends.
    let writer = open(commands, true)?;
    Ok(DevTools::new(open(answers, false)?, writer, 0))
}

/// A connection to a browser, on which each message has this end.
struct DevTools {
    reader: BufReader<Box<dyn Read>>,
    writer: Box<dyn Write>,
    end: u8,
    session: Option<Value>,
    last: u64,
}

impl DevTools {
    fn new(reader: impl Read + 'static, writer: impl Write + 'static, end: u8) -> Self {
        Self {
            reader: BufReader::new(Box::new(reader)),
            writer: Box::new(writer),
            end,
            session: None,
            last: 0,
        }
    }

    fn call(&mut self, method: &str, params: Value) -> Outcome<Value> {
        self.last += 1;
        let mut command = json!({"id": self.last, "method": method, "params": params});
        if let Some(session) = &self.session {
            command["sessionId"] = session.clone();
        }
        let mut bytes = command.to_string().into_bytes();
        bytes.push(self.end);
        self.writer.write_all(&bytes)?;
        let begin = format!("{{\"id\":{},", self.last);
        loop {
            let mut message = Vec::new();
            if self.reader.read_until(self.end, &mut message)? == 0 {
                return Err("the browser has ended".into());
            }
            message.pop();
            // Reading a picture is no part of what is measured, so only its beginning is looked at.
            if !message.starts_with(begin.as_bytes()) {
                continue;
            }
            if message.len() > 1 << 16 {
                return Ok(Value::Null);
            }
            let answer: Value = serde_json::from_slice(&message)?;
            return match answer.get("error") {
                Some(error) => Err(error.to_string().into()),
                None => Ok(answer["result"].clone()),
            };
        }
    }

    /// Attaches to the page, once there is one.
    fn attach(&mut self) -> Outcome<()> {
        let started = Instant::now();
        while started.elapsed() < Duration::from_secs(30) {
            let targets = self.call("Target.getTargets", json!({}))?;
            let mut targets = targets["targetInfos"].as_array().into_iter().flatten();
            let Some(page) = targets.find(|target| target["type"] == "page") else {
                std::thread::sleep(Duration::from_millis(20));
                continue;
            };
            let params = json!({"targetId": page["targetId"], "flatten": true});
            let attached = self.call("Target.attachToTarget", params)?;
            self.session = Some(attached["sessionId"].clone());
            return Ok(());
        }
        Err("the browser has no page".into())
    }
}
