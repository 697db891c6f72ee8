//! Of everybody but root a browser runs in its own sandbox, and where it cannot, not at all.

use std::io::Write;
use std::path::Path;
use std::process::ChildStdin;

use serde_json::{Value, json};

use crate::support::{LONG, Place, Running, Session, Signal, command_line, eventually};

const PAGE: &str = "data:text/html,<title>page</title>";

/// `handover browser cdp`, attached to the page.
struct Bridge {
    running: Running,
    input: ChildStdin,
    session: Option<String>,
    last: u64,
}

impl Bridge {
    fn open(session: &Session) -> Self {
        let mut command = session.place.handover();
        let (running, input) = Running::start_with_input(command.args(["browser", "cdp"]));
        let mut bridge = Self {
            running,
            input,
            session: None,
            last: 0,
        };
        let page = eventually("the page is loaded", LONG, || {
            let targets = bridge.ask("Target.getTargets", json!({}));
            let targets = targets["result"]["targetInfos"].as_array()?;
            let page = targets.iter().find(|target| target["title"] == "page")?;
            Some(page["targetId"].clone())
        });
        let attach = json!({"targetId": page, "flatten": true});
        let attached = bridge.ask("Target.attachToTarget", attach);
        let session = attached["result"]["sessionId"].as_str();
        bridge.session = Some(session.expect("a session").to_owned());
        bridge
    }

    /// The answer to a command, whether it was done or not.
    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.last += 1;
        let id = self.last;
        let mut command = json!({"id": id, "method": method, "params": params});
        if let Some(session) = &self.session {
            command["sessionId"] = json!(session);
        }
        writeln!(self.input, "{command}").expect("it reads");
        self.running.line("an answer", |line| line["id"] == id)
    }

    fn title(&mut self) -> Value {
        self.ask("Runtime.evaluate", json!({"expression": "document.title"}))
    }
}

/// What the kernel says of a process.
fn status(pid: i32, field: &str) -> String {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let mut lines = status.lines();
    let value = lines.find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    value.expect("a field of every process").trim().to_owned()
}

#[test]
fn an_ordinary_users_browser_is_in_its_sandbox_and_behind_the_gate() {
    let Some(place) = Place::of_an_ordinary_user() else {
        return;
    };
    let mut namespaces = place.command("unshare");
    if Running::start(namespaces.args(["-Ur", "true"]))
        .finish(LONG)
        .code
        != 0
    {
        eprintln!("skipped: no user namespaces for ordinary users here");
        return;
    }
    let session = Session::with(place, &[]);
    let desktop = ["desktop", "new", "--size", "800x600", "--browser", PAGE];
    session.cli(&desktop).done();
    let mut bridge = Bridge::open(&session);
    assert_eq!(bridge.title()["result"]["result"]["value"], "page");

    let processes = session.place.processes();
    let named = |name: &str| {
        let all = processes.iter().copied();
        let found: Vec<i32> = all
            .filter(|&pid| command_line(pid).contains(name))
            .collect();
        assert!(!found.is_empty(), "no {name}");
        found
    };
    for pid in named("--remote-debugging-pipe") {
        assert!(!command_line(pid).contains("--no-sandbox"));
    }
    for page in named("--type=renderer") {
        let nested = status(page, "NSpid").split_whitespace().count();
        assert!(nested > 1, "{page} sees all processes");
        assert_eq!(
            status(page, "Seccomp"),
            "2",
            "{page} may make any system call"
        );
    }

    let person = session.start(&["watch", "--control", "--viewer", "none"]);
    person.line("control", |line| line["event"] == "acquired");
    let refused = bridge.title();
    assert_eq!(refused["error"]["code"], -32050, "{refused}");
    assert_eq!(refused["error"]["data"]["code"], "human_control_active");
    person.signal(Signal::TERM);
    person.line("the end", |line| line["event"] == "ended");
    assert_eq!(bridge.title()["result"]["result"]["value"], "page");

    session.cli(&["down"]).done();
    eventually("nothing is left", LONG, || {
        let left = session.place.processes();
        let own = [bridge.running.pid(), person.pid()];
        left.iter().all(|pid| own.contains(pid)).then_some(())
    });
}

/// Lets a user of its own run a command where no further user namespace can be made.
const WITHOUT: &str = "echo 1 >/proc/sys/user/max_user_namespaces && exec unshare --user --map-user=1000 --map-group=1000 \"$@\"";

#[test]
fn without_a_sandbox_there_is_no_browser_but_a_remedy() {
    let mut place = Place::new();
    let starter = [
        "unshare",
        "--user",
        "--map-root-user",
        "sh",
        "-c",
        WITHOUT,
        "sh",
    ];
    place.start_by(&starter);
    let tried = Running::start(&mut place.command("true")).finish(LONG);
    if tried.code != 0 {
        eprintln!("skipped: no user namespaces here: {}", tried.err);
        return;
    }
    let session = Session::with(place, &[]);
    let said = session.cli(&["desktop", "new", "--browser", PAGE]);
    assert_eq!(said.refused(), "display_unavailable");
    let message = said.json()["error"]["message"].to_string();
    assert!(message.contains("sandbox"), "{message}");
    // The helper that needs none of them says itself what is wrong with it.
    if !Path::new("/usr/lib/chromium/chrome-sandbox").exists() {
        assert!(message.contains("allow user namespaces"), "{message}");
    }
    assert_eq!(session.cli(&["list"]).done()["desktops"], json!([]));
    let left = session.place.processes();
    let browser = left
        .iter()
        .find(|&&pid| command_line(pid).contains("--user-data-dir"));
    assert_eq!(browser, None, "it is left behind");
}
