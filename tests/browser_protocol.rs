//! E2 for browsers: every command of the DevTools protocol, as the installed Chromium describes it, has its
//! gate. A command that a new Chromium brings acts until it is declared to be something else.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::support::{LONG, Place, Running, attached, eventually, with_browser};

/// What passes in human time: it neither changes nor shows anything of a page.
const NEUTRAL: [&str; 7] = [
    "Browser.getVersion",
    "Runtime.releaseObject",
    "Runtime.releaseObjectGroup",
    "Runtime.runIfWaitingForDebugger",
    "Schema.getDomains",
    "Target.detachFromTarget",
    "Target.setDiscoverTargets",
];

/// What never passes: it would lead past the gate, have code run in a person's pages, or end the browser for
/// everybody. So it is with all of `Extensions`.
const FORBIDDEN: [&str; 14] = [
    "Browser.close",
    "Browser.crash",
    "Browser.crashGpuProcess",
    "Browser.executeBrowserCommand",
    "Extensions.loadUnpacked",
    "Network.setRequestInterception",
    "Page.addCompilationCache",
    "Page.addScriptToEvaluateOnLoad",
    "Target.exposeDevToolsProtocol",
    "Target.openDevTools",
    "Target.sendMessageToTarget",
    "Target.setRemoteLocations",
    "Tethering.bind",
    "Tethering.unbind",
];

/// All commands of the protocol. Only over HTTP does Chromium describe it, so another one is asked.
fn commands() -> Vec<String> {
    let place = Place::new();
    let profile = place.path().join("profile");
    let mut chromium = place.command("chromium");
    chromium.args([
        "--headless",
        "--no-sandbox",
        "--no-first-run",
        "--disable-background-networking",
        "--remote-debugging-port=0",
    ]);
    chromium.arg(format!("--user-data-dir={}", profile.display()));
    let running = Running::start(&mut chromium);
    let port: u16 = eventually("Chromium listens", LONG, || {
        let said = fs::read_to_string(profile.join("DevToolsActivePort")).ok()?;
        said.lines().next()?.parse().ok()
    });
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("it accepts");
    let ask = format!("GET /json/protocol HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n");
    stream.write_all(ask.as_bytes()).expect("it reads");
    let mut answer = Vec::new();
    let protocol: Value = eventually("the whole protocol", LONG, || {
        let mut piece = [0; 1 << 16];
        let read = stream.read(&mut piece).expect("it answers");
        answer.extend_from_slice(&piece[..read]);
        let body = answer.windows(4).position(|end| end == b"\r\n\r\n")? + 4;
        serde_json::from_slice(&answer[body..]).ok()
    });
    drop(running);
    let domains = protocol["domains"].as_array().expect("domains").iter();
    domains
        .flat_map(|domain| {
            let commands = domain["commands"].as_array().into_iter().flatten();
            commands.map(|command| {
                let name = [&domain["domain"], &command["name"]].map(|name| name.as_str());
                format!("{}.{}", name[0].expect("a name"), name[1].expect("a name"))
            })
        })
        .collect()
}

#[test]
fn every_devtools_command_is_gated() {
    let commands = commands();
    assert!(commands.len() > 300, "{commands:?}");
    let session = with_browser("data:text/html,<title>page</title>");
    let mut client = attached(&session);
    let mut holder = session.take(json!({}));
    for command in &commands {
        // Sessions that are not flat do not even get so far.
        let id = client.send(command, json!({"flatten": true}));
        let answer = client.answer(id);
        if NEUTRAL.contains(&command.as_str()) {
            // Without parameters the browser itself may not take it.
            let passes = answer.map_or_else(|refused| refused.number != -32050, |_| true);
            assert!(passes, "{command}");
            continue;
        }
        let refused = answer.expect_err(command);
        assert_eq!(refused.number, -32050, "{command}");
        let forbidden = FORBIDDEN.contains(&command.as_str()) || command.starts_with("Extensions.");
        let code = if forbidden {
            "bad_params"
        } else {
            "human_control_active"
        };
        assert_eq!(refused.code, code, "{command}");
    }
    holder.give_back();
    for command in FORBIDDEN {
        assert_eq!(
            client.refused(command, json!({})).code,
            "bad_params",
            "{command}"
        );
    }
    for neutral in NEUTRAL {
        let known = commands.iter().any(|command| command == neutral);
        assert!(known, "{neutral} is no command any more");
    }
}
